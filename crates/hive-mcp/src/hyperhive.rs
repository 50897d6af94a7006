//! The server `hyperhive`: what its tools share, and which of them an agent is shown.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use hive_wire::{
    ReqId, SendKey,
    agent::GetPermissions,
    client::{Client, ClientError, Options as ClientOptions},
    command::Command,
};
use tokio::sync::Semaphore;

use crate::{
    Options,
    groups::{Capability, Gate, Grants, Group, Groups},
    journal::Journal,
    options::Purpose,
    server::Server,
    toolbox::{Checked, Context, Failure, Toolbox},
    tools,
};

/// The name of the server: its tools are `mcp__hyperhive__…` to the engine.
pub const NAME: &str = "hyperhive";

/// What the model reads about the server as a whole.
const INSTRUCTIONS: &str = "Your part in the hive: other agents and the operator talk with you \
    through messages. Mail wakes you for a turn; use recv to see whether more waits, and send to \
    answer. Nobody reads the text of your turn: what others shall know, send to them.";

/// How long a call that may be repeated is repeated while the daemon is away.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long one that waits for a process to end may take.
const LONG_PATIENCE: Duration = Duration::from_secs(90);
/// How long the host may think about what an agent has, before the defaults are shown.
const GRANTS_WITHIN: Duration = Duration::from_secs(5);
/// How many receives may be parked at once: the host refuses a fifth on one connection.
const MAX_RECEIVES: usize = 4;

/// The server for the agent that these options are of.
pub fn server(options: &Options) -> Server<Hyperhive> {
    let journal = Journal::new(NAME, options.harness_dir.as_deref());
    server_with(options, journal)
}

/// The same with a journal of its own.
pub fn server_with(options: &Options, journal: Journal) -> Server<Hyperhive> {
    let context = Hyperhive::new(options);
    let toolbox = match options.consent_seconds {
        0 => toolbox(),
        _ => toolbox_with_consent(),
    };
    Server::new(NAME, INSTRUCTIONS, toolbox, context, journal)
}

/// Every tool, by its gate; those that an agent is not shown are known and refused. Made once: a
/// host has many agents.
pub fn toolbox() -> Arc<Toolbox<Hyperhive>> {
    static TOOLBOX: LazyLock<Arc<Toolbox<Hyperhive>>> = LazyLock::new(|| Arc::new(every_tool()));
    Arc::clone(&TOOLBOX)
}

/// The same and the one by which the engine asks the operator for permission. It belongs to no
/// group: the engine needs it, and it gives the model nothing.
pub fn toolbox_with_consent() -> Arc<Toolbox<Hyperhive>> {
    static TOOLBOX: LazyLock<Arc<Toolbox<Hyperhive>>> =
        LazyLock::new(|| Arc::new(every_tool().with::<tools::PermissionPrompt>()));
    Arc::clone(&TOOLBOX)
}

fn every_tool() -> Toolbox<Hyperhive> {
    macro_rules! toolbox {
        ($($group:ident: $($tool:ty),+;)+) => {
            Toolbox::default()
                $($(.behind::<$tool>(Gate::Group(Group::$group)))+)+
        };
    }
    toolbox! {
        Messaging: tools::Send, tools::Recv, tools::Ask, tools::Answer, tools::GetReceipt;
        Inbox: tools::GetLooseEnds, tools::CancelLooseEnd, tools::Remind, tools::RequestNextTurn;
        Meta: tools::SetStatus, tools::GetAgentMeta, tools::ListPeers;
        Lifecycle: tools::ListAgents, tools::Kill, tools::Start, tools::Restart;
        Approvals: tools::RequestSpawn, tools::RequestApplyCommit;
        Scheduling: tools::Schedule, tools::ListSchedules, tools::CancelSchedule;
        Diagnostics: tools::GetLogs;
    }
    .behind::<tools::GetHostJournal>(Gate::Capability(Capability::ReadHostJournal))
}

/// What the tools of `hyperhive` work on: the agent's own socket, and its directories where there
/// are any.
pub struct Hyperhive {
    client: Client,
    socket: PathBuf,
    state_dir: Option<PathBuf>,
    harness_dir: Option<PathBuf>,
    groups: Option<Groups>,
    purpose: Purpose,
    consent_seconds: u32,
    receives: Semaphore,
    tickets: Arc<Tickets>,
}

impl Hyperhive {
    fn new(options: &Options) -> Self {
        let patience = ClientOptions {
            stay_awake: options.stay_awake,
            ..ClientOptions::default()
        };
        Self {
            client: Client::new(&options.socket, patience),
            socket: options.socket.clone(),
            state_dir: options.state_dir.clone(),
            harness_dir: options.harness_dir.clone(),
            groups: options.groups.clone(),
            purpose: options.purpose,
            consent_seconds: options.consent_seconds,
            receives: Semaphore::new(MAX_RECEIVES),
            tickets: Arc::default(),
        }
    }

    /// The agent's state directory, if there is one here.
    pub(crate) fn state_dir(&self) -> Option<&Path> {
        self.state_dir.as_deref().filter(|dir| dir.is_dir())
    }

    /// The harness's directory, if there is one here.
    pub(crate) fn harness_dir(&self) -> Option<&Path> {
        self.harness_dir.as_deref().filter(|dir| dir.is_dir())
    }

