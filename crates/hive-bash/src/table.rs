//! Every task the daemon knows, in memory and on disk.
//!
//! A change is written down before anybody is told. What cannot be written is kept in memory and
//! said in the log: a full disk loses no task that runs.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use hive_wire::{ErrorCode, Timestamp, WireError};
use tokio::sync::{Notify, watch};

use crate::{
    loose_ends, output, replace,
    task::{Record, State, TaskId},
    wire::{MAX_WAIT_SECONDS, Run, Stream, TAIL, TaskStatus},
};

/// How many ended tasks are kept.
const MAX_KEPT: usize = 500;

/// How a task ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ending {
    pub(crate) exit_code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) took: Duration,
    pub(crate) note: Option<String>,
}

/// The tasks of one agent.
pub(crate) struct Table {
    dir: PathBuf,
    harness_dir: PathBuf,
    max_running: usize,
    /// The highest number of a record that cannot be read. It is not given again: the record would
    /// be overwritten.
    unreadable: u64,
    tasks: Mutex<BTreeMap<TaskId, Entry>>,
    /// Told whenever there may be news for the agent.
    pub(crate) news: Notify,
}

struct Entry {
    record: Record,
    state: watch::Sender<State>,
    started: Option<Instant>,
    pid: Option<i32>,
    /// How many calls wait for its end right now.
    waiters: usize,
    /// When a call was last given its end, which may be about to reach the agent.
    offered: Option<Instant>,
}

impl Entry {
    fn new(record: Record) -> Self {
        let (state, _) = watch::channel(record.state);
        Self {
            record,
            state,
            started: None,
            pid: None,
            waiters: 0,
            offered: None,
        }
    }
}

/// A task whose end the agent does not know yet.
pub(crate) struct Unseen {
    pub(crate) record: Record,
    /// When somebody was given its end, and may say in a moment that the agent has it.
    pub(crate) offered: Option<Instant>,
}

