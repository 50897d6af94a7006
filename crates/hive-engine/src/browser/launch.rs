//! Finding and starting Chromium.

use std::{
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::{Child, Command};

use super::Settings;
use crate::tool::ToolError;

/// What it may be called.
const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

/// It wants the pipes of its remote control at 3 and 4; the shell puts ours there.
const WITH_PIPES: &str = r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null"#;

/// The browser on a search path.
pub(super) fn find(path: Option<&str>) -> Option<PathBuf> {
    let dirs = path.unwrap_or("/usr/bin:/bin").split(':');
    let mut places = dirs
        .filter(|dir| dir.starts_with('/'))
        .flat_map(|dir| NAMES.map(|name| Path::new(dir).join(name)));
    places.find(|place| place.is_file())
}

/// A running browser and its profile.
pub(super) struct Chromium {
    pub(super) child: Child,
    pub(super) profile: PathBuf,
}

/// Starts it with an empty profile.
pub(super) fn start(settings: &Settings, window: (u32, u32)) -> Result<Chromium, ToolError> {
    let program = find(settings.env.get("PATH").map(String::as_str)).ok_or_else(|| {
        ToolError::tell("There is no browser here: install chromium, or use WebFetch.")
    })?;
    let profile = &settings.profile;
    super::remove(profile);
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(profile)
        .map_err(|error| ToolError::tell(format!("{}: {error}", profile.display())))?;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", WITH_PIPES, "sh"]).arg(program);
    if rustix::process::geteuid().is_root() {
        // Its own sandbox refuses to run for root.
        command.arg("--no-sandbox");
    }
    let child = command
        .args([
            "--headless=new",
            "--remote-debugging-pipe",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-extensions",
            "--disable-sync",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-default-apps",
            "--no-first-run",
            "--no-default-browser-check",
            "--mute-audio",
            "--password-store=basic",
        ])
        .arg(format!("--window-size={},{}", window.0, window.1))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("about:blank")
        .env_clear()
        .envs(settings.env.iter())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| ToolError::tell(format!("The browser could not be started: {error}")))?;
    Ok(Chromium {
        child,
        profile: profile.clone(),
    })
}
