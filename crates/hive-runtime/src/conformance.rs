//! The promises of [`Runtime`], checked against any runtime.
//!
//! A runtime joins by a [`Subject`]; [`PROMISES`] is the suite, one function per promise. Agents in
//! it are shell scripts that tell what they do through a pipe in their state directory: the pipe
//! ends exactly when the last process that inherited it is gone, wherever it ran.

mod user;
mod witness;

use std::{
    fs,
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    sync::Arc,
    time::Duration,
};

use hive_wire::AgentName;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub use self::{user::run_as_user, witness::Witness};
use crate::{AgentSpec, Exit, Runtime, RuntimeError, State};

/// Longer than anything takes that works, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A runtime under test, on directories of its own.
pub trait Subject {
    /// A handle on the runtime, as a daemon that has just started makes one.
    fn handle(&self) -> Arc<dyn Runtime>;

    /// An agent that runs this shell script, with `LOUD=1` and a `PATH` in its environment, and
    /// with directories that exist.
    fn agent(&self, name: &str, script: &str) -> AgentSpec;
}

/// One promise.
pub type Promise = fn(&dyn Subject);

/// Every promise, by name.
pub const PROMISES: &[(&str, Promise)] = &[
    ("starting_twice_is_starting_once", starting_twice),
    ("a_stop_asks_first", stop_asks_first),
    ("a_stop_insists", stop_insists),
    ("stopping_is_idempotent", stopping_is_idempotent),
    ("a_stop_leaves_nothing_behind", stop_leaves_nothing),
    ("an_end_leaves_nothing_behind", end_leaves_nothing),
    ("another_daemon_adopts_it", adoption),
    ("its_end_is_told_and_kept", end_is_told),
    ("nothing_is_inherited", nothing_is_inherited),
    ("output_is_kept_within_bounds", output_is_kept),
    ("what_cannot_run_leaves_nothing", what_cannot_run),
    ("agents_are_told_apart", agents_are_told_apart),
    ("credentials_are_an_agents_own", credentials_are_its_own),
];

/// Says that it is there, then waits without end.
const WAITS: &str = "echo ready >&9; while :; do sleep 1000 & wait; done";

fn name(text: &str) -> AgentName {
    text.parse().expect("a legal name")
}

fn is_running(runtime: &dyn Runtime, agent: &str) -> bool {
    let instance = runtime.inspect(&name(agent)).expect("it can be known");
    instance.is_some_and(|instance| instance.pid().is_some())
}

/// Waits until a descriptor of [`Runtime::watch`] says that the agent has ended.
///
/// # Panics
/// When it does not say so in time.
pub fn await_end(watched: OwnedFd) {
    let patience = Timespec::try_from(PATIENCE).expect("a minute fits");
    let ended = poll(&mut [PollFd::new(&watched, PollFlags::IN)], Some(&patience));
    assert_eq!(ended, Ok(1), "its end was not told");
}

fn starting_twice(subject: &dyn Subject) {
    let runtime = subject.handle();
    let mut spec = subject.agent("ada", WAITS);
    spec.generation = 7;
    let witness = Witness::of(&spec);
    let first = runtime.start(&spec).expect("it starts");
    assert_eq!((&first.name, first.generation), (&spec.name, 7));
    witness.hears("ready");
    spec.generation = 8;
    let second = runtime.start(&spec).expect("it runs already");
    assert_eq!(second, first, "the one that runs, as it was started");
    assert_eq!(
        runtime.list().expect("a list"),
        std::slice::from_ref(&first)
    );
    assert_eq!(runtime.inspect(&spec.name).expect("known"), Some(first));
    runtime.stop(&spec.name, PATIENCE).expect("it stops");
    witness.is_alone();
    assert_eq!(runtime.list().expect("a list"), []);
    let witness = Witness::again(&spec);
    let third = runtime.start(&spec).expect("it starts again");
    assert_eq!(third.generation, 8);
    witness.hears("ready");
    runtime.stop(&spec.name, Duration::ZERO).expect("it stops");
    witness.is_alone();
}