impl Table {
    /// Reads what an earlier daemon left. What it had running is interrupted now, and what it did
    /// not finish writing is removed.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub(crate) fn open(harness_dir: &Path, dir: &Path, max_running: usize) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
        for dir in [dir, harness_dir, &harness_dir.join(loose_ends::DIR)] {
            if let Err(error) = replace::remove_leftovers(dir) {
                tracing::warn!(%error, dir = %dir.display(), "cannot remove unfinished files");
            }
        }
        let (mut known, mut unreadable) = (BTreeMap::new(), 0);
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read(&path) {
                Ok(record) => {
                    known.insert(record.id, Entry::new(record));
                }
                Err(error) => {
                    tracing::error!(%error, path = %path.display(), "cannot read a task's record");
                    let name = path.file_stem().and_then(|stem| stem.to_str());
                    let number = name.and_then(|name| name.parse().ok());
                    unreadable = unreadable.max(number.unwrap_or(0));
                }
            }
        }
        let table = Self {
            dir: dir.to_path_buf(),
            harness_dir: harness_dir.to_path_buf(),
            max_running,
            unreadable,
            tasks: Mutex::new(known),
            news: Notify::new(),
        };
        let mut tasks = table.lock();
        let open = tasks
            .values()
            .filter(|entry| !entry.record.state.is_final());
        let open: Vec<_> = open.map(|entry| entry.record.id).collect();
        for id in open {
            let note = "the daemon was restarted, and the command was ended with it";
            table.end(
                &mut tasks,
                id,
                State::Interrupted,
                Ending {
                    note: Some(note.to_owned()),
                    ..Ending::default()
                },
            );
        }
        table.publish(&tasks);
        drop(tasks);
        Ok(table)
    }

    /// Writes a new task down.
    ///
    /// # Errors
    /// `limit_reached` when too many run, `storage` when it cannot be written.
    pub(crate) fn create(&self, run: &Run) -> Result<Record, WireError> {
        let mut tasks = self.lock();
        let running: Vec<_> = tasks
            .values()
            .filter(|entry| !entry.record.state.is_final())
            .map(|entry| format!("{} ({})", entry.record.id, entry.record.short_cmd()))
            .collect();
        if running.len() >= self.max_running {
            let what = format!(
                "{} tasks run already: {}",
                running.len(),
                running.join(", ")
            );
            return Err(WireError::new(ErrorCode::LimitReached, what)
                .hint("wait until one has ended, or end one with kill"));
        }
        let last = tasks.last_key_value().map_or(0, |(last, _)| last.0);
        let id = last.max(self.unreadable).checked_add(1).map(TaskId);
        let id = id.ok_or_else(|| {
            let what = format!(
                "a record in {} has the largest number there is",
                self.dir.display()
            );
            WireError::new(ErrorCode::Storage, what)
                .hint("remove that file and start the bash daemon again")
        })?;
        let record = Record::new(id, run.script.clone(), run.timeout_secs);
        self.save(&record).map_err(|error| {
            WireError::new(
                ErrorCode::Storage,
                format!(
                    "cannot write the task down in {}: {error}",
                    self.dir.display()
                ),
            )
            .hint("make room on the disk, then try again")
        })?;
        tasks.insert(id, Entry::new(record.clone()));
        self.make_room(&mut tasks);
        self.publish(&tasks);
        Ok(record)
    }

    /// The shell of a task runs.
    pub(crate) fn started(&self, id: TaskId, pid: i32) {
        let mut tasks = self.lock();
        if let Some(entry) = tasks.get_mut(&id) {
            entry.record.state = State::Running;
            entry.started = Some(Instant::now());
            entry.pid = Some(pid);
            self.save_or_say(&entry.record);
            entry.state.send_replace(State::Running);
        }
        self.publish(&tasks);
    }

    /// A task has ended, and its output is complete.
    pub(crate) fn ended(&self, id: TaskId, state: State, ending: Ending) {
        let mut tasks = self.lock();
        self.end(&mut tasks, id, state, ending);
        self.publish(&tasks);
        drop(tasks);
        self.news.notify_one();
    }

    fn end(&self, tasks: &mut BTreeMap<TaskId, Entry>, id: TaskId, state: State, ending: Ending) {
        let Some(entry) = tasks.get_mut(&id) else {
            return;
        };
        let record = &mut entry.record;
        record.state = state;
        record.ended_at = Some(Timestamp::now());
        record.exit_code = ending.exit_code;
        record.signal = ending.signal;
        record.note = ending.note;
        let took = u64::try_from(ending.took.as_millis()).unwrap_or(u64::MAX);
        record.duration_ms = (took > 0 || ending.exit_code.is_some()).then_some(took);
        entry.pid = None;
        if entry.waiters > 0 {
            entry.offered = Some(Instant::now());
        }
        self.save_or_say(record);
        entry.state.send_replace(state);
    }

    /// The agent knows how a task ended.
    ///
    /// # Errors
    /// `not_found`.
    pub(crate) fn seen(&self, id: TaskId) -> Result<(), WireError> {
        let mut tasks = self.lock();
        let entry = tasks.get_mut(&id).ok_or_else(|| not_found(id))?;
        if entry.record.state.is_final() && !entry.record.seen {
            entry.record.seen = true;
            self.save_or_say(&entry.record);
            self.publish(&tasks);
        }
        Ok(())
    }

    /// How a task stands, once it has ended or `seconds` have passed.
    ///
    /// # Errors
    /// `not_found`.
    pub(crate) async fn wait(
        self: &Arc<Self>,
        id: TaskId,
        seconds: u64,
    ) -> Result<TaskStatus, WireError> {
        let waiting = Waiting::new(self, id)?;
        let mut state = waiting.state.clone();
        let window = Duration::from_secs(seconds.min(MAX_WAIT_SECONDS));
        // Both ways out are the same: the task stands as it stands.
        tokio::time::timeout(window, state.wait_for(|state| state.is_final()))
            .await
            .ok();
        self.status(id)
    }

    fn status(&self, id: TaskId) -> Result<TaskStatus, WireError> {
        let (record, started, pid) = {
            let mut tasks = self.lock();
            let entry = tasks.get_mut(&id).ok_or_else(|| not_found(id))?;
            if entry.record.state.is_final() {
                entry.offered = Some(Instant::now());
            }
            (entry.record.clone(), entry.started, entry.pid)
        };
        let so_far = started.map_or(0, |started| started.elapsed().as_millis());
        let so_far = u64::try_from(so_far).unwrap_or(u64::MAX);
        Ok(TaskStatus {
            task: id,
            state: record.state,
            headline: record.headline(),
            exit_code: record.exit_code,
            duration_ms: record.duration_ms.unwrap_or(so_far),
            pid,
            stdout: self.stream(id, "out"),
            stderr: self.stream(id, "err"),
            cmd: record.cmd,
        })
    }

    /// The end of one stream and its file.
    pub(crate) fn stream(&self, id: TaskId, extension: &str) -> Stream {
        let path = self.output(id, extension);
        let (tail, bytes) = output::tail(&path, TAIL);
        Stream {
            file: path.display().to_string(),
            bytes,
            tail,
        }
    }

    /// The file of one stream.
    pub(crate) fn output(&self, id: TaskId, extension: &str) -> PathBuf {
        self.dir.join(format!("{id}.{extension}"))
    }

    /// The tasks whose end the agent does not know.
    pub(crate) fn unseen(&self) -> Vec<Unseen> {
        let tasks = self.lock();
        let unseen = tasks
            .values()
            .filter(|entry| entry.record.state.is_final() && !entry.record.seen);
        unseen
            .map(|entry| Unseen {
                record: entry.record.clone(),
                offered: entry.offered,
            })
            .collect()
    }

    /// Forgets the oldest ended tasks beyond what is kept, those that were seen first. The newest
    /// stays, so that its number is not given again.
    fn make_room(&self, tasks: &mut BTreeMap<TaskId, Entry>) {
        let surplus = tasks.len().saturating_sub(MAX_KEPT);
        if surplus == 0 {
            return;
        }
        let mut old: Vec<_> = tasks
            .values()
            .filter(|entry| entry.record.state.is_final() && entry.waiters == 0)
            .map(|entry| (!entry.record.seen, entry.record.id))
            .collect();
        old.sort_unstable();
        for (_, id) in old.into_iter().take(surplus) {
            tasks.remove(&id);
            for extension in ["out", "err", "json"] {
                match fs::remove_file(self.output(id, extension)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        tracing::warn!(%id, %error, "cannot remove an old task's file");
                    }
                    _ => {}
                }
            }
        }
    }

    fn save(&self, record: &Record) -> io::Result<()> {
        let json = serde_json::to_vec(record)?;
        replace::write(&self.output(record.id, "json"), &json)
    }

    fn save_or_say(&self, record: &Record) {
        if let Err(error) = self.save(record) {
            tracing::error!(id = %record.id, %error, "cannot write a task's record");
        }
    }

    fn publish(&self, tasks: &BTreeMap<TaskId, Entry>) {
        let open = tasks
            .values()
            .map(|entry| &entry.record)
            .filter(|record| !record.seen);
        if let Err(error) = loose_ends::publish(&self.harness_dir, open) {
            tracing::warn!(%error, "cannot publish the loose ends");
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TaskId, Entry>> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits for the end of a task; counted, so that the agent is not woken for what it is
/// being told.
struct Waiting<'a> {
    table: &'a Table,
    id: TaskId,
    state: watch::Receiver<State>,
}

impl<'a> Waiting<'a> {
    fn new(table: &'a Table, id: TaskId) -> Result<Self, WireError> {
        let mut tasks = table.lock();
        let entry = tasks.get_mut(&id).ok_or_else(|| not_found(id))?;
        entry.waiters += 1;
        let state = entry.state.subscribe();
        Ok(Self { table, id, state })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(entry) = self.table.lock().get_mut(&self.id) {
            entry.waiters -= 1;
        }
    }
}

fn not_found(id: TaskId) -> WireError {
    WireError::new(ErrorCode::NotFound, format!("there is no task {id}"))
        .hint("the id is the number that run returned; old tasks are forgotten")
}

fn read(path: &Path) -> io::Result<Record> {
    let record: Record = serde_json::from_slice(&fs::read(path)?)?;
    let name = path.file_stem().and_then(|stem| stem.to_str());
    if name != Some(record.id.to_string().as_str()) {
        return Err(io::Error::other("the record belongs to another task"));
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(cmd: &str) -> Run {
        Run {
            script: cmd.to_owned(),
            timeout_secs: None,
            wait_seconds: 0,
        }
    }

    fn open(dir: &Path) -> Arc<Table> {
        let tasks = dir.join("bash-tasks");
        Arc::new(Table::open(dir, &tasks, 2).unwrap())
    }

    fn loose_ends(dir: &Path) -> Vec<String> {
        let file = fs::read(dir.join("mcp-loose-ends/bash.json")).unwrap();
        let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
        let rows = file["loose_ends"].as_array().unwrap();
        rows.iter()
            .map(|row| row["label"].as_str().unwrap().to_owned())
            .collect()
    }

    #[tokio::test]
    async fn b4_b6_a_restart_interrupts_what_ran_and_forgets_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let first = open(dir.path());
        let (one, two) = (
            first.create(&run("a")).unwrap(),
            first.create(&run("b")).unwrap(),
        );
        first.started(two.id, 42);
        first.ended(one.id, State::Done, Ending::default());
        first.seen(one.id).unwrap();
        drop(first);

        let second = open(dir.path());
        let unseen = second.unseen();
        assert_eq!(unseen.len(), 1);
        assert_eq!(unseen[0].record.id, two.id);
        assert_eq!(unseen[0].record.state, State::Interrupted);
        assert_eq!(loose_ends(dir.path()), ["bash-task-2"]);
        // It stays so, and numbers go on.
        drop(second);
        let third = open(dir.path());
        assert_eq!(third.status(two.id).unwrap().state, State::Interrupted);
        assert_eq!(third.create(&run("c")).unwrap().id, TaskId(3));
        third.seen(two.id).unwrap();
        assert_eq!(loose_ends(dir.path()), ["bash-task-3"]);
    }

    #[tokio::test]
    async fn only_so_many_run_and_the_refusal_names_them() {
        let dir = tempfile::tempdir().unwrap();
        let table = open(dir.path());
        let first = table.create(&run("sleep 1")).unwrap();
        table.create(&run("sleep 2")).unwrap();
        let error = table.create(&run("sleep 3")).unwrap_err();
        assert_eq!(error.code, ErrorCode::LimitReached);
        assert!(error.message.contains("1 (sleep 1)"), "{error}");
        table.ended(first.id, State::Done, Ending::default());
        table.create(&run("sleep 3")).unwrap();
    }

    #[tokio::test]
    async fn b6_however_many_ended_unseen_a_running_task_is_published() {
        let dir = tempfile::tempdir().unwrap();
        let table = open(dir.path());
        let cmd = "\u{1b}".repeat(200);
        let runs = table.create(&run(&cmd)).unwrap();
        let mut last = runs.id;
        for _ in 0..MAX_KEPT {
            last = table.create(&run(&cmd)).unwrap().id;
            table.ended(last, State::Done, Ending::default());
        }
        let labels = loose_ends(dir.path());
        assert!(labels.contains(&runs.label()), "{labels:?}");
        assert_eq!(labels.last(), Some(&format!("bash-task-{last}")));
        let file = dir.path().join("mcp-loose-ends/bash.json");
        let length = fs::metadata(file).unwrap().len();
        assert!(length <= 64 * 1024, "the host reads no more: {length}");
    }

    #[tokio::test]
    async fn a_broken_record_hides_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let table = open(dir.path());
        table.create(&run("a")).unwrap();
        drop(table);
        let tasks = dir.path().join("bash-tasks");
        fs::write(tasks.join("7.json"), "{").unwrap();
        fs::copy(tasks.join("1.json"), tasks.join("9.json")).unwrap();
        let table = open(dir.path());
        assert_eq!(table.unseen().len(), 1);
        // Nor is it overwritten by a task with its number.
        assert_eq!(table.create(&run("b")).unwrap().id, TaskId(10));
        assert_eq!(fs::read(tasks.join("7.json")).unwrap(), b"{");
    }

    #[tokio::test]
    async fn a_record_with_the_largest_number_overwrites_none() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()));
        let tasks = dir.path().join("bash-tasks");
        fs::write(tasks.join(format!("{}.json", u64::MAX)), "{").unwrap();
        let refused = open(dir.path()).create(&run("a")).unwrap_err();
        assert!(refused.message.contains("largest number"), "{refused:?}");
        assert_eq!(
            fs::read_dir(tasks).unwrap().count(),
            1,
            "nothing was written"
        );
    }

    #[tokio::test]
    async fn b4_what_a_killed_daemon_did_not_finish_writing_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path()));
        let places = ["", "bash-tasks", loose_ends::DIR].map(|place| dir.path().join(place));
        let left = places.map(|place| replace::unfinished(&place).unwrap().keep().unwrap().1);
        open(dir.path());
        assert!(left.iter().all(|left| !left.exists()), "{left:?}");
    }

    #[tokio::test]
    async fn old_tasks_are_forgotten_with_their_files() {
        let dir = tempfile::tempdir().unwrap();
        let table = open(dir.path());
        for n in 0..MAX_KEPT + 20 {
            let record = table.create(&run("a")).unwrap();
            fs::write(table.output(record.id, "out"), "x").unwrap();
            table.ended(record.id, State::Done, Ending::default());
            if n != 3 {
                table.seen(record.id).unwrap();
            }
        }
        assert!(table.status(TaskId(1)).is_err());
        assert!(!table.output(TaskId(1), "out").exists());
        // One that nobody has seen outlasts those that somebody has.
        assert!(table.status(TaskId(4)).is_ok());
    }
}
