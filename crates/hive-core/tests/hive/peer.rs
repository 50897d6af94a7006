//! What the tests talk through: bare connections, and the command line as a user runs it.
//!
//! A [`Peer`] blocks, with a bound: the daemon is another process, and a test that waits for
//! nothing fails with what it waited for.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use hive_testkit::hive::{Options, TestHive};
use hive_wire::{line::MAX_LINE, socket};
use serde_json::{Value, json};

/// Longer than anything takes in a test that works, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The daemon and command line under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_hive-c0re");

/// A hive with these agents.
pub(crate) async fn hive(agents: &[&str]) -> TestHive {
    hive_with("", agents).await
}

/// A hive with these lines in its `hive.toml`, and these agents.
pub(crate) async fn hive_with(config: &str, agents: &[&str]) -> TestHive {
    let options = Options {
        config: format!("[hive]\nroot_agent = \"\"\n{config}"),
        ..Options::default()
    };
    let hive = TestHive::start_with(options).await.unwrap();
    for agent in agents {
        hive.spawn_agent(agent).await.unwrap();
    }
    hive
}

/// Ways into a hive.
pub(crate) trait Doors {
    /// A connection to an agent's socket.
    fn peer(&self, agent: &str) -> Peer;
    /// A connection to the admin socket.
    fn operator(&self) -> Peer;
    /// Runs the command line on this hive.
    fn cli(&self, args: &[&str]) -> Said;
    /// Runs the command line with `--json` and parses what it says; it must succeed.
    fn cli_json(&self, args: &[&str]) -> Value;
    /// Lets one agent send a message to another; its id.
    fn send(&self, from: &str, to: &str, body: &str) -> i64;
}

impl Doors for TestHive {
    fn peer(&self, agent: &str) -> Peer {
        Peer::connect(&self.agent_socket(agent))
    }

    fn operator(&self) -> Peer {
        Peer::connect(&self.host_socket())
    }

    fn cli(&self, args: &[&str]) -> Said {
        cli(self.root(), args, "")
    }

    fn cli_json(&self, args: &[&str]) -> Value {
        let said = self.cli(&[&["--json"], args].concat());
        assert_eq!(said.code, 0, "{args:?}: {}", said.stderr);
        serde_json::from_str(&said.stdout).unwrap()
    }

    fn send(&self, from: &str, to: &str, body: &str) -> i64 {
        let sent = self
            .peer(from)
            .ask(&json!({"cmd":"send","to":to,"body":body}));
        ok(sent)["message_id"].as_i64().unwrap()
    }
}

/// One connection that says and hears whole lines, or whatever bytes it is told to.
pub(crate) struct Peer {
    stream: UnixStream,
    lines: BufReader<UnixStream>,
}

impl Peer {
    pub(crate) fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(socket::reachable(path).unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self {
            lines: BufReader::new(stream.try_clone().unwrap()),
            stream,
        }
    }

    pub(crate) fn say(&mut self, request: &Value) {
        self.say_raw(format!("{request}\n").as_bytes());
    }

    pub(crate) fn say_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next line, which must fit into one.
    pub(crate) fn hear(&mut self) -> Value {
        let mut line = Vec::new();
        let mut limited = (&mut self.lines).take(MAX_LINE as u64 + 1);
        let read = limited.read_until(b'\n', &mut line);
        assert!(read.is_ok(), "no line came: {read:?}");
        assert_eq!(line.pop(), Some(b'\n'), "the connection ended");
        serde_json::from_slice(&line).unwrap()
    }

    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        self.say(request);
        self.hear()
    }

    /// Issues a receive under id 1 and makes sure that it is parked: a later request of the same
    /// connection is answered first.
    pub(crate) fn park(&mut self, receive: &Value) {
        let mut receive = receive.clone();
        receive["id"] = json!(1);
        receive["wait_seconds"] = json!(180);
        self.say(&receive);
        let status = self.ask(&json!({"cmd":"status","id":"parked?"}));
        assert_eq!(status["id"], "parked?", "{receive} was answered: {status}");
    }

    /// Says that nothing more will be said; what comes can still be heard.
    pub(crate) fn half_close(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    /// Whether nothing more comes, because the daemon closed the connection.
    pub(crate) fn is_over(&mut self) -> bool {
        match self.lines.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
                true
            }
        }
    }

    /// The bare stream, for tests that break the rules.
    pub(crate) fn stream(&self) -> &UnixStream {
        &self.stream
    }
}

/// What a command said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the command line on the hive under `root`, with `input` on stdin.
pub(crate) fn cli(root: &Path, args: &[&str], input: &str) -> Said {
    let mut command = Command::new(BINARY);
    command.arg("--root").arg(root).args(args);
    run(&mut command, input)
}

/// Runs a command to its end, which must come by itself.
pub(crate) fn run(command: &mut Command, input: &str) -> Said {
    let mut child = command
        .env_remove("HIVE_ROOT")
        .env("NO_COLOR", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may end without having read it all.
    drop(stdin.write_all(input.as_bytes()));
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said {
        code: output.status.code().unwrap(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Asserts that a request went well.
pub(crate) fn ok(reply: Value) -> Value {
    assert_eq!(reply["ok"], true, "{reply}");
    reply
}

/// The code of a refusal.
pub(crate) fn code(reply: &Value) -> &str {
    assert_eq!(reply["ok"], false, "{reply}");
    reply["error"]["code"].as_str().unwrap()
}

/// The messages of a receive, as (body, delivery).
pub(crate) fn mail(reply: &Value) -> Vec<(&str, u64)> {
    assert_eq!(reply["ok"], true, "{reply}");
    let messages = reply["messages"].as_array().unwrap();
    let view = |message: &'_ Value| message["delivery"].as_u64().unwrap();
    messages
        .iter()
        .map(|message| (message["body"].as_str().unwrap(), view(message)))
        .collect()
}

/// Says that a test is left out because a tool is not here.
///
/// Where `HIVE_REQUIRE_CLAUDE` says that everything must be there, it fails instead: a test that
/// returns without its tool looks as if it had passed.
#[expect(
    clippy::print_stderr,
    reason = "a test that did not run says so, wherever it is run"
)]
pub(crate) fn left_out_without(tool: &str, error: &std::io::Error) {
    assert!(
        std::env::var_os("HIVE_REQUIRE_CLAUDE").is_none(),
        "HIVE_REQUIRE_CLAUDE is set and there is no {tool}: {error}"
    );
    eprintln!("SKIPPED: there is no {tool}: {error}");
}

/// Asks until the answer is yes: for what no event tells of.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came to be: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
