//! The tools of `bash`, one file each, and how they show a task.

mod run;
mod status;

pub(crate) use run::Run;
pub(crate) use status::Status;

use std::time::Duration;

use hive_mcp::toolbox::Call;
use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    mcp::Bash,
    task::State,
    wire::{MAX_WAIT_SECONDS, Seen, TaskStatus},
};

/// How long it is tried to say that the agent has seen the end of a task.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

/// How long a call may take that waits for so many seconds.
fn deadline(wait_seconds: u64) -> Duration {
    Duration::from_secs(wait_seconds.min(MAX_WAIT_SECONDS) + 20)
}

/// Lets the daemon know that the agent has seen the end of a task, once it has. Otherwise it is
/// woken for it.
fn seen_once_written(bash: &Bash, call: &Call, status: &TaskStatus) {
    if !status.state.is_final() {
        return;
    }
    let (client, seen) = (bash.client().clone(), Seen { task: status.task });
    call.once_written(async move {
        if let Err(error) = client.call_idempotent(&seen, SEEN_WITHIN).await {
            tracing::warn!(%error, "the daemon does not know that a task was seen");
        }
    });
}

/// A task.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Task {
    /// Its number, for status.
    id: u64,
    /// pending, running, done, timed_out or interrupted (ended by a restart).
    status: &'static str,
    /// How it stands, in words.
    summary: String,
    /// What the command returned; there is none while it runs or when a signal ended it.
    exit_code: Option<i32>,
    /// How long it ran, or has run so far, in milliseconds.
    duration_ms: u64,
    /// The process group while it runs: `kill -- -PID` ends it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    /// The end of its standard output, at most 4 KiB.
    stdout: String,
    /// How many bytes of standard output the file has.
    stdout_bytes: u64,
    /// The file with all of its standard output.
    stdout_file: String,
    /// The end of its standard error, at most 4 KiB.
    stderr: String,
    /// How many bytes of standard error the file has.
    stderr_bytes: u64,
    /// The file with all of its standard error.
    stderr_file: String,
    #[serde(skip)]
    state: State,
}

impl From<TaskStatus> for Task {
    fn from(status: TaskStatus) -> Self {
        let (stdout, stderr) = (status.stdout, status.stderr);
        Self {
            id: status.task.0,
            status: status.state.as_str(),
            summary: status.headline,
            exit_code: status.exit_code,
            duration_ms: status.duration_ms,
            pid: status.pid,
            stdout: stdout.tail,
            stdout_bytes: stdout.bytes,
            stdout_file: stdout.file,
            stderr: stderr.tail,
            stderr_bytes: stderr.bytes,
            stderr_file: stderr.file,
            state: status.state,
        }
    }
}

impl Task {
    /// The task as a model reads it best.
    fn text(&self) -> String {
        format!("task {}: {}\n{}", self.id, self.summary, self.output())
    }

    /// The end of each stream that has one.
    fn output(&self) -> String {
        let mut text = String::new();
        for (name, tail, bytes, file) in [
            ("stdout", &self.stdout, self.stdout_bytes, &self.stdout_file),
            ("stderr", &self.stderr, self.stderr_bytes, &self.stderr_file),
        ] {
            if tail.is_empty() {
                continue;
            }
            let what = if tail.len() as u64 == bytes {
                name.to_owned()
            } else {
                format!("the end of {name} (all {bytes} bytes: {file})")
            };
            text.push_str(&format!("--- {what}\n{tail}"));
            if !tail.ends_with('\n') {
                text.push('\n');
            }
        }
        text
    }
}
