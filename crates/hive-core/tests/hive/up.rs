//! `hive-c0re up`: a new hive that works at once, and stops what it started.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use hive_testkit::hive::stop_agents;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::{
    crew::{lives, write_harness},
    peer::{BINARY, eventually, run},
};

/// A place where the hive's programs lie beside each other, some of them made up.
pub(crate) struct Place {
    dir: TempDir,
    binary: PathBuf,
}

impl Place {
    /// The daemon alone.
    fn bare() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let binary = bin.join("hive-c0re");
        let place = Self { dir, binary };
        place.put(Path::new(BINARY));
        place
    }

    /// Everything that is shipped.
    pub(crate) fn shipped() -> Self {
        let place = Self::bare();
        let programs = hive_testkit::engine::beside_the_daemon().unwrap();
        programs.iter().for_each(|program| place.put(program));
        place
    }

    /// A harness that is a script, and an engine that nobody runs.
    fn new() -> Self {
        let place = Self::bare();
        let bin = place.binary.parent().unwrap();
        write_harness(bin);
        fs::write(
            bin.join("ruth.sh"),
            "PATH=/usr/bin:/bin; env > env; echo $$ > pid.new; mv pid.new pid; \
                   while :; do sleep 1000 & wait; done",
        )
        .unwrap();
        place.program("hive-engine", "#!/bin/sh\n");
        place
    }

    fn put(&self, program: &Path) {
        let here = self.binary.with_file_name(program.file_name().unwrap());
        fs::hard_link(program, &here)
            .or_else(|_| fs::copy(program, &here).map(|_| ()))
            .unwrap();
    }

    fn program(&self, name: &str, text: &str) {
        let file = self.binary.with_file_name(name);
        fs::write(&file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// A model that listens, and writes down that it does.
    fn rehearsal(&self) {
        let text = "#!/bin/sh\n[ \"$*\" = \"serve --port $3 --scenario tour\" ] || exit 64\n\
                    echo $$ > pid\nexec socat TCP-LISTEN:$3,bind=127.0.0.1,fork,reuseaddr \
                    SYSTEM:true\n";
        let text = text.replace("exec socat", "PATH=/usr/bin:/bin exec socat");
        self.program("hive-rehearsal", &text);
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.dir.path().join("root")
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg("--root").arg(self.root());
        command
    }

    fn up(&self) -> Up {
        // No `claude` of this machine, nor anything else of it.
        self.up_with("/nonexistent")
    }

    /// Starts it with this search path and no key.
    pub(crate) fn up_with(&self, path: &str) -> Up {
        let mut command = self.command();
        command.args(["up", "--port", "0"]);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            let is_key = ["ANTHROPIC_", "CLAUDE", "OPENAI_"];
            if is_key.iter().any(|start| text.starts_with(start)) {
                command.env_remove(&name);
            }
        }
        let mut child = command
            .env("PATH", path)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("--help") {
            let read = lines.read_line(&mut greeting).unwrap();
            assert!(read > 0, "it ended: {greeting}");
        }
        Up {
            child,
            greeting,
            _rest: Box::new(lines),
        }
    }

    pub(crate) fn list(&self) -> Value {
        let said = run(self.command().args(["--json", "list"]), "");
        serde_json::from_str(&said.stdout).unwrap()
    }

    fn number(&self, path: impl AsRef<Path>) -> i32 {
        let path = self.root().join("state").join(path);
        eventually("it has started", || path.exists());
        fs::read_to_string(path).unwrap().trim().parse().unwrap()
    }

    fn ruth(&self) -> i32 {
        self.number("agents/ruth/state/pid")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What a test left running.
        stop_agents(&self.root()).unwrap();
    }
}

pub(crate) struct Up {
    child: Child,
    pub(crate) greeting: String,
    _rest: Box<dyn Read>,
}

impl Up {
    pub(crate) fn end(mut self, with: Signal) -> Option<i32> {
        signal(self.child.id().cast_signed(), with);
        self.child.wait().unwrap().code()
    }
}

