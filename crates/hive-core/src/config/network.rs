//! `[agents] network`, `[agents.egress]` and the budgets: what agents may reach and spend.

use serde::Deserialize;

use crate::egress::Target;

/// Where agents may go through the egress proxy.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Egress {
    /// Patterns of host names; empty for every public one.
    pub allow: Vec<String>,
    /// Patterns of host names that stay out of reach whatever is allowed.
    pub deny: Vec<String>,
    /// The ports that may be connected to.
    pub ports: Vec<u16>,
    /// Places as `host:port` that may be reached although their addresses are private.
    pub private: Vec<String>,
}

impl Default for Egress {
    fn default() -> Self {
        Self {
            allow: Vec::new(),
            deny: Vec::new(),
            ports: vec![80, 443],
            private: Vec::new(),
        }
    }
}

impl Egress {
    pub(super) fn check(&self) -> anyhow::Result<()> {
        for (key, patterns) in [("allow", &self.allow), ("deny", &self.deny)] {
            for pattern in patterns {
                let is_pattern = !pattern.is_empty()
                    && pattern
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"*.-_[]:".contains(&byte));
                anyhow::ensure!(
                    is_pattern,
                    "agents.egress.{key}: `{pattern}` is no pattern of a host name, such as \
                     \"*.example.org\""
                );
            }
        }
        anyhow::ensure!(
            !self.ports.contains(&0),
            "agents.egress.ports: 0 is no port"
        );
        for place in &self.private {
            anyhow::ensure!(
                Target::parse(place, None).is_some(),
                "agents.egress.private: `{place}` is no place; write it like \"forge.lan:3000\""
            );
        }
        Ok(())
    }
}

/// What may be spent in a day; nothing set is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Tokens of every kind together.
    pub tokens: Option<u64>,
    /// US dollars, by the price list of the models.
    pub usd: Option<f64>,
}

impl Budget {
    pub(super) fn check(&self, of: &str) -> anyhow::Result<()> {
        if let Some(usd) = self.usd {
            anyhow::ensure!(
                usd.is_finite() && (0.0..=1e9).contains(&usd),
                "{of}.usd is an amount of US dollars for a day, such as 5.0"
            );
        }
        Ok(())
    }
}
