//! Where an agent may go: patterns of names, ports, and the few private places that the operator
//! names one by one.

use std::net::IpAddr;

use hive_providers::address;

use super::target::{Host, Target};
use crate::config::Egress;

/// What one agent may reach.
#[derive(Debug, Clone, Default)]
pub(crate) struct Policy {
    allow: Vec<String>,
    deny: Vec<String>,
    ports: Vec<u16>,
    private: Vec<Target>,
}

/// Why a place is out of reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The port is not among those that are open.
    Port,
    /// A pattern of the deny list.
    Denied(String),
    /// No pattern of the allow list.
    NotAllowed,
    /// This machine by name.
    Localhost,
    /// What the address is.
    Address(address::Refused),
}

impl Refusal {
    /// What happened, in words for the agent and the operator.
    pub(crate) fn words(&self, target: &Target) -> String {
        match self {
            Self::Port => format!("port {} is not open to agents", target.port),
            Self::Denied(pattern) => format!("{} is on the deny list ({pattern})", target.host),
            Self::NotAllowed => format!("{} is not on the allow list", target.host),
            Self::Localhost => format!("{} is the hive's own machine", target.host),
            Self::Address(what) => format!("{} leads to {what}", target.host),
        }
    }
}

impl Policy {
    /// The policy that a configuration asks for.
    pub(crate) fn new(config: &Egress) -> Self {
        let lower = |patterns: &[String]| patterns.iter().map(|p| p.to_lowercase()).collect();
        Self {
            allow: lower(&config.allow),
            deny: lower(&config.deny),
            ports: config.ports.clone(),
            private: config
                .private
                .iter()
                .filter_map(|text| Target::parse(text, None))
                .collect(),
        }
    }

    /// Whether the place may be asked for at all, before its name is resolved.
    ///
    /// # Errors
    /// With why not.
    pub(crate) fn admit(&self, target: &Target) -> Result<(), Refusal> {
        let host = target.host.to_string();
        if let Some(pattern) = self.deny.iter().find(|pattern| matches(pattern, &host)) {
            return Err(Refusal::Denied(pattern.clone()));
        }
        if self.names_private(target) {
            return Ok(());
        }
        if !self.ports.contains(&target.port) {
            return Err(Refusal::Port);
        }
        if !self.allow.is_empty() && !self.allow.iter().any(|pattern| matches(pattern, &host)) {
            return Err(Refusal::NotAllowed);
        }
        match &target.host {
            Host::Name(name) if name == "localhost" || name.ends_with(".localhost") => {
                Err(Refusal::Localhost)
            }
            _ => Ok(()),
        }
    }

    /// Whether the operator has named the place itself.
    pub(crate) fn names_private(&self, target: &Target) -> bool {
        self.private.contains(target)
    }

    /// Whether an address that the place turned out to have may be connected to.
    ///
    /// # Errors
    /// With what the address is.
    pub(crate) fn admit_address(&self, target: &Target, found: IpAddr) -> Result<(), Refusal> {
        if self.names_private(target) {
            return Ok(());
        }
        address::judge(found).map_err(Refusal::Address)
    }
}

/// Whether a pattern matches a host: `*` stands for any run of characters, dots included.
fn matches(pattern: &str, host: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| host.strip_prefix(first)) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, host, expected) in [
            ("example.org", "example.org", true),
            ("example.org", "www.example.org", false),
            ("*.example.org", "www.example.org", true),
            ("*.example.org", "a.b.example.org", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", "evilexample.org", false),
            ("*.example.org", "www.example.org.evil.net", false),
            ("*", "anything", true),
            ("", "", true),
            ("", "x", false),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("ab*ba", "aba", false),
            ("**", "x", true),
            ("[::1]", "[::1]", true),
        ] {
            assert_eq!(matches(pattern, host), expected, "{pattern} {host}");
        }
    }

    #[test]
    fn deny_wins_then_private_places_then_ports_then_the_allow_list() {
        let policy = |allow: &[&str], deny: &[&str], private: &[&str]| {
            let list = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
            Policy::new(&Egress {
                allow: list(allow),
                deny: list(deny),
                private: list(private),
                ..Egress::default()
            })
        };
        let open = policy(&[], &[], &[]);
        let narrow = policy(
            &["*.Example.org"],
            &["bad.*"],
            &["forge.lan:3000", "10.0.0.7:443"],
        );
        for (policy, target, expected) in [
            (&open, "example.net:443", Ok(())),
            (&open, "example.net:80", Ok(())),
            (&open, "example.net:22", Err(Refusal::Port)),
            (&open, "localhost:443", Err(Refusal::Localhost)),
            (&open, "a.localhost:443", Err(Refusal::Localhost)),
            (&narrow, "www.example.org:443", Ok(())),
            (&narrow, "example.net:443", Err(Refusal::NotAllowed)),
            (
                &narrow,
                "bad.example.org:443",
                Err(Refusal::Denied("bad.*".into())),
            ),
            (&narrow, "forge.lan:3000", Ok(())),
            (&narrow, "forge.lan:3001", Err(Refusal::Port)),
        ] {
            let target = Target::parse(target, None).unwrap();
            assert_eq!(policy.admit(&target), expected, "{target}");
        }
        let private: IpAddr = "10.0.0.7".parse().unwrap();
        let at = |text| Target::parse(text, None).unwrap();
        assert_eq!(narrow.admit_address(&at("10.0.0.7:443"), private), Ok(()));
        assert_eq!(narrow.admit_address(&at("forge.lan:3000"), private), Ok(()));
        let refused = Err(Refusal::Address(address::Refused::Private));
        assert_eq!(narrow.admit_address(&at("10.0.0.7:80"), private), refused);
        assert_eq!(
            narrow.admit_address(&at("www.example.org:443"), private),
            refused
        );
    }
}
