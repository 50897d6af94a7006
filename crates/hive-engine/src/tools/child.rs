//! Programs that tools start: in the workspace, in the sandbox where there is one, without secrets.

use std::{
    io,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::Signal;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    process::{Child, Command},
};
use tokio_util::sync::CancellationToken;

use crate::{
    group::Group,
    sandbox::Hooks,
    tool::{Context, ToolError},
};

/// Output beyond this is read and thrown away.
const MAX_OUTPUT: usize = 4 * 1024 * 1024;
/// From the first signal to the last.
const GRACE: Duration = Duration::from_secs(2);
/// Background jobs may keep the pipes open; they are not waited for longer than this.
const DRAIN: Duration = Duration::from_millis(200);

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

/// How a program ended.
pub(super) enum Ended {
    Exit(ExitStatus),
    TimedOut,
    Interrupted,
}

/// Runs a program to its end, with both of its outputs in one text. What it left running ends with
/// it: there is nobody to look after it.
pub(super) async fn run(
    mut command: Command,
    timeout: Duration,
    cancel: &CancellationToken,
) -> io::Result<(Ended, String)> {
    let mut child = command.spawn()?;
    let group = Group::of(&child);
    let collecting = Collect::start(child.stdout.take(), child.stderr.take());
    // Cancel-safe: whoever drops this has the whole group killed.
    let ended = tokio::select! {
        status = child.wait() => Ended::Exit(status?),
        () = tokio::time::sleep(timeout) => Ended::TimedOut,
        () = cancel.cancelled() => Ended::Interrupted,
    };
    if !matches!(ended, Ended::Exit(_)) {
        stop(&mut child, &group).await;
    }
    drop(group);
    Ok((ended, collecting.finish().await))
}

/// Ends a program: politely, then for good.
async fn stop(child: &mut Child, group: &Group) {
    group.signal(Signal::TERM);
    let waited = tokio::time::timeout(GRACE, child.wait()).await;
    group.signal(Signal::KILL);
    if waited.is_err() {
        drop(child.wait().await);
    }
}

/// Reads both streams into one text as it comes.
struct Collect {
    text: Arc<tokio::sync::Mutex<Vec<u8>>>,
    tasks: tokio::task::JoinSet<()>,
}

impl Collect {
    fn start(
        stdout: Option<impl AsyncRead + Unpin + Send + 'static>,
        stderr: Option<impl AsyncRead + Unpin + Send + 'static>,
    ) -> Self {
        let text = Arc::new(tokio::sync::Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        if let Some(stdout) = stdout {
            tasks.spawn(pump(stdout, Arc::clone(&text)));
        }
        if let Some(stderr) = stderr {
            tasks.spawn(pump(stderr, Arc::clone(&text)));
        }
        Self { text, tasks }
    }

    async fn finish(mut self) -> String {
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // What a background job still writes is not ours.
        drop(tokio::time::timeout(DRAIN, all).await);
        self.tasks.abort_all();
        let bytes = std::mem::take(&mut *self.text.lock().await);
        let text = String::from_utf8_lossy(&bytes);
        text.trim_end_matches('\n').to_owned()
    }
}

async fn pump(mut stream: impl AsyncRead + Unpin, text: Arc<tokio::sync::Mutex<Vec<u8>>>) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => {
                let mut text = text.lock().await;
                let room = MAX_OUTPUT.saturating_sub(text.len());
                text.extend_from_slice(&buffer[..read.min(room)]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        command
    }

    /// Waits until a process that wrote its id there is gone.
    async fn is_gone(file: &Path) {
        let pid: u32 = std::fs::read_to_string(file)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let stat = format!("/proc/{pid}/stat");
        let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z"));
        tokio::time::timeout(LONG, async {
            while lives() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await
        .unwrap();
    }

    #[tokio::test]
    async fn what_a_program_started_ends_with_it_however_that_comes_about() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pid");
        let leaves = format!(
            "sleep 1000 & echo $! > {0}.new; mv {0}.new {0}",
            file.display()
        );
        let none = CancellationToken::new();
        let (ended, text) = run(
            shell(&format!("{leaves}; echo out; echo err >&2")),
            LONG,
            &none,
        )
        .await
        .unwrap();
        assert!(matches!(ended, Ended::Exit(status) if status.success()));
        assert!(text.contains("out") && text.contains("err"), "{text}");
        is_gone(&file).await;

        let waits = format!("{leaves}; wait");
        let (ended, _) = run(shell(&waits), Duration::from_secs(1), &none)
            .await
            .unwrap();
        assert!(matches!(ended, Ended::TimedOut));
        is_gone(&file).await;

        std::fs::remove_file(&file).unwrap();
        let dropped = run(shell(&waits), LONG, &none);
        let seen = async {
            while !file.exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            _ = dropped => panic!("it waits for ever"),
            () = seen => {}
        }
        is_gone(&file).await;
    }

    #[tokio::test]
    async fn output_without_end_is_not_kept() {
        let none = CancellationToken::new();
        let script = format!("head -c {} /dev/zero", MAX_OUTPUT + 100_000);
        let (_, text) = run(shell(&script), LONG, &none).await.unwrap();
        assert_eq!(text.len(), MAX_OUTPUT);
    }
}