fn stop_asks_first(subject: &dyn Subject) {
    let runtime = subject.handle();
    let script = "trap 'echo asked >&9; exit 3' TERM; echo ready >&9; \
                  while :; do sleep 1000 & wait; done";
    let spec = subject.agent("ada", script);
    let witness = Witness::of(&spec);
    runtime.start(&spec).expect("it starts");
    witness.hears("ready");
    runtime.stop(&spec.name, PATIENCE).expect("it stops");
    witness.hears("asked");
    witness.is_alone();
    let ended = runtime.inspect(&spec.name).expect("known").expect("it ran");
    assert_eq!(ended.state, State::Ended(Exit::Code(3)));
}

fn stop_insists(subject: &dyn Subject) {
    let runtime = subject.handle();
    let script =
        "trap '' TERM INT HUP USR1; echo ready >&9; while :; do sleep 1000 9>&9 & wait; done";
    let spec = subject.agent("ada", script);
    let witness = Witness::of(&spec);
    runtime.start(&spec).expect("it starts");
    witness.hears("ready");
    runtime
        .stop(&spec.name, Duration::from_millis(50))
        .expect("it is made to stop");
    witness.is_alone();
    assert!(!is_running(&*runtime, "ada"));
}

fn stopping_is_idempotent(subject: &dyn Subject) {
    let runtime = subject.handle();
    runtime
        .stop(&name("nobody"), PATIENCE)
        .expect("nothing to do");
    assert_eq!(runtime.inspect(&name("nobody")).expect("known"), None);
    assert!(runtime.watch(&name("nobody")).expect("known").is_none());
    let spec = subject.agent("ada", WAITS);
    let witness = Witness::of(&spec);
    runtime.start(&spec).expect("it starts");
    witness.hears("ready");
    for _ in 0..3 {
        runtime.stop(&spec.name, PATIENCE).expect("it is stopped");
        witness.is_alone();
    }
}

/// Children that try to get away: a session of their own, no parent, no environment, no signals.
const RUNAWAYS: &str = "\
    (trap '' TERM HUP; setsid sh -c 'echo session >&9; exec sleep 1000' &) ; \
    setsid sh -c 'trap \"\" TERM; (env -i sh -c \"echo bare >&9; exec sleep 1000\" &)' & \
    sleep 1000 & ";

fn stop_leaves_nothing(subject: &dyn Subject) {
    let runtime = subject.handle();
    let spec = subject.agent("ada", &format!("{RUNAWAYS} {WAITS}"));
    let witness = Witness::of(&spec);
    runtime.start(&spec).expect("it starts");
    witness.hears_all(&["session", "bare", "ready"]);
    runtime.stop(&spec.name, PATIENCE).expect("it stops");
    witness.is_alone();
}

fn end_leaves_nothing(subject: &dyn Subject) {
    let runtime = subject.handle();
    let script = format!("{RUNAWAYS} read -r line < go; exit 0");
    let spec = subject.agent("ada", &script);
    let go = witness::pipe(&spec, "go");
    let witness = Witness::of(&spec);
    runtime.start(&spec).expect("it starts");
    witness.hears_all(&["session", "bare"]);
    witness::say(&go, "go\n");
    witness.is_alone();
    runtime.stop(&spec.name, PATIENCE).expect("nothing to do");
    assert!(!is_running(&*runtime, "ada"));
}

fn adoption(subject: &dyn Subject) {
    let first = subject.handle();
    let spec = subject.agent("ada", WAITS);
    let witness = Witness::of(&spec);
    let started = first.start(&spec).expect("it starts");
    witness.hears("ready");
    drop(first);
    let second = subject.handle();
    assert_eq!(
        second.list().expect("a list"),
        std::slice::from_ref(&started)
    );
    assert_eq!(
        second.start(&spec).expect("it runs"),
        started,
        "no second one"
    );
    let watched = second.watch(&spec.name).expect("known").expect("it runs");
    second.stop(&spec.name, PATIENCE).expect("it stops");
    await_end(watched);
    witness.is_alone();
    assert_eq!(subject.handle().list().expect("a list"), []);
}

