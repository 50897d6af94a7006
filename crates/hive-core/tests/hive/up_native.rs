//! `hive-c0re up` with nothing but what is shipped: no `claude`, no key, no Node. The native engine
//! runs the turns on the rehearsed model (issue of the native engine, section 6; C8).

use std::{fs, os::unix::fs::symlink};

use rustix::process::Signal;
use serde_json::Value;

use crate::{
    peer::{eventually, run},
    up::Place,
};

/// Programs of the system that a shell command may want; `claude` is not among them.
const TOOLS: [&str; 6] = ["bash", "sh", "env", "cat", "echo", "sleep"];

fn json(place: &Place, args: &[&str]) -> Value {
    let said = run(place.command().arg("--json").args(args), "");
    assert_eq!(said.code, 0, "{args:?}: {} {}", said.stdout, said.stderr);
    serde_json::from_str(&said.stdout).unwrap()
}

/// A search path without `claude`, wherever this machine has one.
fn search_path(place: &Place) -> String {
    let dir = place.root().with_file_name("tools");
    fs::create_dir(&dir).unwrap();
    for name in TOOLS {
        let places = ["/bin", "/usr/bin"].map(|dir| std::path::Path::new(dir).join(name));
        let found = places.iter().find(|path| path.exists()).unwrap();
        symlink(found, dir.join(name)).unwrap();
    }
    dir.to_str().unwrap().to_owned()
}

/// Sends a message to ruth and waits until her turn with it has ended well.
fn send(place: &Place, body: &str) {
    let sent = json(place, &["send", "ruth", body]);
    let id = sent["id"].as_str().unwrap().to_owned();
    eventually("it is acked", || {
        json(place, &["receipt", &id])["state"] == "acked"
    });
}

#[test]
fn c8_a_new_hive_works_on_its_own_engine() {
    let place = Place::shipped();
    let up = place.up_with(&search_path(&place));
    assert!(
        up.greeting.contains("MODEL IS REHEARSED"),
        "{}",
        up.greeting
    );

    send(&place, "hello");
    send(&place, "remember that the heron is grey");
    send(&place, "run echo the-heron-flies");
    let agent = &place.list()["agents"][0];
    let engine = agent["engine"].as_str().unwrap();
    assert!(engine.contains("hive-engine"), "{agent}");
    // What she said came through the hive's own tools, and the command through the bash daemon.
    eventually("the command's end is told", || {
        let inbox = json(&place, &["inbox"]).to_string();
        inbox.contains("\"from\":\"ruth\"") && inbox.contains("the-heron-flies")
    });
    let state = place.root().join("state/agents/ruth/state");
    assert!(state.join("hyperhive-status").is_file());

    let compacted = json(&place, &["compact", "ruth"]);
    assert_eq!(compacted["state"], "done", "{compacted}");
    send(&place, "and what now?");
    let turns = json(&place, &["turns", "ruth"]);
    let turns = turns["turns"].as_array().unwrap();
    let is_good = |turn: &Value| turn["outcome"] == "ok" || turn["outcome"] == "compacted";
    assert!(turns.iter().all(is_good), "{turns:?}");
    assert!(
        turns.iter().any(|turn| turn["kind"] == "compact"),
        "{turns:?}"
    );
    assert_eq!(up.end(Signal::INT), Some(0));
}