    pub(crate) fn purpose(&self) -> Purpose {
        self.purpose
    }

    /// How long the operator has to permit something.
    pub(crate) fn consent_seconds(&self) -> u32 {
        self.consent_seconds
    }

    /// Carries out a command that bears repetition, over a restart of the daemon if need be. What
    /// changes something has a key, so that it does.
    pub(crate) async fn call<C: Command>(&self, command: &C) -> Result<C::Reply, ClientError> {
        self.client.call_idempotent(command, PATIENCE).await
    }

    /// The same for a command that waits until a process has ended.
    pub(crate) async fn call_at_length<C: Command>(
        &self,
        command: &C,
    ) -> Result<C::Reply, ClientError> {
        self.client.call_idempotent(command, LONG_PATIENCE).await
    }

    /// A client with a connection of its own, for a command that parks: when it is dropped, the
    /// host knows at once that nobody waits any more.
    pub(crate) fn aside(&self) -> Client {
        Client::new(&self.socket, ClientOptions::default())
    }

    /// The shared client, for what is done after a call has ended.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// The right to park a receive.
    pub(crate) fn receives(&self) -> &Semaphore {
        &self.receives
    }

    /// A name for the next receive.
    pub(crate) fn ticket(&self) -> Ticket {
        self.tickets.take()
    }
}

impl Context for Hyperhive {
    /// The groups are those that the engine was started with, where it was told; the host says the
    /// rest.
    async fn granted(&self) -> Grants {
        let asked = self.client.call_within(&GetPermissions {}, GRANTS_WITHIN);
        let grants = match asked.await {
            Ok(granted) => Grants::from(granted),
            Err(error) => {
                tracing::warn!(%error, "cannot ask what this agent has; showing what all have");
                Grants::default()
            }
        };
        match &self.groups {
            Some(groups) => grants.with_groups(groups.clone()),
            None => grants,
        }
    }

    /// What the host alone knows, it refuses itself.
    async fn refuses(&self, gate: Gate, checked: Checked) -> bool {
        match (gate, &self.groups) {
            (Gate::Group(group), Some(groups)) => !groups.has(group),
            _ if checked == Checked::ByHost => false,
            _ => !self.granted().await.open(gate),
        }
    }
}

/// The key of a command: the caller's own, or one that nobody else chose. With it the command can
/// be repeated over a restart of the daemon.
pub(crate) fn key(given: Option<String>) -> Result<Option<SendKey>, Failure> {
    let key = given.unwrap_or_else(|| format!("mcp-{}", Random::new()));
    let key = key.parse().map_err(|error: hive_wire::id::ChosenIdError| {
        Failure::new(error.to_string(), "choose another key, or leave it out")
    })?;
    Ok(Some(key))
}

struct Random([u8; 16]);

impl Random {
    fn new() -> Self {
        let mut bytes = [0; 16];
        // The system's source fails only where there is none at all.
        getrandom::fill(&mut bytes).expect("this system has random numbers");
        Self(bytes)
    }
}

impl fmt::Display for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Names of receives that brought nothing which reached the model.
///
/// The host answers a repeated name with the same batch. So a batch that was leased for a call that
/// was cancelled meanwhile comes with the next call, instead of lying there until the turn ends.
#[derive(Default)]
struct Tickets {
    free: Mutex<Vec<ReqId>>,
}

impl Tickets {
    fn take(self: &Arc<Self>) -> Ticket {
        let known = self.free().pop();
        let req = known.unwrap_or_else(|| {
            format!("mcp-{}", Random::new())
                .parse()
                .expect("a short printable text is a req")
        });
        Ticket {
            req,
            used: false,
            tickets: Arc::clone(self),
        }
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<ReqId>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of one receive; goes back to the others when dropped unused.
pub(crate) struct Ticket {
    req: ReqId,
    used: bool,
    tickets: Arc<Tickets>,
}

impl Ticket {
    pub(crate) fn req(&self) -> &ReqId {
        &self.req
    }

    /// Its batch reached the model: the name must not be used again.
    pub(crate) fn used(mut self) -> ReqId {
        self.used = true;
        self.req.clone()
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.used {
            self.tickets.free().push(self.req.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_comes_back_unless_it_was_used() {
        let tickets = Arc::new(Tickets::default());
        let first = tickets.take();
        let name = first.req().clone();
        let second = tickets.take();
        assert_ne!(second.req(), &name);
        drop(first);
        assert_eq!(tickets.take().used(), name);
        assert_ne!(tickets.take().req(), &name);
        assert_eq!(tickets.free().len(), 1);
    }

    #[test]
    fn the_docs_say_for_how_long_a_call_is_repeated() {
        let docs = include_str!("../../../docs/mcp.md");
        for (who, patience) in [
            (
                "A call is repeated over a restart of the daemon for up to",
                PATIENCE,
            ),
            (
                "`kill`, `start` and `restart`, which wait for a process, for up to",
                LONG_PATIENCE,
            ),
        ] {
            let said = format!("{who} {} seconds", patience.as_secs());
            assert!(docs.contains(&said), "docs/mcp.md does not say: {said}");
        }
    }
}