fn end_is_told(subject: &dyn Subject) {
    let runtime = subject.handle();
    for (agent, script, exits) in [
        ("ada", "read -r line < go; exit 7", [Exit::Code(7); 2]),
        // What a container hands on of a signal is its own choice, but it is no success.
        (
            "bob",
            "read -r line < go; kill -9 $$",
            [Exit::Signal(9), Exit::Code(255)],
        ),
    ] {
        let spec = subject.agent(agent, script);
        let go = witness::pipe(&spec, "go");
        runtime.start(&spec).expect("it starts");
        let watched = runtime.watch(&spec.name).expect("known").expect("it runs");
        witness::say(&go, "go\n");
        await_end(watched);
        let ended = runtime.inspect(&spec.name).expect("known").expect("it ran");
        let is_told = exits.map(State::Ended).contains(&ended.state);
        assert!(is_told, "{:?}", ended.state);
        assert!(runtime.watch(&spec.name).expect("known").is_none());
        let later = subject.handle().inspect(&spec.name).expect("known");
        assert_eq!(later, Some(ended), "another daemon knows it too");
    }
}

fn nothing_is_inherited(subject: &dyn Subject) {
    let runtime = subject.handle();
    let script = "env > env.txt; pwd -P > cwd.txt; cat > stdin.txt; \
                  for open in /proc/self/fd/*; do readlink $open; done > open.txt; echo done >&9";
    let mut spec = subject.agent("ada", script);
    // As a shell leaves one open: nothing closes it when another program begins.
    let secret = tempfile::NamedTempFile::new().expect("a file");
    let _left_open = rustix::io::dup(&secret).expect("another descriptor");
    spec.env
        .insert("OWN".into(), "a value\nof two lines".into());
    let witness = Witness::of(&spec);
    runtime.start(&spec).expect("it starts");
    witness.hears("done");
    witness.is_alone();
    let read = |file| fs::read_to_string(spec.dirs.state.join(file)).expect("it wrote it");
    let env = read("env.txt");
    assert!(env.contains("OWN=a value\nof two lines\n"), "{env}");
    for (variable, value) in std::env::vars() {
        // Some of these every shell or container has, whatever it is started with.
        let expected = spec.env.contains_key(&variable)
            || ["PWD", "SHLVL", "_", "OLDPWD", "TERM", "LANG"].contains(&variable.as_str());
        let has = env
            .lines()
            .any(|line| line == format!("{variable}={value}"));
        assert!(expected || !has, "{variable} was inherited");
    }
    let open = read("open.txt");
    let secret = secret.path().to_string_lossy();
    assert!(!open.contains(&*secret), "{open}");
    let state = runtime.view(&spec.dirs).dirs.state;
    assert_eq!(read("cwd.txt").trim_end(), state.to_string_lossy());
    assert_eq!(read("stdin.txt"), "", "nobody is at the keyboard");
}

fn output_is_kept(subject: &dyn Subject) {
    let runtime = subject.handle();
    assert_eq!(runtime.output(&name("ada"), 100).expect("no error"), b"");
    let script = "i=0; while [ $i -lt 3000 ]; do echo \"line $i of many\"; i=$((i+1)); done; \
                  echo error >&2; printf 'no newline'; echo done >&9";
    let mut spec = subject.agent("ada", script);
    spec.limits.output_bytes = 16 * 1024;
    let witness = Witness::of(&spec);
    runtime.start(&spec).expect("it starts");
    let watched = runtime.watch(&spec.name).expect("known");
    witness.hears("done");
    watched.into_iter().for_each(await_end);
    let output = subject
        .handle()
        .output(&spec.name, 1 << 20)
        .expect("it is kept");
    let output = String::from_utf8(output).expect("text");
    assert!(
        output.ends_with("line 2999 of many\nerror\nno newline"),
        "{output}"
    );
    assert!(
        (4_000..=16 * 1024).contains(&output.len()),
        "{}",
        output.len()
    );
    let mut last_words = subject.agent("bob", "echo out of bees >&2; exit 1");
    for generation in 1..=20 {
        last_words.generation = generation;
        runtime.start(&last_words).expect("it starts");
        let watched = runtime.watch(&last_words.name).expect("known");
        watched.into_iter().for_each(await_end);
        let said = runtime.output(&last_words.name, 4096).expect("it is kept");
        let said = String::from_utf8_lossy(&said);
        assert_eq!(
            said.lines().count(),
            generation as usize,
            "last words are not lost: {said}"
        );
    }
    let end = runtime.output(&spec.name, 20).expect("it is kept");
    assert_eq!(end, b"error\nno newline", "whole lines");
}

