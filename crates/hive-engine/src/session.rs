//! Conversations on disk: append-only JSON lines, one file per session, one writer.
//!
//! The file is the truth. A line is appended as soon as what it says has happened and the file is
//! synced when a turn ends; a compaction is a line that holds the whole history that replaces what
//! came before it, so that resuming reads from the end of the file back to the last one and never
//! the whole of it. A line that a crash tore off is cut away at the next start.

mod backwards;
mod store;

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use hive_providers::{Message, Usage};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use store::{Sessions, slug};

use crate::{files::Stamp, turn_end::EndReason};

/// One line of a session's file. `kind` comes first in every line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Record {
    /// The first line.
    Session {
        /// The session.
        id: String,
        /// Where it was started.
        cwd: String,
        /// When.
        at: String,
        /// The version of the format.
        format: u32,
        /// The session that it continues under a new name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<String>,
    },
    /// Something was said.
    Message {
        /// Its id in the events.
        uuid: String,
        /// When.
        at: String,
        /// What.
        message: Message,
        /// The size of the context that the model read for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_tokens: Option<u64>,
    },
    /// Everything before this line is replaced by `messages`.
    Compaction {
        /// When.
        at: String,
        /// `manual`, `auto`, `clear` or `fork`.
        trigger: String,
        /// The whole history from here on.
        messages: Vec<Message>,
        /// What the session cost until here.
        totals: Totals,
        /// The ids of prompts that were taken.
        #[serde(default)]
        seen: Vec<String>,
    },
    /// A turn ended.
    TurnEnd {
        /// When.
        at: String,
        /// How.
        reason: EndReason,
        /// What the session cost until here.
        totals: Totals,
        /// The prompts that it answered.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        prompts: Vec<String>,
        /// The files that the model has seen, and in which state.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        files: BTreeMap<PathBuf, Stamp>,
    },
}

/// What a session cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// By model.
    pub models: BTreeMap<String, ModelTotals>,
    /// Waiting for models, in milliseconds.
    pub api_ms: u64,
}

/// What one model cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelTotals {
    /// Tokens.
    pub usage: Usage,
    /// US dollars.
    pub cost_usd: f64,
}

impl Totals {
    /// US dollars over all models.
    pub fn cost_usd(&self) -> f64 {
        self.models.values().map(|model| model.cost_usd).sum()
    }

    /// Adds one answer.
    pub fn add(&mut self, model: &str, usage: &Usage, cost_usd: f64) {
        let entry = self.models.entry(model.to_owned()).or_default();
        entry.usage.add(usage);
        entry.cost_usd += cost_usd;
    }
}

/// Why a session cannot be used.
#[derive(Debug, Error)]
pub enum SessionError {
    /// There is none with this id.
    #[error("No conversation found with session ID: {0}")]
    NotFound(String),
    /// The id is taken.
    #[error("Error: Session ID {0} is already in use.")]
    Taken(String),
    /// Another process writes to it.
    #[error(
        "Error: Session {0} is in use by another process. Wait until its turn ends, or start a new \
         session or a fork (--fork-session)."
    )]
    Busy(String),
    /// Not an id.
    #[error("Error: Invalid session ID {0:?}. Must be a valid UUID.")]
    BadId(String),
    /// The file is not one of ours.
    #[error("{path}: not a session file, or a damaged one ({reason})")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The disk failed.
    #[error("{path}: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

impl SessionError {
    fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// A session that this process writes to.
#[derive(Debug)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// What was said since the last compaction.
    pub messages: Vec<Message>,
    /// What it cost so far.
    pub totals: Totals,
    /// The size of the context at the last answer.
    pub context_tokens: u64,
    /// The ids of prompts that were taken, latest last.
    pub seen: Vec<String>,
    /// The files that the model had seen when the last turn ended.
    pub files: BTreeMap<PathBuf, Stamp>,
    file: Option<File>,
    path: PathBuf,
}

/// How many prompt ids are remembered to recognise one that is sent again.
const MAX_SEEN: usize = 256;

impl Session {
    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends what was said.
    pub fn say(
        &mut self,
        uuid: &str,
        message: Message,
        context_tokens: Option<u64>,
    ) -> Result<(), SessionError> {
        self.append(&Record::Message {
            uuid: uuid.to_owned(),
            at: crate::ids::now(),
            message: message.clone(),
            context_tokens,
        })?;
        if let Some(tokens) = context_tokens {
            self.context_tokens = tokens;
        }
        self.messages.push(message);
        Ok(())
    }

    /// Replaces the history.
    pub fn compact(&mut self, trigger: &str, messages: Vec<Message>) -> Result<(), SessionError> {
        self.append(&Record::Compaction {
            at: crate::ids::now(),
            trigger: trigger.to_owned(),
            messages: messages.clone(),
            totals: self.totals.clone(),
            seen: self.seen.clone(),
        })?;
        self.messages = messages;
        self.context_tokens = 0;
        self.sync()
    }

    /// Writes down how a turn ended and makes the file durable.
    pub fn end_turn(
        &mut self,
        reason: EndReason,
        prompts: Vec<String>,
        files: BTreeMap<PathBuf, Stamp>,
    ) -> Result<(), SessionError> {
        self.append(&Record::TurnEnd {
            at: crate::ids::now(),
            reason,
            totals: self.totals.clone(),
            prompts: prompts.clone(),
            files,
        })?;
        for prompt in prompts {
            self.remember(prompt);
        }
        self.sync()
    }

    /// Notes that a prompt with this id was taken.
    pub fn remember(&mut self, prompt: String) {
        if self.seen.len() >= MAX_SEEN {
            self.seen.remove(0);
        }
        self.seen.push(prompt);
    }

    fn append(&mut self, record: &Record) -> Result<(), SessionError> {
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        let mut line = serde_json::to_vec(record).map_err(|error| SessionError::Damaged {
            path: self.path.clone(),
            reason: error.to_string(),
        })?;
        line.push(b'\n');
        // One write per line: a reader never sees half of one unless the machine dies.
        file.write_all(&line).map_err(SessionError::io(&self.path))
    }

    fn sync(&self) -> Result<(), SessionError> {
        match &self.file {
            Some(file) => file.sync_data().map_err(SessionError::io(&self.path)),
            None => Ok(()),
        }
    }
}
