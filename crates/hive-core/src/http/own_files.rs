//! What an agent's configuration brings to its page: its mark and files of its own (T29, T32).
//!
//! They come from what is applied, which only the host writes. They are open, hold no data of the
//! hive, and are sandboxed: a page among them has an origin of its own and no right of this one.

use std::{fs, path::PathBuf};

use axum::{
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};

use super::{Site, output};
use crate::{access::Audience, agent_config::AgentConfig};

/// The hive's own mark.
const ICON: &str = include_str!("icon.svg");
/// Drawn, and not run.
const DRAWN: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox";
/// Run in an origin of its own.
const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-pointer-lock";

/// `GET /icon`: the agent's mark, or the hive's.
pub(super) async fn icon(State(site): State<Site>) -> Response {
    let own = read_own(&site, |config| {
        config.icon.as_ref().map(ToString::to_string)
    })
    .await;
    let icon = own.unwrap_or_else(|| ICON.as_bytes().to_vec());
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CONTENT_SECURITY_POLICY, DRAWN),
    ];
    (StatusCode::OK, headers, icon).into_response()
}

/// `GET /files/`: the beginning of the agent's own page.
pub(super) async fn index(State(site): State<Site>) -> Response {
    serve(&site, String::new()).await
}

/// `GET /files/…`: a file of the agent's own page.
pub(super) async fn file(State(site): State<Site>, Path(path): Path<String>) -> Response {
    serve(&site, path).await
}

async fn serve(site: &Site, path: String) -> Response {
    let asked = path.clone();
    let found = read_own(site, move |config| source(config, &asked)).await;
    let Some(content) = found else {
        return output::no_such_page().await;
    };
    let headers = [
        (header::CONTENT_TYPE, kind(&path)),
        (header::CONTENT_SECURITY_POLICY, SANDBOX),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (StatusCode::OK, headers, content).into_response()
}

/// Reads a file that the configuration of the page's agent names.
async fn read_own(
    site: &Site,
    choose: impl FnOnce(&AgentConfig) -> Option<String> + Send + 'static,
) -> Option<Vec<u8>> {
    let Audience::Agent(name) = &*site.audience else {
        return None;
    };
    let (name, configs) = (name.clone(), site.host.approvals.configs.clone());
    let read = site.host.approvals.on_disk(move |repos| {
        let chosen = choose(&configs.get(&name));
        Ok(chosen.and_then(|path| {
            let mut file: PathBuf = repos.files(&name).join(path);
            if file.is_dir() {
                file.push("index.html");
            }
            fs::read(file).ok()
        }))
    });
    read.await.ok().flatten()
}

/// Where a path that is asked for lies in the repository.
fn source(config: &AgentConfig, asked: &str) -> Option<String> {
    let asked = asked.trim_end_matches('/');
    let is_plain = asked.is_empty() || crate::repos::is_plain_path(asked);
    if !is_plain {
        return None;
    }
    for (name, file) in &config.frontend.extra_files {
        let target = file.target.as_ref().unwrap_or(name).as_str();
        if asked == target {
            return Some(file.source.to_string());
        }
        let beneath = asked
            .strip_prefix(target)
            .and_then(|rest| rest.strip_prefix('/'));
        if let Some(rest) = beneath {
            return Some(format!("{}/{rest}", file.source));
        }
    }
    let dist = config.frontend.dist.as_ref()?;
    Some(match asked {
        "" => format!("{dist}/index.html"),
        asked => format!("{dist}/{asked}"),
    })
}

/// What a browser takes a file for; a directory is its index.
fn kind(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        None | Some("html" | "htm") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("ico") => "image/x-icon",
        Some("wasm") => "application/wasm",
        Some("woff2") => "font/woff2",
        Some("txt" | "md") => "text/plain; charset=utf-8",
        Some(_) => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t32_what_is_asked_for_leads_into_the_repository_and_nowhere_else() {
        let config = AgentConfig::parse(
            "[frontend]\ndist = \"ui\"\n\
             [frontend.extra_files.\"games/bitburner\"]\nsource = \"bb\"\n\
             [frontend.extra_files.\"page\"]\nsource = \"x/y.html\"\ntarget = \"page.html\"\n",
        )
        .unwrap();
        let source = |asked: &str| source(&config, asked);
        assert_eq!(source("games/bitburner").as_deref(), Some("bb"));
        assert_eq!(source("games/bitburner/").as_deref(), Some("bb"));
        assert_eq!(
            source("games/bitburner/a/b.js").as_deref(),
            Some("bb/a/b.js")
        );
        assert_eq!(source("page.html").as_deref(), Some("x/y.html"));
        assert_eq!(source("").as_deref(), Some("ui/index.html"));
        assert_eq!(source("games/other").as_deref(), Some("ui/games/other"));
        for bad in [
            "../agent.toml",
            "games/bitburner/../../x",
            "a//b",
            "/etc",
            "a\0b",
            ".git/x",
        ] {
            assert_eq!(source(bad), None, "{bad:?}");
        }
        let plain = AgentConfig::default();
        assert_eq!(super::source(&plain, "anything"), None);
        assert_eq!(super::source(&plain, ""), None);
    }

    #[test]
    fn kinds_are_those_of_the_names() {
        for (path, expected) in [
            ("a/b.js", "text/javascript; charset=utf-8"),
            ("a", "text/html; charset=utf-8"),
            ("a.exe", "application/octet-stream"),
        ] {
            assert_eq!(kind(path), expected, "{path}");
        }
    }
}
