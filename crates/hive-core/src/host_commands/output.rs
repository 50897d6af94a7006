//! `output`: what an agent's harness wrote to stdout and stderr.

use std::sync::Arc;

use hive_wire::{
    ErrorCode, WireError,
    host::{Output, ReadOutput},
};

use super::Host;

/// How much is read unless told otherwise.
const DEFAULT: u32 = 64 * 1024;
/// The most that is read: with every byte escaped it still fits into a line.
const MOST: u32 = 128 * 1024;

pub(super) async fn run(host: Arc<Host>, command: ReadOutput) -> Result<Output, WireError> {
    let (agent, _) = host.find(command.name).await?;
    let max = command.max_bytes.unwrap_or(DEFAULT).min(MOST);
    let output = host.supervisor.output(&agent, max as usize).await;
    let output = output.map_err(|error| {
        WireError::new(ErrorCode::Storage, error.to_string()).hint("see the daemon's log")
    })?;
    Ok(Output {
        output: String::from_utf8_lossy(&output).into_owned(),
    })
}
