//! The commands of the operator's admin socket, one file each. Whoever can open the socket is the
//! operator.

mod ack_inbox;
mod answer;
mod dead;
mod destroy;
mod discard;
mod events;
mod history;
mod inbox;
mod info;
mod list;
mod questions;
mod receipt;
mod redeliver;
mod send;
mod spawn;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use hive_store::{Readers, event_log::EventLog};
use hive_wire::{
    AgentName, ErrorCode, Timestamp, WireError,
    command::{Head, RequestId},
    host::HostRequest,
};
use serde::Serialize;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    broker::Broker,
    config::Config,
    paths::Paths,
    server::{Listener, Outbox, Service},
};

/// The running hive, as the operator's commands see it.
pub(crate) struct Host {
    pub(crate) paths: Paths,
    pub(crate) config: Arc<Config>,
    pub(crate) broker: Broker,
    pub(crate) readers: Readers,
    pub(crate) events: Arc<EventLog>,
    /// Held while an agent comes or goes, so that registry and sockets change together.
    pub(crate) lifecycle: tokio::sync::Mutex<()>,
    /// The agents' sockets.
    pub(crate) sockets: Mutex<BTreeMap<AgentName, Listener>>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    pub(crate) started_at: Timestamp,
    pub(crate) dashboard: String,
}

impl Service for Arc<Host> {
    fn call(&self, head: Head<'_>, line: &[u8], outbox: &Arc<Outbox>) {
        let id = head.id;
        let request = match HostRequest::parse(&head.cmd, line) {
            Ok(request) => request,
            Err(error) => return outbox.expect::<()>(id).refuse(error),
        };
        let call = Call {
            host: Arc::clone(self),
            outbox,
            id,
        };
        match request {
            HostRequest::Info(command) => call.answer(|host| info::run(host, command)),
            HostRequest::Spawn(command) => call.answer(|host| spawn::run(host, command)),
            HostRequest::Destroy(command) => call.answer(|host| destroy::run(host, command)),
            HostRequest::List(command) => call.answer(|host| list::run(host, command)),
            HostRequest::SendAsOperator(command) => call.answer(|host| send::run(host, command)),
            HostRequest::Inbox(command) => call.answer(|host| inbox::run(host, command)),
            HostRequest::AckInbox(command) => call.answer(|host| ack_inbox::run(host, command)),
            HostRequest::LookUpReceipt(command) => call.answer(|host| receipt::run(host, command)),
            HostRequest::History(command) => call.answer(|host| history::run(host, command)),
            HostRequest::Dead(command) => call.answer(|host| dead::run(host, command)),
            HostRequest::Redeliver(command) => call.answer(|host| redeliver::run(host, command)),
            HostRequest::Discard(command) => call.answer(|host| discard::run(host, command)),
            HostRequest::Questions(command) => call.answer(|host| questions::run(host, command)),
            HostRequest::AnswerAsOperator(command) => {
                call.answer(|host| answer::run(host, command));
            }
            HostRequest::Events(command) => call.answer(|host| events::run(host, command)),
        }
    }
}

/// One command on its way.
struct Call<'c> {
    host: Arc<Host>,
    outbox: &'c Arc<Outbox>,
    id: Option<RequestId>,
}

impl Call<'_> {
    /// Runs the command as a task of the daemon and sends what comes of it.
    fn answer<T, Work>(self, run: impl FnOnce(Arc<Host>) -> Work)
    where
        T: Serialize + Send + 'static,
        Work: Future<Output = Result<T, WireError>> + Send + 'static,
    {
        let reply = self.outbox.expect::<T>(self.id);
        let tasks = self.host.tasks.clone();
        let work = run(self.host);
        tasks.spawn(async move { reply.send(work.await) });
    }
}

impl Host {
    /// Reads from the database beside the broker, away from the threads that serve sockets.
    async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Readers) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, WireError> {
        let host = Arc::clone(self);
        let outcome = self.tasks.spawn_blocking(move || read(&host.readers)).await;
        let outcome = outcome.map_err(|error| storage(&error))?;
        outcome.map_err(|error| storage(&error))
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
