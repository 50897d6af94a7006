//! What the kernel says about processes.
//!
//! Signals go through descriptors: the process is opened, then compared with what is expected of
//! it, then signalled, so that a process id that was used again is never hit.

use std::{
    collections::BTreeMap,
    fs, io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde::{Deserialize, Serialize};

/// The variable whose value every process of one run inherits.
pub(crate) const MARK: &str = "HIVE_RUN_ID";

/// A process, told from any other that ever had its id in this boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// When it started, in clock ticks since boot.
    pub(crate) start: u64,
}

impl Process {
    /// The process that has this id now.
    pub(crate) fn of(pid: u32) -> io::Result<Option<Self>> {
        Ok(stat(pid)?.map(|stat| Self {
            pid,
            start: stat.start,
        }))
    }

    /// A handle on it, if it has not ended.
    pub(crate) fn open(self) -> io::Result<Option<OwnedFd>> {
        let Some(handle) = open(self.pid)? else {
            return Ok(None);
        };
        // Looked at after it was opened: if it matches, the handle is of this process.
        let alive = stat(self.pid)?.is_some_and(|stat| stat.start == self.start && !stat.ended);
        Ok(alive.then_some(handle))
    }
}

/// One line of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    start: u64,
    /// A zombie has ended, even if nobody collected it yet.
    ended: bool,
}

fn stat(pid: u32) -> io::Result<Option<Stat>> {
    match fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(line) => Ok(parse_stat(&line)),
        Err(error) if is_gone(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The name in parentheses may hold anything, also parentheses.
fn parse_stat(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X" | "x");
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of the whole line; two of what follows the name are consumed.
    let start = fields.nth(17)?.parse().ok()?;
    Some(Stat {
        parent,
        start,
        ended,
    })
}

fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
        || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// Opens whatever has this id now.
fn open(pid: u32) -> io::Result<Option<OwnedFd>> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return Ok(None);
    };
    match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::SRCH | Errno::INVAL) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sends a signal; one that has ended meanwhile is no error.
pub(crate) fn signal(process: impl AsFd, signal: Signal) -> io::Result<()> {
    match pidfd_send_signal(process, signal) {
        Ok(()) | Err(Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Waits until a process has ended; false when it has not within `patience`.
pub(crate) fn ends_within(process: impl AsFd, patience: Duration) -> io::Result<bool> {
    let deadline = Instant::now() + patience;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let mut handles = [PollFd::new(&process, PollFlags::IN)];
        match poll(&mut handles, Some(&left)) {
            Ok(0) => return Ok(false),
            Ok(_) => return Ok(true),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Closes every descriptor but the first three: what a shell, `make` or a service manager left open
/// in whoever started this process is not the agent's. For a process that has opened nothing yet
/// and has one thread.
pub(crate) fn close_inherited() -> io::Result<()> {
    let mut open = Vec::new();
    for entry in fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        open.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    for descriptor in open.into_iter().filter(|descriptor| *descriptor > 2) {
        match nix::unistd::close(descriptor) {
            // The one that the list was read from is closed by now.
            Ok(()) | Err(nix::errno::Errno::EBADF) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// What names this boot.
pub(crate) fn boot_id() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// Every process that has not ended, with its parent.
fn processes() -> io::Result<BTreeMap<u32, Stat>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(stat) = stat(pid)?.filter(|stat| !stat.ended) {
            found.insert(pid, stat);
        }
    }
    Ok(found)
}

/// Everything below a process, and not itself.
fn descendants(of: u32) -> io::Result<Vec<Process>> {
    let all = processes()?;
    let mut below: Vec<Process> = Vec::new();
    let mut next = 0;
    let mut parent = of;
    loop {
        let children = all.iter().filter(|(_, stat)| stat.parent == parent);
        below.extend(children.map(|(pid, stat)| Process {
            pid: *pid,
            start: stat.start,
        }));
        let Some(process) = below.get(next) else {
            return Ok(below);
        };
        parent = process.pid;
        next += 1;
    }
}

/// The first child of the process with which the process namespace below a process begins.
pub(crate) fn first_inside(of: u32) -> io::Result<Option<OwnedFd>> {
    let depth = pids_of(std::process::id())?.len() + 1;
    let mut inside = Vec::new();
    for process in descendants(of)? {
        let pids = pids_of(process.pid)?;
        if let Some(pid) = pids.last().filter(|_| pids.len() == depth) {
            inside.push((*pid, process));
        }
    }
    let Some((_, init)) = inside.iter().find(|(pid, _)| *pid == 1) else {
        return Ok(None);
    };
    // What was orphaned came later.
    let mut first: Option<(u32, Process)> = None;
    for (pid, process) in &inside {
        let is_child = stat(process.pid)?.is_some_and(|stat| stat.parent == init.pid);
        if is_child && first.is_none_or(|(least, _)| *pid < least) {
            first = Some((*pid, *process));
        }
    }
    first.map_or(Ok(None), |(_, process)| process.open())
}

/// The ids of a process in every namespace that it is in, outermost first.
fn pids_of(pid: u32) -> io::Result<Vec<u32>> {
    match fs::read_to_string(format!("/proc/{pid}/status")) {
        Ok(status) => {
            let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
            let ids = ids.unwrap_or_default().split_ascii_whitespace();
            Ok(ids.filter_map(|id| id.parse().ok()).collect())
        }
        Err(error) if is_gone(&error) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Kills everything below a process. True when there was nothing.
pub(crate) fn kill_descendants(of: u32) -> io::Result<bool> {
    let below = descendants(of)?;
    for process in &below {
        if let Some(handle) = process.open()? {
            signal(handle, Signal::KILL)?;
        }
    }
    Ok(below.is_empty())
}

/// Kills every process that carries this mark. True when there was none.
pub(crate) fn kill_marked(mark: &str) -> io::Result<bool> {
    let wanted = format!("{MARK}={mark}");
    let is_marked = |pid: u32| {
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| {
            let mut entries = environ.split(|byte| *byte == 0);
            entries.any(|entry| entry == wanted.as_bytes())
        })
    };
    let mut none = true;
    for pid in processes()?.into_keys().filter(|pid| is_marked(*pid)) {
        if let Some(handle) = open(pid)?
            && is_marked(pid)
        {
            none = false;
            signal(handle, Signal::KILL)?;
        }
    }
    Ok(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let tail = "S 7 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1";
        for name in ["sh", "a b", ") Z 1 (", "((", ""] {
            let stat = parse_stat(&format!("42 ({name}) {tail}")).unwrap();
            assert_eq!((stat.parent, stat.start, stat.ended), (7, 4711, false));
        }
        let zombie = parse_stat(&format!("42 (x) {}", tail.replacen('S', "Z", 1)));
        assert!(zombie.unwrap().ended);
        for bad in ["", "42", "42 (sh)", "42 (sh) S", "42 (sh) S x"] {
            assert_eq!(parse_stat(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_process_is_told_from_another_one_with_its_id() {
        let own = Process::of(std::process::id()).unwrap().unwrap();
        assert!(own.open().unwrap().is_some());
        let earlier = Process {
            start: own.start - 1,
            ..own
        };
        assert!(earlier.open().unwrap().is_none());
        for pid in [0, u32::MAX] {
            let nobody = Process { pid, start: 1 };
            assert!(nobody.open().unwrap().is_none());
        }
    }
}
