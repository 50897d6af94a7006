//! The process group that a child leads: what it started ends with it.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// The group of a child that was started as the leader of one. Whatever is left of it is killed when
/// this is dropped, however that comes about.
#[derive(Debug)]
pub(crate) struct Group(Option<Pid>);

impl Group {
    /// The group that a child leads; it has not been waited for yet.
    pub(crate) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// Signals all that is left of it; that may be nothing.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            kill_process_group(group, signal).ok();
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}
