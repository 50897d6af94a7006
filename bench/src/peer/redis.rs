//! Redis Streams with `appendfsync always`: XADD, a consumer group read that blocks, XACK.
//!
//! Each client has a stream and a group of its own. The client speaks RESP itself over a unix
//! socket. Snapshots and rewrites of the append-only file are off and streams are dropped between
//! measurements, so that Redis does nothing but the work that is measured.

mod resp;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use super::{Pair, Peer, Receiver, Sender};
use crate::{
    conn::Conn,
    process::{Server, on_path, run},
    site::Site,
};

const BLOCK_MS: &str = "30000";

#[derive(Debug)]
pub(crate) struct Redis {
    server: Server,
    socket: PathBuf,
}

impl Redis {
    pub(crate) async fn start(site: &Site) -> Result<Self> {
        let socket = site.sockets().join("redis.sock");
        let mut command = site.command(&program()?);
        command
            .args(["--port", "0", "--unixsocket"])
            .arg(&socket)
            .args(["--dir"])
            .arg(site.dir())
            .args(["--appendonly", "yes", "--appendfsync", "always"])
            .args(["--save", "", "--auto-aof-rewrite-percentage", "0"])
            .args(["--maxclients", "1000"]);
        let mut server = Server::start(command, Signal::TERM, site.log())?;
        server
            .ready(async || {
                let mut conn = Conn::open(&socket).await?;
                call(&mut conn, &[b"PING"]).await
            })
            .await?;
        Ok(Self { server, socket })
    }

    pub(crate) fn version() -> Result<String> {
        let mut command = std::process::Command::new(program()?);
        command.arg("--version");
        let text = run(command)?;
        let version = text
            .split_whitespace()
            .find_map(|word| word.strip_prefix("v="));
        Ok(version.unwrap_or("unknown").to_owned())
    }
}

impl Peer for Redis {
    type Sender = StreamSender;
    type Receiver = StreamReceiver;

    async fn pairs(&self, count: usize, body: &str) -> Result<Vec<Pair<Self>>> {
        let mut pairs = Vec::with_capacity(count);
        for client in 0..count {
            let stream = format!("q{client}");
            let receiver = StreamReceiver::open(&self.socket, stream.as_bytes()).await?;
            let sender = StreamSender {
                conn: Conn::open(&self.socket).await?,
                add: resp::command(&[b"XADD", stream.as_bytes(), b"*", b"b", body.as_bytes()]),
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
pub(crate) struct StreamSender {
    conn: Conn,
    add: Vec<u8>,
}

impl Sender for StreamSender {
    async fn send(&mut self) -> Result<()> {
        self.conn.write(&self.add).await?;
        let reply = self.conn.read(resp::is_complete).await?;
        resp::check(reply)
    }
}

#[derive(Debug)]
pub(crate) struct StreamReceiver {
    conn: Conn,
    stream: Vec<u8>,
    read: Vec<u8>,
    ack: Vec<u8>,
}

impl StreamReceiver {
    /// Connects, with the stream emptied and its group made anew.
    async fn open(socket: &Path, stream: &[u8]) -> Result<Self> {
        let mut conn = Conn::open(socket).await?;
        call(&mut conn, &[b"UNLINK", stream]).await?;
        call(
            &mut conn,
            &[b"XGROUP", b"CREATE", stream, b"g", b"$", b"MKSTREAM"],
        )
        .await?;
        let read = resp::command(&[
            b"XREADGROUP",
            b"GROUP",
            b"g",
            b"c",
            b"COUNT",
            b"1",
            b"BLOCK",
            BLOCK_MS.as_bytes(),
            b"STREAMS",
            stream,
            b">",
        ]);
        Ok(Self {
            conn,
            stream: stream.to_owned(),
            read,
            ack: Vec::new(),
        })
    }
}

impl Receiver for StreamReceiver {
    async fn park(&mut self) -> Result<()> {
        self.conn.write(&self.read).await
    }

    async fn take(&mut self) -> Result<()> {
        let reply = self.conn.read(resp::is_complete).await?;
        resp::check(reply)?;
        // [[stream, [[id, [field, body]]]]]: the id is the second string.
        let id = resp::string(reply, 1).context("XREADGROUP returned no message")?;
        self.ack.clear();
        resp::write_command(&mut self.ack, &[b"XACK", &self.stream, b"g", id]);
        Ok(())
    }

    async fn ack(&mut self) -> Result<()> {
        self.conn.write(&self.ack).await?;
        let reply = self.conn.read(resp::is_complete).await?;
        if reply != b":1\r\n" {
            bail!("XACK answered {}", String::from_utf8_lossy(reply));
        }
        Ok(())
    }
}

async fn call(conn: &mut Conn, words: &[&[u8]]) -> Result<()> {
    conn.write(&resp::command(words)).await?;
    resp::check(conn.read(resp::is_complete).await?)
}

fn program() -> Result<PathBuf> {
    on_path("redis-server").context("redis-server is not installed (apt-get install redis-server)")
}
