//! Fetches a page and returns its text.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::json;

use super::output::fit;
use crate::{
    hosts::{Address, check_host},
    paths::Workspace,
    tool::{Access, Context, Output, Permission, Tool, ToolError, build},
};

const TIME: Duration = Duration::from_secs(30);
const MAX_BODY: usize = 5 * 1024 * 1024;
const MAX_REDIRECTS: usize = 5;
const MAX_URL: usize = 2_000;

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

fn touches(input: &Input, _: &Workspace) -> Result<Vec<Access>, ToolError> {
    if input.url.len() > MAX_URL {
        return Err(ToolError::tell("The URL is too long."));
    }
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
        // In a container there are no names to look up: the host's proxy judges where they lead.
        let is_judged_outside = context.fetch.has_local_proxy("https", &address.host);
        let is_private = !is_judged_outside && check_host(&address, is_named).await?;
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

/// Where `wanted` begins in `text`, in any case of its letters. Pages are long: nothing is copied.
fn find_ignoring_case(text: &str, wanted: &str) -> Option<usize> {
    let mut windows = text.as_bytes().windows(wanted.len());
    windows.position(|window| window.eq_ignore_ascii_case(wanted.as_bytes()))
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
            find_ignoring_case(rest, closer).unwrap_or(rest.len())
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
    fn pages_become_text() {
        let html = "<html><style>x{}</style><body><h1>Title</h1><p>a &amp; b<script>if (1<2) evil()</script><br>c<!-- no --></body>";
        assert_eq!(plain(html), "Title\n\na & b\nc");
        assert_eq!(plain("a<SCRIPT>x</Script>b"), "ab");
        assert_eq!(plain("ä<style>ö</style>ü"), "äü");
        plain("<script>never closed");
        plain("<");
        // As many as fit into the longest page, in less time than anybody would notice.
        let many = "<script></script>".repeat(300_000);
        assert_eq!(plain(&many), "");
    }
}
