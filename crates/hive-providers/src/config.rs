//! Which API to ask, where and with which key, from the environment that `claude` also reads.

use std::{sync::Arc, time::Duration};

use thiserror::Error;

use crate::{
    Client, Endpoint, EndpointError, Fetch, RetryPolicy, Secret, Timeouts,
    anthropic::{Anthropic, Credential},
    openai::OpenAi,
};

/// Variables that hold secrets: no tool, server or log may see them.
pub const SECRET_VARIABLES: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "HIVE_ENGINE_HEADERS",
];

/// Which family of API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provider {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI-compatible chat completions.
    OpenAi,
}

/// Where the key came from, as `claude` names it in its `init` event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeySource(pub &'static str);

/// A configuration that cannot work.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// A base URL makes no sense.
    #[error("{variable}: {error}")]
    BaseUrl {
        /// Where it was set.
        variable: &'static str,
        /// What is wrong.
        error: EndpointError,
    },
    /// A provider that does not exist.
    #[error("unknown provider {0:?}: use \"anthropic\" or \"openai\"")]
    Provider(String),
    /// A number that is none.
    #[error("{variable}={value:?} is not a whole number")]
    Number {
        /// Where it was set.
        variable: &'static str,
        /// What it says.
        value: String,
    },
    /// A header that is none.
    #[error("Invalid {0} · Fix the environment variable")]
    Headers(&'static str),
}

/// A client and what to tell about it.
#[derive(Debug, Clone)]
pub struct Configured {
    /// Ready to ask.
    pub client: Client,
    /// The family.
    pub provider: Provider,
    /// Where the key came from; `none` without one.
    pub key_source: KeySource,
    /// Whether requests can be authorised at all: a key, or a server that needs none.
    pub has_key: bool,
}

/// Builds the client for `model` from `env`; `explicit` names the provider.
pub fn configure(
    model: &str,
    explicit: Option<&str>,
    env: impl Fn(&str) -> Option<String>,
) -> Result<Configured, ConfigError> {
    let get = |name: &str| env(name).filter(|value| !value.trim().is_empty());
    let named = explicit
        .map(str::to_owned)
        .or_else(|| get("HIVE_ENGINE_PROVIDER"));
    let provider = match named.as_deref() {
        Some("anthropic") => Provider::Anthropic,
        Some("openai") => Provider::OpenAi,
        Some(other) => return Err(ConfigError::Provider(other.to_owned())),
        None => guess(model, &get),
    };
    let policy = policy(&get)?;
    let timeouts = timeouts(&get)?;
    let headers = headers(&get)?.into_iter();
    let headers = headers.map(|(name, value)| (name, Secret::new(&value)));
    let headers = headers.collect();
    Ok(match provider {
        Provider::Anthropic => {
            let endpoint = endpoint(&get, "ANTHROPIC_BASE_URL", "https://api.anthropic.com")?;
            let (credential, source) = anthropic_credential(&get);
            let fetch = Fetch::new(Some(&endpoint), get);
            let has_key = credential.is_some();
            let dialect = Arc::new(Anthropic {
                credential,
                headers,
            });
            Configured {
                client: Client::new(dialect, endpoint, fetch, policy, timeouts),
                provider,
                key_source: KeySource(source),
                has_key,
            }
        }
        Provider::OpenAi => {
            let endpoint = endpoint(&get, "OPENAI_BASE_URL", "https://api.openai.com/v1")?;
            let key = get("OPENAI_API_KEY").map(|key| Secret::new(&key));
            let is_openai = endpoint.is_host("api.openai.com");
            let fetch = Fetch::new(Some(&endpoint), get);
            let source = if key.is_some() {
                "OPENAI_API_KEY"
            } else {
                "none"
            };
            // Only the hosted service insists on a key; a local server has none to give.
            let has_key = key.is_some() || !is_openai;
            let dialect = Arc::new(OpenAi {
                key,
                headers,
                is_openai,
            });
            Configured {
                client: Client::new(dialect, endpoint, fetch, policy, timeouts),
                provider,
                key_source: KeySource(source),
                has_key,
            }
        }
    })
}

fn guess(model: &str, get: &impl Fn(&str) -> Option<String>) -> Provider {
    let has = |names: &[&str]| names.iter().any(|name| get(name).is_some());
    let anthropic = has(&[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
    ]);
    let openai = has(&["OPENAI_API_KEY", "OPENAI_BASE_URL"]);
    match (anthropic, openai) {
        (false, true) => Provider::OpenAi,
        (true, true) if !model.contains("claude") => Provider::OpenAi,
        _ => Provider::Anthropic,
    }
}

/// The key for Anthropic's API, and the variable it comes from; `none` without one.
pub fn anthropic_credential(
    get: &impl Fn(&str) -> Option<String>,
) -> (Option<Credential>, &'static str) {
    let secret = |name| get(name).map(|value| Secret::new(&value));
    if let Some(token) = secret("ANTHROPIC_AUTH_TOKEN") {
        return (Some(Credential::Bearer(token)), "ANTHROPIC_AUTH_TOKEN");
    }
    if let Some(key) = secret("ANTHROPIC_API_KEY") {
        return (Some(Credential::ApiKey(key)), "ANTHROPIC_API_KEY");
    }
    match secret("CLAUDE_CODE_OAUTH_TOKEN") {
        Some(token) => (Some(Credential::OAuth(token)), "CLAUDE_CODE_OAUTH_TOKEN"),
        None => (None, "none"),
    }
}

