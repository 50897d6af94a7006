//! The hive's own broker, `hive-c0re serve`, over the agents' sockets with raw JSON lines.
//!
//! A client is two agents that run nowhere (`--runtime none`): `s0` sends, `r0` receives. Every
//! receive opens a turn of its own and the ack ends it, as a harness does.

use std::{
    fs::{self, Permissions},
    io::Write as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use anyhow::{Context as _, Result, bail};
use rustix::process::Signal;

use super::{Pair, Peer, Receiver, Sender};
use crate::{conn::Conn, process::Server, site::Site};

const WAIT_SECONDS: u32 = 30;
/// How many CLI processes register agents at a time.
const SPAWNS_AT_ONCE: usize = 4;
/// No agent but the benchmark's, so that nothing else runs on the machine.
const CONFIG: &str = "[hive]\nroot_agent = \"\"\n[limits]\nsends_per_minute = 0\n";

/// Turn ids are the caller's choice and must be new for each receive.
static TURN: AtomicU64 = AtomicU64::new(1);

#[derive(Debug)]
pub(crate) struct Hive {
    server: Server,
    program: PathBuf,
    root: PathBuf,
}

impl Hive {
    /// Starts the daemon on the site's directory, which may hold an earlier hive's state.
    pub(crate) async fn start(program: &Path, site: &Site) -> Result<Self> {
        if !program.is_file() {
            bail!(
                "{} is not built (cargo build --release -p hive-core)",
                program.display()
            );
        }
        let root = site.dir().join("root");
        fs::create_dir_all(&root)?;
        fs::write(root.join("hive.toml"), CONFIG)?;
        fs::set_permissions(root.join("hive.toml"), Permissions::from_mode(0o600))?;
        let mut command = site.command(program);
        command
            .arg("--root")
            .arg(&root)
            .args(["serve", "--port", "0"]);
        let mut server = Server::start(command, Signal::TERM, site.log())?;
        let host = root.join("run/host.sock");
        server
            .ready(async || Conn::open(&host).await.map(drop))
            .await?;
        Ok(Self {
            server,
            program: program.to_owned(),
            root,
        })
    }

    /// The same, with the agents of `clients` pairs.
    pub(crate) async fn with_clients(program: &Path, site: &Site, clients: usize) -> Result<Self> {
        let hive = Self::start(program, site).await?;
        let pairs = (0..clients).flat_map(|client| [sender(client), receiver(client)]);
        hive.spawn_agents(pairs)?;
        Ok(hive)
    }

    pub(crate) fn spawn_agents(&self, names: impl IntoIterator<Item = String>) -> Result<()> {
        let names: Vec<String> = names.into_iter().collect();
        for batch in names.chunks(SPAWNS_AT_ONCE) {
            let children: Vec<_> = batch
                .iter()
                .map(|name| self.spawn_command(name).spawn())
                .collect::<Result<_, _>>()?;
            for child in children {
                let output = child.wait_with_output()?;
                if !output.status.success() {
                    let complaint = String::from_utf8_lossy(&output.stderr);
                    bail!("cannot spawn an agent: {}", complaint.trim());
                }
            }
        }
        Ok(())
    }

    /// Parks a receiver for `name`; the connection must be kept for as long as it is to wait.
    pub(crate) async fn park(&self, name: &str) -> Result<impl Sized + use<>> {
        let mut receiver = TurnReceiver::open(&self.socket(name)).await?;
        receiver.park().await?;
        Ok(receiver)
    }

    /// The database, for a store that is to be filled while the daemon is down.
    pub(crate) fn database(site: &Site) -> PathBuf {
        site.dir().join("root/state/hive.db")
    }

    fn spawn_command(&self, name: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .arg("--root")
            .arg(&self.root)
            .args(["spawn", name, "--runtime", "none"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        command
    }

    fn socket(&self, agent: &str) -> PathBuf {
        self.root.join("run/agents").join(agent).join("mcp.sock")
    }
}

impl Peer for Hive {
    type Sender = AgentSender;
    type Receiver = TurnReceiver;

    async fn pairs(&self, count: usize, body: &str) -> Result<Vec<Pair<Self>>> {
        let mut pairs = Vec::with_capacity(count);
        for client in 0..count {
            let to = receiver(client);
            let receiver = TurnReceiver::open(&self.socket(&to)).await?;
            let sender = AgentSender {
                conn: Conn::open(&self.socket(&sender(client))).await?,
                line: format!("{{\"cmd\":\"send\",\"to\":\"{to}\",\"body\":\"{body}\"}}\n"),
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
pub(crate) struct AgentSender {
    conn: Conn,
    line: String,
}

impl Sender for AgentSender {
    async fn send(&mut self) -> Result<()> {
        self.conn.write(self.line.as_bytes()).await?;
        expect(self.conn.read_line().await?, b"\"ok\":true")
    }
}

#[derive(Debug)]
pub(crate) struct TurnReceiver {
    conn: Conn,
    request: Vec<u8>,
    turn: u64,
    taken: u64,
}

impl TurnReceiver {
    async fn open(socket: &Path) -> Result<Self> {
        Ok(Self {
            conn: Conn::open(socket).await?,
            request: Vec::new(),
            turn: 0,
            taken: 0,
        })
    }
}

impl Receiver for TurnReceiver {
    async fn park(&mut self) -> Result<()> {
        self.turn = TURN.fetch_add(1, Ordering::Relaxed);
        self.request.clear();
        writeln!(
            self.request,
            "{{\"cmd\":\"recv\",\"wait_seconds\":{WAIT_SECONDS},\"max\":1,\"turn\":\"T{}\"}}",
            self.turn
        )?;
        self.conn.write(&self.request).await
    }

    async fn take(&mut self) -> Result<()> {
        let reply = self.conn.read_line().await?;
        self.taken = message_id(reply)
            .with_context(|| format!("no message in {}", String::from_utf8_lossy(reply)))?;
        Ok(())
    }

    async fn ack(&mut self) -> Result<()> {
        self.request.clear();
        writeln!(
            self.request,
            "{{\"cmd\":\"ack_turn\",\"turn\":\"T{}\",\"ids\":[{}]}}",
            self.turn, self.taken
        )?;
        self.conn.write(&self.request).await?;
        expect(self.conn.read_line().await?, b"\"result\":\"acked\"")
    }
}

fn sender(client: usize) -> String {
    format!("s{client}")
}

fn receiver(client: usize) -> String {
    format!("r{client}")
}

fn expect(reply: &[u8], part: &[u8]) -> Result<()> {
    if find(reply, part).is_none() {
        bail!(
            "the hive answered {}",
            String::from_utf8_lossy(reply).trim_end()
        );
    }
    Ok(())
}

/// The id of the first message of a `recv` reply. The benchmark's bodies hold no quotes, so the
/// first `"id":` after the array's start is a key, whatever the order of the others.
fn message_id(reply: &[u8]) -> Option<u64> {
    let messages = &reply[find(reply, b"\"messages\":[{")?..];
    let id = &messages[find(messages, b"\"id\":")? + 5..];
    let digits = id.iter().take_while(|byte| byte.is_ascii_digit()).count();
    str::from_utf8(&id[..digits]).ok()?.parse().ok()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_message_id_in_any_key_order() {
        let first = br#"{"ok":true,"messages":[{"id":17,"from":"s0","in_reply_to":null}]}"#;
        let last = br#"{"ok":true,"messages":[{"in_reply_to":3,"body":"xx","id":18}]}"#;
        assert_eq!(message_id(first), Some(17));
        assert_eq!(message_id(last), Some(18));
        assert_eq!(message_id(br#"{"ok":true,"messages":[]}"#), None);
        assert_eq!(
            message_id(br#"{"ok":false,"error":{"code":"turn_ended"}}"#),
            None
        );
    }
}
