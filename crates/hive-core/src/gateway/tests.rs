//! The gateway with a service, a world and a bookkeeper of the test's own.

mod misuse;
mod model;
mod world;

use std::{
    io,
    net::{IpAddr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::Router;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming, client::conn::http1::SendRequest};
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    time::timeout,
};

use super::*;
use crate::{
    config::Egress,
    egress::{Policy, Soon},
};

/// A machine under load is slow; nothing here takes this long by itself.
const LONG: Duration = Duration::from_secs(60);

/// A name that nobody ever gets an answer for.
const NEVER: &str = "never.example.org";

/// What the bookkeeper was told.
#[derive(Default)]
struct Told {
    spent: Mutex<Vec<Spent>>,
    limited: Mutex<Vec<Timestamp>>,
    trips: Mutex<Vec<String>>,
    refuses: Mutex<Option<String>>,
}

impl Bookkeeper for Told {
    fn may_call(&self, _: &AgentName) -> Result<(), String> {
        self.refuses.lock().unwrap().clone().map_or(Ok(()), Err)
    }

    fn spent(&self, _: &AgentName, spent: Spent) {
        self.spent.lock().unwrap().push(spent);
    }

    fn limited(&self, _: &AgentName, until: Timestamp) {
        self.limited.lock().unwrap().push(until);
    }

    fn went(&self, _: &AgentName, trip: &Trip) {
        self.trips.lock().unwrap().push(format!("{trip:?}"));
    }
}

/// A world in which names have the addresses that the test gives them, and public addresses lead
/// to one server on loopback.
struct World {
    names: Vec<(&'static str, Vec<&'static str>)>,
    server: SocketAddr,
    own: IpAddr,
    resolved: AtomicUsize,
    dialled: Mutex<Vec<SocketAddr>>,
}

impl World {
    fn new(server: SocketAddr, names: &[(&'static str, &[&'static str])]) -> Arc<Self> {
        Arc::new(Self {
            names: names
                .iter()
                .map(|(name, to)| (*name, to.to_vec()))
                .collect(),
            server,
            own: "93.184.216.99".parse().unwrap(),
            resolved: AtomicUsize::new(0),
            dialled: Mutex::default(),
        })
    }
}

impl Resolver for World {
    fn resolve<'a>(&'a self, name: &'a str) -> Soon<'a, Vec<IpAddr>> {
        self.resolved.fetch_add(1, Ordering::Relaxed);
        if name == NEVER {
            return Box::pin(std::future::pending());
        }
        let found = self.names.iter().find(|(known, _)| *known == name);
        let found = found.map(|(_, to)| to.iter().map(|one| one.parse().unwrap()).collect());
        Box::pin(async move { found.ok_or_else(|| io::Error::other("no such name")) })
    }

    fn is_own(&self, address: IpAddr) -> bool {
        address == self.own
    }

    fn dial(&self, address: SocketAddr) -> Soon<'_, TcpStream> {
        self.dialled.lock().unwrap().push(address);
        Box::pin(TcpStream::connect(self.server))
    }
}

/// One agent's door and everything behind it.
struct Rig {
    gateway: Gateway,
    told: Arc<Told>,
    socket: PathBuf,
    _dir: tempfile::TempDir,
}

/// What differs from a rig to the next.
struct Setup {
    env: Vec<(&'static str, String)>,
    world: Arc<World>,
    egress: Option<Egress>,
    patience: Patience,
    limits: Limits,
}

impl Setup {
    /// A key, and a service at this address.
    fn at(service: SocketAddr) -> Self {
        Self {
            env: vec![
                ("ANTHROPIC_API_KEY", "sk-real-key-1".to_owned()),
                ("ANTHROPIC_BASE_URL", format!("http://{service}")),
            ],
            world: World::new(service, &[]),
            egress: Some(Egress::default()),
            patience: Patience::default(),
            limits: Limits::default(),
        }
    }

    fn open(self) -> Rig {
        let mut env = EngineEnv::default();
        for (name, value) in self.env {
            env.set(name, value);
        }
        let told = Arc::new(Told::default());
        let gateway = Gateway::new(Parts {
            upstreams: Upstreams::new(&env, |_| None).unwrap(),
            books: Arc::clone(&told) as Arc<dyn Bookkeeper>,
            resolver: self.world,
            limits: self.limits,
            patience: self.patience,
        });
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("gateway.sock");
        let policy = self.egress.as_ref().map(Policy::new);
        gateway
            .open(&"ada".parse().unwrap(), &socket, policy)
            .unwrap();
        Rig {
            gateway,
            told,
            socket,
            _dir: dir,
        }
    }
}

impl Rig {
    async fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).await.unwrap()
    }

    async fn client(&self) -> SendRequest<Full<Bytes>> {
        let io = TokioIo::new(self.connect().await);
        let (client, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
        self.gateway.tasks.spawn(async move {
            drop(connection.await);
        });
        client
    }

    async fn ask(&self, request: Request<Full<Bytes>>) -> Response<Incoming> {
        let mut client = self.client().await;
        timeout(LONG, client.send_request(request))
            .await
            .unwrap()
            .unwrap()
    }

    /// The status and the text of an answer.
    async fn told(&self, request: Request<Full<Bytes>>) -> (u16, String) {
        let answer = self.ask(request).await;
        let status = answer.status().as_u16();
        let body = timeout(LONG, answer.into_body().collect())
            .await
            .unwrap()
            .unwrap();
        (
            status,
            String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        )
    }

    /// Sends bytes as they are, and reads until the other side is done.
    async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        let mut answer = Vec::new();
        timeout(LONG, stream.read_to_end(&mut answer))
            .await
            .unwrap()
            .ok();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

fn post(path: &str, body: &str) -> Request<Full<Bytes>> {
    Request::post(path)
        .header("host", "127.0.0.1:1")
        .header("x-api-key", PLACEHOLDER)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
        .unwrap()
}

/// Serves a router on loopback for as long as the test's runtime lives.
async fn service(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    #[expect(clippy::disallowed_methods, reason = "it ends with the test's runtime")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// Waits until something holds.
async fn eventually(what: &str, holds: impl Fn() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LONG, waiting).await.expect(what);
}
