//! Processes and their descendants, as the kernel lists them under `/proc`.
//!
//! A process is known by its pid and its start time, since pids are used again. A signal is sent
//! through a pidfd that was opened before the start time was checked, so that it reaches the process
//! that was meant or nobody.

use std::{
    collections::{HashMap, HashSet},
    fs,
    path::Path,
    time::{Duration, Instant},
};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// How long a tree may take to be gone after SIGKILL.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked at meanwhile: nothing tells when a stranger's child is gone.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// A process that was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pid: Pid,
    parent: i32,
    /// In ticks since boot.
    started: u64,
}

impl Process {
    /// The process with this pid, as it is now. A zombie counts as gone.
    fn read(pid: Pid) -> Option<Self> {
        let stat = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        let stat = String::from_utf8_lossy(&stat);
        // The command's name is in parentheses and may hold anything, more of them included.
        let (_, fields) = stat.rsplit_once(") ")?;
        let mut fields = fields.split(' ');
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        let started = fields.nth(17)?.parse().ok()?;
        (!matches!(state, "Z" | "X")).then_some(Self {
            pid,
            parent,
            started,
        })
    }

    /// Sends a signal to this very process, if it is still there.
    pub(super) fn signal(self, signal: Signal) {
        let Ok(fd) = pidfd_open(self.pid, PidfdFlags::empty()) else {
            return;
        };
        let same = Self::read(self.pid).is_some_and(|now| now.started == self.started);
        if same && let Err(error) = pidfd_send_signal(&fd, signal) {
            tracing::debug!(pid = %self.pid, %error, "no signal was sent");
        }
    }
}

/// Everything below this process, itself left out.
pub(super) fn descendants(of: Pid) -> Vec<Process> {
    below(HashSet::from([of.as_raw_nonzero().get()]), &all())
}

/// Every process that has this entry in its environment, and everything below those.
pub(super) fn marked(entry: &[u8]) -> Vec<Process> {
    let all = all();
    let me = rustix::process::getpid();
    let marked: Vec<_> = all
        .iter()
        .filter(|process| process.pid != me && has_entry(process.pid, entry))
        .copied()
        .collect();
    let pids = marked.iter().map(|p| p.pid.as_raw_nonzero().get());
    let mut found: HashSet<_> = below(pids.collect(), &all).into_iter().collect();
    found.extend(marked);
    found.into_iter().collect()
}

/// Kills what `find` finds until it finds nothing more, or patience ends. `reap` is called in
/// between. Says whether all are gone.
pub(super) fn kill_all(find: impl Fn() -> Vec<Process>, mut reap: impl FnMut()) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let found = find();
        reap();
        if found.is_empty() {
            return true;
        }
        for process in found {
            process.signal(Signal::KILL);
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

fn all() -> Vec<Process> {
    let Ok(entries) = fs::read_dir(Path::new("/proc")) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter_map(Process::read)
        .collect()
}

fn below(roots: HashSet<i32>, all: &[Process]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut todo: Vec<i32> = roots.into_iter().collect();
    let mut found = Vec::new();
    while let Some(pid) = todo.pop() {
        for child in children.remove(&pid).unwrap_or_default() {
            todo.push(child.pid.as_raw_nonzero().get());
            found.push(child);
        }
    }
    found
}

fn has_entry(pid: Pid, entry: &[u8]) -> bool {
    let environ = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero()));
    environ.is_ok_and(|environ| environ.split(|&b| b == 0).any(|e| e == entry))
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// A process with a name that imitates the fields after it, and a child of its own.
    fn family(marker: &str) -> std::process::Child {
        Command::new("sh")
            .args(["-c", "sleep 600 & echo; wait"])
            .env("HIVE_TREE_TEST", marker)
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh")
    }

    fn pid(child: &std::process::Child) -> Pid {
        Pid::from_child(child)
    }

    #[test]
    fn descendants_are_found_and_killed_through_both_ways() {
        let marker = format!("test-{}", std::process::id());
        for by_mark in [false, true] {
            let mut sh = family(&marker);
            let mut ready = [0; 1];
            let stdout = sh.stdout.as_mut().expect("a pipe");
            std::io::Read::read_exact(stdout, &mut ready).expect("a line");
            let sleeper = descendants(pid(&sh));
            assert_eq!(sleeper.len(), 1);
            let entry = format!("HIVE_TREE_TEST={marker}").into_bytes();
            assert_eq!(marked(&entry).len(), 2, "the shell and its child");
            if by_mark {
                assert!(kill_all(|| marked(&entry), || drop(sh.try_wait())));
            } else {
                assert!(kill_all(|| descendants(pid(&sh)), || {}));
                sh.kill().expect("the child is ours");
            }
            sh.wait().expect("the child is ours");
            assert!(Process::read(sleeper[0].pid).is_none_or(|p| p != sleeper[0]));
        }
    }

    #[test]
    fn a_signal_does_not_reach_another_process_with_the_same_pid() {
        let mut child = Command::new("sleep").arg("600").spawn().expect("sleep");
        let real = Process::read(pid(&child)).expect("it runs");
        let stale = Process {
            started: real.started - 1,
            ..real
        };
        stale.signal(Signal::KILL);
        assert!(child.try_wait().expect("ours").is_none());
        real.signal(Signal::KILL);
        child.wait().expect("ours");
    }
}
