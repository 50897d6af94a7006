//! `list_schedules`: the caller's own schedules (M12).

use hive_wire::agent::{ListSchedules, Schedules};

use super::Caller;
use crate::{host_commands::schedules::row, server::Reply};

pub(super) fn run(caller: &Caller, ListSchedules {}: ListSchedules, reply: Reply<Schedules>) {
    let agent = caller.name.clone();
    caller.broker.submit(
        move |desk| {
            let schedules = desk.store(|tx| tx.schedules_of(&agent))?;
            Ok(Schedules {
                schedules: schedules.into_iter().map(row).collect(),
            })
        },
        move |outcome| reply.send(outcome),
    );
}
