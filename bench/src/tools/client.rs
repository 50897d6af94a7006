//! A bare MCP client over standard input and output: one call at a time, nothing in between.

use std::{path::Path, process::Stdio};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// A server and its only client; the server goes when this does.
pub(super) struct Client {
    server: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next: u64,
}

impl Client {
    /// Starts a server and shakes hands.
    pub(super) async fn start(
        program: &Path,
        command: &str,
        socket: Option<&Path>,
    ) -> Result<Self> {
        let mut server = Command::new(program)
            .arg(command)
            .envs(socket.map(|socket| ("HIVE_SOCKET", socket)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pipes = server.stdin.take().zip(server.stdout.take());
        let (input, output) = pipes.context("a server has pipes")?;
        let mut client = Self {
            server,
            input,
            output: BufReader::new(output).lines(),
            next: 1,
        };
        let hello = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        });
        client.ask("initialize", &hello).await?;
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.say(&ready).await?;
        Ok(client)
    }

    /// The server's process.
    pub(super) fn pid(&self) -> Option<u32> {
        self.server.id()
    }

    /// Calls a tool, which must succeed.
    pub(super) async fn call(&mut self, tool: &str, args: &Value) -> Result<()> {
        let params = json!({"name": tool, "arguments": args});
        let result = self.ask("tools/call", &params).await?;
        ensure!(result["isError"] != true, "{tool}: {result}");
        Ok(())
    }

    async fn ask(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.next;
        self.next += 1;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&request).await?;
        let line = self.output.next_line().await?;
        let line = line.context("the server has ended")?;
        let mut answer: Value = serde_json::from_str(&line)?;
        ensure!(answer["id"] == id, "not the answer to {id}: {line}");
        Ok(answer["result"].take())
    }

    async fn say(&mut self, message: &Value) -> Result<()> {
        let line = format!("{message}\n");
        self.input.write_all(line.as_bytes()).await?;
        self.input.flush().await?;
        Ok(())
    }
}
