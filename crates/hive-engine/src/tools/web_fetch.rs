//! Fetches a page and returns its text.

use std::{net::IpAddr, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::json;

use super::output::fit;
use crate::{
    paths::Workspace,
    tool::{Access, Context, Output, Permission, Tool, ToolError, build},
};

const TIME: Duration = Duration::from_secs(30);
const MAX_BODY: usize = 5 * 1024 * 1024;
const MAX_REDIRECTS: usize = 5;

#[derive(Deserialize)]
struct Input {
    url: String,
    #[serde(default)]
    prompt: String,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "WebFetch",
        Permission::Execute,
        "Fetches a URL and returns the text of the page. http is upgraded to https except on this \
         machine. A redirect to another host is reported and not followed.",
        json!({"type": "object", "required": ["url", "prompt"], "additionalProperties": false, "properties": {
            "url": {"type": "string", "description": "The address"},
            "prompt": {"type": "string", "description": "What you want to know from the page"},
        }}),
    )
    .touches(touches)
    .run(run)
}

/// A URL taken apart as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address {
    scheme: String,
    host: String,
    port: Option<u16>,
    rest: String,
}

impl Address {
    fn parse(url: &str) -> Result<Self, ToolError> {
        let bad = || {
            ToolError::tell(format!(
                "Invalid URL \"{url}\". It must be http or https, without a user name."
            ))
        };
        let (scheme, rest) = url.trim().split_once("://").ok_or_else(bad)?;
        let scheme = scheme.to_lowercase();
        if !matches!(scheme.as_str(), "http" | "https")
            || url.len() > 2_000
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

    fn url(&self) -> String {
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

fn touches(input: &Input, _: &Workspace) -> Result<Vec<Access>, ToolError> {
    let host = Address::parse(&input.url)?.host;
    Ok(vec![Access::Fetch { host }])
}

async fn run(input: Input, context: Context) -> Result<Output, ToolError> {
    let fetching = tokio::time::timeout(TIME, fetch(&input, &context));
    tokio::select! {
        result = fetching => result.unwrap_or_else(|_| Err(ToolError::tell("The page did not arrive in time."))),
        () = context.cancel.cancelled() => Err(ToolError::Interrupted),
    }
}

async fn fetch(input: &Input, context: &Context) -> Result<Output, ToolError> {
    let mut address = Address::parse(&input.url)?;
    for _ in 0..MAX_REDIRECTS {
        let is_named = context.named_hosts.contains(&address.host);
        let is_private = check_host(&address, is_named).await?;
        if address.scheme == "http" && !is_private {
            address.scheme = "https".into();
        }
        let headers = [
            (
                "user-agent".to_owned(),
                concat!("hive-engine/", env!("CARGO_PKG_VERSION")).to_owned(),
            ),
            (
                "accept".to_owned(),
                "text/markdown, text/html, text/plain, */*".to_owned(),
            ),
        ];
        let mut answer = context
            .fetch
            .send("GET", &address.url(), &headers, bytes::Bytes::new())
            .await
            .map_err(|error| ToolError::tell(format!("{}: {error}", address.host)))?;
        if matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
            let target = answer.header("location").unwrap_or_default().to_owned();
            let next = follow(&address, &target)?;
            if next.host != address.host {
                return Ok(Output::text(
                    format!(
                        "REDIRECT DETECTED: the page redirects to another host: {}. Fetch that URL if you want it.",
                        next.url()
                    ),
                    json!({"url": input.url, "code": answer.status, "redirect": next.url()}),
                ));
            }
            address = next;
            continue;
        }
        let is_html = answer
            .header("content-type")
            .is_some_and(|kind| kind.contains("html"));
        let body = answer
            .bytes(MAX_BODY)
            .await
            .map_err(|error| ToolError::tell(error.to_string()))?;
        let body = String::from_utf8_lossy(&body);
        let text = if is_html {
            plain(&body)
        } else {
            body.into_owned()
        };
        let code = answer.status;
        let question = if input.prompt.is_empty() {
            String::new()
        } else {
            format!("\n\n(You wanted to know: {})", input.prompt)
        };
        let shown = format!(
            "{} answered {code}:\n\n{}{question}",
            address.url(),
            fit(&text, &context.spill_dir)
        );
        return Ok(Output {
            is_error: code >= 400,
            ..Output::text(
                shown,
                json!({"url": input.url, "code": code, "bytes": text.len()}),
            )
        });
    }
    Err(ToolError::tell("Too many redirects."))
}

/// Addresses of this machine and of private networks are refused unless a rule names the host.
/// Returns whether it is such an address.
async fn check_host(address: &Address, is_named: bool) -> Result<bool, ToolError> {
    let port = address.port.unwrap_or(443);
    let found = tokio::net::lookup_host((address.host.as_str(), port))
        .await
        .map_err(|error| ToolError::tell(format!("{}: {error}", address.host)))?;
    let is_private = found.into_iter().any(|socket| is_private(socket.ip()));
    if is_private && !is_named {
        return Err(ToolError::tell(format!(
            "{} is on this machine or in a private network. A rule WebFetch(domain:{}) would permit it.",
            address.host, address.host
        )));
    }
    Ok(is_private)
}

fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || v4.is_unspecified()
                || v4.is_broadcast()
                || v4.is_multicast()
                || a == 0
                || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_private(IpAddr::V4(v4)),
            None => {
                v6.is_loopback()
                    || v6.is_unspecified()
                    || v6.is_multicast()
                    || v6.is_unique_local()
                    || v6.is_unicast_link_local()
            }
        },
    }
}

