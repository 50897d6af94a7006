//! The gateway: how an agent's engine reaches its model, and the agent the world, while every key
//! stays on the host.
//!
//! Each agent has a `gateway.sock` beside its `mcp.sock`: who asks follows from the socket. It
//! speaks HTTP/1.1 in three forms. A plain request is for the model's API ([`forward`]): the host
//! puts its own key in the place of the one that the engine was given, passes bodies on as they
//! come, and counts what they cost. `CONNECT` and requests with a whole URL are for the world
//! ([`crate::egress`]). The gateway knows no budget and no limit itself: it asks and tells a
//! [`Bookkeeper`].
//!
//! Everything is bounded: connections, calls and tunnels of an agent, heads, bodies, silences.

mod body;
mod books;
mod door;
mod forward;
mod head;
mod limits;
mod routes;
mod tally;
mod upstream;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hive_wire::{AgentName, Timestamp};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::EngineEnv,
    egress::{Policy, Resolver, Trip},
};

pub(crate) use body::{Body, Patience, Sent, passing, text};
pub(crate) use books::{Books, Shelf};
pub(crate) use door::Limits;
pub(crate) use head::strip;
pub(crate) use tally::Spent;
#[cfg(test)]
pub(crate) use upstream::PLACEHOLDER;
pub(crate) use upstream::{Upstreams, for_engines};

/// Whom the gateway asks before a call, and tells what came of it.
pub(crate) trait Bookkeeper: Send + Sync {
    /// Whether an agent may call the model now.
    ///
    /// # Errors
    /// With why not, in words for the engine.
    fn may_call(&self, agent: &AgentName) -> Result<(), String>;

    /// An answer was counted. It may be told before the answer has ended at the engine.
    fn spent(&self, agent: &AgentName, spent: Spent);

    /// The service refused the host's own credential until then.
    fn limited(&self, agent: &AgentName, until: Timestamp);

    /// An agent went somewhere, or was kept from it.
    fn went(&self, agent: &AgentName, trip: &Trip);
}

/// The doors of all agents.
pub(crate) struct Gateway {
    shared: Arc<Shared>,
    doors: Mutex<BTreeMap<AgentName, Open>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// What all doors share.
struct Shared {
    upstreams: Upstreams,
    books: Arc<dyn Bookkeeper>,
    resolver: Arc<dyn Resolver>,
    limits: Limits,
    patience: Patience,
}

/// A door that is open.
struct Open {
    stop: CancellationToken,
    path: PathBuf,
}

/// What a gateway is made of.
pub(crate) struct Parts {
    pub(crate) upstreams: Upstreams,
    pub(crate) books: Arc<dyn Bookkeeper>,
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) limits: Limits,
    pub(crate) patience: Patience,
}

impl Gateway {
    /// A gateway without doors.
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            shared: Arc::new(Shared {
                upstreams: parts.upstreams,
                books: parts.books,
                resolver: parts.resolver,
                limits: parts.limits,
                patience: parts.patience,
            }),
            doors: Mutex::default(),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        }
    }

    /// Opens an agent's door at `path`, in the place of one that was open. Without a policy it
    /// leads to the model alone.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    pub(crate) fn open(
        &self,
        agent: &AgentName,
        path: &Path,
        egress: Option<Policy>,
    ) -> io::Result<()> {
        let listener = crate::server::bind(path)?;
        let stop = self.stop.child_token();
        let door = Arc::new(door::Door::new(agent.clone(), &self.shared, egress));
        let accept = door::accept(listener, door, self.tasks.clone(), stop.clone());
        self.tasks.spawn(accept);
        let path = path.to_path_buf();
        let former = self.lock().insert(agent.clone(), Open { stop, path });
        if let Some(former) = former {
            former.stop.cancel();
        }
        Ok(())
    }

    /// Closes an agent's door and ends what goes through it.
    pub(crate) fn close(&self, agent: &AgentName) {
        let Some(open) = self.lock().remove(agent) else {
            return;
        };
        open.stop.cancel();
        if let Err(error) = std::fs::remove_file(&open.path) {
            tracing::warn!(path = %open.path.display(), %error, "cannot remove a socket");
        }
    }

    /// Closes every door and ends what goes through, within `grace`.
    pub(crate) async fn shut(&self, grace: Duration) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(grace, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!(
                left = self.tasks.len(),
                "some calls of a model did not end in time"
            );
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<AgentName, Open>> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a door waits for what.
impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(30),
            request: Duration::from_secs(60),
            answer: Duration::from_secs(11 * 60),
            silence: Duration::from_secs(10 * 60),
            resolving: Duration::from_secs(10),
            taking: Duration::from_secs(2 * 60),
        }
    }
}

/// Which APIs a hive with this engine environment has, as the harness reads them.
pub(crate) fn apis(env: &EngineEnv) -> &'static str {
    let has = |names: &[&str]| names.iter().any(|name| env.get(name).is_some());
    let openai = has(&["OPENAI_API_KEY", "OPENAI_BASE_URL"]);
    let anthropic = has(&[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
    ]);
    match (anthropic, openai) {
        (true, true) => "anthropic,openai",
        (false, true) => "openai",
        (_, false) => "anthropic",
    }
}

#[cfg(test)]
mod tests;