/// A test that failed leaves nothing running.
impl Drop for Up {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            signal(self.child.id().cast_signed(), Signal::TERM);
            self.child.wait().ok();
        }
    }
}

fn signal(pid: i32, signal: Signal) {
    // It may have ended by itself.
    kill_process(Pid::from_raw(pid).unwrap(), signal).ok();
}

#[test]
fn c8_up_begins_with_a_rehearsed_root_agent_and_stops_what_it_started() {
    let place = Place::new();
    place.rehearsal();
    let up = place.up();
    for words in [
        "MODEL IS REHEARSED",
        "WITHOUT ISOLATION",
        "send ruth 'hello'",
    ] {
        assert!(up.greeting.contains(words), "{}", up.greeting);
    }
    let ruth = place.ruth();
    let model = place.number("rehearsal/pid");
    assert!(lives(ruth) && lives(model));
    let list = place.list();
    assert_eq!(list["rehearsed"], true);
    assert_eq!(list["agents"][0]["name"], "ruth");
    let env = fs::read_to_string(place.root().join("state/agents/ruth/state/env")).unwrap();
    for line in [
        "HIVE_ENGINE_ENV_ANTHROPIC_API_KEY=the-hive-adds-the-key\n",
        "HIVE_GATEWAY_APIS=anthropic\n",
        "HIVE_ROLE=manager\n",
        "/bin/hive-engine\n",
    ] {
        assert!(env.contains(line), "{line}: {env}");
    }
    assert_eq!(up.end(Signal::INT), Some(0));
    assert!(!lives(ruth) && !lives(model));

    fs::remove_file(place.root().join("state/agents/ruth/state/pid")).unwrap();
    let up = place.up();
    let again = place.ruth();
    assert!(lives(again), "she is wanted still");
    assert_eq!(place.list()["agents"][0]["unread"], 1, "T25");
    assert_eq!(up.end(Signal::TERM), Some(0));
    assert!(!lives(again));
}

#[test]
fn c13_a_killed_up_takes_the_rehearsal_along_and_leaves_the_agents() {
    let place = Place::new();
    place.rehearsal();
    let up = place.up();
    let (ruth, model) = (place.ruth(), place.number("rehearsal/pid"));
    up.end(Signal::KILL);
    eventually("the model is gone", || !lives(model));
    assert!(lives(ruth));
    let up = place.up();
    eventually("she is adopted", || {
        place.list()["agents"][0]["pid"] == ruth
    });
    assert_eq!(up.end(Signal::INT), Some(0));
    assert!(!lives(ruth));
}

#[test]
fn c8_without_a_rehearsal_or_with_a_key_nothing_is_rehearsed() {
    let place = Place::new();
    let up = place.up();
    assert!(!up.greeting.contains("REHEARSED"), "{}", up.greeting);
    assert_eq!(up.end(Signal::INT), Some(0));

    place.rehearsal();
    let config = "[hive]\nroot_agent = \"\"\n[engine.env]\nANTHROPIC_API_KEY = \"k\"\n";
    fs::write(place.root().join("hive.toml"), config).unwrap();
    let up = place.up();
    assert!(!up.greeting.contains("REHEARSED"), "{}", up.greeting);
    assert_eq!(place.list()["rehearsed"], false);
    assert_eq!(up.end(Signal::INT), Some(0));
}

#[test]
fn c8_no_root_agent_is_made_where_none_is_wanted() {
    let place = Place::new();
    fs::create_dir(place.root()).unwrap();
    fs::write(
        place.root().join("hive.toml"),
        "[hive]\nroot_agent = \"\"\n",
    )
    .unwrap();
    let up = place.up();
    assert_eq!(place.list()["agents"], Value::Array(Vec::new()));
    assert!(up.greeting.contains("spawn ada"), "{}", up.greeting);
    assert_eq!(up.end(Signal::INT), Some(0));
}
