//! Git without a shell: each verb is a tool with its own permission.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    child::{self, Ended},
    output::fit,
};
use crate::{
    paths::Workspace,
    tool::{Access, Context, Output, Permission, Tool, ToolError, build},
};

/// How long git may take; a push waits for others.
const TIME: Duration = Duration::from_secs(600);

#[derive(Deserialize)]
struct Paths {
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    staged: bool,
    revision: Option<String>,
}

#[derive(Deserialize)]
struct Log {
    #[serde(default = "twenty")]
    count: u32,
    revision: Option<String>,
}

fn twenty() -> u32 {
    20
}

#[derive(Deserialize)]
struct Commit {
    message: String,
    #[serde(default)]
    paths: Vec<String>,
}

#[derive(Deserialize)]
struct Checkout {
    branch: String,
    #[serde(default)]
    create: bool,
}

#[derive(Deserialize)]
struct Push {
    #[serde(default = "origin")]
    remote: String,
    branch: Option<String>,
}

fn origin() -> String {
    "origin".to_owned()
}

fn schema(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "required": required, "properties": properties, "additionalProperties": false})
}

pub(super) fn tools() -> Vec<Arc<dyn Tool>> {
    let paths =
        json!({"type": "array", "items": {"type": "string"}, "description": "Only these paths"});
    vec![
        build::<Paths>("git_status", Permission::Read, "Shows what changed in the git repository.",
            schema(&[], json!({"paths": paths})))
            .read_only()
            .touches(reads)
            .run(|input, context| git(vec!["status".into(), "--short".into(), "--branch".into()], input.paths, context)),
        build::<Paths>("git_diff", Permission::Read, "Shows changes in the git repository as a unified diff.",
            schema(&[], json!({"paths": paths, "staged": {"type": "boolean"}, "revision": {"type": "string"}})))
            .read_only()
            .touches(reads)
            .run(|input, context| async move {
                let mut args = vec!["diff".to_owned(), "--no-ext-diff".into(), "--no-textconv".into()];
                if input.staged {
                    args.push("--cached".into());
                }
                args.extend(input.revision.map(revision).transpose()?);
                git(args, input.paths, context).await
            }),
        build::<Log>("git_log", Permission::Read, "Shows the latest commits of the git repository.",
            schema(&[], json!({"count": {"type": "integer"}, "revision": {"type": "string"}})))
            .read_only()
            .run(|input, context| async move {
                let mut args = vec!["log".to_owned(), "--no-ext-diff".into(), format!("-{}", input.count.clamp(1, 1000)), "--stat".into()];
                args.extend(input.revision.map(revision).transpose()?);
                git(args, Vec::new(), context).await
            }),
        build::<Commit>("git_commit", Permission::Execute, "Commits the given paths, or what is staged when none are given.",
            schema(&["message"], json!({"message": {"type": "string"}, "paths": paths})))
            .undoable()
            .run(|input, context| async move {
                if !input.paths.is_empty() {
                    git(vec!["add".into()], input.paths, context.clone()).await?;
                }
                git(vec!["commit".into(), "-m".into(), input.message], Vec::new(), context).await
            }),
        build::<Checkout>("git_checkout", Permission::Execute, "Switches to a branch, or creates one and switches to it.",
            schema(&["branch"], json!({"branch": {"type": "string"}, "create": {"type": "boolean"}})))
            .run(|input, context| async move {
                let mut args = vec!["switch".to_owned()];
                if input.create {
                    args.push("--create".into());
                }
                args.push(revision(input.branch)?);
                git(args, Vec::new(), context).await
            }),
        build::<Push>("git_push", Permission::Execute, "Pushes a branch to a remote; the present one unless given.",
            schema(&[], json!({"remote": {"type": "string"}, "branch": {"type": "string"}})))
            .run(|input, context| async move {
                let mut args = vec!["push".to_owned(), revision(input.remote)?];
                args.push(input.branch.map_or_else(|| Ok("HEAD".into()), revision)?);
                git(args, Vec::new(), context).await
            }),
    ]
}

/// A name that git cannot take for an option, a URL or a helper program.
fn revision(name: String) -> Result<String, ToolError> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || "._/-~^@{}".contains(c);
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_legal) {
        return Err(ToolError::tell(format!(
            "{name:?} is not a name of a branch, remote or revision."
        )));
    }
    Ok(name)
}

/// What a repository may not decide: programs that a mere look would start, and pagers.
const SETTINGS: [&str; 4] = [
    "core.fsmonitor=false",
    "core.pager=cat",
    "log.showSignature=false",
    "protocol.ext.allow=never",
];

async fn git(args: Vec<String>, paths: Vec<String>, context: Context) -> Result<Output, ToolError> {
    let mut words = vec!["git".to_owned()];
    words.extend(
        SETTINGS
            .iter()
            .flat_map(|setting| ["-c".to_owned(), (*setting).to_owned()]),
    );
    // These take no paths.
    let takes_paths = !matches!(args[0].as_str(), "commit" | "switch" | "push");
    words.extend(args);
    if takes_paths {
        words.push("--".into());
        words.extend(paths);
    }
    let hooks = context.sandbox.remember(context.workspace.roots());
    let mut command = child::command(words, &context)?;
    command.env("GIT_TERMINAL_PROMPT", "0");
    let (ended, mut text) = child::run(command, TIME, &context.cancel)
        .await
        .map_err(|error| ToolError::tell(format!("git could not be started: {error}")))?;
    child::put_back(hooks, &mut text);
    let status = match ended {
        Ended::Exit(status) => status,
        Ended::TimedOut => {
            let minutes = TIME.as_secs() / 60;
            let words = format!("git did not end within {minutes} minutes\n{text}");
            return Err(ToolError::tell(words));
        }
        Ended::Interrupted => return Err(ToolError::Interrupted),
    };
    let text = fit(text.trim_end(), &context.spill_dir);
    let is_error = !status.success();
    let text = match (is_error, text.is_empty()) {
        (true, _) => format!("Exit code {}\n{text}", status.code().unwrap_or(-1)),
        (false, true) => "(no output)".to_owned(),
        (false, false) => text,
    };
    Ok(Output {
        is_error,
        ..Output::text(text.clone(), json!({"stdout": text, "stderr": ""}))
    })
}

/// Outside of a repository `git diff` compares any two files, so that paths are judged as reads.
fn reads(input: &Paths, workspace: &Workspace) -> Result<Vec<Access>, ToolError> {
    let places = input.paths.iter().map(|path| workspace.place(path));
    places.map(|place| Ok(Access::Read(place?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_not_options_or_helpers() {
        for bad in [
            "",
            "-f",
            "--upload-pack=x",
            "ext::sh -c id",
            "https://evil.test/x",
            "a b",
            "a;b",
        ] {
            assert!(revision(bad.into()).is_err(), "{bad}");
        }
        for good in ["main", "feature/x", "HEAD~2", "v1.0^{commit}"] {
            assert!(revision(good.into()).is_ok(), "{good}");
        }
    }
}
