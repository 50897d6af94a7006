//! How engines reach a model: with the operator's key, with a login of each agent, or not at all
//! because the model is rehearsed.

mod rehearsal;

use crate::config::EngineEnv;

pub(crate) use rehearsal::Rehearsal;

/// What of the daemon's own environment goes to engines.
const FROM_ENVIRONMENT: [&str; 6] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_BASE_URL",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
];

/// Other ways to a model, which count where the configuration names them: a key of somebody else's
/// that lies in the daemon's environment is not for engines.
const CONFIGURED: [&str; 2] = ["OPENAI_BASE_URL", "OPENAI_API_KEY"];

/// What engines get to know.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelAccess {
    /// Variables for engines alone.
    pub(crate) env: EngineEnv,
    /// Whether a rehearsed model answers instead of a real one.
    pub(crate) rehearsed: bool,
}

impl ModelAccess {
    /// What the configuration and the daemon's environment give; the configuration wins.
    pub(crate) fn new(configured: &EngineEnv, var: impl Fn(&str) -> Option<String>) -> Self {
        let mut env = EngineEnv::default();
        for name in FROM_ENVIRONMENT {
            if let Some(value) = var(name).filter(|value| !value.is_empty()) {
                env.set(name, value);
            }
        }
        for (name, value) in configured.iter() {
            env.set(name, value);
        }
        Self {
            env,
            rehearsed: false,
        }
    }

    /// Whether engines go through the gateway. Amazon's and Google's services sign each request in
    /// the engine itself, with keys of their own kind.
    pub(crate) fn is_gated(&self, wanted: bool) -> bool {
        let is_set = |name| self.env.get(name).is_some_and(|value| !value.is_empty());
        wanted && !is_set("CLAUDE_CODE_USE_BEDROCK") && !is_set("CLAUDE_CODE_USE_VERTEX")
    }

    /// Whether engines share a key or a service that the operator named.
    pub(crate) fn is_given(&self) -> bool {
        let ways = FROM_ENVIRONMENT.iter().chain(&CONFIGURED);
        ways.into_iter()
            .any(|name| self.env.get(name).is_some_and(|value| !value.is_empty()))
    }

    /// The same hive with a rehearsed model at this address.
    pub(crate) fn rehearse(&mut self, url: &str) {
        self.rehearsed = true;
        self.env.set("ANTHROPIC_BASE_URL", url);
        self.env.set("ANTHROPIC_API_KEY", "rehearsal");
        // Nothing else is asked of the real service either.
        self.env
            .set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_the_configuration_and_then_from_the_environment() {
        let mut configured = EngineEnv::default();
        assert!(!ModelAccess::new(&configured, |_| None).is_given());
        let empty = ModelAccess::new(&configured, |_| Some(String::new()));
        assert!(!empty.is_given(), "an empty key is none");

        let var = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "env".to_owned());
        let access = ModelAccess::new(&configured, var);
        assert_eq!(access.env.get("ANTHROPIC_API_KEY"), Some("env"));
        assert!(access.is_given() && !access.rehearsed);

        configured.set("ANTHROPIC_API_KEY", "file");
        configured.set("OTHER", "1");
        let access = ModelAccess::new(&configured, var);
        assert_eq!(access.env.get("ANTHROPIC_API_KEY"), Some("file"));
        assert_eq!(access.env.get("OTHER"), Some("1"));
        let mut local = EngineEnv::default();
        local.set("OPENAI_BASE_URL", "http://127.0.0.1:11434/v1");
        assert!(ModelAccess::new(&local, |_| None).is_given());
        let foreign = |name: &str| (name == "OPENAI_API_KEY").then(|| "x".to_owned());
        assert!(!ModelAccess::new(&EngineEnv::default(), foreign).is_given());
        let everything = |_: &str| Some("x".to_owned());
        let access = ModelAccess::new(&configured, everything);
        assert_eq!(
            access.env.get("PATH"),
            None,
            "only what is meant for engines"
        );
    }

    #[test]
    fn a_rehearsal_holds_no_key() {
        let mut access = ModelAccess::default();
        access.rehearse("http://127.0.0.1:1");
        assert!(access.rehearsed);
        assert_eq!(access.env.get("ANTHROPIC_API_KEY"), Some("rehearsal"));
        assert_eq!(
            access.env.get("ANTHROPIC_BASE_URL"),
            Some("http://127.0.0.1:1")
        );
    }
}
