//! The commands of an agent's socket, one file each. The caller is whoever owns the socket: no
//! command believes what a body says about its sender.

mod ack_turn;
mod answer;
mod ask;
mod cancel_loose_end;
mod confirm;
mod control;
mod get_agent_meta;
mod get_loose_ends;
mod list_peers;
mod post_events;
mod post_state;
mod post_turn_counts;
mod receipt;
mod recv;
mod remind;
mod request_apply_commit;
mod request_spawn;
mod requeue_inflight;
mod send;
mod set_status;
mod status;
mod wake;

use std::sync::Arc;

use hive_wire::{
    AgentName, ErrorCode, WireError,
    agent::{AgentRequest, MAX_BODY},
    command::Head,
    text,
};

use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    approvals::Approvals,
    broker::{Broker, Presence},
    config::Config,
    harnesses::Harnesses,
    paths::Paths,
    server::{Outbox, Service},
};

/// Who calls, and what it takes to carry a command out.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) name: AgentName,
    pub(crate) broker: Broker,
    pub(crate) harnesses: Arc<Harnesses>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) config: Arc<Config>,
    pub(crate) paths: Paths,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

impl Service for Caller {
    fn call(&self, head: Head<'_>, line: &[u8], outbox: &Arc<Outbox>) {
        let id = head.id;
        let request = match AgentRequest::parse(&head.cmd, line) {
            Ok(request) => request,
            Err(error) => return outbox.expect::<()>(id).refuse(error),
        };
        match request {
            AgentRequest::Send(command) => send::run(self, command, outbox.expect(id)),
            AgentRequest::Recv(command) => {
                if let Some(reply) = outbox.expect_batch(id) {
                    recv::run(self, command, reply);
                }
            }
            AgentRequest::Confirm(command) => confirm::run(self, command, outbox.expect(id)),
            AgentRequest::AckTurn(command) => ack_turn::run(self, command, outbox.expect(id)),
            AgentRequest::RequeueInflight(command) => {
                requeue_inflight::run(self, command, outbox.expect(id));
            }
            AgentRequest::Status(command) => status::run(self, command, outbox.expect(id)),
            AgentRequest::Wake(command) => wake::run(self, command, outbox.expect(id)),
            AgentRequest::Ask(command) => ask::run(self, command, outbox.expect(id)),
            AgentRequest::Answer(command) => answer::run(self, command, outbox.expect(id)),
            AgentRequest::GetLooseEnds(command) => {
                get_loose_ends::run(self, command, outbox.expect(id));
            }
            AgentRequest::CancelLooseEnd(command) => {
                cancel_loose_end::run(self, command, outbox.expect(id));
            }
            AgentRequest::Remind(command) => remind::run(self, command, outbox.expect(id)),
            AgentRequest::GetReceipt(command) => receipt::run(self, command, outbox.expect(id)),
            AgentRequest::SetStatus(command) => set_status::run(self, &command, outbox.expect(id)),
            AgentRequest::GetAgentMeta(command) => {
                get_agent_meta::run(self, command, outbox.expect(id));
            }
            AgentRequest::ListPeers(command) => list_peers::run(self, command, outbox.expect(id)),
            AgentRequest::PostTurnCounts(command) => {
                post_turn_counts::run(self, command, outbox.expect(id));
            }
            AgentRequest::PostState(command) => post_state::run(self, command, outbox.expect(id)),
            AgentRequest::PostEvents(command) => post_events::run(self, command, outbox.expect(id)),
            AgentRequest::Control(command) => control::run(self, command, outbox.expect(id)),
            AgentRequest::RequestSpawn(command) => {
                request_spawn::run(self, command, outbox.expect(id));
            }
            AgentRequest::RequestApplyCommit(command) => {
                request_apply_commit::run(self, command, outbox.expect(id));
            }
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
