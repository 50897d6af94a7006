//! Proxies from the environment: which one serves what, and how it is spoken to.

use std::io;

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
    http: Option<Proxy>,
    https: Option<Proxy>,
    none: Vec<String>,
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
        let read = |names: [&str; 4]| {
            names
                .iter()
                .find_map(|name| env(name).filter(|value| !value.is_empty()))
        };
        let proxy = |value: String| Proxy::parse(&value);
        Self {
            http: read(["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"]).and_then(proxy),
            https: read(["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]).and_then(proxy),
            none: read(["no_proxy", "NO_PROXY", "", ""])
                .unwrap_or_default()
                .split(',')
                .map(|entry| entry.trim().trim_start_matches('.').to_lowercase())
                .filter(|entry| !entry.is_empty())
                .collect(),
        }
    }

    /// The proxy for a host, if it is not reached directly. Loopback always is.
    pub(crate) fn choose(&self, scheme: &str, host: &str) -> Option<&Proxy> {
        let host = host.trim_matches(['[', ']']).to_lowercase();
        let is_loopback = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        let is_excepted = self
            .none
            .iter()
            .any(|entry| entry == "*" || host == *entry || host.ends_with(&format!(".{entry}")));
        if is_loopback || is_excepted {
            return None;
        }
        if scheme == "https" {
            self.https.as_ref()
        } else {
            self.http.as_ref()
        }
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
                "NO_PROXY" => Some("internal, .corp.example"),
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
        ] {
            assert_eq!(
                proxies.choose(scheme, host).is_some(),
                expected,
                "{scheme} {host}"
            );
        }
    }
}
