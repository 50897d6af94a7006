//! A task as it is written down and as it is shown.

use std::fmt;

use hive_wire::{Timestamp, text};
use serde::{Deserialize, Serialize};

/// The number of a task; counts up over restarts of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TaskId(pub u64);

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Written down, about to start.
    Pending,
    /// Its process runs.
    Running,
    /// It ended by itself, or could not be started.
    Done,
    /// It took longer than it was allowed to, and was ended.
    TimedOut,
    /// It was ended because the daemon went away.
    Interrupted,
}

impl State {
    /// Whether nothing will follow.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::TimedOut | Self::Interrupted)
    }

    /// The state as it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Done => "done",
            Self::TimedOut => "timed_out",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What is on disk about a task, in `bash-tasks/<id>.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its number.
    pub id: TaskId,
    /// The command.
    pub cmd: String,
    /// Where it stands.
    pub state: State,
    /// After how many seconds it is ended.
    pub timeout_secs: Option<u64>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// How long it ran.
    pub duration_ms: Option<u64>,
    /// What the command returned, if it ended by itself.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What else is to be said about its end.
    pub note: Option<String>,
    /// Whether the agent knows that it ended.
    pub seen: bool,
}

impl Record {
    /// A task that was asked for just now.
    pub fn new(id: TaskId, cmd: String, timeout_secs: Option<u64>) -> Self {
        Self {
            id,
            cmd,
            state: State::Pending,
            timeout_secs,
            created_at: Timestamp::now(),
            ended_at: None,
            duration_ms: None,
            exit_code: None,
            signal: None,
            note: None,
            seen: false,
        }
    }

    /// The label of the news about it.
    pub fn label(&self) -> String {
        format!("bash-task-{}", self.id)
    }

    /// One line about how it stands: `done, exit code 0, 1.2 s`.
    pub fn headline(&self) -> String {
        let mut line = self.state.as_str().replace('_', " ");
        if let Some(code) = self.exit_code {
            line.push_str(&format!(", exit code {code}"));
        }
        if let Some(signal) = self.signal {
            line.push_str(&format!(", ended by signal {signal}"));
        }
        if let Some(ms) = self.duration_ms {
            line.push_str(&format!(", {}.{} s", ms / 1000, ms % 1000 / 100));
        }
        if let Some(note) = &self.note {
            line.push_str(&format!(" ({note})"));
        }
        line
    }

    /// The command in one short line.
    pub fn short_cmd(&self) -> String {
        let line = self.cmd.trim().replace(['\n', '\r', '\t'], " ");
        text::printable(&text::shorten(&line, 120))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_says_how_it_ended() {
        let record = Record::new(TaskId(1), "make\n\ttest\u{1b}[2J".to_owned(), None);
        assert_eq!(record.headline(), "pending");
        assert_eq!(record.short_cmd(), "make  test\\u{1b}[2J");
        let done = Record {
            state: State::Done,
            exit_code: Some(2),
            duration_ms: Some(61_234),
            ..record.clone()
        };
        assert_eq!(done.headline(), "done, exit code 2, 61.2 s");
        let out = Record {
            state: State::TimedOut,
            signal: Some(15),
            note: Some("after 5 s".to_owned()),
            ..record
        };
        assert_eq!(out.headline(), "timed out, ended by signal 15 (after 5 s)");
    }
}
