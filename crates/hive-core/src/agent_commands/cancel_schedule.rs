//! `cancel_schedule`: deletes a schedule of the caller's own (M12).

use hive_wire::agent::{CancelSchedule, Cancelled};
use serde_json::json;

use super::{Caller, once::Once};
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: CancelSchedule, reply: Reply<Cancelled>) {
    let agent = caller.name.clone();
    let once = Once::of(&command, command.key.as_ref());
    caller.broker.submit(
        move |desk| {
            once.run(desk, &agent, |desk| {
                let id = command.schedule_id;
                desk.store(|tx| tx.cancel_schedule(Some(&agent), id))?;
                desk.agenda_changed();
                desk.report_agent(&agent, "schedule_cancelled", &json!({"schedule_id": id}));
                Ok(Cancelled {})
            })
        },
        move |outcome| reply.send(outcome),
    );
}
