use hive_mcp::toolbox::{Call, Effect, Failure, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Task, deadline, seen_once_written};
use crate::{mcp::Bash, task::TaskId, wire::GetStatus};

/// Says how a task stands (B2).
pub(crate) struct Status;

/// Which task.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The id that run returned: the number in bash-task-ID.
    #[serde(alias = "task_id")]
    id: u64,
    /// How many seconds to wait for its end, 0 to 30; 0 unless given.
    #[serde(default)]
    wait_seconds: u64,
}

impl Tool<Bash> for Status {
    const NAME: &'static str = "status";
    const TITLE: &'static str = "Look at a command";
    const DESCRIPTION: &'static str = "Say how a command that run started stands: its state, exit \
        code, duration and the last 4 KiB of each stream. Use wait_seconds when it should end \
        soon. Do not call this in a loop: a message wakes you when the command has ended.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;
    type Reply = Task;

    async fn call(bash: &Bash, args: Args, call: &Call) -> Result<Task, Failure> {
        let status = GetStatus {
            task: TaskId(args.id),
            wait_seconds: args.wait_seconds,
        };
        let status = bash
            .client()
            .call_idempotent(&status, deadline(args.wait_seconds))
            .await
            .map_err(|error| bash.failure(error))?;
        seen_once_written(bash, call, &status);
        Ok(status.into())
    }

    fn text(task: &Task) -> String {
        task.text()
    }
}
