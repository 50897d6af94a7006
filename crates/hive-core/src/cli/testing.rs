//! A scripted daemon, and commands run against it as the binary would run them.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    sync::{Arc, Mutex},
    thread::JoinHandle,
};

use clap::Parser;
use serde_json::{Value, json};

use super::{Cli, Cmd, Places, out::Out, run_in};

/// What the scripted daemon does with the next request.
pub(super) enum Step {
    /// Answers `{"ok":true,…}` with these fields.
    Reply(Value),
    /// Refuses with this code.
    Refuse(&'static str),
    /// Closes the connection without an answer.
    HangUp,
}

/// A daemon that follows a script and remembers what it was asked.
pub(super) struct FakeHost {
    dir: tempfile::TempDir,
    thread: JoinHandle<Vec<Value>>,
}

impl FakeHost {
    /// Listens in a directory of its own until the script is played.
    pub(super) fn start(script: impl IntoIterator<Item = Step>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("host.sock")).unwrap();
        let script: VecDeque<Step> = script.into_iter().collect();
        let thread = std::thread::spawn(move || play(&listener, script));
        Self { dir, thread }
    }

    /// A daemon with a single answer.
    pub(super) fn replying(reply: Value) -> Self {
        Self::start([Step::Reply(reply)])
    }

    /// Runs a command line against it, at a terminal of 80 columns.
    pub(super) async fn run(self, args: &[&str]) -> Ran {
        let mut ran = run_at(places(self.dir.path()), args, 80).await;
        ran.requests = self.thread.join().unwrap();
        ran
    }
}

/// What a command printed and how it ended.
pub(super) struct Ran {
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) exit: u8,
    pub(super) requests: Vec<Value>,
}

impl Ran {
    /// Stdout as one JSON object.
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap()
    }
}

/// Runs a command line where no daemon is.
pub(super) async fn run_alone(args: &[&str]) -> Ran {
    let dir = tempfile::tempdir().unwrap();
    run_at(places(dir.path()), args, 80).await
}

fn places(root: &std::path::Path) -> Places {
    Places {
        root: root.to_owned(),
        lock: root.join("lock"),
        host_socket: root.join("host.sock"),
        database: root.join("hive.db"),
    }
}

async fn run_at(places: Places, args: &[&str], width: usize) -> Ran {
    let (stdout, stderr) = (Kept::default(), Kept::default());
    let args = std::iter::once("hive-c0re").chain(args.iter().copied());
    let cli = Cli::try_parse_from(args).unwrap();
    let Cmd::Client(command) = cli.command else {
        panic!("not a client command")
    };
    let mut out = Out::into_writers(stdout.clone(), stderr.clone(), cli.json, width);
    let exit = run_in(&mut out, command, &places).await;
    Ran {
        stdout: stdout.text(),
        stderr: stderr.text(),
        exit: exit.map_or(0, |exit| exit as u8),
        requests: Vec::new(),
    }
}

/// A writer whose text can be read while somebody else owns it.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn play(listener: &UnixListener, mut script: VecDeque<Step>) -> Vec<Value> {
    let mut requests = Vec::new();
    while !script.is_empty() {
        let (stream, _) = listener.accept().unwrap();
        serve(&stream, &mut script, &mut requests);
    }
    requests
}

fn serve(mut stream: &UnixStream, script: &mut VecDeque<Step>, requests: &mut Vec<Value>) {
    for line in BufReader::new(stream).lines() {
        let mut request: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let id = request.as_object_mut().unwrap().remove("id");
        requests.push(request);
        let mut reply = match script.pop_front() {
            Some(Step::Reply(mut fields)) => {
                fields["ok"] = true.into();
                fields
            }
            Some(Step::Refuse(code)) => {
                json!({"ok": false, "error": {"code": code, "message": "no", "hint": "try"}})
            }
            Some(Step::HangUp) | None => return,
        };
        reply["id"] = id.into();
        writeln!(stream, "{reply}").unwrap();
        if script.is_empty() {
            return;
        }
    }
}
