//! Where a request wants to go: a host and a port, in one spelling only.
//!
//! Resolvers take `2130706433`, `0x7f.1` and `0177.0.0.1` for addresses. Whoever judges the text
//! must not be fooled by them, so a host that ends in a number is an address in its plain form or
//! nothing.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The longest name in the DNS.
const MAX_NAME: usize = 253;
/// The longest part of it.
const MAX_LABEL: usize = 63;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) host: Host,
    pub(crate) port: u16,
}

/// A name or an address.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Host {
    /// In lower case, without a dot at its end.
    Name(String),
    Address(IpAddr),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

impl Target {
    /// Reads `host:port`; without a port it is `default`.
    pub(crate) fn parse(text: &str, default: Option<u16>) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                let port = match rest {
                    "" => None,
                    rest => Some(rest.strip_prefix(':')?),
                };
                (Host::Address(address.into()), port)
            }
            None => match text.split_once(':') {
                Some((host, port)) => (Host::parse(host)?, Some(port)),
                None => (Host::parse(text)?, None),
            },
        };
        let port = match port {
            None => default?,
            // `parse` alone would take a plus sign.
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok()?
            }
            Some(_) => return None,
        };
        (port > 0).then_some(Self { host, port })
    }
}

impl Host {
    /// Reads a name or an IPv4 address in its plain form.
    fn parse(text: &str) -> Option<Self> {
        let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let is_legal = |label: &str| {
            (1..=MAX_LABEL).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
        };
        let last = name.rsplit('.').next()?;
        let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
            || last
                .strip_prefix("0x")
                .is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let is_name = name.len() <= MAX_NAME && name.split('.').all(is_legal) && !is_number;
        is_name.then_some(Self::Name(name))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_target_has_one_spelling() {
        for (text, expected) in [
            ("example.org:443", Some("example.org:443")),
            ("Example.ORG.:443", Some("example.org:443")),
            ("example.org", Some("example.org:80")),
            ("a_b.example.org:1", Some("a_b.example.org:1")),
            (
                "xn--bcher-kva.example:443",
                Some("xn--bcher-kva.example:443"),
            ),
            ("1.2.3.4:443", Some("1.2.3.4:443")),
            ("[2606:4700::1]:443", Some("[2606:4700::1]:443")),
            ("[::FFFF:127.0.0.1]:443", Some("[::ffff:127.0.0.1]:443")),
            ("[::1]", Some("[::1]:80")),
            // Other spellings of 127.0.0.1, all of which some resolver takes.
            ("2130706433:80", None),
            ("0x7f000001:80", None),
            ("0x7f.1:80", None),
            ("127.1:80", None),
            ("0177.0.0.1:80", None),
            ("127.0.0.0x1:80", None),
            ("127.0.0.1.0x:80", None),
            ("017700000001:80", None),
            ("[::1%lo]:80", None),
            ("::1:80", None),
            ("[127.0.0.1]:80", None),
            // No host, no port, or something hidden in either.
            ("", None),
            (":80", None),
            (".:80", None),
            ("a..b:80", None),
            ("-a.example:80", None),
            ("example.org:", None),
            ("example.org:0", None),
            ("example.org:65536", None),
            ("example.org:+80", None),
            ("example.org:80:90", None),
            ("user@example.org:80", None),
            ("exa mple.org:80", None),
            ("example.org\0.evil:80", None),
            ("bücher.example:80", None),
            ("[::1]x:80", None),
            ("[::1", None),
        ] {
            let target = Target::parse(text, Some(80)).map(|target| target.to_string());
            assert_eq!(target.as_deref(), expected, "{text:?}");
        }
        assert_eq!(Target::parse("example.org", None), None);
        assert_eq!(Target::parse(&format!("{}:80", "a".repeat(64)), None), None);
        assert_eq!(
            Target::parse(&format!("{}a:80", "a.".repeat(127)), None),
            None
        );
    }

    proptest! {
        #[test]
        fn fuzz_what_is_read_reads_the_same_again(text in "[ -~]{0,40}") {
            if let Some(target) = Target::parse(&text, Some(80)) {
                prop_assert_eq!(Target::parse(&target.to_string(), None), Some(target));
            }
        }

        #[test]
        fn prop_a_number_is_never_a_name(number in any::<u32>()) {
            for text in [format!("{number}"), format!("{number:#x}"), format!("0{number:o}")] {
                prop_assert_eq!(Target::parse(&text, Some(80)), None);
            }
        }
    }
}
