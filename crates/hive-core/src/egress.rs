//! The egress proxy: how agents in containers reach the world, and only the world.
//!
//! It takes `CONNECT` and plain requests with a whole `http` URL. Names are resolved here, never
//! inside; the address that was judged is the one that is connected to, so that a name cannot lead
//! elsewhere a moment later. Redirects are the agent's to follow, through here again. What is
//! refused is refused before a packet leaves, names that are denied before they are looked up.

mod outside;
mod policy;
mod target;
mod trail;
mod tunnel;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use hive_providers::address;
use hyper::{Request, Response, StatusCode, body::Incoming, header::HOST};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::Semaphore, time::timeout};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::gateway::{self, Body, Patience};

#[cfg(test)]
pub(crate) use outside::Soon;
pub(crate) use outside::{Outside, Resolver};
pub(crate) use policy::Policy;
pub(crate) use target::Target;
pub(crate) use trail::{Trail, Trip};

use policy::Refusal;
use target::Host;
use trail::Outcome;

/// How long all attempts to connect may take.
const CONNECTING: Duration = Duration::from_secs(20);
/// How many of a name's addresses are tried.
const ATTEMPTS: usize = 4;
/// The longest body of a plain request.
const MAX_REQUEST: u64 = 1024 * 1024 * 1024;

/// What a request to the world is answered with.
pub(crate) struct Desk<'d> {
    /// Where the agent may go; nowhere without one.
    pub(crate) policy: Option<Arc<Policy>>,
    pub(crate) resolver: &'d Arc<dyn Resolver>,
    pub(crate) patience: Patience,
    pub(crate) seats: &'d Arc<Semaphore>,
    pub(crate) lookups: &'d Arc<Semaphore>,
    pub(crate) tasks: &'d TaskTracker,
    pub(crate) stop: &'d CancellationToken,
    pub(crate) log: &'d (dyn Fn(&Trip) + Sync),
}

/// Why a request goes nowhere.
struct Stopped {
    status: StatusCode,
    words: String,
}

impl Stopped {
    fn new(status: StatusCode, words: impl Into<String>) -> Self {
        Self {
            status,
            words: words.into(),
        }
    }

    fn answer(self) -> Response<Body> {
        let mut answer = Response::new(gateway::text(format!("{}\n", self.words)));
        *answer.status_mut() = self.status;
        answer
    }
}

