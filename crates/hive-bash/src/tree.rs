//! Finding and ending everything below a process.
//!
//! A process that adopts orphans (a subreaper) has every process that was started below it, however
//! it was detached, among its descendants. Signals go through a descriptor of the process, checked
//! after it was opened, so that a number which was given to somebody else meanwhile is left alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use rustix::{
    io,
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};

/// How often newly found processes are looked for before they are ended.
const ROUNDS: usize = 100;

/// Sends a signal to every descendant of `root`, but not to those in `spared` and theirs.
pub(crate) fn signal(root: Pid, spared: &BTreeSet<i32>, signal: Signal) {
    for (pid, parent) in descendants(root, spared) {
        send(pid, parent, signal);
    }
}

/// Ends every descendant of `root` but the spared. They are stopped first, so that none of them can
/// start another one in between. Returns how many there were.
pub(crate) fn kill(root: Pid, spared: &BTreeSet<i32>) -> usize {
    let mut stopped = BTreeSet::new();
    for _ in 0..ROUNDS {
        let found = descendants(root, spared);
        let new: Vec<_> = found
            .into_iter()
            .filter(|(pid, _)| stopped.insert(*pid))
            .collect();
        if new.is_empty() {
            break;
        }
        for (pid, parent) in new {
            send(pid, parent, Signal::STOP);
        }
    }
    signal(root, spared, Signal::KILL);
    stopped.len()
}

/// The children of `root` that are no spared ones.
pub(crate) fn children(root: Pid, spared: &BTreeSet<i32>) -> Vec<Pid> {
    let below = descendants(root, spared);
    let own = below
        .into_iter()
        .filter(|(_, parent)| *parent == root.as_raw_nonzero().get());
    own.filter_map(|(pid, _)| Pid::from_raw(pid)).collect()
}

/// Every process below `root` with its parent.
fn descendants(root: Pid, spared: &BTreeSet<i32>) -> Vec<(i32, i32)> {
    let mut of_parent: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if let Some(parent) = parent_of(pid) {
            of_parent.entry(parent).or_default().push(pid);
        }
    }
    let (mut found, mut next) = (Vec::new(), vec![root.as_raw_nonzero().get()]);
    while let Some(parent) = next.pop() {
        for pid in of_parent.remove(&parent).unwrap_or_default() {
            if !spared.contains(&pid) {
                found.push((pid, parent));
                next.push(pid);
            }
        }
    }
    found
}

/// The parent of a process that is not dead already.
fn parent_of(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything, parentheses and spaces too.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace();
    let _state = words.next()?;
    words.next()?.parse().ok()
}

fn send(pid: i32, parent: i32, signal: Signal) {
    let Some(process) = Pid::from_raw(pid) else {
        return;
    };
    let Ok(handle) = pidfd_open(process, PidfdFlags::empty()) else {
        return;
    };
    if parent_of(pid) != Some(parent) {
        // Gone, adopted by somebody else, or another process by now: the next look finds it.
        return;
    }
    match pidfd_send_signal(&handle, signal) {
        Ok(()) | Err(io::Errno::SRCH) => {}
        Err(error) => tracing::warn!(pid, %error, "cannot signal a process"),
    }
}
