//! `GET tasks`: an agent's background commands, and the ends of what they wrote.
//!
//! The files are the agent's (`bash-tasks/` of its harness), so nothing in them is believed: texts
//! are cut, and a record that makes no sense is left out.

use std::{io, path::PathBuf};

use axum::{
    extract::{RawPathParams, State},
    response::Response,
};
use hive_wire::{AgentName, ErrorCode, Timestamp, WireError, text};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Site,
    beneath::{self, Found},
    files::no_file,
    input::Target,
    output,
    stats::Asked,
};

/// The most tasks in a list, newest first.
const MAX_TASKS: usize = 200;
/// The largest record that is looked at.
const MAX_RECORD: usize = 512 * 1024;
/// How much of a command is shown.
const MAX_COMMAND: usize = 4_000;
/// How much output comes at once.
const MAX_TAIL: usize = 64 * 1024;

/// A task, as its daemon wrote it down.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TaskRow")]
struct Task {
    id: u64,
    cmd: String,
    state: String,
    created_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    duration_ms: Option<u64>,
    exit_code: Option<i32>,
    signal: Option<i32>,
    note: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Tasks {
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
pub(super) struct Tail {
    stream: Option<Stream>,
    from: Option<u64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stream {
    Out,
    Err,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "TaskOutput")]
pub(super) struct Piece {
    /// Where the text begins.
    from: u64,
    /// Where the next piece begins.
    next: u64,
    text: String,
}

pub(super) async fn list(State(site): State<Site>, Target(name): Target) -> Response {
    let dir = dir(&site, &name);
    read(&site, name, move || {
        Ok(Tasks {
            tasks: tasks(&dir)?,
        })
    })
    .await
}

pub(super) async fn tail(
    State(site): State<Site>,
    Target(name): Target,
    params: RawPathParams,
    Asked(asked): Asked<Tail>,
) -> Response {
    let given = params.iter().find(|(key, _)| *key == "id");
    let Some(id) = given.and_then(|(_, id)| id.parse::<u64>().ok()) else {
        return output::answer::<()>(Err(WireError::new(
            ErrorCode::NotFound,
            "there is no such task",
        )));
    };
    let end = match asked.stream.unwrap_or(Stream::Out) {
        Stream::Out => "out",
        Stream::Err => "err",
    };
    let dir = dir(&site, &name);
    read(&site, name, move || {
        let Found::File(mut file) = beneath::open(&dir, &format!("{id}.{end}"))? else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let from = asked
            .from
            .unwrap_or(file.size.saturating_sub(MAX_TAIL as u64))
            .min(file.size);
        let bytes = file.read(from, MAX_TAIL)?;
        Ok(Piece {
            from,
            next: from + bytes.len() as u64,
            text: String::from_utf8_lossy(&bytes).into_owned(),
        })
    })
    .await
}

fn dir(site: &Site, name: &AgentName) -> PathBuf {
    site.host.paths.agent_dirs(name).harness.join("bash-tasks")
}

async fn read<T: Serialize + Send + 'static>(
    site: &Site,
    name: AgentName,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Response {
    if let Err(error) = site.host.find(name).await {
        return output::answer::<()>(Err(error));
    }
    output::answer(match site.host.tasks.spawn_blocking(work).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) => Err(no_file(&error)),
        Err(error) => Err(WireError::new(ErrorCode::Storage, error.to_string())),
    })
}

fn tasks(dir: &std::path::Path) -> io::Result<Vec<Task>> {
    let entries = match beneath::open(dir, "") {
        Ok(Found::Directory(entries)) => entries,
        Ok(Found::File(_)) => return Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let number = |name: &str| name.strip_suffix(".json")?.parse::<u64>().ok();
    let mut ids: Vec<u64> = entries
        .iter()
        .filter_map(|entry| number(&entry.name))
        .collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.truncate(MAX_TASKS);
    Ok(ids.into_iter().filter_map(|id| task(dir, id)).collect())
}

fn task(dir: &std::path::Path, id: u64) -> Option<Task> {
    let Ok(Found::File(mut file)) = beneath::open(dir, &format!("{id}.json")) else {
        return None;
    };
    let bytes = file.read(0, MAX_RECORD).ok()?;
    let mut task: Task = serde_json::from_slice(&bytes).ok()?;
    task.id = id;
    task.cmd = text::shorten(&task.cmd, MAX_COMMAND);
    task.state = text::shorten(&task.state, 20);
    task.note = task.note.map(|note| text::shorten(&note, 400));
    Some(task)
}
