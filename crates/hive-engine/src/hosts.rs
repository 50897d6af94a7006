//! Addresses of the web, and whether a tool may ask the host behind one.

use hive_providers::address;

use crate::tool::ToolError;

/// A URL taken apart as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) scheme: String,
    pub(crate) host: String,
    pub(crate) port: Option<u16>,
    pub(crate) rest: String,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Self, ToolError> {
        let bad = || {
            ToolError::tell(format!(
                "Invalid URL \"{url}\". It must be http or https, without a user name."
            ))
        };
        let (scheme, rest) = url.trim().split_once("://").ok_or_else(bad)?;
        let scheme = scheme.to_lowercase();
        if !matches!(scheme.as_str(), "http" | "https")
            || url.chars().any(|c| c.is_control() || c == ' ')
        {
            return Err(bad());
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains(['@', '\\']) {
            return Err(bad());
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(v6) => {
                let (host, after) = v6.split_once(']').ok_or_else(bad)?;
                (host.to_owned(), after.strip_prefix(':'))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host.to_owned(), Some(port)),
                None => (authority.to_owned(), None),
            },
        };
        let port = port.map(str::parse).transpose().map_err(|_| bad())?;
        if host.is_empty() {
            return Err(bad());
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let rest = if rest.starts_with('/') {
            rest.to_owned()
        } else {
            format!("/{rest}")
        };
        Ok(Self {
            scheme,
            host: host.to_lowercase(),
            port,
            rest,
        })
    }

    pub(crate) fn url(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        let port = self
            .port
            .map_or_else(String::new, |port| format!(":{port}"));
        format!("{}://{host}{port}{}", self.scheme, self.rest)
    }
}

/// Addresses of this machine and of private networks are refused unless a rule names the host.
/// Returns whether it is such an address.
pub(crate) async fn check_host(address: &Address, is_named: bool) -> Result<bool, ToolError> {
    let port = address.port.unwrap_or(443);
    let found = tokio::net::lookup_host((address.host.as_str(), port))
        .await
        .map_err(|error| ToolError::tell(format!("{}: {error}", address.host)))?;
    let is_private = found
        .into_iter()
        .any(|socket| address::judge(socket.ip()).is_err());
    if is_private && !is_named {
        return Err(ToolError::tell(format!(
            "{} is on this machine or in a private network. A rule WebFetch(domain:{}) would permit it.",
            address.host, address.host
        )));
    }
    Ok(is_private)
}

/// Whether a browser may ask for this; the error says why not.
pub(crate) async fn check_url(url: &str, named_hosts: &[String]) -> Result<(), String> {
    // These hold their content themselves.
    if ["data:", "blob:", "about:"]
        .iter()
        .any(|own| url.starts_with(own))
    {
        return Ok(());
    }
    let address = Address::parse(url).map_err(|error| error.to_string())?;
    let is_named = named_hosts.contains(&address.host);
    let checked = check_host(&address, is_named).await;
    checked.map(|_| ()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for (url, host) in [
            ("https://example.com/x?y#z", Some("example.com")),
            ("HTTP://EXAMPLE.com", Some("example.com")),
            ("https://example.com:8443/x", Some("example.com")),
            ("https://[::1]:80/x", Some("::1")),
            ("https://user@example.com/", None),
            ("https://evil.test\\@example.com/", None),
            ("file:///etc/passwd", None),
            ("gopher://x", None),
            ("https:///x", None),
            ("https://a b/", None),
            ("javascript:alert(1)", None),
        ] {
            assert_eq!(
                Address::parse(url).ok().map(|a| a.host).as_deref(),
                host,
                "{url}"
            );
        }
    }

    #[tokio::test]
    async fn a_browser_asks_for_what_is_public_or_named() {
        let named = ["127.0.0.1".to_owned()];
        for (url, is_allowed) in [
            ("data:text/html,<p>x", true),
            ("about:blank", true),
            ("http://127.0.0.1:8080/x", true),
            ("http://[::1]/", false),
            ("http://169.254.169.254/latest/meta-data", false),
            ("http://[::ffff:10.0.0.1]/", false),
            ("http://[64:ff9b::7f00:1]/", false),
            ("http://[2002:7f00:1::]/", false),
            ("http://198.18.0.1/", false),
            ("http://168.63.129.16/", false),
            ("file:///etc/passwd", false),
            ("chrome://settings", false),
            ("ftp://93.184.216.34/", false),
            ("https://93.184.216.34/", true),
        ] {
            assert_eq!(check_url(url, &named).await.is_ok(), is_allowed, "{url}");
        }
    }
}
