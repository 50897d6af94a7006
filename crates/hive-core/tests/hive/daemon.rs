//! A daemon on a directory that the test prepared: one that may well refuse to start.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use hive_testkit::hive::stop_agents;
use serde_json::json;

use crate::peer::{BINARY, Peer, Said, eventually, ok, run};

/// A daemon that runs until it is dropped, with the agents that it started.
pub(crate) struct Daemon {
    child: Child,
    root: PathBuf,
}

impl Daemon {
    /// Starts a daemon and waits until it answers.
    pub(crate) fn start(root: &Path) -> Self {
        Self::start_as(root, &mut Command::new(BINARY))
    }

    /// The same with a command that leads to the binary.
    pub(crate) fn start_as(root: &Path, command: &mut Command) -> Self {
        let log = std::env::temp_dir().join(format!("hive-test-{}.log", std::process::id()));
        let output = File::create(&log).unwrap();
        let child = serve(command, root)
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let mut daemon = Self {
            child,
            root: root.to_path_buf(),
        };
        let socket = root.join("run/host.sock");
        eventually("the daemon answers", || {
            let ended = daemon.child.try_wait().unwrap();
            assert_eq!(ended, None, "{}", fs::read_to_string(&log).unwrap());
            hive_wire::socket::reachable(&socket)
                .is_ok_and(|path| std::os::unix::net::UnixStream::connect(path).is_ok())
        });
        ok(Peer::connect(&socket).ask(&json!({"cmd":"info"})));
        fs::remove_file(log).unwrap();
        daemon
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        stop_agents(&self.root).unwrap();
    }
}

/// Starts a daemon that cannot start: what it says. One that does start hangs the test.
pub(crate) fn refused(root: &Path) -> Said {
    refused_as(root, &mut Command::new(BINARY))
}

/// The same with a command that leads to the binary.
pub(crate) fn refused_as(root: &Path, command: &mut Command) -> Said {
    let said = run(serve(command, root), "");
    assert_eq!(said.code, 1, "{}", said.stderr);
    assert!(!said.stderr.contains("panicked"), "{}", said.stderr);
    said
}

fn serve<'c>(command: &'c mut Command, root: &Path) -> &'c mut Command {
    command
        .arg("--root")
        .arg(root)
        .args(["serve", "--port", "0"])
        .env_remove("HIVE_ROOT")
        .env_remove("XDG_RUNTIME_DIR")
}
