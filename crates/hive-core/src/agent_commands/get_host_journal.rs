//! `get_host_journal`: the newest lines of the host's own log (M12).

use hive_wire::agent::{GetHostJournal, HostJournal};
use tokio::runtime::Handle;

use super::Caller;
use crate::{journal, server::Reply};

/// How many lines are read unless told otherwise.
const DEFAULT: u32 = 200;
/// The most lines that are read.
const MOST: u32 = 2_000;

pub(super) fn run(caller: &Caller, command: GetHostJournal, reply: Reply<HostJournal>) {
    let lines = command.lines.unwrap_or(DEFAULT).clamp(1, MOST);
    let read = move || reply.send(Ok(journal::read(lines)));
    caller.tasks.spawn_blocking_on(read, &Handle::current());
}
