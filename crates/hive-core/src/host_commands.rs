//! The commands of the operator's admin socket, one file each. Whoever can open the socket is the
//! operator.

mod ack_inbox;
pub(crate) mod agent_state;
mod answer;
mod cancel_schedule;
pub(crate) mod control_agent;
mod dead;
pub(crate) mod destroy;
mod discard;
mod events;
mod fitting;
mod history;
pub(crate) mod inbox;
pub(crate) mod info;
pub(crate) mod kill;
pub(crate) mod lift;
mod link;
pub(crate) mod list;
mod output;
pub(crate) mod pause;
pub(crate) mod pending;
pub(crate) mod permissions;
mod questions;
pub(crate) mod rebuild;
mod receipt;
mod redeliver;
pub(crate) mod request_spawn;
pub(crate) mod restart;
pub(crate) mod resume;
mod runtimes;
pub(crate) mod schedules;
pub(crate) mod send;
pub(crate) mod set_permissions;
pub(crate) mod spawn;
pub(crate) mod spend;
pub(crate) mod start;
mod stop_all;
pub(crate) mod turn_totals;
pub(crate) mod turns;
pub(crate) mod update_all;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use hive_store::{Readers, event_log::EventLog, sqlite::AgentRecord};
use hive_wire::{
    AgentName, ErrorCode, Timestamp, WireError,
    command::RequestId,
    host::{AgentRow, HostRequest},
};
use serde::Serialize;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    access::Access,
    approvals::{self, Approvals, Outcome},
    broker::Broker,
    config::Config,
    gateway::{Books, Gateway},
    harnesses::Harnesses,
    metrics::Metrics,
    notifier::Notifier,
    pages::Page,
    paths::Paths,
    permissions::Gate,
    server::{Listener, Outbox, Service},
    supervisor::{Supervisor, Wish},
};

/// The running hive, as the operator's commands see it.
pub(crate) struct Host {
    pub(crate) paths: Paths,
    pub(crate) config: Arc<Config>,
    pub(crate) broker: Broker,
    pub(crate) readers: Readers,
    pub(crate) events: Arc<EventLog>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) harnesses: Arc<Harnesses>,
    /// What agents may do, and how fast.
    pub(crate) gate: Arc<Gate>,
    pub(crate) supervisor: Arc<Supervisor>,
    /// The agents' way to their model, where there is one.
    pub(crate) gateway: Option<Gateway>,
    pub(crate) books: Arc<Books>,
    /// Who may look at which page.
    pub(crate) access: Arc<Access>,
    pub(crate) metrics: Arc<Metrics>,
    /// Who is told of what waits.
    pub(crate) notifier: Notifier,
    /// Held while an agent comes or goes, so that registry and sockets change together.
    pub(crate) lifecycle: tokio::sync::Mutex<()>,
    /// Held while agents are made anew after an update.
    pub(crate) updating: tokio::sync::Mutex<()>,
    /// The agents' sockets.
    pub(crate) sockets: Mutex<BTreeMap<AgentName, Listener>>,
    /// The agents' pages.
    pub(crate) pages: Mutex<BTreeMap<AgentName, Page>>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) started_at: Timestamp,
    pub(crate) dashboard: String,
}

impl Service for Arc<Host> {
    fn call(&self, line: &[u8], outbox: &Arc<Outbox>) {
        let (id, request) = HostRequest::read(line);
        match request {
            Ok(request) => {
                let call = Call {
                    tasks: &self.tasks,
                    outbox,
                    id,
                };
                self.run(request, call);
            }
            Err(error) => outbox.expect::<()>(id).refuse(error),
        }
    }
}

/// Where the answer of a command goes: a line on a socket, or a page.
pub(crate) trait Asker {
    /// Runs the command as a task of the daemon and sends what comes of it.
    fn answer<T, Work>(self, work: Work)
    where
        T: Serialize + Send + 'static,
        Work: Future<Output = Result<T, WireError>> + Send + 'static;
}

/// One command of a socket on its way.
struct Call<'c> {
    tasks: &'c TaskTracker,
    outbox: &'c Arc<Outbox>,
    id: Option<RequestId>,
}

impl Asker for Call<'_> {
    fn answer<T, Work>(self, work: Work)
    where
        T: Serialize + Send + 'static,
        Work: Future<Output = Result<T, WireError>> + Send + 'static,
    {
        let reply = self.outbox.expect::<T>(self.id);
        self.tasks.spawn(async move { reply.send(work.await) });
    }
}

