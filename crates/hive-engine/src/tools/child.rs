//! Programs that tools start: in the workspace, in the sandbox where there is one, without secrets.

use std::{path::Path, process::Stdio};

use tokio::process::Command;

use crate::{
    sandbox::Hooks,
    tool::{Context, ToolError},
};

/// A program with its arguments, ready to be started.
pub(super) fn command(words: Vec<String>, context: &Context) -> Result<Command, ToolError> {
    let (cwd, roots) = (context.workspace.cwd(), context.workspace.roots());
    let own_tmp = context.sandbox.own_tmp(&context.spill_dir);
    let tmp = own_tmp.as_deref().unwrap_or(Path::new("/tmp"));
    if own_tmp.is_some() {
        std::fs::create_dir_all(tmp)
            .map_err(|error| ToolError::tell(format!("{}: {error}", tmp.display())))?;
    }
    let Some(mut words) = context.sandbox.words(words, cwd, roots, tmp) else {
        return Err(ToolError::tell(
            "Commands must run in a sandbox, and none is available (install bubblewrap).",
        ));
    };
    let mut command = Command::new(words.remove(0));
    command
        .args(words)
        .current_dir(cwd)
        .env_clear()
        .envs(context.env.iter())
        .envs(own_tmp.iter().map(|tmp| ("TMPDIR", tmp)))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A group of its own, so that all it started can be ended with it.
        .process_group(0)
        .kill_on_drop(true);
    Ok(command)
}

/// Puts back what decides which code `git` runs, and says so in the output.
pub(super) fn put_back(hooks: Option<Hooks>, text: &mut String) {
    let changed = hooks.map(|hooks| hooks.restore()).unwrap_or_default();
    if !changed.is_empty() {
        let names: Vec<_> = changed
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        text.push_str(&format!(
            "\n[The sandbox put back what decides which code git runs: {}]",
            names.join(", ")
        ));
    }
}
