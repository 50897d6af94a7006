//! The services behind the gateway, and whose credential a call carries.

use hive_providers::{
    Connector, Endpoint, Secret,
    anthropic::{Credential, OAUTH_BETA},
    config::{ConfigError, SECRET_VARIABLES, anthropic_credential, headers},
};
use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, HeaderName, HeaderValue},
};
use hyper_util::{client::legacy::Client, rt::TokioExecutor};

use super::body::Sent;
use crate::config::EngineEnv;

/// What an engine is given instead of a key. It opens nothing: the gateway takes it out.
pub(crate) const PLACEHOLDER: &str = "the-hive-adds-the-key";

const ANTHROPIC: &str = "https://api.anthropic.com";
const OPENAI: &str = "https://api.openai.com/v1";
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const BETA: HeaderName = HeaderName::from_static("anthropic-beta");

/// Which family of API a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    Anthropic,
    OpenAi,
}

/// Whose credential a call carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Login {
    /// The operator's.
    Host,
    /// One that the agent has by itself.
    Own,
    /// Nobody's.
    Nobody,
}

/// One service.
pub(crate) struct Upstream {
    pub(super) api: Api,
    pub(super) endpoint: Endpoint,
    pub(super) client: Client<Connector, Sent>,
    credential: Option<Credential>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Every service that engines are led to.
pub(crate) struct Upstreams {
    anthropic: Upstream,
    openai: Option<Upstream>,
}

impl Upstreams {
    /// The services that the engines' environment names; `var` is the daemon's own, for its proxy.
    ///
    /// # Errors
    /// With the variable that makes no sense.
    pub(crate) fn new(
        env: &EngineEnv,
        var: impl Fn(&str) -> Option<String> + Copy,
    ) -> Result<Self, ConfigError> {
        let get = |name: &str| {
            let value = env.get(name).map(str::to_owned);
            value.filter(|value| !value.trim().is_empty())
        };
        let headers = own_headers(headers(&get)?);
        let upstream = |api, variable: &'static str, default: &str, credential| {
            let url = get(variable).unwrap_or_else(|| default.to_owned());
            let endpoint =
                Endpoint::parse(&url).map_err(|error| ConfigError::BaseUrl { variable, error })?;
            let client = Client::builder(TokioExecutor::new())
                .pool_max_idle_per_host(16)
                .build(Connector::new(Some(&endpoint), var));
            Ok(Upstream {
                api,
                endpoint,
                client,
                credential,
                headers: headers.clone(),
            })
        };
        let openai_key = get("OPENAI_API_KEY").map(|key| Credential::Bearer(Secret::new(&key)));
        let anthropic_key = anthropic_credential(&get).0;
        let has_openai = openai_key.is_some() || get("OPENAI_BASE_URL").is_some();
        let openai = has_openai
            .then(|| upstream(Api::OpenAi, "OPENAI_BASE_URL", OPENAI, openai_key))
            .transpose()?;
        let (variable, default) = ("ANTHROPIC_BASE_URL", ANTHROPIC);
        Ok(Self {
            anthropic: upstream(Api::Anthropic, variable, default, anthropic_key)?,
            openai,
        })
    }

    /// The service that a path is for, and the path there; none for a service that is not
    /// configured.
    pub(super) fn of<'p>(&self, path: &'p str) -> Option<(&Upstream, &'p str)> {
        match path.strip_prefix("/openai/v1") {
            Some(rest) if rest.starts_with('/') => Some((self.openai.as_ref()?, rest)),
            _ => Some((&self.anthropic, path)),
        }
    }
}

impl Upstream {
    /// Puts the host's credential in the place of the engine's. A token that the agent got by a
    /// login of its own stays.
    pub(super) fn authorise(&self, headers: &mut HeaderMap) -> Login {
        let key = headers.remove(API_KEY).filter(|key| key != PLACEHOLDER);
        let token = headers
            .remove(AUTHORIZATION)
            .filter(|token| !is_placeholder(token));
        let login = match (token, &self.credential, key) {
            (Some(token), _, _) => {
                headers.insert(AUTHORIZATION, token);
                Login::Own
            }
            (None, Some(credential), _) => {
                sign(headers, credential);
                Login::Host
            }
            (None, None, Some(key)) => {
                headers.insert(API_KEY, key);
                Login::Own
            }
            (None, None, None) => Login::Nobody,
        };
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        login
    }

