//! What an agent that attacks its own socket costs another agent: the time of a `send` of the other,
//! quiet, beside a crowd of connections that say nothing, and under attack. The attacker is a process
//! that runs for half of the time.

use std::{
    io::{Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use hive_testkit::hive::{Options, TestHive};
use hive_wire::{agent::Send, client::Client};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;

use crate::stats::{Latencies, Percentiles};

/// The attacker runs for so long, and stands still for as long.
const SLICE: Duration = Duration::from_millis(5);
/// Between two sends of the other agent.
const PAUSE: Duration = Duration::from_millis(10);
/// For the attack to be in full swing.
const SETTLE: Duration = Duration::from_secs(1);

/// Agents whose sockets are full of connections that say nothing, and how many each has.
const CROWD: [&str; 10] = ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9"];
const SEATS: usize = 1_000;

#[derive(Debug, Serialize)]
pub(super) struct Attack {
    pub(super) sends: u32,
    pub(super) quiet: Percentiles,
    /// Connections that were open all the while, and idle.
    pub(super) idle_connections: usize,
    pub(super) crowded: Percentiles,
    /// The ratio of the 99th percentiles, crowded to quiet.
    pub(super) crowded_ratio: f64,
    pub(super) attacked: Percentiles,
    /// The ratio of the 99th percentiles, under attack to quiet.
    pub(super) ratio: f64,
}

pub(super) async fn run(sends: u32) -> Result<Attack> {
    let options = Options {
        config: format!("[hive]\nroot_agent = \"\"\n[limits]\nconnections_per_agent = {SEATS}\n"),
        ..Options::default()
    };
    let hive = TestHive::start_with(options).await?;
    for agent in ["ada", "bob", "eve"].iter().chain(&CROWD) {
        hive.spawn_agent(agent).await?;
    }
    let ada = hive.agent_client("ada");
    // The first ones make the connection and the pages warm.
    measure(&ada, 20).await?;
    let quiet = measure(&ada, sends).await?;
    let crowd = crowd(&hive)?;
    tokio::time::sleep(SETTLE).await;
    let crowded = measure(&ada, sends).await?;
    let idle_connections = crowd.len();
    drop(crowd);
    let attacker = Attacker::start(&hive.agent_socket("eve"))?;
    tokio::time::sleep(SETTLE).await;
    let attacked = measure(&ada, sends).await?;
    attacker.stop()?;
    Ok(Attack {
        sends,
        quiet,
        idle_connections,
        crowded,
        crowded_ratio: crowded.p99_us / quiet.p99_us,
        attacked,
        ratio: attacked.p99_us / quiet.p99_us,
    })
}

/// As many connections as the crowd may have, each of them one that the daemon answered.
fn crowd(hive: &TestHive) -> Result<Vec<UnixStream>> {
    let mut crowd = Vec::with_capacity(CROWD.len() * SEATS);
    for agent in CROWD {
        let socket = hive.agent_socket(agent);
        for _ in 0..SEATS {
            let mut stream = UnixStream::connect(&socket)?;
            stream.write_all(b"{\"cmd\":\"status\"}\n")?;
            let mut answer = [0; 4_096];
            let read = stream.read(&mut answer)?;
            ensure!(
                answer[..read].starts_with(b"{\"ok\":true"),
                "{agent} is turned away: {}",
                String::from_utf8_lossy(&answer[..read])
            );
            crowd.push(stream);
        }
    }
    Ok(crowd)
}

async fn measure(ada: &Client, sends: u32) -> Result<Percentiles> {
    let mut latencies = Latencies::default();
    for _ in 0..sends {
        let send = Send {
            to: "bob".to_owned(),
            body: "x".repeat(200),
            in_reply_to: None,
            key: None,
        };
        let begin = Instant::now();
        ada.call(&send).await?;
        latencies.push(begin.elapsed());
        tokio::time::sleep(PAUSE).await;
    }
    Ok(latencies.summary())
}

/// A process that is stopped and continued in turns.
struct Attacker {
    process: Child,
    is_over: Arc<AtomicBool>,
    brake: JoinHandle<()>,
}

impl Attacker {
    fn start(socket: &Path) -> Result<Self> {
        let process = Command::new(std::env::current_exe()?)
            .arg("attack")
            .arg("--socket")
            .arg(socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start the attacker")?;
        let pid = Pid::from_child(&process);
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let brake = thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                for signal in [Signal::STOP, Signal::CONT] {
                    // One that has ended is noticed by whoever waits for it.
                    kill_process(pid, signal).ok();
                    thread::sleep(SLICE);
                }
            }
        });
        Ok(Self {
            process,
            is_over,
            brake,
        })
    }

    fn stop(mut self) -> Result<()> {
        self.is_over.store(true, Ordering::Relaxed);
        self.brake.join().ok();
        let ended = self.process.try_wait()?;
        ensure!(ended.is_none(), "the attacker gave up: {ended:?}");
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }
}

/// Everything that a lying agent can throw at its socket, over and over, until it is killed.
pub(crate) fn attack(socket: &Path) -> Result<()> {
    let flood = {
        let body = "x".repeat(1_000);
        let send = format!(
            "{{\"cmd\":\"send\",\"to\":\"bob\",\"from\":\"operator\",\"body\":\"{body}\"}}\n"
        );
        send.repeat(64)
    };
    let reads = "{\"cmd\":\"list_peers\"}\n{\"cmd\":\"get_loose_ends\"}\n".repeat(64);
    let rubbish = "{\"cmd\":\n\0\u{1}not json\n[[[[[[[[\n".repeat(64);
    let oversize = "x".repeat(1_100_000);
    let mut half_open = Vec::new();
    loop {
        for bytes in [&flood, &reads, &rubbish, &oversize] {
            // A host that turns us away is what is hoped for, and tried again.
            let Ok(mut stream) = UnixStream::connect(socket) else {
                continue;
            };
            stream.set_write_timeout(Some(Duration::from_millis(50)))?;
            stream.set_read_timeout(Some(Duration::from_millis(1)))?;
            let mut answers = [0; 65_536];
            for _ in 0..8 {
                if stream.write_all(bytes.as_bytes()).is_err() {
                    break;
                }
                // A host that answers nothing more is left alone.
                if matches!(stream.read(&mut answers), Ok(0)) {
                    break;
                }
            }
        }
        // Lines without an end, held open.
        half_open.truncate(32);
        if let Ok(mut stream) = UnixStream::connect(socket) {
            stream.write_all(b"{\"cmd\":\"send\",").ok();
            half_open.insert(0, stream);
        }
    }
}
