use hive_mcp::toolbox::{Call, Effect, Failure, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Task, deadline, seen_once_written};
use crate::{mcp::Bash, wire};

/// Starts a shell command (B1).
pub(crate) struct Run;

/// What to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The command, as `sh -c` takes it. It runs in your state directory, without a terminal and
    /// with no input.
    cmd: String,
    /// End the command and everything it started after so many seconds; no limit unless given.
    #[serde(default)]
    #[schemars(range(min = 1))]
    timeout_secs: Option<u64>,
    /// How many seconds to wait for its end, 0 to 30; 3 unless given. With 0 this returns at once.
    #[serde(default = "three")]
    wait_seconds: u64,
}

fn three() -> u64 {
    3
}

impl Tool<Bash> for Run {
    const NAME: &'static str = "run";
    const TITLE: &'static str = "Run a shell command";
    const DESCRIPTION: &'static str = "Run a shell command. When it ends within wait_seconds, you \
        get its exit code and the end of its output. Otherwise it goes on in the background, also \
        after your turn, and a message from bash-task-<id> wakes you when it has ended: do other \
        work or end the turn, and do not poll for it. All output is in the files that are named. \
        What the command leaves running (with & or as a daemon) is ended with it, so run servers \
        as tasks of their own. Each command starts in your state directory with a fresh \
        environment; cd and export do not last.";
    const EFFECT: Effect = Effect::Breaks;
    type Args = Args;
    type Reply = Task;

    async fn call(bash: &Bash, args: Args, call: &Call) -> Result<Task, Failure> {
        let run = wire::Run {
            script: args.cmd,
            timeout_secs: args.timeout_secs,
            wait_seconds: args.wait_seconds,
        };
        let status = bash
            .client()
            .call_within(&run, deadline(args.wait_seconds))
            .await
            .map_err(|error| bash.failure(error))?;
        seen_once_written(bash, call, &status);
        let mut task = Task::from(status);
        if !task.state.is_final() {
            // Engines show the model the structured answer or the text: it has to be in both.
            task.summary = format!(
                "task started: id={}; it goes on in the background, and a message from \
                 bash-task-{} comes when it has ended",
                task.id, task.id
            );
        }
        Ok(task)
    }

    fn text(task: &Task) -> String {
        if task.state.is_final() {
            return task.text();
        }
        format!("{}\n{}", task.summary, task.output())
    }
}