    /// `text` without the host's secrets: some services quote the key that they refuse, or the
    /// header that it came in.
    pub(super) fn mask(&self, text: &str) -> String {
        let text = match &self.credential {
            Some(
                Credential::ApiKey(secret) | Credential::Bearer(secret) | Credential::OAuth(secret),
            ) => secret.mask(text),
            None => text.to_owned(),
        };
        let own = self
            .headers
            .iter()
            .filter_map(|(_, value)| value.to_str().ok().map(Secret::new));
        own.fold(text, |text, value| value.mask(&text))
    }
}

/// The engines' environment with every secret taken out, and a placeholder for the key that is
/// used.
pub(crate) fn for_engines(env: &EngineEnv) -> EngineEnv {
    let get = |name: &str| {
        let value = env.get(name).map(str::to_owned);
        value.filter(|value| !value.trim().is_empty())
    };
    let used = anthropic_credential(&get).1;
    let mut inside = EngineEnv::default();
    for (name, value) in env.iter() {
        let is_address = matches!(name, "ANTHROPIC_BASE_URL" | "OPENAI_BASE_URL");
        let is_used = name == used || (name == "OPENAI_API_KEY" && get(name).is_some());
        if is_used {
            inside.set(name, PLACEHOLDER);
        } else if !is_address && !SECRET_VARIABLES.contains(&name) {
            inside.set(name, value);
        }
    }
    inside
}

