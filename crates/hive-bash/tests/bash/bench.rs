//! A daemon of its own for a test, bridges to it, and what can be seen of it from outside.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use hive_testkit::hive::TestHive;
use hive_wire::agent::{Message, Recv};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// Longer than anything takes in a test that works, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
const DAEMON: &str = env!("CARGO_BIN_EXE_hive-bash-daemon");
const BRIDGE: &str = env!("CARGO_BIN_EXE_hive-bash-mcp");

/// An agent's directories with a daemon on them.
pub(crate) struct Bench {
    dir: TempDir,
    hive_socket: PathBuf,
    env: Vec<(&'static str, String)>,
    daemon: Option<Child>,
}

impl Bench {
    /// A daemon of an agent whose hive is not there.
    pub(crate) async fn alone() -> Self {
        Self::start("/nowhere/mcp.sock".into(), &[]).await
    }

    /// A daemon of agent `ada`.
    pub(crate) async fn of(hive: &TestHive) -> Self {
        Self::start(hive.agent_socket("ada"), &[]).await
    }

    /// A daemon with further variables.
    pub(crate) async fn start(hive_socket: PathBuf, env: &[(&'static str, &str)]) -> Self {
        let dir = tempfile::Builder::new().prefix("bash").tempdir().unwrap();
        fs::create_dir(dir.path().join("state")).unwrap();
        fs::create_dir(dir.path().join("harness")).unwrap();
        let mut bench = Self {
            dir,
            hive_socket,
            env: env.iter().map(|(k, v)| (*k, (*v).to_owned())).collect(),
            daemon: None,
        };
        bench.launch().await;
        bench
    }

    /// Starts the daemon and waits until it listens.
    pub(crate) async fn launch(&mut self) {
        let daemon = self.command(DAEMON).kill_on_drop(true).spawn().unwrap();
        self.daemon = Some(daemon);
        let socket = self.socket();
        until("the daemon listens", || {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        })
        .await;
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("HIVE_BASH_SOCKET", self.socket())
            .env("HIVE_SOCKET", &self.hive_socket)
            .env("HIVE_STATE_DIR", self.state())
            .env("HIVE_HARNESS_DIR", self.harness())
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    /// Kills the daemon as a crash does.
    pub(crate) async fn kill(&mut self) {
        self.daemon.take().unwrap().kill().await.unwrap();
    }

    /// Tells the daemon to stop and waits until it has.
    pub(crate) async fn stop(&mut self) {
        let mut daemon = self.daemon.take().unwrap();
        terminate(&daemon);
        let ended = tokio::time::timeout(PATIENCE, daemon.wait()).await;
        assert!(ended.unwrap().unwrap().success());
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("bash.sock")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn harness(&self) -> PathBuf {
        self.dir.path().join("harness")
    }

    /// A bridge after its handshake.
    pub(crate) async fn bridge(&self) -> Bridge {
        let mut bridge = self.silent_bridge();
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        });
        bridge.ask("initialize", hello).await;
        bridge
            .say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        bridge
    }

    /// A bridge to which nobody has said anything.
    pub(crate) fn silent_bridge(&self) -> Bridge {
        let mut command = self.command(BRIDGE);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().unwrap();
        Bridge {
            stdin: process.stdin.take().unwrap(),
            stdout: BufReader::new(process.stdout.take().unwrap()).lines(),
            process,
            next: 1,
        }
    }

    /// What is published as open: `(label, text)`.
    pub(crate) fn loose_ends(&self) -> Vec<(String, String)> {
        let file = self.harness().join("mcp-loose-ends/bash.json");
        let file: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        assert_eq!(file["schema"], 1);
        let rows = file["loose_ends"].as_array().unwrap();
        rows.iter()
            .map(|row| (text(&row["label"]), text(&row["text"])))
            .collect()
    }

    /// Waits until nothing is published as open.
    pub(crate) async fn all_is_seen(&self) {
        until("nothing is open", || self.loose_ends().is_empty()).await;
    }

    /// The number that a command wrote to a file in the state directory.
    pub(crate) async fn pid_in(&self, name: &str) -> Pid {
        let file = self.state().join(name);
        let read = || fs::read_to_string(&file).ok()?.trim().parse().ok();
        until(name, || read().is_some()).await;
        Pid::from_raw(read().unwrap()).unwrap()
    }
}

/// One bridge process, spoken to line by line.
pub(crate) struct Bridge {
    pub(crate) process: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    next: i64,
}

impl Bridge {
    pub(crate) async fn say(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.stdin.write_all(line.as_bytes()).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.stdout.next_line()).await;
        let line = line.expect("no line came").unwrap();
        serde_json::from_str(&line.expect("the bridge hung up")).unwrap()
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) async fn call(&mut self, tool: &str, args: Value) -> Value {
        let params = json!({"name": tool, "arguments": args});
        self.ask("tools/call", params).await["result"].clone()
    }

    /// Calls a tool that must succeed: its structured content and its text.
    pub(crate) async fn ok(&mut self, tool: &str, args: Value) -> (Value, String) {
        let result = self.call(tool, args).await;
        assert_ne!(result["isError"], true, "{result}");
        let said = text(&result["content"][0]["text"]);
        (result["structuredContent"].clone(), said)
    }

    /// Calls a tool that must fail: what it says.
    pub(crate) async fn failure(&mut self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args).await;
        assert_eq!(result["isError"], true, "{result}");
        text(&result["content"][0]["text"])
    }

    /// Runs a command and waits for its end as long as it takes.
    pub(crate) async fn finish(&mut self, cmd: &str) -> Value {
        let (task, _) = self
            .ok("run", json!({"cmd": cmd, "wait_seconds": 30}))
            .await;
        self.ended(&task["id"]).await
    }

    /// Waits for the end of a task as long as it takes.
    pub(crate) async fn ended(&mut self, id: &Value) -> Value {
        loop {
            let args = json!({"id": id, "wait_seconds": 30});
            let (task, _) = self.ok("status", args).await;
            if !["pending", "running"].contains(&task["status"].as_str().unwrap()) {
                return task;
            }
        }
    }
}

/// A hive with agent `ada`.
pub(crate) async fn hive() -> TestHive {
    let hive = TestHive::start().await.unwrap();
    hive.spawn_agent("ada").await.unwrap();
    hive
}

/// What comes next into the inbox of `ada`, held by a turn.
pub(crate) async fn news(hive: &TestHive, turn: &str) -> Message {
    let recv = Recv {
        wait_seconds: 60,
        max: 1,
        turn: Some(turn.parse().unwrap()),
        req: None,
    };
    let client = hive.agent_client("ada");
    let mut got = client.call_within(&recv, PATIENCE * 2).await.unwrap();
    got.messages.pop().expect("nothing came")
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn terminate(process: &Child) {
    let pid = i32::try_from(process.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
}

/// Waits until something can be seen from outside, which has no event to wait for.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(waited.await.is_ok(), "not within {PATIENCE:?}: {what}");
}

/// Waits until a process is gone. One that is dead and not yet waited for is gone too.
pub(crate) async fn gone(pid: Pid) {
    let stat = format!("/proc/{}/stat", pid.as_raw_nonzero());
    until("the process is gone", || {
        let Ok(stat) = fs::read_to_string(Path::new(&stat)) else {
            return true;
        };
        stat.rsplit_once(')')
            .is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
    })
    .await;
}
