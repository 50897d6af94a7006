//! The socket alone: a process that echoes JSON lines and stores nothing. A cycle is two echoes,
//! one in place of the send and one in place of the ack; the receiver is told in this process.

use std::{
    path::{Path, PathBuf},
    rc::Rc,
};

use anyhow::{Context as _, Result};
use rustix::process::Signal;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
    sync::Notify,
    task::JoinSet,
};

use super::{Pair, Peer, Receiver, Sender};
use crate::{conn::Conn, process::Server, site::Site};

#[derive(Debug)]
pub(crate) struct PingPong {
    server: Server,
    socket: PathBuf,
}

impl PingPong {
    /// Starts this very program again as the echo server.
    pub(crate) async fn start(site: &Site) -> Result<Self> {
        let socket = site.sockets().join("echo.sock");
        let mut command = site.command(&std::env::current_exe()?);
        command.arg("echo").arg("--socket").arg(&socket);
        let mut server = Server::start(command, Signal::TERM, site.log())?;
        server
            .ready(async || Conn::open(&socket).await.map(drop))
            .await?;
        Ok(Self { server, socket })
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Peer for PingPong {
    type Sender = EchoSender;
    type Receiver = EchoReceiver;

    async fn pairs(&self, count: usize, body: &str) -> Result<Vec<Pair<Self>>> {
        let mut pairs = Vec::with_capacity(count);
        for _ in 0..count {
            let told = Rc::new(Notify::new());
            let sender = EchoSender {
                conn: Conn::open(&self.socket).await?,
                line: format!("{{\"cmd\":\"send\",\"to\":\"r0\",\"body\":\"{body}\"}}\n"),
                tell: Rc::clone(&told),
            };
            let receiver = EchoReceiver {
                conn: Conn::open(&self.socket).await?,
                told,
            };
            pairs.push((sender, receiver));
        }
        Ok(pairs)
    }

    fn pid(&self) -> u32 {
        self.server.pid()
    }
}

#[derive(Debug)]
pub(crate) struct EchoSender {
    conn: Conn,
    line: String,
    tell: Rc<Notify>,
}

impl Sender for EchoSender {
    async fn send(&mut self) -> Result<()> {
        self.conn.write(self.line.as_bytes()).await?;
        self.conn.read_line().await?;
        self.tell.notify_one();
        Ok(())
    }
}

#[derive(Debug)]
pub(crate) struct EchoReceiver {
    conn: Conn,
    told: Rc<Notify>,
}

impl Receiver for EchoReceiver {
    async fn park(&mut self) -> Result<()> {
        Ok(())
    }

    async fn take(&mut self) -> Result<()> {
        self.told.notified().await;
        Ok(())
    }

    async fn ack(&mut self) -> Result<()> {
        self.conn
            .write(b"{\"cmd\":\"ack_turn\",\"turn\":\"T1\",\"ids\":[1]}\n")
            .await?;
        self.conn.read_line().await?;
        Ok(())
    }
}

/// The other side: returns every line on the connection it came from, until it is killed.
pub(crate) async fn serve(socket: &Path) -> Result<()> {
    let listener = UnixListener::bind(socket).context("cannot listen")?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        connections.spawn(echo(stream));
        while let Some(ended) = connections.try_join_next() {
            ended.context("an echo connection panicked")??;
        }
    }
}

async fn echo(mut stream: UnixStream) -> Result<()> {
    let mut line = Vec::with_capacity(8 << 10);
    loop {
        line.clear();
        while line.last() != Some(&b'\n') {
            if stream.read_buf(&mut line).await? == 0 {
                return Ok(());
            }
        }
        stream.write_all(&line).await?;
    }
}
