//! The rehearsed model of a demo: `hive-rehearsal serve` as a companion of the daemon.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::Path,
    time::Duration,
};

use anyhow::Context;
use hive_runtime::{Command, companion::Companion, keeper::KeeperCommand};
use tokio::{net::TcpStream, time::Instant};

/// How long it may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it is tried: nothing tells that a port is open.
const ASK_AGAIN: Duration = Duration::from_millis(20);
/// The scenario that shows everything a hive can do.
const SCENARIO: &str = "tour";

/// A rehearsed model that runs until this is dropped.
#[derive(Debug)]
pub(crate) struct Rehearsal {
    _companion: Companion,
    /// Where it listens.
    pub(crate) url: String,
    /// Whether it listens elsewhere than the time before: agents that still run do not know.
    pub(crate) has_moved: bool,
}

impl Rehearsal {
    /// Starts it, on the port of the time before if that is free.
    ///
    /// # Errors
    /// With what is wrong and what it said last.
    pub(crate) async fn start(
        program: &Path,
        keeper: &KeeperCommand,
        dir: &Path,
    ) -> anyhow::Result<Self> {
        let remembered = dir.join("port");
        let former = fs::read_to_string(&remembered)
            .ok()
            .and_then(|text| text.trim().parse().ok());
        let port = free_port(former).context("there is no free port for the rehearsed model")?;
        let command = Command {
            program: program.to_path_buf(),
            args: ["serve", "--port", &port.to_string(), "--scenario", SCENARIO]
                .map(str::to_owned)
                .into(),
        };
        let mut companion = Companion::start(keeper, dir.to_path_buf(), command, BTreeMap::new())?;
        listening(&mut companion, port).await?;
        fs::write(&remembered, format!("{port}\n"))
            .with_context(|| format!("cannot write {}", remembered.display()))?;
        Ok(Self {
            _companion: companion,
            url: format!("http://127.0.0.1:{port}"),
            has_moved: former.is_some_and(|former| former != port),
        })
    }
}

/// The wanted port, or any other that is free.
fn free_port(wanted: Option<u16>) -> io::Result<u16> {
    let bind = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = match wanted.map(bind) {
        Some(Ok(listener)) => listener,
        _ => bind(0)?,
    };
    Ok(listener.local_addr()?.port())
}

async fn listening(companion: &mut Companion, port: u16) -> anyhow::Result<()> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let deadline = Instant::now() + PATIENCE;
    while TcpStream::connect(address).await.is_err() {
        if companion.has_ended()? || Instant::now() > deadline {
            let output = companion.output(2_000)?;
            anyhow::bail!(
                "the rehearsed model does not listen on {address}: {}",
                String::from_utf8_lossy(&output).trim()
            );
        }
        tokio::time::sleep(ASK_AGAIN).await;
    }
    Ok(())
}
