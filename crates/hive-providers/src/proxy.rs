//! Proxies from the environment: which one serves what, and how it is spoken to.

use std::{io, net::IpAddr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::Uri;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::Secret;

/// The longest answer of a proxy to `CONNECT`.
const PROXY_HEAD: usize = 8 * 1024;
/// The header field by which one logs in at a proxy.
pub(crate) const PROXY_LOGIN: &str = "proxy-authorization";

/// Which proxy serves which target.
#[derive(Debug, Default)]
pub(crate) struct Proxies {
    http: Option<Result<Proxy, Unreadable>>,
    https: Option<Result<Proxy, Unreadable>>,
    none: Vec<Exception>,
}

/// A variable that names no proxy. Whoever set it wants one, so nothing is reached directly; its
/// value may hold a login, and is not shown.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} does not name a proxy: it must read http://HOST:PORT or http://USER:PASSWORD@HOST:PORT"
)]
pub(crate) struct Unreadable(String);

/// What is reached without a proxy.
#[derive(Debug)]
enum Exception {
    Everything,
    /// A host and those below it.
    Host(String),
    /// The addresses that begin with these bits.
    Network(IpAddr, u8),
}

impl Exception {
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim().trim_start_matches('.').to_lowercase();
        let network = || {
            let (address, bits) = match entry.split_once('/') {
                Some((address, bits)) => (address, Some(bits.parse().ok()?)),
                None => (entry.as_str(), None),
            };
            let address = without_brackets(address).parse::<IpAddr>().ok()?;
            let bits = bits.unwrap_or_else(|| width(address));
            (bits <= width(address)).then_some(Self::Network(address, bits))
        };
        match entry.as_str() {
            "" => None,
            "*" => Some(Self::Everything),
            _ => Some(network().unwrap_or_else(|| Self::Host(without_brackets(&entry).to_owned()))),
        }
    }

    /// Whether it is about a host in lower case and without brackets.
    fn holds_for(&self, host: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Host(name) => {
                let above = host.strip_suffix(name.as_str());
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
            }
            Self::Network(network, bits) => host.parse().is_ok_and(|address: IpAddr| {
                let apart = width(address) - *bits.min(&width(address));
                let prefix = |address| number(address).checked_shr(apart.into()).unwrap_or(0);
                address.is_ipv4() == network.is_ipv4() && prefix(address) == prefix(*network)
            }),
        }
    }
}

/// How many bits an address has.
fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn without_brackets(host: &str) -> &str {
    host.trim_matches(['[', ']'])
}

/// A proxy and how to log in there.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    /// Without the login.
    pub(crate) uri: Uri,
    /// The value of its header.
    pub(crate) login: Option<Secret>,
}

impl Proxy {
    /// Reads `http://user:password@host:port`, where user and password may be percent-encoded.
    fn parse(value: &str) -> Option<Self> {
        let whole = value.trim().parse::<Uri>().ok()?;
        let authority = whole.authority()?.as_str();
        let login = authority.rsplit_once('@').map(|(login, _)| {
            let login = STANDARD.encode(percent_decoded(login));
            Secret::new(&format!("Basic {login}"))
        });
        let scheme = whole.scheme_str().unwrap_or("http");
        let uri = format!("{scheme}://{}", without_login(authority));
        let uri = uri.parse::<Uri>().ok().filter(|uri| uri.host().is_some())?;
        Some(Self { uri, login })
    }
}

/// `host:port` of `user:password@host:port`.
pub(crate) fn without_login(authority: &str) -> &str {
    authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host)
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let coded = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
        if let Some(coded) = coded.filter(|_| byte == b'%') {
            bytes.push(coded);
            rest = &after[2..];
        } else {
            bytes.push(byte);
            rest = after;
        }
    }
    bytes
}

