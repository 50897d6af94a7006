//! Runs a shell command.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    child::{self, Ended},
    output::fit,
};
use crate::{
    bash,
    paths::Workspace,
    tool::{Access, Context, Output, Permission, Properties, Tool, ToolError, build},
};

const DEFAULT_MS: u64 = 120_000;
const MAX_MS: u64 = 600_000;

#[derive(Deserialize)]
struct Input {
    command: String,
    timeout: Option<f64>,
    #[serde(default)]
    run_in_background: bool,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "Bash",
        Permission::Execute,
        "Runs a command with bash in the working directory and returns its output. Every call is a \
         new shell. The time-out is two minutes unless given (at most ten). Use Read, Grep, Glob and \
         Edit rather than cat, grep, find and sed.",
        json!({"type": "object", "required": ["command"], "additionalProperties": false, "properties": {
            "command": {"type": "string", "description": "The command"},
            "timeout": {"type": "number", "description": "Milliseconds, at most 600000"},
            "description": {"type": "string", "description": "What it does, in a few words"},
            "run_in_background": {"type": "boolean", "description": "Do not wait; needs the background daemon"},
        }}),
    )
    .behaves(behaves)
    .touches(touches)
    .run(run)
}

fn touches(input: &Input, workspace: &Workspace) -> Result<Vec<Access>, ToolError> {
    if input.command.trim().is_empty() {
        return Err(ToolError::tell("The command is empty."));
    }
    if input.command.contains('\0') {
        return Err(ToolError::tell("The command contains a NUL byte."));
    }
    let judgement = bash::judge(&input.command, workspace.cwd());
    Ok(vec![Access::Command(Box::new(judgement))])
}

/// A command that only looks may run beside others.
fn behaves(input: &Input) -> Properties {
    let judgement = bash::judge(&input.command, std::path::Path::new("/"));
    let read_only = judgement.doubts.is_empty()
        && judgement.commands.iter().all(|command| {
            command.writes.is_empty()
                && matches!(bash::safety(command), bash::Safety::ReadOnly { .. })
        });
    Properties {
        read_only,
        destructive: !read_only,
        concurrency_safe: read_only,
    }
}

async fn run(input: Input, context: Context) -> Result<Output, ToolError> {
    if input.run_in_background {
        let Some(daemon) = &context.background else {
            return Err(ToolError::tell(
                "There is no background daemon here: what a turn starts ends with it. Run the \
                 command in the foreground, or with a time-out.",
            ));
        };
        return daemon
            .run(
                json!({"cmd": input.command, "wait_seconds": 0}),
                context.clone(),
            )
            .await;
    }
    let timeout = input
        .timeout
        .unwrap_or(DEFAULT_MS as f64)
        .clamp(1.0, MAX_MS as f64);
    let timeout = Duration::from_millis(timeout as u64);
    let hooks = context.sandbox.remember(context.workspace.roots());
    let words = ["bash", "--noprofile", "--norc", "-c", &input.command];
    let shell = child::command(words.map(str::to_owned).into(), &context)?;
    let (ended, mut text) = child::run(shell, timeout, &context.cancel)
        .await
        .map_err(|error| ToolError::tell(format!("bash could not be started: {error}")))?;
    child::put_back(hooks, &mut text);
    Ok(report(&input.command, &ended, timeout, &text, &context))
}

/// Programs that say "nothing found" with exit code 1.
const ONE_IS_FINE: &[&str] = &["grep", "rg", "egrep", "fgrep", "find", "diff", "test", "["];

fn report(
    command: &str,
    ended: &Ended,
    timeout: Duration,
    text: &str,
    context: &Context,
) -> Output {
    let body = fit(text, &context.spill_dir);
    let (content, is_error) = match ended {
        Ended::Exit(status) => match status.code() {
            Some(0) => (body, false),
            Some(1) if is_fine(command) => (body, false),
            Some(code) => (format!("Exit code {code}\n{body}"), true),
            None => (
                format!("The command was ended by a signal ({status})\n{body}"),
                true,
            ),
        },
        Ended::TimedOut => {
            let seconds = timeout.as_secs_f64();
            (
                format!("Exit code 143\nCommand timed out after {seconds}s\n{body}"),
                true,
            )
        }
        Ended::Interrupted => (
            format!("[Request interrupted by user for tool use]\n{body}"),
            true,
        ),
    };
    let structured: Value = json!({"stdout": body_of(&content), "stderr": "",
        "interrupted": !matches!(ended, Ended::Exit(_)), "isImage": false, "noOutputExpected": false});
    let mut output = Output::text(content, structured);
    output.is_error = is_error;
    output
}

fn body_of(content: &str) -> &str {
    content
        .split_once('\n')
        .filter(|(head, _)| head.starts_with("Exit code"))
        .map_or(content, |(_, body)| body)
}

fn is_fine(command: &str) -> bool {
    let judgement = bash::judge(command, std::path::Path::new("/"));
    let last = judgement.commands.last().and_then(bash::Simple::base_name);
    last.is_some_and(|name| ONE_IS_FINE.contains(&name))
}
