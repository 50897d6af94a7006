//! The cage of bubblewrap.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// How long the trial may take.
const TRIAL: Duration = Duration::from_secs(10);

/// The program, if it is there and may make the namespaces that it needs.
pub(super) fn find(path: Option<&str>, allow_network: bool) -> Result<PathBuf, String> {
    let program = path
        .unwrap_or("/usr/bin:/bin")
        .split(':')
        .filter(|dir| dir.starts_with('/'))
        .map(|dir| Path::new(dir).join("bwrap"))
        .find(|program| program.is_file())
        .ok_or("bubblewrap (bwrap) is not installed")?;
    let words = words(&program, Path::new("/"), &[], allow_network);
    let trial = Command::new(&program)
        .args(&words[1..])
        .arg("true")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut trial = trial.map_err(|error| format!("bubblewrap does not start: {error}"))?;
    let deadline = Instant::now() + TRIAL;
    loop {
        match trial.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(program),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            _ => break,
        }
    }
    // It may have ended by itself.
    trial.kill().ok();
    trial.wait().ok();
    Err("bubblewrap may not make namespaces here".to_owned())
}

/// What goes before the command.
pub(super) fn words(
    program: &Path,
    cwd: &Path,
    roots: &[PathBuf],
    allow_network: bool,
) -> Vec<String> {
    let mut args = vec![program.to_string_lossy().into_owned()];
    let always = [
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
        "--unshare-pid",
        "--unshare-ipc",
        "--die-with-parent",
        "--new-session",
    ];
    args.extend(always.map(str::to_owned));
    if !allow_network {
        // Sockets of the system's services lie there: they are a network too.
        args.extend(["--unshare-net", "--tmpfs", "/run"].map(str::to_owned));
    }
    for root in roots {
        let root = root.to_string_lossy();
        args.extend(["--bind".into(), root.to_string(), root.to_string()]);
        for part in [".git/hooks", ".git/config", ".claude"] {
            let path = format!("{root}/{part}");
            args.extend(["--ro-bind-try".into(), path.clone(), path]);
        }
    }
    args.extend(["--chdir".into(), cwd.to_string_lossy().into_owned()]);
    args.push("--".into());
    args
}
