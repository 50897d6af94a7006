//! `GET files`: an agent's notes, to look at.

use std::{io, path::PathBuf};

use axum::{extract::State, response::Response};
use hive_wire::{ErrorCode, Timestamp, WireError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Site,
    beneath::{self, Found},
    input::Target,
    output,
    stats::Asked,
};

/// How much of a file is shown.
const MAX_SHOWN: usize = 256 * 1024;

#[derive(Deserialize)]
pub(super) struct Where {
    #[serde(default)]
    path: String,
}

/// A directory, or the beginning of a file.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Look")]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum Shown {
    Directory {
        path: String,
        entries: Vec<Row>,
    },
    File {
        path: String,
        size: u64,
        text: String,
        is_cut: bool,
        is_binary: bool,
    },
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FileRow")]
pub(super) struct Row {
    name: String,
    is_dir: bool,
    size: u64,
    modified_at: Timestamp,
}

pub(super) async fn show(
    State(site): State<Site>,
    Target(name): Target,
    Asked(asked): Asked<Where>,
) -> Response {
    if let Err(error) = site.host.find(name.clone()).await {
        return output::answer::<()>(Err(error));
    }
    let root = site.host.paths.agent_dirs(&name).state;
    let work = move || look(root, asked.path);
    output::answer(match site.host.tasks.spawn_blocking(work).await {
        Ok(Ok(shown)) => Ok(shown),
        Ok(Err(error)) => Err(no_file(&error)),
        Err(error) => Err(WireError::new(ErrorCode::Storage, error.to_string())),
    })
}

/// What is said of a file that cannot be shown.
pub(super) fn no_file(error: &io::Error) -> WireError {
    match error.kind() {
        io::ErrorKind::NotFound => WireError::new(ErrorCode::NotFound, "there is no such file")
            .hint("links and special files are not followed"),
        _ => WireError::new(ErrorCode::Storage, format!("cannot read the file: {error}")),
    }
}

fn look(root: PathBuf, path: String) -> io::Result<Shown> {
    match beneath::open(&root, &path) {
        Ok(Found::Directory(entries)) => {
            let entries = entries.into_iter().map(|entry| Row {
                name: entry.name,
                is_dir: entry.is_dir,
                size: entry.size,
                modified_at: Timestamp::from_millis(entry.modified.saturating_mul(1000)),
            });
            let entries = entries.collect();
            Ok(Shown::Directory { path, entries })
        }
        Ok(Found::File(mut file)) => {
            let bytes = file.read(0, MAX_SHOWN)?;
            let is_binary = bytes.contains(&0);
            Ok(Shown::File {
                path,
                size: file.size,
                is_cut: file.size > bytes.len() as u64,
                text: if is_binary {
                    String::new()
                } else {
                    String::from_utf8_lossy(&bytes).into_owned()
                },
                is_binary,
            })
        }
        // An agent that has not run yet has no notes.
        Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_empty() => {
            Ok(Shown::Directory {
                path,
                entries: Vec::new(),
            })
        }
        Err(error) => Err(error),
    }
}
