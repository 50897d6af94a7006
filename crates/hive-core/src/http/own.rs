//! An agent's own mark and static files (T29, T32), from the configuration that was applied.
//!
//! The operator approved them, and still they are the agent's: they are served in a sandbox, an
//! origin of their own, which sees nothing of the hive's page and may load only what lies beside.

use std::io;

use axum::{
    extract::{Path, State},
    http::header,
    response::{IntoResponse, Response},
};
use hive_wire::AgentName;

use super::{
    Site,
    beneath::{self, Found},
    output,
};
use crate::{access::Audience, agent_config::AgentConfig, host_commands::Host};

/// The largest file.
const MAX_BYTES: usize = 32 * 1024 * 1024;
const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups; default-src 'self' \
                       'unsafe-inline' data: blob:; base-uri 'none'; form-action 'none'; \
                       frame-ancestors 'none'";

/// `GET /own/PATH` on an agent's port.
pub(super) async fn file(State(site): State<Site>, Path(path): Path<String>) -> Response {
    let Audience::Agent(name) = &*site.audience else {
        return output::no_such_page().await;
    };
    let config = site.host.approvals.configs.get(name);
    let Some(source) = source(&config, &path) else {
        return output::no_such_page().await;
    };
    let Some((found, bytes)) = read(&site.host, name, source).await else {
        return output::no_such_page().await;
    };
    let headers = [
        (header::CONTENT_TYPE, kind_of(&found)),
        (header::CONTENT_SECURITY_POLICY, SANDBOX),
    ];
    (headers, bytes).into_response()
}

/// What an agent's own pages are called, as far as there are any.
pub(super) fn names(config: &AgentConfig) -> Vec<String> {
    let extra = config.frontend.extra_files.iter();
    let mut names: Vec<String> = extra
        .map(|(name, file)| file.target.as_ref().unwrap_or(name).to_string())
        .collect();
    if config.frontend.dist.is_some() {
        names.insert(0, "index.html".to_owned());
    }
    names
}

/// The agent's own mark, when it has one.
pub(super) async fn icon(host: &Host, name: &AgentName) -> Option<Vec<u8>> {
    let config = host.approvals.configs.get(name);
    let icon = config.icon.as_ref()?.to_string();
    read(host, name, icon).await.map(|(_, bytes)| bytes)
}

/// Where in the repository something lies that is served under this path.
fn source(config: &AgentConfig, path: &str) -> Option<String> {
    for (name, file) in &config.frontend.extra_files {
        let target = file.target.as_ref().unwrap_or(name).to_string();
        let rest = path.strip_prefix(&target);
        match rest {
            Some("") => return Some(file.source.to_string()),
            Some(rest) if rest.starts_with('/') => return Some(format!("{}{rest}", file.source)),
            _ => {}
        }
    }
    let dist = config.frontend.dist.as_ref()?;
    Some(format!("{dist}/{path}"))
}

/// A file of the applied configuration, or the index of a directory, with its path.
async fn read(host: &Host, name: &AgentName, path: String) -> Option<(String, Vec<u8>)> {
    let root = host.approvals.repos.files(name);
    let work = move || -> io::Result<(String, Vec<u8>)> {
        let index = format!("{}/index.html", path.trim_end_matches('/'));
        let (path, found) = match beneath::open(&root, &path)? {
            Found::Directory(_) => (index.clone(), beneath::open(&root, &index)?),
            file => (path, file),
        };
        match found {
            Found::File(mut file) if file.size <= MAX_BYTES as u64 => {
                Ok((path, file.read(0, MAX_BYTES)?))
            }
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    };
    host.tasks.spawn_blocking(work).await.ok()?.ok()
}

/// The type of a file by its name; what is not known is not shown but saved.
fn kind_of(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.').map(|(_, end)| end) {
        Some("html" | "htm") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json") => "application/json",
        Some("txt" | "md" | "log") => "text/plain; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("wasm") => "application/wasm",
        _ => "application/octet-stream",
    }
}
