//! What the tests of the store share: a store in a directory of its own that can be killed.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test binary uses a part of it"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use hive_store::{
    Mail, NewMessage, Options, Readers, Receive, Refusal, Store,
    conformance::{Limits, Op, Outcome, Subject},
    sqlite::{self, StoreError, Tx},
};
use hive_wire::{AgentName, MessageId, Timestamp};
use tempfile::TempDir;

/// A day in milliseconds.
pub const DAY: i64 = 24 * 60 * 60 * 1_000;

pub fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

pub fn agent(name: &str) -> AgentName {
    name.parse().unwrap()
}

pub fn message(from: &str, to: &str, body: &str) -> NewMessage {
    NewMessage::plain(from.parse().unwrap(), to.parse().unwrap(), body)
}

pub fn receive(of: &str, turn: &str, max: u32) -> Receive {
    Receive {
        agent: agent(of),
        turn: (!turn.is_empty()).then(|| turn.parse().unwrap()),
        req: None,
        max,
        parks: false,
    }
}

/// A directory in memory where there is one: syncing costs nothing there.
pub fn fast_dir() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        tempfile::tempdir_in(memory).unwrap()
    } else {
        tempfile::tempdir().unwrap()
    }
}

pub fn small() -> Options {
    Options {
        wal_bytes: 0,
        redo_bytes: 64 * 1024,
        ..Options::default()
    }
}

/// A store in a directory, with what tests do to it.
pub struct Hive {
    pub dir: TempDir,
    pub options: Options,
    pub open: Option<(Store, Readers)>,
    pub clock: i64,
}

impl Hive {
    pub fn new() -> Self {
        Self::with(small())
    }

    pub fn with(options: Options) -> Self {
        let mut hive = Self {
            dir: fast_dir(),
            options,
            open: None,
            clock: 1_700_000_000_000,
        };
        hive.start().unwrap();
        hive
    }

    pub fn path(&self) -> PathBuf {
        self.dir.path().join("hive.db")
    }

    pub fn file(&self, suffix: &str) -> PathBuf {
        self.dir.path().join(format!("hive.db{suffix}"))
    }

    pub fn start(&mut self) -> Result<(), StoreError> {
        self.open = Some(sqlite::open(&self.path(), &self.options)?);
        Ok(())
    }

    pub fn stop(&mut self) {
        let (store, readers) = self.open.take().unwrap();
        drop(readers);
        store.close().unwrap();
    }

    pub fn restart(&mut self) {
        self.stop();
        self.start().unwrap();
    }

    /// Leaves the files as a kill would, in a directory of their own, and opens nothing.
    pub fn kill(&mut self) {
        let after = fast_dir();
        copy_files(self.dir.path(), after.path());
        // The running store goes on to the end in the old directory, where nobody looks.
        self.open = None;
        self.dir = after;
    }

    pub fn crash(&mut self) {
        self.kill();
        self.start().unwrap();
    }

    pub fn store(&mut self) -> &mut Store {
        &mut self.open.as_mut().unwrap().0
    }

    pub fn readers(&self) -> &Readers {
        &self.open.as_ref().unwrap().1
    }

    pub fn try_run<T>(
        &mut self,
        operation: impl FnOnce(&mut Tx<'_>) -> Result<T, Refusal>,
    ) -> Result<Result<T, Refusal>, StoreError> {
        self.clock += 1;
        let now = at(self.clock);
        self.store().one(now, operation)
    }

    pub fn run<T>(&mut self, operation: impl FnOnce(&mut Tx<'_>) -> Result<T, Refusal>) -> T {
        self.try_run(operation).unwrap().unwrap()
    }

    pub fn send(&mut self, from: &str, to: &str, body: &str) -> MessageId {
        self.run(|tx| tx.send(message(from, to, body))).message_id
    }

    /// Runs one operation that is durable at the end, and not more than that.
    pub fn try_run_durably<T>(
        &mut self,
        operation: impl FnOnce(&mut Tx<'_>) -> Result<T, Refusal>,
    ) -> Result<T, StoreError> {
        self.clock += 1;
        let now = at(self.clock);
        let mut group = self.store().begin(now);
        let outcome = group.run_checked(operation);
        group.make_durable()?;
        self.store().acknowledged();
        Ok(outcome.unwrap())
    }

    /// Sends so that it is durable, and not more than that.
    pub fn send_durably(&mut self, from: &str, to: &str, body: &str) -> MessageId {
        let sent = self.try_run_durably(|tx| tx.send(message(from, to, body)));
        sent.unwrap().message_id
    }

    /// Receives without a turn: what came, acked.
    pub fn take(&mut self, of: &str, max: u32) -> Vec<MessageId> {
        let received = self.run(|tx| tx.receive(&receive(of, "", max)));
        received.messages.iter().map(|message| message.id).collect()
    }

    /// A connection beside the store, for looking and for doing harm.
    pub fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

/// Copies the files of a database, but for the shared memory, which a dead process leaves useless.
pub fn copy_files(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if !entry.file_name().to_string_lossy().ends_with("-shm") {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// The SQLite store as a subject of the conformance suite.
pub struct Sqlite {
    pub hive: Hive,
    /// How many groups may be durable in the redo journal alone.
    pub behind: u32,
}

impl Sqlite {
    pub fn new(limits: Limits, behind: u32) -> Self {
        let hive = Hive::with(Options {
            inbox_depth: limits.inbox_depth,
            deliveries_before_dead: limits.deliveries_before_dead,
            ..small()
        });
        Self { hive, behind }
    }
}

impl Subject for Sqlite {
    fn group(&mut self, now: Timestamp, operations: &[Op]) -> Vec<Outcome> {
        let behind = self.behind;
        let store = self.hive.store();
        let mut group = store.begin(now);
        let run = |operation: &Op| Outcome::of(group.run(|tx| operation.apply(tx)));
        let outcomes = operations.iter().map(run).collect();
        if behind == 0 {
            group.commit().unwrap();
            return outcomes;
        }
        group.make_durable().unwrap();
        if store.behind() > behind {
            store.settle().unwrap();
        }
        outcomes
    }

    fn restart(&mut self) {
        self.hive.restart();
    }

    fn crash(&mut self) {
        self.hive.crash();
    }
}