impl Proxies {
    /// Reads `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`.
    pub(crate) fn from_env(env: impl Fn(&str) -> Option<String>) -> Self {
        let read = |names: &[&str]| {
            names.iter().find_map(|name| {
                let value = env(name).filter(|value| !value.is_empty())?;
                Some(((*name).to_owned(), value))
            })
        };
        let proxy = |names: &[&str]| {
            read(names).map(|(name, value)| Proxy::parse(&value).ok_or(Unreadable(name)))
        };
        let none = read(&["no_proxy", "NO_PROXY"]).map_or_else(String::new, |(_, value)| value);
        Self {
            http: proxy(&["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]),
            https: proxy(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            none: none.split(',').filter_map(Exception::parse).collect(),
        }
    }

    /// The proxy for a host, if it is not reached directly. Loopback always is.
    ///
    /// # Errors
    /// When the variable that is to name it does not.
    pub(crate) fn choose(&self, scheme: &str, host: &str) -> Result<Option<&Proxy>, &Unreadable> {
        let host = without_brackets(host).to_lowercase();
        let is_loopback = host == "localhost"
            || host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if is_loopback || self.none.iter().any(|one| one.holds_for(&host)) {
            return Ok(None);
        }
        let proxy = if scheme == "https" {
            &self.https
        } else {
            &self.http
        };
        proxy.as_ref().map(Result::as_ref).transpose()
    }
}

/// Asks a proxy for a connection to `host`.
pub(crate) async fn open_tunnel(
    stream: &mut TcpStream,
    host: &str,
    port: u16,
    login: Option<&Secret>,
) -> io::Result<()> {
    let login = login.map_or_else(String::new, |login| {
        format!("{PROXY_LOGIN}: {}\r\n", login.expose())
    });
    let request = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n{login}\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    // Byte by byte, since what follows the head belongs to TLS.
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() > PROXY_HEAD {
            return Err(io::Error::other("the proxy's answer is too long"));
        }
        head.push(stream.read_u8().await?);
    }
    let status = String::from_utf8_lossy(&head);
    let line = status.lines().next().unwrap_or_default();
    if line.split(' ').nth(1) == Some("200") {
        Ok(())
    } else {
        Err(io::Error::other(format!("the proxy refused: {line}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_read_and_not_shown() {
        let proxy = Proxy::parse("http://us%65r:p%40ss%zz@proxy:3128/").unwrap();
        let wanted = format!("Basic {}", STANDARD.encode("user:p@ss%zz"));
        assert_eq!(proxy.login.as_ref().unwrap().expose(), wanted);
        assert_eq!(proxy.uri.to_string(), "http://proxy:3128/");
        assert!(!format!("{proxy:?}").contains("ss"));
        assert!(Proxy::parse("proxy:3128").unwrap().login.is_none());
        assert!(Proxy::parse("http://").is_none());
    }

    #[test]
    fn proxies_are_chosen() {
        let proxies = Proxies::from_env(|name| {
            match name {
                "HTTPS_PROXY" => Some("http://proxy:3128"),
                "NO_PROXY" => Some(
                    "internal, .corp.example, 10.1.0.0/16, fd00::/8, 10.9.0.0/33, [2001:db8::1]",
                ),
                _ => None,
            }
            .map(str::to_owned)
        });
        for (scheme, host, expected) in [
            ("https", "api.anthropic.com", true),
            ("http", "api.anthropic.com", false),
            ("https", "localhost", false),
            ("https", "127.0.0.1", false),
            ("https", "[::1]", false),
            ("https", "internal", false),
            ("https", "a.corp.example", false),
            ("https", "notcorp.example", true),
            ("https", "10.1.255.1", false),
            ("https", "10.2.0.1", true),
            ("https", "[fd12::1]", false),
            ("https", "[fe80::1]", true),
            ("https", "10.9.0.1", true),
            ("https", "[2001:DB8::1]", false),
            ("https", "[2001:db8::2]", true),
        ] {
            let chosen = proxies.choose(scheme, host).unwrap();
            assert_eq!(chosen.is_some(), expected, "{scheme} {host}");
        }
    }

    #[test]
    fn networks_of_any_width_are_told_apart() {
        for (network, address, expected) in [
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("10.0.0.1/32", "10.0.0.1", true),
            ("10.0.0.1/32", "10.0.0.2", false),
            ("2001:db8::1/128", "2001:db8::1", true),
            ("2001:db8::1/128", "2001:db8::3", false),
            ("2001:db8:0::1", "2001:db8::1", true),
            ("10.0.0.1", "10.0.0.11", false),
            ("10.0.0.0/8", "ten.example", false),
        ] {
            let exception = Exception::parse(network).unwrap();
            assert_eq!(
                exception.holds_for(address),
                expected,
                "{network} {address}"
            );
        }
    }

    #[test]
    fn what_names_no_proxy_is_refused_and_not_shown() {
        let proxies = Proxies::from_env(|name| {
            (name == "ALL_PROXY").then(|| "http://me:secret@pro xy:3128".to_owned())
        });
        for scheme in ["http", "https"] {
            let words = proxies
                .choose(scheme, "example.org")
                .unwrap_err()
                .to_string();
            assert!(
                words.starts_with("ALL_PROXY does not name a proxy"),
                "{words}"
            );
            assert!(!words.contains("secret"), "{words}");
            assert!(proxies.choose(scheme, "localhost").unwrap().is_none());
        }
    }
}
