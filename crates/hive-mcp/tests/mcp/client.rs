//! A bare MCP client: it says exactly what it is told and shows every line that comes back.

use std::{path::Path, time::Duration};

use hive_mcp::{Options, hyperhive, stdio};
use hive_testkit::hive::TestHive;
use hive_wire::{command::Command, line::LineBuffer};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

/// Longer than anything takes in a test that works, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The revision that has no handshake.
pub(crate) const MODERN: &str = "2026-07-28";

/// A server and the only client it has.
pub(crate) struct Mcp {
    stream: UnixStream,
    lines: LineBuffer,
    next: i64,
    modern: bool,
    stop: CancellationToken,
    serving: JoinHandle<Result<(), stdio::ServeError>>,
}

/// A hive with agents `ada` and `bob`.
pub(crate) async fn hive() -> TestHive {
    let hive = TestHive::start().await.unwrap();
    for agent in ["ada", "bob"] {
        hive.spawn_agent(agent).await.unwrap();
    }
    hive
}

/// The options of `ada`, with directories of its own.
pub(crate) fn options(hive: &TestHive) -> Options {
    let mut options = Options::new(hive.agent_socket("ada"));
    options.state_dir = Some(dir(hive.root(), "ada-state"));
    options.harness_dir = Some(dir(hive.root(), "ada-harness"));
    options
}

fn dir(root: &Path, name: &str) -> std::path::PathBuf {
    let dir = root.join(name);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

impl Mcp {
    /// A server to which nobody has said anything.
    pub(crate) fn silent(options: &Options) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (read, write) = theirs.into_split();
        let stop = CancellationToken::new();
        let server = hyperhive::server(options);
        #[expect(clippy::disallowed_methods, reason = "joined in `leave`")]
        let serving = tokio::spawn(stdio::serve(server, read, write, stop.clone()));
        Self {
            stream: ours,
            lines: LineBuffer::new(8 * 1024 * 1024),
            next: 1,
            modern: false,
            stop,
            serving,
        }
    }

    /// A server after the handshake of `revision`.
    pub(crate) async fn shaken(options: &Options, revision: &str) -> Self {
        let mut mcp = Self::silent(options);
        let answer = mcp
            .ask(
                "initialize",
                json!({
                    "protocolVersion": revision,
                    "capabilities": {},
                    "clientInfo": {"name": "raw", "version": "1"},
                }),
            )
            .await;
        assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
        mcp.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        mcp
    }

    /// A server of the era without a handshake.
    pub(crate) fn modern(options: &Options) -> Self {
        let mut mcp = Self::silent(options);
        mcp.modern = true;
        mcp
    }

    pub(crate) async fn say(&mut self, message: &Value) {
        self.say_raw(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn say_raw(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// The next line.
    pub(crate) async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.line()).await;
        let line = line.expect("no line came").expect("the server hung up");
        serde_json::from_slice(&line).unwrap()
    }

    /// The next line, or none when the server has hung up.
    pub(crate) async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(line) = self.lines.next_line().unwrap() {
                return Some(line.to_vec());
            }
            if self.stream.read_buf(self.lines.room()).await.unwrap() == 0 {
                return None;
            }
        }
    }

    /// Waits until the first byte of an answer can be read, and leaves it where it is.
    pub(crate) async fn something_is_written(&self) {
        tokio::time::timeout(PATIENCE, self.stream.readable())
            .await
            .expect("nothing came")
            .unwrap();
    }

    /// Sends a request and returns its id.
    pub(crate) async fn request(&mut self, method: &str, mut params: Value) -> i64 {
        let id = self.next;
        self.next += 1;
        if self.modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
        }
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await;
        id
    }

    /// Sends a request and returns its answer, which has to be the next line.
    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], id, "{answer}");
        assert_eq!(answer["jsonrpc"], "2.0");
        answer
    }

    /// Calls a tool and returns its result.
    pub(crate) async fn call(&mut self, tool: &str, args: Value) -> Value {
        let params = json!({"name": tool, "arguments": args});
        let answer = self.ask("tools/call", params).await;
        answer["result"].clone()
    }

    /// Calls a tool that must succeed, and returns its structured content, which must be in its
    /// text too.
    pub(crate) async fn ok(&mut self, tool: &str, args: Value) -> Value {
        let result = self.call(tool, args).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let structured = result["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), structured);
        structured
    }

    /// Calls a tool that must fail, and returns what it says.
    pub(crate) async fn failure(&mut self, tool: &str, args: Value) -> String {
        let result = self.call(tool, args).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        // Its shape would not be the one that the output schema promises.
        assert!(result.get("structuredContent").is_none(), "{result}");
        let said = result["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(said.contains("What to do: "), "{tool}: {said}");
        said
    }

    /// Closes the connection and waits until the server has ended.
    pub(crate) async fn leave(self) {
        drop(self.stream);
        let ended = tokio::time::timeout(PATIENCE, self.serving).await;
        ended.expect("the server stays").unwrap().unwrap();
    }

    /// Tells the server to stop, as a signal does, and waits until it has ended.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        let ended = tokio::time::timeout(PATIENCE, self.serving).await;
        ended.expect("the server stays").unwrap().unwrap();
    }
}

/// Carries out a command on an agent's socket.
pub(crate) async fn wire<C: Command>(hive: &TestHive, agent: &str, command: C) -> C::Reply {
    hive.agent_client(agent).call(&command).await.unwrap()
}