fn what_cannot_run(subject: &dyn Subject) {
    let runtime = subject.handle();
    let good = subject.agent("ada", WAITS);
    let mut bad = good.clone();
    bad.command.program = "/nonexistent/program".into();
    let error = runtime.start(&bad).expect_err("there is no such program");
    assert!(matches!(error, RuntimeError::Program { .. }), "{error}");
    assert!(
        error.to_string().contains("/nonexistent/program"),
        "{error}"
    );
    let plain = good.dirs.state.join("plain");
    fs::write(&plain, "no program").expect("a file");
    bad.command.program = runtime.view(&good.dirs).dirs.state.join("plain");
    let error = runtime.start(&bad).expect_err("it is no program");
    assert!(matches!(error, RuntimeError::Program { .. }), "{error}");
    assert_eq!(runtime.list().expect("a list"), []);
    let witness = Witness::of(&good);
    runtime.start(&good).expect("nothing is in the way");
    witness.hears("ready");
    runtime.stop(&good.name, PATIENCE).expect("it stops");
    witness.is_alone();
}

fn agents_are_told_apart(subject: &dyn Subject) {
    let runtime = subject.handle();
    let specs = ["bob", "ada", "cid"].map(|agent| subject.agent(agent, WAITS));
    let witnesses = specs.each_ref().map(|spec| {
        let witness = Witness::of(spec);
        runtime.start(spec).expect("it starts");
        witness.hears("ready");
        witness
    });
    let listed = runtime.list().expect("a list");
    let names: Vec<_> = listed
        .iter()
        .map(|instance| instance.name.as_str())
        .collect();
    assert_eq!(names, ["ada", "bob", "cid"]);
    runtime.stop(&specs[0].name, PATIENCE).expect("bob stops");
    witnesses[0].is_alone();
    assert_eq!(runtime.list().expect("a list").len(), 2);
    for spec in &specs {
        runtime.stop(&spec.name, Duration::ZERO).expect("it stops");
    }
    witnesses.iter().for_each(Witness::is_alone);
}

/// An engine renews its login by a rename, which a file that is mounted by itself would refuse.
fn credentials_are_its_own(subject: &dyn Subject) {
    let runtime = subject.handle();
    let nobody = subject.agent("ada", "true");
    let inside = |spec: &AgentSpec| runtime.view(&spec.dirs).dirs.claude;
    let script = format!(
        "cd {:?} && umask 077 && echo new > .next && mv .next .credentials.json && echo done >&9",
        inside(&nobody)
    );
    let ada = subject.agent("ada", &script);
    let file = ada.dirs.claude.join(".credentials.json");
    let owner = fs::metadata(&ada.dirs.claude).expect("it is there").uid();
    fs::write(&file, "old").expect("it can be written");
    let before = fs::metadata(&file).expect("it is there").ino();
    let witness = Witness::of(&ada);
    runtime.start(&ada).expect("it starts");
    witness.hears("done");
    witness.is_alone();
    let after = fs::metadata(&file).expect("it is there");
    assert_eq!(fs::read_to_string(&file).expect("text"), "new\n");
    assert_ne!(after.ino(), before, "it was replaced whole");
    assert_eq!((after.uid(), after.mode() & 0o777), (owner, 0o600));

    let script = format!(
        "[ -d {0:?} ] && ! [ -e {0:?}/.credentials.json ] && echo alone >&9",
        inside(&subject.agent("bob", "true"))
    );
    let bob = subject.agent("bob", &script);
    let witness = Witness::of(&bob);
    runtime.start(&bob).expect("it starts");
    witness.hears("alone");
    witness.is_alone();
}