fn sign(headers: &mut HeaderMap, credential: &Credential) {
    let mut put = |name: HeaderName, value: String| match HeaderValue::try_from(value) {
        Ok(mut value) => {
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Err(_) => tracing::error!("the model's key holds what no header can: no call will work"),
    };
    match credential {
        Credential::ApiKey(key) => put(API_KEY, key.expose().to_owned()),
        Credential::Bearer(token) => put(AUTHORIZATION, format!("Bearer {}", token.expose())),
        Credential::OAuth(token) => {
            put(AUTHORIZATION, format!("Bearer {}", token.expose()));
            let betas = headers.get_all(BETA);
            let said = betas.iter().filter_map(|value| value.to_str().ok());
            let mut betas: Vec<String> = said.map(str::to_owned).collect();
            if !betas.iter().any(|beta| beta.contains(OAUTH_BETA)) {
                betas.push(OAUTH_BETA.to_owned());
            }
            if let Ok(value) = HeaderValue::try_from(betas.join(",")) {
                headers.insert(BETA, value);
            }
        }
    }
}

fn is_placeholder(token: &HeaderValue) -> bool {
    let token = token.to_str().unwrap_or_default();
    let value = token.split_once(' ').map_or(token, |(_, value)| value);
    value.trim() == PLACEHOLDER
}

fn own_headers(headers: Vec<(String, String)>) -> Vec<(HeaderName, HeaderValue)> {
    let field = |(name, value): (String, String)| {
        let mut value = HeaderValue::try_from(value).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::try_from(name).ok()?, value))
    };
    headers.into_iter().filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> EngineEnv {
        let mut env = EngineEnv::default();
        for (name, value) in pairs {
            env.set(name, *value);
        }
        env
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &str)| {
            (HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(field).collect()
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn the_hosts_key_takes_the_place_of_the_engines_and_an_own_login_stays() {
        const DUMMY: &str = PLACEHOLDER;
        const DUMMY_BEARER: &str = "Bearer the-hive-adds-the-key";
        let key: &[_] = &[("ANTHROPIC_API_KEY", "sk-real")];
        let token: &[_] = &[
            ("ANTHROPIC_AUTH_TOKEN", "tok-real"),
            ("ANTHROPIC_API_KEY", "sk-real"),
        ];
        let oauth: &[_] = &[("CLAUDE_CODE_OAUTH_TOKEN", "oat-real")];
        const BETA: &str = "anthropic-beta";
        type Fields = &'static [(&'static str, &'static str)];
        type Case<'a> = (&'a [(&'a str, &'a str)], Fields, Login, Fields);
        let cases: &[Case<'_>] = &[
            (
                key,
                &[("x-api-key", DUMMY)],
                Login::Host,
                &[("x-api-key", "sk-real")],
            ),
            (
                key,
                &[("x-api-key", "sk-other")],
                Login::Host,
                &[("x-api-key", "sk-real")],
            ),
            (key, &[], Login::Host, &[("x-api-key", "sk-real")]),
            (
                key,
                &[("authorization", DUMMY_BEARER)],
                Login::Host,
                &[("x-api-key", "sk-real")],
            ),
            (
                key,
                &[("authorization", "Bearer own"), ("x-api-key", DUMMY)],
                Login::Own,
                &[("authorization", "Bearer own")],
            ),
            (
                token,
                &[("x-api-key", DUMMY)],
                Login::Host,
                &[("authorization", "Bearer tok-real")],
            ),
            (
                oauth,
                &[("authorization", DUMMY_BEARER), (BETA, "a,b")],
                Login::Host,
                &[
                    ("authorization", "Bearer oat-real"),
                    (BETA, "a,b,oauth-2025-04-20"),
                ],
            ),
            (
                oauth,
                &[(BETA, "oauth-2025-04-20")],
                Login::Host,
                &[
                    ("authorization", "Bearer oat-real"),
                    (BETA, "oauth-2025-04-20"),
                ],
            ),
            (
                &[],
                &[("authorization", "Bearer own")],
                Login::Own,
                &[("authorization", "Bearer own")],
            ),
            (
                &[],
                &[("x-api-key", "own")],
                Login::Own,
                &[("x-api-key", "own")],
            ),
            (&[], &[("x-api-key", DUMMY)], Login::Nobody, &[]),
            (&[], &[("authorization", DUMMY_BEARER)], Login::Nobody, &[]),
        ];
        for (host, sent, login, expected) in cases {
            let upstreams = Upstreams::new(&env(host), |_| None).unwrap();
            let mut fields = headers(sent);
            assert_eq!(
                upstreams.anthropic.authorise(&mut fields),
                *login,
                "{host:?} {sent:?}"
            );
            assert_eq!(fields, headers(expected), "{host:?} {sent:?}");
        }
    }

    #[test]
    fn what_a_header_holds_of_the_operators_is_not_shown() {
        let env = env(&[
            ("ANTHROPIC_API_KEY", "sk-secret-1"),
            ("ANTHROPIC_CUSTOM_HEADERS", "x-team: secret-2"),
        ]);
        let upstreams = Upstreams::new(&env, |_| None).unwrap();
        let mut fields = HeaderMap::new();
        upstreams.anthropic.authorise(&mut fields);
        assert_eq!(fields.get("x-team").unwrap(), "secret-2");
        assert!(!format!("{fields:?}").contains("secret"), "{fields:?}");
        let quoted = upstreams
            .anthropic
            .mask("not with sk-secret-1 and secret-2");
        assert!(!quoted.contains("secret"), "{quoted}");
    }

    #[test]
    fn engines_get_placeholders_for_what_is_used_and_nothing_of_the_rest() {
        let env = env(&[
            ("ANTHROPIC_API_KEY", "sk-1"),
            ("ANTHROPIC_AUTH_TOKEN", "tok-1"),
            ("ANTHROPIC_BASE_URL", "https://models.example"),
            ("ANTHROPIC_CUSTOM_HEADERS", "x-team: 1"),
            ("OPENAI_API_KEY", "sk-2"),
            ("OPENROUTER_API_KEY", "sk-3"),
            ("MAX_THINKING_TOKENS", "1000"),
        ]);
        let inside = for_engines(&env);
        let found: Vec<_> = inside.iter().collect();
        assert_eq!(
            found,
            [
                ("ANTHROPIC_AUTH_TOKEN", PLACEHOLDER),
                ("MAX_THINKING_TOKENS", "1000"),
                ("OPENAI_API_KEY", PLACEHOLDER),
            ]
        );
        assert_eq!(for_engines(&EngineEnv::default()).iter().count(), 0);
    }

    #[test]
    fn paths_lead_to_services() {
        let both = Upstreams::new(&env(&[("OPENAI_API_KEY", "k")]), |_| None).unwrap();
        let one = Upstreams::new(&EngineEnv::default(), |_| None).unwrap();
        for (path, api, rest) in [
            ("/v1/messages", Api::Anthropic, "/v1/messages"),
            (
                "/openai/v1/chat/completions",
                Api::OpenAi,
                "/chat/completions",
            ),
            ("/openai/v1x", Api::Anthropic, "/openai/v1x"),
            ("/openai", Api::Anthropic, "/openai"),
        ] {
            let (upstream, found) = both.of(path).unwrap();
            assert_eq!((upstream.api, found), (api, rest), "{path}");
            assert_eq!(one.of(path).is_some(), api == Api::Anthropic, "{path}");
        }
        let bad = env(&[("OPENAI_BASE_URL", "nonsense")]);
        assert!(Upstreams::new(&bad, |_| None).is_err());
    }
}