fn follow(from: &Address, target: &str) -> Result<Address, ToolError> {
    if target.contains("://") {
        return Address::parse(target);
    }
    if let Some(rest) = target.strip_prefix("//") {
        return Address::parse(&format!("{}://{rest}", from.scheme));
    }
    let base = from.rest.split('?').next().unwrap_or_default();
    let rest = if target.starts_with('/') {
        target.to_owned()
    } else {
        format!(
            "{}/{target}",
            base.rsplit_once('/').map_or("", |(dir, _)| dir)
        )
    };
    Ok(Address {
        rest,
        ..from.clone()
    })
}

/// The text of an HTML page: no scripts, no styles, no tags.
fn plain(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let lower: String = rest.chars().take(10).collect::<String>().to_lowercase();
        let end = if lower.starts_with("<script") || lower.starts_with("<style") {
            let closer = if lower.starts_with("<script") {
                "</script"
            } else {
                "</style"
            };
            rest.to_ascii_lowercase().find(closer).unwrap_or(rest.len())
        } else if lower.starts_with("<!--") {
            rest.find("-->").map_or(rest.len(), |at| at + 2)
        } else {
            0
        };
        if [
            "<p", "<br", "<div", "<li", "<h", "<tr", "</p", "</h", "</tr",
        ]
        .iter()
        .any(|tag| lower.starts_with(tag))
        {
            out.push('\n');
        }
        rest = &rest[end.min(rest.len())..];
        rest = rest.find('>').map_or("", |at| &rest[at + 1..]);
    }
    out.push_str(rest);
    let out = out
        .replace("&nbsp;", " ")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&");
    let lines: Vec<&str> = out.lines().map(str::trim).collect();
    let mut text = lines.join("\n");
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text.trim().to_owned()
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

    #[test]
    fn private_networks_are_seen() {
        for ip in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "169.254.169.254",
            "::1",
            "fe80::1",
            "fc00::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "100.64.0.1",
        ] {
            assert!(is_private(ip.parse().unwrap()), "{ip}");
        }
        assert!(!is_private("93.184.216.34".parse().unwrap()));
    }

    #[test]
    fn pages_become_text() {
        let html = "<html><style>x{}</style><body><h1>Title</h1><p>a &amp; b<script>if (1<2) evil()</script><br>c<!-- no --></body>";
        assert_eq!(plain(html), "Title\n\na & b\nc");
        plain("<script>never closed");
        plain("<");
    }
}