impl Host {
    /// Runs any command of the operator, for whoever asks.
    pub(crate) fn run(self: &Arc<Self>, request: HostRequest, asker: impl Asker) {
        let host = Arc::clone(self);
        match request {
            HostRequest::Info(command) => asker.answer(info::run(host, command)),
            HostRequest::Spawn(command) => asker.answer(spawn::run(host, command)),
            HostRequest::Destroy(command) => asker.answer(destroy::run(host, command)),
            HostRequest::Kill(command) => asker.answer(kill::run(host, command)),
            HostRequest::Start(command) => asker.answer(start::run(host, command)),
            HostRequest::Restart(command) => asker.answer(restart::run(host, command)),
            HostRequest::Rebuild(command) => asker.answer(rebuild::run(host, command)),
            HostRequest::StopAll(command) => asker.answer(stop_all::run(host, command)),
            HostRequest::TryRuntimes(command) => asker.answer(runtimes::run(host, command)),
            HostRequest::ReadOutput(command) => asker.answer(output::run(host, command)),
            HostRequest::List(command) => asker.answer(list::run(host, command)),
            HostRequest::SendAsOperator(command) => asker.answer(send::run(host, command)),
            HostRequest::Inbox(command) => asker.answer(inbox::run(host, command)),
            HostRequest::AckInbox(command) => asker.answer(ack_inbox::run(host, command)),
            HostRequest::LookUpReceipt(command) => asker.answer(receipt::run(host, command)),
            HostRequest::History(command) => asker.answer(history::run(host, command)),
            HostRequest::Dead(command) => asker.answer(dead::run(host, command)),
            HostRequest::Redeliver(command) => asker.answer(redeliver::run(host, command)),
            HostRequest::Discard(command) => asker.answer(discard::run(host, command)),
            HostRequest::Questions(command) => asker.answer(questions::run(host, command)),
            HostRequest::AnswerAsOperator(command) => asker.answer(answer::run(host, command)),
            HostRequest::Events(command) => asker.answer(events::run(host, command)),
            HostRequest::ControlAgent(command) => asker.answer(control_agent::run(host, command)),
            HostRequest::GetAgentState(command) => asker.answer(agent_state::run(host, command)),
            HostRequest::Turns(command) => asker.answer(turns::run(host, command)),
            HostRequest::TurnTotals(command) => asker.answer(turn_totals::run(host, command)),
            HostRequest::Lift(command) => asker.answer(lift::run(host, command)),
            HostRequest::Spend(command) => asker.answer(spend::run(host, command)),
            HostRequest::Pause(command) => asker.answer(pause::run(host, command)),
            HostRequest::Resume(command) => asker.answer(resume::run(host, command)),
            HostRequest::Link(command) => asker.answer(link::run(host, command)),
            HostRequest::ShowPermissions(command) => asker.answer(permissions::run(host, command)),
            HostRequest::SetPermissions(command) => {
                asker.answer(set_permissions::run(host, command));
            }
            HostRequest::ShowSchedules(command) => asker.answer(schedules::run(host, command)),
            HostRequest::CancelAnySchedule(command) => {
                asker.answer(cancel_schedule::run(host, command));
            }
            HostRequest::RequestSpawnAsOperator(command) => {
                asker.answer(request_spawn::run(host, command));
            }
            HostRequest::Pending(command) => asker.answer(pending::run(host, command)),
            HostRequest::Approve(command) => asker.answer(approvals::approve(host, command)),
            HostRequest::Deny(command) => asker.answer(approvals::deny(host, command)),
            HostRequest::UpdateAll(command) => asker.answer(update_all::run(host, command)),
        }
    }
}

impl Host {
    /// Reads from the database beside the broker, away from the threads that serve sockets.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Readers) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, WireError> {
        let host = Arc::clone(self);
        let outcome = self.tasks.spawn_blocking(move || read(&host.readers)).await;
        let outcome = outcome.map_err(|error| storage(&error))?;
        outcome.map_err(|error| storage(&error))
    }

    /// A living agent, and everybody in the hive.
    pub(crate) async fn find(
        &self,
        name: AgentName,
    ) -> Result<(AgentRecord, Vec<AgentRecord>), WireError> {
        self.broker
            .run(move |desk| {
                let agent = desk.roster.find(name.as_str())?.clone();
                Ok((agent, desk.roster.iter().cloned().collect()))
            })
            .await
    }

    /// Has something done to an agent's process, and says how it stands then.
    pub(crate) async fn wish(
        self: &Arc<Self>,
        name: &AgentName,
        wish: Wish,
    ) -> Result<AgentRow, WireError> {
        let agent = self.supervisor.wish(name, wish).await?;
        let rows = self.broker.run(|desk| list::with_inbox(desk, agent));
        let (agent, inbox) = rows.await?;
        Ok(list::row(self, agent, &inbox))
    }

    /// Tells the root agent what happened to another one (C10).
    pub(crate) async fn tell_root(&self, name: &AgentName, outcome: Outcome) {
        let name = name.clone();
        let told = self.broker.run(move |desk| {
            approvals::happened(desk, &name, &outcome);
            Ok(())
        });
        if let Err(error) = told.await {
            tracing::warn!(%error, "cannot tell the root agent what happened");
        }
    }

    /// Where an agent's socket lies, as users know it.
    fn socket_path(&self, name: &AgentName) -> PathBuf {
        self.paths.agent_socket(name)
    }
}

fn storage(error: &dyn std::error::Error) -> WireError {
    WireError::new(
        ErrorCode::Storage,
        format!("cannot read the database: {error}"),
    )
    .hint("see the daemon's log and `hive-c0re doctor`")
}
