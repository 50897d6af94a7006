//! `request_spawn`: asks for a new agent in the operator's name, for a page on which it is decided.

use std::sync::Arc;

use hive_wire::{
    WireError,
    approval::{ApprovalRequested, RequestSpawnAsOperator},
};

use super::Host;
use crate::approvals::Requester;

pub(crate) async fn run(
    host: Arc<Host>,
    RequestSpawnAsOperator(command): RequestSpawnAsOperator,
) -> Result<ApprovalRequested, WireError> {
    Arc::clone(&host.approvals)
        .request_spawn(Requester::Operator, command)
        .await
}
