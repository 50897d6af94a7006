//! What a keeper writes down about its run, so that any later daemon finds it.
//!
//! A process id alone means little: ids are used again, and start anew with the machine. A record
//! therefore holds the boot and the start time too, and a process that does not match all three is
//! somebody else.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
};

use hive_wire::{Timestamp, host};
use serde::{Deserialize, Serialize};

use crate::kernel::{self, Process};

/// The file, in the directory of the runtime.
pub(crate) const FILE: &str = "run.json";
/// No record is longer.
const MAX_RECORD: u64 = 64 * 1024;

/// One run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    /// The boot in which its process ids mean something.
    pub(crate) boot: String,
    /// What every process of this run has in its environment.
    pub(crate) mark: String,
    /// What ran it.
    #[serde(default = "plain")]
    pub(crate) runtime: host::Runtime,
    pub(crate) generation: u32,
    /// Its control groups.
    #[serde(default)]
    pub(crate) groups: Vec<PathBuf>,
    /// Limits that could not be set.
    #[serde(default)]
    pub(crate) unbounded: Vec<String>,
    pub(crate) started_at: Timestamp,
    pub(crate) keeper: Process,
    /// Missing between the keeper's start and the program's.
    pub(crate) program: Option<Process>,
    /// Missing while it runs, and when the keeper was killed.
    pub(crate) exit: Option<Exit>,
}

/// What ran agents before records said it.
fn plain() -> host::Runtime {
    host::Runtime::Process
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// It ended with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
    /// Nobody saw: its keeper was killed, or the machine stopped.
    Unseen,
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "it ended with code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal} ended it"),
            Self::Unseen => f.write_str("it was gone, and nobody saw how it ended"),
        }
    }
}

impl Record {
    /// The last run in this directory. A record that cannot be read is an error: to guess that
    /// nothing runs would start a second agent.
    pub(crate) fn read(dir: &Path) -> io::Result<Option<Self>> {
        let path = dir.join(FILE);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut text = String::new();
        io::Read::read_to_string(&mut io::Read::take(file, MAX_RECORD), &mut text)?;
        Ok(Some(serde_json::from_str(&text)?))
    }

    /// Writes it as a whole or not at all.
    pub(crate) fn write(&self, dir: &Path) -> io::Result<()> {
        let draft = dir.join("run.json.new");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&draft)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(&draft, dir.join(FILE))
    }

    /// A handle on the keeper, if it is alive and really the one that wrote this.
    pub(crate) fn keeper_handle(&self) -> io::Result<Option<OwnedFd>> {
        if self.exit.is_some() || self.boot != kernel::boot_id()? {
            return Ok(None);
        }
        self.keeper.open()
    }
}
