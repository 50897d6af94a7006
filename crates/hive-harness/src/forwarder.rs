//! The way from inside to the host's gateway: a port on loopback whose connections end in
//! `gateway.sock`.
//!
//! The engine finds its model there, and every program of the agent its proxy to the world. Bytes
//! are passed on as they are: which of the two a request is for, whether it is allowed and whose key
//! it carries is for the host to say. In a container of its own the port is the agent's alone;
//! where it is not, other users of the machine are turned away ([`peer`]).

mod peer;

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream, UnixStream},
    sync::Semaphore,
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::environment::{Api, GatewaySettings, Network};

/// The most connections at a time; further ones wait.
const CONNECTIONS: usize = 128;
/// How long a daemon may take to come back before a connection is given up.
const AWAY: Duration = Duration::from_secs(30);
/// The pause between two attempts to reach it.
const AGAIN: Duration = Duration::from_millis(200);

/// The variables that name a proxy …
const PROXIES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
/// … and those that name exceptions from it.
const NO_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];
/// What is never reached through a proxy.
const LOCAL: &str = "localhost,127.0.0.1,::1";

/// A port that leads to the gateway.
#[derive(Debug)]
pub struct Forwarder {
    listener: TcpListener,
    address: SocketAddr,
    socket: PathBuf,
}

impl Forwarder {
    /// Listens on a free port of loopback.
    ///
    /// # Errors
    /// When there is none.
    pub async fn listen(socket: &Path) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        let listener = listener.context("cannot listen on loopback for the way to the model")?;
        Ok(Self {
            address: listener.local_addr()?,
            listener,
            socket: socket.to_path_buf(),
        })
    }

    /// What programs have to know to go this way.
    pub fn variables(&self, settings: &GatewaySettings) -> Variables {
        let except = std::env::var("NO_PROXY").or_else(|_| std::env::var("no_proxy"));
        Variables::new(self.address, settings, &except.unwrap_or_default())
    }

    /// Passes connections on until `done`.
    pub async fn run(self, done: &CancellationToken) {
        let (tasks, ending) = (TaskTracker::new(), done.child_token());
        let seats = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            // Cancel-safe: a permit that is dropped is given back, and an accept that is dropped
            // leaves the connection in the backlog.
            let (seat, accepted) = tokio::select! {
                () = done.cancelled() => break,
                accepted = async {
                    let seat = Arc::clone(&seats).acquire_owned().await;
                    (seat, self.listener.accept().await)
                } => accepted,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection to the gateway");
                    tokio::time::sleep(AGAIN).await;
                    continue;
                }
            };
            let pass = pass_on(stream, peer, self.address, self.socket.clone());
            let ending = ending.clone();
            tasks.spawn(async move {
                // Cancel-safe: what is dropped ends with the harness anyway.
                tokio::select! {
                    () = ending.cancelled() => {}
                    () = pass => {}
                }
                drop(seat);
            });
        }
        tasks.close();
        tasks.wait().await;
    }
}

async fn pass_on(mut inside: TcpStream, peer: SocketAddr, own: SocketAddr, socket: PathBuf) {
    if let Err(why) = peer::check(peer, own) {
        tracing::warn!(%peer, why, "a connection to the gateway is turned away");
        return;
    }
    let outcome = async {
        inside.set_nodelay(true)?;
        let mut outside = connect(&socket).await?;
        copy_bidirectional(&mut inside, &mut outside).await
    };
    if let Err(error) = outcome.await {
        tracing::debug!(%error, "a connection to the gateway ended badly");
    }
}

/// Connects to the gateway. A daemon that is being restarted comes back soon: the engine need not
/// learn of it.
async fn connect(socket: &Path) -> io::Result<UnixStream> {
    let deadline = Instant::now() + AWAY;
    loop {
        match UnixStream::connect(socket).await {
            Err(error) if Instant::now() < deadline && is_away(&error) => {
                tokio::time::sleep(AGAIN).await;
            }
            outcome => return outcome,
        }
    }
}

fn is_away(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, NotFound, WouldBlock};
    matches!(error.kind(), ConnectionRefused | NotFound | WouldBlock)
}

/// The variables that lead programs to the gateway.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Variables {
    /// For the engine alone: where its model is.
    pub engine: Vec<(String, String)>,
    /// For everything that the agent runs: where the world is.
    pub all: Vec<(String, String)>,
}

impl Variables {
    /// `except` is the `NO_PROXY` of the harness itself.
    fn new(address: SocketAddr, settings: &GatewaySettings, except: &str) -> Self {
        let entry = |name: &str, value: String| (name.to_owned(), value);
        let engine = settings.apis.iter().map(|api| match api {
            Api::Anthropic => entry("ANTHROPIC_BASE_URL", format!("http://{address}")),
            Api::OpenAi => entry("OPENAI_BASE_URL", format!("http://{address}/openai/v1")),
        });
        let no_proxy = |places: String| NO_PROXY.map(|name| entry(name, places.clone()));
        let mut variables = Self {
            engine: engine.collect(),
            all: Vec::new(),
        };
        match settings.network {
            Network::Gateway => {
                let proxy = PROXIES.map(|name| entry(name, format!("http://{address}")));
                variables.all.extend(proxy);
                variables.all.extend(no_proxy(LOCAL.to_owned()));
            }
            // A proxy that the host itself uses must not stand between engine and gateway.
            Network::Auto | Network::Host | Network::None => {
                let places = [except, LOCAL];
                let places = places.iter().filter(|places| !places.is_empty());
                let places: Vec<&str> = places.copied().collect();
                variables.engine.extend(no_proxy(places.join(",")));
            }
        }
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_led_to_the_gateway() {
        let address: SocketAddr = "127.0.0.1:4567".parse().unwrap();
        let variables = |apis: &[Api], network| {
            let settings = GatewaySettings {
                socket: "/run/hive/gateway.sock".into(),
                apis: apis.to_vec(),
                network,
            };
            Variables::new(address, &settings, "corp.example")
        };
        let both = variables(&[Api::Anthropic, Api::OpenAi], Network::Gateway);
        let names = |list: &[(String, String)]| -> Vec<String> {
            list.iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect()
        };
        assert_eq!(
            names(&both.engine),
            [
                "ANTHROPIC_BASE_URL=http://127.0.0.1:4567",
                "OPENAI_BASE_URL=http://127.0.0.1:4567/openai/v1",
            ]
        );
        assert!(names(&both.all).contains(&"HTTPS_PROXY=http://127.0.0.1:4567".to_owned()));
        assert!(names(&both.all).contains(&"no_proxy=localhost,127.0.0.1,::1".to_owned()));
        for network in [Network::Host, Network::None] {
            let alone = variables(&[Api::Anthropic], network);
            assert_eq!(alone.all, []);
            let told = "NO_PROXY=corp.example,localhost,127.0.0.1,::1".to_owned();
            assert!(names(&alone.engine).contains(&told), "{alone:?}");
        }
    }
}
