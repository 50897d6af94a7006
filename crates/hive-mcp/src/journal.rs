//! A line before and after every tool call (M14), for whoever wants to know what an agent did.
//!
//! The lines go to the log of the process and, where there is a directory for it, to a file of
//! JSON lines that never grows past a limit: at [`MAX_BYTES`] it becomes `mcp.log.1`, in place of
//! the one before. A journal that cannot be written stops no tool.

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use hive_wire::{Timestamp, text};
use rmcp::model::{JsonObject, RequestId};
use serde::Serialize;

/// How long the file may become.
const MAX_BYTES: u64 = 1024 * 1024;
/// How much of the arguments and of an error is kept, in characters.
const MAX_TEXT: usize = 400;

/// Where the lines go.
pub struct Journal {
    server: &'static str,
    /// Whose calls these are, where one process serves many.
    agent: String,
    file: Option<Mutex<Page>>,
}

/// How a call went.
pub(crate) enum Ending<'a> {
    Ok,
    Failed(&'a str),
    Cancelled,
}

/// The line before a call.
#[derive(Serialize)]
struct Begun<'a> {
    at: Timestamp,
    server: &'static str,
    request: &'a RequestId,
    call: &'a str,
    args: &'a str,
}

/// The line after it.
#[derive(Serialize)]
struct Ended<'a> {
    at: Timestamp,
    server: &'static str,
    request: &'a RequestId,
    done: &'a str,
    outcome: &'static str,
    why: &'a str,
    ms: u64,
}

impl Journal {
    /// A journal of `server` in `dir`, or in the log alone when there is no such directory.
    pub fn new(server: &'static str, dir: Option<&Path>) -> Self {
        let page = dir.filter(|dir| dir.is_dir()).map(|dir| Page {
            path: dir.join("mcp.log"),
            file: None,
            length: 0,
        });
        Self {
            server,
            agent: String::new(),
            file: page.map(Mutex::new),
        }
    }

    /// A journal of `server` in the log alone, for one of many agents.
    pub fn of_agent(server: &'static str, agent: String) -> Self {
        Self {
            server,
            agent,
            file: None,
        }
    }

    pub(crate) fn begins(&self, request: &RequestId, tool: &str, args: &JsonObject) {
        let args = serde_json::to_string(args).unwrap_or_default();
        let args = text::printable(&text::shorten(&args, MAX_TEXT));
        let tool = text::shorten(tool, 64);
        let agent = &self.agent;
        tracing::info!(server = self.server, agent, %request, %tool, %args, "call");
        self.keep(&Begun {
            at: Timestamp::now(),
            server: self.server,
            request,
            call: &tool,
            args: &args,
        });
    }

    pub(crate) fn ends(
        &self,
        request: &RequestId,
        tool: &str,
        ending: &Ending<'_>,
        took: Duration,
    ) {
        let (outcome, why) = match ending {
            Ending::Ok => ("ok", ""),
            Ending::Failed(why) => ("failed", *why),
            Ending::Cancelled => ("cancelled", ""),
        };
        let why = text::printable(&text::shorten(why, MAX_TEXT));
        let tool = text::shorten(tool, 64);
        let agent = &self.agent;
        tracing::info!(server = self.server, agent, %request, %tool, outcome, %why, ?took, "done");
        self.keep(&Ended {
            at: Timestamp::now(),
            server: self.server,
            request,
            done: &tool,
            outcome,
            why: &why,
            ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        });
    }

    fn keep(&self, line: &impl Serialize) {
        let Some(page) = &self.file else { return };
        let mut line = serde_json::to_string(line).unwrap_or_default();
        line.push('\n');
        let mut page = page.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = page.write(&line) {
            tracing::warn!(%error, path = %page.path.display(), "cannot write the journal");
            page.file = None;
        }
    }
}

/// The file, opened at its first line.
struct Page {
    path: PathBuf,
    file: Option<File>,
    length: u64,
}

impl Page {
    fn write(&mut self, line: &str) -> io::Result<()> {
        let more = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if self.file.is_some() && self.length.saturating_add(more) > MAX_BYTES {
            self.file = None;
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
        }
        if self.file.is_none() {
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .mode(0o600)
                .open(&self.path)?;
            self.length = file.metadata()?.len();
            self.file = Some(file);
        }
        if let Some(file) = &mut self.file {
            file.write_all(line.as_bytes())?;
            self.length = self.length.saturating_add(more);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn m14_the_file_holds_both_lines_and_stays_within_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new("hyperhive", Some(dir.path()));
        let request = RequestId::Number(7);
        let args = json!({"to": "bob", "body": "\u{1b}[2J".repeat(200)});
        let args = args.as_object().unwrap().clone();
        journal.begins(&request, "send", &args);
        journal.ends(&request, "send", &Ending::Failed("no"), Duration::ZERO);
        let log = std::fs::read_to_string(dir.path().join("mcp.log")).unwrap();
        let lines: Vec<serde_json::Value> = log
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines[0]["call"], "send");
        assert_eq!(lines[1]["done"], "send");
        assert_eq!(lines[1]["outcome"], "failed");
        assert!(!log.contains('\u{1b}'));

        for _ in 0..4_000 {
            journal.begins(&request, "send", &args);
        }
        for name in ["mcp.log", "mcp.log.1"] {
            let length = dir.path().join(name).metadata().unwrap().len();
            assert!(length <= MAX_BYTES, "{name}: {length}");
        }
    }

    #[test]
    fn without_a_directory_there_is_no_file_and_no_failure() {
        let journal = Journal::new("hyperhive", Some(Path::new("/nowhere/at/all")));
        journal.begins(&RequestId::Number(1), "send", &JsonObject::new());
        assert!(journal.file.is_none());
    }
}
