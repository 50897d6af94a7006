//! `request_apply_commit`: asks the operator to apply a commit of a proposed configuration (M11).

use std::sync::Arc;

use hive_wire::approval::{ApprovalRequested, RequestApplyCommit};

use super::Caller;
use crate::server::Reply;

pub(super) fn run(caller: &Caller, command: RequestApplyCommit, reply: Reply<ApprovalRequested>) {
    let approvals = Arc::clone(&caller.approvals);
    let who = caller.name.clone();
    caller
        .tasks
        .spawn(async move { reply.send(approvals.request_apply(who, command).await) });
}
