//! What a campaign of turns leaves behind for the checker: sends, runs, receipts, processes.

use std::{collections::BTreeMap, fs, io, path::Path};

use hive_wire::{MessageId, agent::Receipt};
use serde::{Deserialize, Serialize};

/// Everything that was seen of a campaign.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Log {
    /// After how many counted failures a message is a dead letter.
    pub dead_after: u32,
    /// The sends that were acknowledged, those to one agent in their order.
    pub sends: Vec<Sent>,
    /// What became of them.
    pub receipts: Vec<Receipt>,
    /// What engines did, by agent.
    pub agents: BTreeMap<String, Engines>,
    /// What processes used when nothing was to be done, in the order of time.
    pub usage: Vec<Usage>,
    /// Processes that were there and should not have been.
    pub strays: Vec<String>,
}

/// A send that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The message.
    pub id: MessageId,
    /// Its name in its own body.
    pub key: String,
    /// Who sent it.
    pub from: String,
    /// To whom.
    pub to: String,
}

/// What the engines of an agent did.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Engines {
    /// Their runs, in order.
    pub runs: Vec<Run>,
    /// Themselves, in the order of their beginning.
    pub lives: Vec<Life>,
    /// How often one of them, or the harness, was killed.
    pub kills: u32,
}

/// One run of an engine: a prompt with a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The engine.
    pub pid: u32,
    /// The message that the prompt was about.
    pub message: MessageId,
    /// Its sender, as the prompt says.
    pub from: String,
    /// The name in its body.
    pub key: String,
    /// The delivery number, as the prompt says.
    pub delivery: u32,
    /// The prompt says that it is a repeat.
    pub is_marked: bool,
    /// Whether the engine reported a good result; none when it came to no result.
    pub result: Option<bool>,
}

/// The life of an engine, by lines of its agent's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Life {
    /// The engine.
    pub pid: u32,
    /// Where it began.
    pub first: usize,
    /// Where it last did something.
    pub last: usize,
}

/// What a process used at a quiet moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// What it is: `daemon`, or the agent whose harness it is.
    pub name: String,
    /// Which process.
    pub pid: u32,
    /// How many files it has open.
    pub files: u64,
    /// Its memory that belongs to no file, in KiB.
    pub memory_kib: u64,
}

impl Log {
    /// Writes it to a file.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        fs::write(path, serde_json::to_vec(self)?)
    }

    /// Reads it from a file.
    ///
    /// # Errors
    /// Those of the disk, or when it is no such file.
    pub fn read(path: &Path) -> io::Result<Self> {
        Ok(serde_json::from_slice(&fs::read(path)?)?)
    }
}
