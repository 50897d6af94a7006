//! Puts the client and its servers on different cores while a latency is measured: the same round
//! trip costs a few microseconds within one core and tens across two, so an unpinned figure says
//! mostly where the scheduler happened to put things.

use std::fs;

use anyhow::{Result, bail};
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::process::family;

/// Undoes the pinning when dropped.
#[derive(Debug)]
pub(crate) struct Pinned {
    before: CpuSet,
    servers: Vec<u32>,
}

impl Pinned {
    /// Pins this thread to one core and every thread of a server and its children to another, and
    /// so on: of a chain of servers, each of which asks the next, no two neighbours share a core.
    /// Threads and processes that a server starts later inherit its core.
    pub(crate) fn apart(servers: &[u32]) -> Result<Self> {
        let before = sched_getaffinity(None)?;
        let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| before.is_set(core));
        let (Some(first), Some(second)) = (cores.next(), cores.next()) else {
            bail!("one core: latencies are not pinned");
        };
        let pinned = Self {
            before,
            servers: servers.to_vec(),
        };
        for (&pid, core) in servers.iter().zip([first, second].into_iter().cycle()) {
            set_all(pid, &only(core));
        }
        sched_setaffinity(None, &only(second))?;
        Ok(pinned)
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        for &pid in &self.servers {
            set_all(pid, &self.before);
        }
        // A mask the thread had before is one it may have again.
        sched_setaffinity(None, &self.before).ok();
    }
}

fn only(core: usize) -> CpuSet {
    let mut set = CpuSet::new();
    set.set(core);
    set
}

/// Best effort: a thread may end between being listed and being moved.
fn set_all(pid: u32, cores: &CpuSet) {
    for process in family(pid) {
        let Ok(tasks) = fs::read_dir(format!("/proc/{process}/task")) else {
            continue;
        };
        let names = tasks.flatten().map(|task| task.file_name());
        let threads = names.filter_map(|name| name.to_str()?.parse().ok());
        for thread in threads.filter_map(Pid::from_raw) {
            sched_setaffinity(Some(thread), cores).ok();
        }
    }
}
