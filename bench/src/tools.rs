//! The tools suite: what a call of an agent's tool costs, what waiting costs, and what an agent that
//! attacks its host costs another one.
//!
//! A call goes from a client to `hive mcp`, to the host and back. Beside it, in the same rounds, a
//! bare MCP server with one tool that echoes, and one ping-pong on a unix socket: what a call would
//! cost if the hive did nothing. A call that writes may take a commit more. Whoever asks and whoever
//! is asked are on different cores, in all of them.

#![expect(clippy::print_stderr, reason = "progress, beside the report on stdout")]

mod attack;
mod client;
pub(crate) mod echo;
mod report;
mod results;
mod waiting;

use std::{path::Path, time::Instant};

use anyhow::{Context as _, Result};
use hive_testkit::hive::{Options as HiveOptions, TestHive};
use serde_json::{Value, json};

use crate::{
    conn::Conn,
    host::Host,
    options::Options,
    peer::{
        Peer as _,
        floor::{self, Write},
        pingpong::PingPong,
    },
    pin::Pinned,
    report as common,
    site::Site,
    stats::{Latencies, Percentiles},
};
pub(crate) use attack::attack;
use client::Client;
use results::{Calls, Settings, ToolsResults};

/// Runs the suite, prints it and saves it.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let base = options.dir()?;
    std::fs::create_dir_all(&base)?;
    let dir = tempfile::Builder::new()
        .prefix("bench-tools-")
        .tempdir_in(&base)?;
    let calls = calls(options, dir.path()).await?;
    eprintln!("reminders and schedules");
    let waiting = waiting::run(options.idle_time()).await?;
    eprintln!("another agent under attack");
    let attack = attack::run(if options.quick { 100 } else { 300 }).await?;
    let mut results = ToolsResults {
        schema: 1,
        suite: "tools",
        host: Host::of(&base)?,
        settings: Settings {
            quick: options.quick,
            rounds: options.rounds(),
        },
        calls,
        waiting,
        attack,
        targets: Vec::new(),
    };
    results.targets = results.judge();
    report::print(&results);
    common::save(&results, &options.results("tools")?)
}

/// A hive whose agents may send as much as they like.
async fn unlimited() -> Result<TestHive> {
    let options = HiveOptions {
        config: "[hive]\nroot_agent = \"\"\n[limits]\nsends_per_minute = 0\n".to_owned(),
        ..HiveOptions::default()
    };
    let hive = TestHive::start_with(options).await?;
    for agent in ["ada", "bob"] {
        hive.spawn_agent(agent).await?;
    }
    Ok(hive)
}

/// The same number of calls of each kind in each round, one after another.
async fn calls(options: &Options, dir: &Path) -> Result<Vec<Calls>> {
    let count = if options.quick { 200 } else { 1_000 };
    let hive = unlimited().await?;
    let site = Site::new(dir, "pingpong")?;
    let echo = PingPong::start(&site).await?;
    let mut socket = Conn::open(echo.socket()).await?;
    let mut bare = Client::start(&std::env::current_exe()?, "mcp-echo", None).await?;
    let hive_bin = options.hive_bin()?.with_file_name("hive");
    let ada = hive.agent_socket("ada");
    let mut tools = Client::start(&hive_bin, "mcp", Some(&ada))
        .await
        .context("`hive mcp` does not come up")?;
    let text = "x".repeat(200);
    let mut rounds = Rounds::default();
    for round in 0..options.rounds() {
        eprintln!("calls: round {} of {}", round + 1, options.rounds());
        let line = format!("{{\"body\":\"{text}\"}}\n");
        let pinned = apart(&[Some(echo.pid())]);
        rounds.socket.push(ping(&mut socket, &line, count).await?);
        drop(pinned);
        let args = json!({"text": text});
        let pinned = apart(&[bare.pid()]);
        rounds
            .bare
            .push(called(&mut bare, "echo", &args, count).await?);
        drop(pinned);
        let floor = floor::serial(dir, Write::Append, options.time()?)?;
        rounds.commit.push(floor.latency);
        let nothing = json!({});
        let _pinned = apart(&[tools.pid(), hive.pid()]);
        let read = called(&mut tools, "list_peers", &nothing, count).await?;
        rounds.read.push(read);
        let args = json!({"to": "bob", "body": text});
        rounds
            .write
            .push(called(&mut tools, "send", &args, count).await?);
        drain(&hive).await?;
    }
    Ok(rounds.results())
}

/// Keeps those who ask each other apart; on a machine with one core there is nothing to keep apart.
fn apart(servers: &[Option<u32>]) -> Option<Pinned> {
    let servers: Vec<_> = servers.iter().flatten().copied().collect();
    Pinned::apart(&servers).ok()
}

/// What each round found, kind by kind.
#[derive(Default)]
struct Rounds {
    socket: Vec<Percentiles>,
    bare: Vec<Percentiles>,
    commit: Vec<Percentiles>,
    read: Vec<Percentiles>,
    write: Vec<Percentiles>,
}

impl Rounds {
    fn results(&self) -> Vec<Calls> {
        vec![
            Calls::of("socket ping-pong", &self.socket),
            Calls::of("bare MCP echo", &self.bare),
            Calls::of("one commit", &self.commit),
            Calls::of("hive, a read", &self.read),
            Calls::of("hive, a write", &self.write),
        ]
    }
}

async fn called(client: &mut Client, tool: &str, args: &Value, count: u32) -> Result<Percentiles> {
    let mut latencies = Latencies::default();
    for _ in 0..count {
        let begin = Instant::now();
        client.call(tool, args).await?;
        latencies.push(begin.elapsed());
    }
    Ok(latencies.summary())
}

async fn ping(socket: &mut Conn, line: &str, count: u32) -> Result<Percentiles> {
    let mut latencies = Latencies::default();
    for _ in 0..count {
        let begin = Instant::now();
        socket.write(line.as_bytes()).await?;
        socket.read_line().await?;
        latencies.push(begin.elapsed());
    }
    Ok(latencies.summary())
}

/// Empties bob's inbox, which has a limit.
async fn drain(hive: &TestHive) -> Result<()> {
    let recv = hive_wire::agent::Recv {
        max: 32,
        ..Default::default()
    };
    let bob = hive.agent_client("bob");
    while !bob.call(&recv).await?.messages.is_empty() {}
    Ok(())
}