impl Desk<'_> {
    /// Opens a tunnel.
    pub(crate) async fn tunnel(&self, request: Request<Incoming>) -> Response<Body> {
        let asked = request.uri().authority().map_or("", |whole| whole.as_str());
        let Some(target) = Target::parse(asked, None) else {
            return Stopped::new(
                StatusCode::BAD_REQUEST,
                "CONNECT takes a host name or a plain address, and a port",
            )
            .answer();
        };
        let Ok(seat) = Arc::clone(self.seats).try_acquire_owned() else {
            return full().answer();
        };
        let stream = match self.reach(&target, "connect").await {
            Ok(stream) => stream,
            Err(stopped) => return stopped.answer(),
        };
        let (stop, silence) = (self.stop.clone(), self.patience.silence);
        self.tasks.spawn(async move {
            // Cancel-safe: what is dropped is a tunnel of a door that is closed.
            tokio::select! {
                () = stop.cancelled() => {}
                () = tunnel::run(request, stream, silence) => {}
            }
            drop(seat);
        });
        Response::new(gateway::text(""))
    }

    /// Passes on a plain request.
    pub(crate) async fn fetch(&self, request: Request<Incoming>) -> Response<Body> {
        match self.fetched(request).await {
            Ok(answer) => answer,
            Err(stopped) => stopped.answer(),
        }
    }

    async fn fetched(&self, request: Request<Incoming>) -> Result<Response<Body>, Stopped> {
        let bad = |words: &str| Stopped::new(StatusCode::BAD_REQUEST, words);
        let (mut head, body) = request.into_parts();
        if head.uri.scheme_str() != Some("http") {
            return Err(bad(
                "only http URLs are passed on; use CONNECT for all others",
            ));
        }
        let asked = head.uri.authority().map_or("", |whole| whole.as_str());
        let target = Target::parse(asked, Some(80))
            .ok_or_else(|| bad("the URL needs a host name or a plain address"))?;
        let seat = Arc::clone(self.seats)
            .try_acquire_owned()
            .map_err(|_| full())?;
        let stream = self.reach(&target, "http").await?;
        let failed = |error: &dyn std::fmt::Display| {
            Stopped::new(
                StatusCode::BAD_GATEWAY,
                format!("{target} does not answer: {error}"),
            )
        };
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| failed(&error))?;
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            // Cancel-safe: what is dropped is a connection of a door that is closed.
            tokio::select! {
                () = stop.cancelled() => {}
                // What went wrong shows in the answer.
                _ = connection => {}
            }
            drop(seat);
        });
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        head.uri = path.parse().map_err(|_| bad("the URL makes no sense"))?;
        gateway::strip(&mut head.headers);
        let host = match target.port {
            80 => target.host.to_string(),
            _ => target.to_string(),
        };
        let host = host.parse().map_err(|_| bad("the URL makes no sense"))?;
        head.headers.insert(HOST, host);
        let body = gateway::Sent::new(body, MAX_REQUEST, self.patience.request);
        let answer = sender.send_request(Request::from_parts(head, body));
        let answer = timeout(self.patience.answer, answer).await;
        let answer = answer
            .map_err(|_| failed(&"it takes too long"))?
            .map_err(|error| failed(&error))?;
        let (mut head, body) = answer.into_parts();
        gateway::strip(&mut head.headers);
        Ok(Response::from_parts(
            head,
            gateway::passing(body, self.patience.silence),
        ))
    }

    /// A connection to where the agent wants to go, if it may; the log learns either way.
    async fn reach(&self, target: &Target, how: &'static str) -> Result<TcpStream, Stopped> {
        let outcome = self.connect(target).await;
        let (outcome, result) = match outcome {
            Ok((stream, address)) => (Outcome::Went(address), Ok(stream)),
            Err(Unreached::Refused(refusal)) => {
                let words = refusal.words(target);
                let told = format!("the hive's egress proxy refuses {target}: {words}");
                let stopped = Stopped::new(StatusCode::FORBIDDEN, told);
                (Outcome::Refused(words), Err(stopped))
            }
            Err(Unreached::NoWayOut) => {
                let words = "this agent has no way out of its container".to_owned();
                let stopped = Stopped::new(StatusCode::FORBIDDEN, words.clone());
                (Outcome::Refused(words), Err(stopped))
            }
            Err(Unreached::Failed(words)) => {
                let stopped = Stopped::new(StatusCode::BAD_GATEWAY, format!("{target}: {words}"));
                (Outcome::Failed(words), Err(stopped))
            }
        };
        (self.log)(&Trip {
            target: target.clone(),
            how,
            outcome,
        });
        result
    }

    async fn connect(&self, target: &Target) -> Result<(TcpStream, IpAddr), Unreached> {
        let policy = self.policy.as_ref().ok_or(Unreached::NoWayOut)?;
        policy.admit(target)?;
        let addresses = match &target.host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => self.look_up(name).await?,
        };
        let (mut open, mut refused) = (Vec::new(), None);
        for address in addresses {
            match self.judge(policy, target, address) {
                Ok(()) => open.push(address),
                Err(refusal) => refused = Some(refusal),
            }
        }
        match refused {
            Some(refusal) if open.is_empty() => return Err(refusal.into()),
            _ => {}
        }
        let connecting = async {
            let mut problem = "it has no address".to_owned();
            for address in open.into_iter().take(ATTEMPTS) {
                match self
                    .resolver
                    .dial(SocketAddr::new(address, target.port))
                    .await
                {
                    Ok(stream) => return Ok((stream, address)),
                    Err(error) => problem = error.to_string(),
                }
            }
            Err(Unreached::Failed(problem))
        };
        let connected = timeout(CONNECTING, connecting).await;
        connected.unwrap_or_else(|_| Err(Unreached::Failed("no connection in time".into())))
    }

    /// Every address of a name. A lookup takes a thread and cannot be stopped: its seat is held until
    /// it has really ended, so that slow names leave the daemon enough of them.
    async fn look_up(&self, name: &str) -> Result<Vec<IpAddr>, Unreached> {
        let (resolver, name) = (Arc::clone(self.resolver), name.to_owned());
        let looking = async {
            let seat = Arc::clone(self.lookups).acquire_owned().await;
            let stop = self.stop.clone();
            let found = self.tasks.spawn(async move {
                // Cancel-safe: a door that is closed wants no answer.
                let found = tokio::select! {
                    () = stop.cancelled() => Err(io::Error::other("the door is closed")),
                    found = resolver.resolve(&name) => found,
                };
                drop(seat);
                found
            });
            found.await.map_err(io::Error::other)?
        };
        let found = timeout(self.patience.resolving, looking).await;
        let found = found.map_err(|_| Unreached::Failed("no answer of the DNS".into()))?;
        found.map_err(|error| Unreached::Failed(format!("no address: {error}")))
    }

    fn judge(&self, policy: &Policy, target: &Target, found: IpAddr) -> Result<(), Refusal> {
        policy.admit_address(target, found)?;
        if self.resolver.is_own(found) && !policy.names_private(target) {
            return Err(Refusal::Address(address::Refused::OwnMachine));
        }
        Ok(())
    }
}

/// Why there is no connection.
enum Unreached {
    Refused(Refusal),
    NoWayOut,
    Failed(String),
}

impl From<Refusal> for Unreached {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

fn full() -> Stopped {
    Stopped::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "this agent has too many connections to the world",
    )
}
