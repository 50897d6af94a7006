//! `request_spawn`: asks the operator for a new agent (M11).

use std::sync::Arc;

use hive_wire::approval::{ApprovalRequested, RequestSpawn};

use super::Caller;
use crate::{approvals::Requester, server::Reply};

pub(super) fn run(caller: &Caller, command: RequestSpawn, reply: Reply<ApprovalRequested>) {
    let approvals = Arc::clone(&caller.approvals);
    let who = Requester::Agent(caller.name.clone());
    caller
        .tasks
        .spawn(async move { reply.send(approvals.request_spawn(who, command).await) });
}
