//! The commands of an agent's socket, one file each. The caller is whoever owns the socket: no
//! command believes what a body says about its sender.

mod ack_turn;
mod answer;
mod ask;
mod cancel_loose_end;
mod cancel_schedule;
mod children;
mod confirm;
mod control;
mod get_agent_meta;
mod get_host_journal;
mod get_logs;
mod get_loose_ends;
mod get_permissions;
mod kill;
mod list_agents;
mod list_peers;
mod list_schedules;
pub(crate) mod once;
mod post_events;
mod post_state;
mod post_turn_counts;
mod receipt;
mod recv;
mod remind;
mod request_apply_commit;
mod request_spawn;
mod requeue_inflight;
mod restart;
mod schedule;
mod send;
mod set_status;
mod start;
mod status;
mod wake;

pub(crate) use once::Once;

use std::{sync::Arc, time::Duration};

use hive_wire::{
    AgentName, ErrorCode, WireError,
    agent::{AgentRequest, MAX_BODY},
    command::RequestId,
    text,
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    approvals::Approvals,
    broker::{Broker, Presence},
    config::Config,
    harnesses::Harnesses,
    paths::Paths,
    permissions::{Gate, Grants},
    server::{Outbox, Service},
    supervisor::Supervisor,
};

/// Who calls, and what it takes to carry a command out.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) name: AgentName,
    pub(crate) broker: Broker,
    pub(crate) gate: Arc<Gate>,
    pub(crate) harnesses: Arc<Harnesses>,
    pub(crate) supervisor: Arc<Supervisor>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) config: Arc<Config>,
    pub(crate) paths: Paths,
    /// Whether engines go through the gateway, which counts what they spend.
    pub(crate) is_gated: bool,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Service for Caller {
    fn call(&self, line: &[u8], outbox: &Arc<Outbox>) {
        let (id, request) = AgentRequest::read(line);
        let request = match request {
            Ok(request) => request,
            Err(error) => return outbox.expect::<()>(id).refuse(error),
        };
        // Whatever a container claims: here it is decided what its agent may do.
        match self.gate.admit(&self.name, &request, line.len()) {
            Ok(grants) => self.carry_out(request, grants, id, outbox),
            Err(error) => outbox.expect::<()>(id).refuse(error),
        }
    }

    fn hung_up(&self, outbox: &Arc<Outbox>) {
        let agent = self.name.clone();
        let peer = Arc::clone(outbox) as Arc<dyn Presence>;
        self.harnesses.hung_up(&agent, &peer);
        self.broker.submit(
            move |desk| {
                desk.forget(&agent, &peer);
                Ok(())
            },
            |_: Result<(), WireError>| {},
        );
    }
}

impl Caller {
    fn carry_out(
        &self,
        request: AgentRequest,
        grants: Arc<Grants>,
        id: Option<RequestId>,
        outbox: &Arc<Outbox>,
    ) {
        use AgentRequest as Request;
        match request {
            Request::Send(command) => send::run(self, command, grants, outbox.expect(id)),
            Request::Recv(command) => {
                if let Some(reply) = outbox.expect_batch(id) {
                    recv::run(self, command, reply);
                }
            }
            Request::Confirm(command) => confirm::run(self, command, outbox.expect(id)),
            Request::AckTurn(command) => ack_turn::run(self, command, outbox.expect(id)),
            Request::RequeueInflight(command) => {
                requeue_inflight::run(self, command, outbox.expect(id));
            }
            Request::Status(command) => status::run(self, command, outbox.expect(id)),
            Request::Wake(command) => wake::run(self, command, outbox.expect(id)),
            Request::Ask(command) => ask::run(self, command, grants, outbox.expect(id)),
            Request::Answer(command) => answer::run(self, command, outbox.expect(id)),
            Request::GetLooseEnds(command) => {
                get_loose_ends::run(self, command, grants, outbox.expect(id));
            }
            Request::CancelLooseEnd(command) => {
                cancel_loose_end::run(self, command, &grants, outbox.expect(id));
            }
            Request::Remind(command) => remind::run(self, command, outbox.expect(id)),
            Request::GetReceipt(command) => receipt::run(self, command, outbox.expect(id)),
            Request::SetStatus(command) => set_status::run(self, &command, outbox.expect(id)),
            Request::GetAgentMeta(command) => get_agent_meta::run(self, command, outbox.expect(id)),
            Request::ListPeers(command) => list_peers::run(self, command, outbox.expect(id)),
            Request::PostTurnCounts(command) => {
                post_turn_counts::run(self, command, outbox.expect(id));
            }
            Request::PostState(command) => post_state::run(self, command, outbox.expect(id)),
            Request::PostEvents(command) => post_events::run(self, command, outbox.expect(id)),
            Request::Control(command) => control::run(self, command, outbox.expect(id)),
            Request::RequestSpawn(command) => request_spawn::run(self, command, outbox.expect(id)),
            Request::RequestApplyCommit(command) => {
                request_apply_commit::run(self, command, outbox.expect(id));
            }
            Request::GetPermissions(command) => {
                get_permissions::run(command, &grants, outbox.expect(id));
            }
            Request::Kill(command) => kill::run(self, command, outbox.expect(id)),
            Request::Start(command) => start::run(self, command, outbox.expect(id)),
            Request::Restart(command) => restart::run(self, command, outbox.expect(id)),
            Request::ListAgents(command) => {
                list_agents::run(self, command, &grants, outbox.expect(id));
            }
            Request::Schedule(command) => schedule::run(self, command, outbox.expect(id)),
            Request::ListSchedules(command) => {
                list_schedules::run(self, command, outbox.expect(id));
            }
            Request::CancelSchedule(command) => {
                cancel_schedule::run(self, command, outbox.expect(id));
            }
            Request::GetLogs(command) => get_logs::run(self, command, grants, outbox.expect(id)),
            Request::GetHostJournal(command) => {
                get_host_journal::run(self, command, outbox.expect(id));
            }
        }
    }
}

/// The furthest that a reminder or a schedule may lie ahead.
const MAX_AHEAD: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// The longest question, list of options or answer: they travel as JSON within a message.
const MAX_TEXT: usize = 64 * 1024;

/// Refuses a body that does not fit into a message.
pub(crate) fn check_body(field: &str, body: &str) -> Result<(), WireError> {
    check_length(field, body, MAX_BODY)
}

/// Refuses a text that does not fit into a question or an answer.
pub(crate) fn check_text(field: &str, body: &str) -> Result<(), WireError> {
    check_length(field, body, MAX_TEXT)
}

fn check_length(field: &str, body: &str, max: usize) -> Result<(), WireError> {
    let length = text::encoded_length(body);
    if length <= max {
        return Ok(());
    }
    Err(WireError::new(
        ErrorCode::BadRequest,
        format!("`{field}` has {length} bytes as JSON, and {max} is the most"),
    )
    .hint("put large content into a file and send its path"))
}
