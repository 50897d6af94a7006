//! The MCP server `bash`: a thin bridge from one engine process to the daemon.

use std::path::{Path, PathBuf};

use hive_mcp::{
    groups::{Gate, Grants},
    journal::Journal,
    server::Server,
    toolbox::{Checked, Context, Failure, Toolbox},
};
use hive_wire::client::{Client, ClientError, Options as ClientOptions};

use crate::tools;

/// The name of the server: its tools are `mcp__bash__…` to the engine.
pub const NAME: &str = "bash";

const INSTRUCTIONS: &str = "Shell commands, in the background: run starts one and waits a moment \
    for its end; one that takes longer goes on after your turn and wakes you when it has ended.";

/// What the tools of `bash` work on.
pub struct Bash {
    client: Client,
    socket: PathBuf,
}

impl Bash {
    /// The daemon at `socket`.
    pub fn new(socket: &Path) -> Self {
        Self {
            client: Client::new(socket, ClientOptions::default()),
            socket: socket.to_path_buf(),
        }
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// What the model is told when the daemon did not do it.
    pub(crate) fn failure(&self, error: ClientError) -> Failure {
        match error {
            ClientError::Unreachable { .. } => Failure::new(
                format!(
                    "The background shell does not run: nobody listens at {}",
                    self.socket.display()
                ),
                "try again in a minute; if it stays like this, tell your parent or the operator",
            ),
            ClientError::Lost | ClientError::TimedOut { .. } => Failure::new(
                "The background shell went away before it answered, so the command may or may not \
                 have been started",
                "look with status, or end the turn: you are told about every command that was \
                 started",
            ),
            error => error.into(),
        }
    }
}

impl Context for Bash {
    /// Its tools are everybody's (B5).
    async fn granted(&self) -> Grants {
        Grants::default()
    }

    async fn refuses(&self, _: Gate, _: Checked) -> bool {
        false
    }
}

/// The tools of the server.
pub fn toolbox() -> Toolbox<Bash> {
    Toolbox::default()
        .with::<tools::Run>()
        .with::<tools::Status>()
}

/// The server for the daemon at `socket`, with its journal in `harness_dir`.
pub fn server(socket: &Path, harness_dir: &Path) -> Server<Bash> {
    let journal = Journal::new(NAME, Some(harness_dir));
    Server::new(NAME, INSTRUCTIONS, toolbox(), Bash::new(socket), journal)
}
