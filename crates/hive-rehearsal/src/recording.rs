//! Recordings: one JSON object per line for every request, secrets masked.
//!
//! `serve` writes what was asked and which rule answered; the recording proxy also writes what the
//! real model answered, so that a scenario can be made of it. Lines are written as they happen and
//! nothing is kept in memory.

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, BufWriter, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{Mutex, PoisonError},
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One request, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The version of the format.
    pub schema: u32,
    /// The number of the request, from 1.
    pub number: u64,
    /// When it came.
    pub at: String,
    /// `POST`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers.
    pub headers: BTreeMap<String, String>,
    /// The body: JSON, or a text when it is none.
    #[serde(default)]
    pub body: Value,
    /// The number of the call, when the script was asked for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// The rule that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// What was answered, in a recording of a real model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Response>,
}

/// What a real model answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The status; 0 when there was no answer at all.
    pub status: u16,
    /// The headers.
    pub headers: BTreeMap<String, String>,
    /// The body: JSON, or a text, which for a stream is all of its events.
    #[serde(default)]
    pub body: Value,
    /// Whether all of it came and was kept.
    pub is_complete: bool,
}

/// A file that recordings are appended to.
#[derive(Debug)]
pub(crate) struct Recorder(Mutex<BufWriter<File>>);

impl Recorder {
    /// Opens the file; what it holds already stays. Only its owner may read it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self(Mutex::new(BufWriter::new(file))))
    }

    /// Writes a line. A failure is logged: the conversation goes on.
    pub(crate) fn write(&self, entry: &Entry) {
        if let Err(error) = self.try_write(entry) {
            tracing::warn!(%error, "cannot write to the recording");
        }
    }

    fn try_write(&self, entry: &Entry) -> io::Result<()> {
        // A writer that panicked has at worst left half a line.
        let mut file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_writer(&mut *file, entry)?;
        file.write_all(b"\n")?;
        file.flush()
    }
}