fn endpoint(
    get: &impl Fn(&str) -> Option<String>,
    variable: &'static str,
    default: &str,
) -> Result<Endpoint, ConfigError> {
    let url = get(variable).unwrap_or_else(|| default.to_owned());
    Endpoint::parse(&url).map_err(|error| ConfigError::BaseUrl { variable, error })
}

fn number(
    get: &impl Fn(&str) -> Option<String>,
    variable: &'static str,
) -> Result<Option<u64>, ConfigError> {
    get(variable)
        .map(|value| {
            value
                .trim()
                .parse()
                .map_err(|_| ConfigError::Number { variable, value })
        })
        .transpose()
}

fn policy(get: &impl Fn(&str) -> Option<String>) -> Result<RetryPolicy, ConfigError> {
    let mut policy = RetryPolicy::default();
    if let Some(retries) = number(get, "CLAUDE_CODE_MAX_RETRIES")? {
        policy.max_retries = u32::try_from(retries).unwrap_or(u32::MAX).min(100);
    }
    Ok(policy)
}

fn timeouts(get: &impl Fn(&str) -> Option<String>) -> Result<Timeouts, ConfigError> {
    let mut timeouts = Timeouts::default();
    if let Some(ms) = number(get, "API_TIMEOUT_MS")? {
        timeouts.first_byte = Duration::from_millis(ms);
    }
    if let Some(ms) = number(get, "CLAUDE_STREAM_IDLE_TIMEOUT_MS")? {
        timeouts.idle = Duration::from_millis(ms);
    }
    Ok(timeouts)
}

/// The further header fields that the configuration asks for: `Name: value` lines.
///
/// # Errors
/// With the variable that makes no sense.
pub fn headers(
    get: &impl Fn(&str) -> Option<String>,
) -> Result<Vec<(String, String)>, ConfigError> {
    let mut headers = Vec::new();
    for variable in ["ANTHROPIC_CUSTOM_HEADERS", "HIVE_ENGINE_HEADERS"] {
        for line in get(variable).unwrap_or_default().lines() {
            if line.trim().is_empty() {
                continue;
            }
            let (name, value) = line.split_once(':').ok_or(ConfigError::Headers(variable))?;
            let name = name.trim().to_lowercase();
            let is_name = |name: &str| {
                let legal = |c: char| c.is_ascii_alphanumeric() || "-_.!#$%&'*+^`|~".contains(c);
                !name.is_empty() && name.chars().all(legal)
            };
            if !is_name(&name) || value.chars().any(char::is_control) {
                return Err(ConfigError::Headers(variable));
            }
            headers.push((name, value.trim().to_owned()));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| {
            pairs
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_owned())
        }
    }

    #[test]
    fn the_provider_follows_from_what_is_set() {
        use Provider::*;
        for (model, explicit, pairs, expected) in [
            ("claude-x", None, &[][..], Anthropic),
            (
                "claude-x",
                None,
                &[("ANTHROPIC_API_KEY", "k")][..],
                Anthropic,
            ),
            (
                "qwen",
                None,
                &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")],
                OpenAi,
            ),
            (
                "claude-x",
                None,
                &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")],
                Anthropic,
            ),
            (
                "gpt-x",
                None,
                &[("OPENAI_API_KEY", "k"), ("ANTHROPIC_API_KEY", "k")],
                OpenAi,
            ),
            (
                "gpt-x",
                Some("anthropic"),
                &[("OPENAI_API_KEY", "k")],
                Anthropic,
            ),
        ] {
            let configured = configure(model, explicit, env(pairs)).unwrap();
            assert_eq!(configured.provider, expected, "{model} {pairs:?}");
        }
    }

    #[test]
    fn keys_have_an_order_and_are_not_shown() {
        let configured = configure(
            "claude-x",
            None,
            env(&[
                ("ANTHROPIC_API_KEY", "sk-secret-1"),
                ("ANTHROPIC_AUTH_TOKEN", "tok-secret-2"),
                ("ANTHROPIC_CUSTOM_HEADERS", "x-gateway-key: secret-3"),
            ]),
        )
        .unwrap();
        assert_eq!(configured.key_source, KeySource("ANTHROPIC_AUTH_TOKEN"));
        assert!(!format!("{configured:?}").contains("secret"));
        assert!(!configure("claude-x", None, env(&[])).unwrap().has_key);
        assert!(
            configure("q", None, env(&[("OPENAI_BASE_URL", "http://[::1]:1")]))
                .unwrap()
                .has_key
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (pairs, needle) in [
            (
                &[("ANTHROPIC_BASE_URL", "nonsense")][..],
                "ANTHROPIC_BASE_URL",
            ),
            (
                &[("CLAUDE_CODE_MAX_RETRIES", "many")][..],
                "CLAUDE_CODE_MAX_RETRIES",
            ),
            (
                &[("ANTHROPIC_CUSTOM_HEADERS", "no colon")][..],
                "ANTHROPIC_CUSTOM_HEADERS",
            ),
            (&[("HIVE_ENGINE_PROVIDER", "gemini")][..], "anthropic"),
        ] {
            let error = configure("claude-x", None, env(pairs)).unwrap_err();
            assert!(error.to_string().contains(needle), "{error}");
        }
    }
}
