//! Agents that the hive runs: started, stopped, watched, and found again.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    crew::{Crew, WAITS, lives},
    peer::{Doors, cli, code, eventually, mail, ok},
};

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn c1_a_spawned_agent_runs_in_its_own_place() {
    let crew = Crew::new("").await;
    crew.script("ada", &format!("env > env; {WAITS}"));
    let agent = crew.spawn("ada");
    assert_eq!(
        (&agent["state"], &agent["runtime"]),
        (&json!("starting"), &json!("process"))
    );
    assert_eq!(agent["model"], "haiku");
    let pid = crew.runs("ada", 1)[0];
    assert_eq!(agent["pid"], pid);
    for dir in ["", "state", "harness", "claude", "home", "runtime"] {
        let mode = fs::metadata(crew.dir("ada").join(dir)).unwrap();
        assert_eq!(mode.permissions().mode() & 0o777, 0o700, "{dir}");
    }
    let env = fs::read_to_string(crew.file("ada", "env")).unwrap();
    let value = |name: &str| {
        let line = env
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_default().to_owned()
    };
    let inside = |part: &str| crew.dir("ada").join(part).to_str().unwrap().to_owned();
    assert_eq!(value("HOME"), inside("home"));
    assert_eq!(value("CLAUDE_CONFIG_DIR"), inside("claude"));
    assert_eq!(value("HIVE_STATE_DIR"), inside("state"));
    assert_eq!(value("PWD"), inside("state"), "it works there");
    assert_eq!(value("GIT_AUTHOR_NAME"), "ada", "C17");
    assert_eq!(
        value("HIVE_SOCKET"),
        crew.hive.agent_socket("ada").to_str().unwrap()
    );
    assert!(
        !env.contains("CARGO"),
        "nothing of ours is inherited: {env}"
    );
}

#[tokio::test]
async fn c18_kill_leaves_nothing_and_start_brings_it_back() {
    let crew = Crew::new("").await;
    let runaway = "setsid sh -c 'trap \"\" TERM; echo $$ > runaway; exec sleep 1000' & ";
    crew.script("ada", &format!("{runaway} {WAITS}"));
    crew.spawn("ada");
    let first = crew.runs("ada", 1)[0];
    let file = crew.file("ada", "runaway");
    eventually("it has left home", || {
        fs::read_to_string(&file).is_ok_and(|text| text.ends_with('\n'))
    });
    let runaway = fs::read_to_string(&file).unwrap().trim().parse().unwrap();
    assert!(lives(first) && lives(runaway));
    for _ in 0..2 {
        let killed = crew.hive.cli_json(&["kill", "ada"]);
        assert_eq!(killed["agent"]["state"], "stopped");
        assert_eq!(killed["agent"]["pid"], Value::Null);
        assert!(!lives(first) && !lives(runaway), "and stays so");
    }
    assert_eq!(crew.hive.cli(&["send", "ada", "for later"]).code, 0);
    for _ in 0..2 {
        let started = crew.hive.cli_json(&["start", "ada"]);
        assert_eq!(started["agent"]["state"], "starting");
    }
    let runs = crew.runs("ada", 2);
    assert_eq!(runs.len(), 2, "starting what runs changes nothing");
    assert!(lives(runs[1]));
}

#[tokio::test]
async fn c18_a_crashing_agent_is_started_again_and_then_given_up() {
    let crew = Crew::new("[agents]\nrestarts = 3\nrestart_delay_ms = 1\n").await;
    crew.script("ada", "echo $$ >> runs; echo 'out of bees' >&2; exit 3");
    crew.hive.cli(&["spawn", "ada", "--runtime", "process"]);
    let failed = crew.becomes("ada", "failed");
    let note = failed["note"].as_str().unwrap();
    for word in ["4 times", "code 3", "out of bees"] {
        assert!(note.contains(word), "{word}: {note}");
    }
    assert_eq!(crew.runs("ada", 4).len(), 4, "once and three times again");
    assert_eq!(failed["restarts"], 3);
    assert!(failed["restarted_at"].is_string(), "{failed}");
    let listed = crew.hive.cli(&["list"]);
    assert!(listed.stderr.contains("out of bees"), "{}", listed.stderr);
    let output = crew.hive.cli(&["logs", "ada", "--output"]).stdout;
    assert_eq!(output.lines().count(), 4, "{output}");

    let again = crew.hive.cli(&["start", "ada"]);
    assert!(
        [0, 1].contains(&again.code),
        "it ran for a moment: {}",
        again.stderr
    );
    crew.becomes("ada", "failed");
    crew.script("ada", WAITS);
    let mended = crew.hive.cli_json(&["start", "ada"]);
    assert_eq!(mended["agent"]["state"], "starting");
    // What the host cannot limit may be said there.
    let note = mended["agent"]["note"].as_str().unwrap();
    assert!(!note.contains("code 3"), "{note}");
    let mended = crew.agent("ada");
    assert_eq!(mended["restarts"], 0, "somebody asked for it: {mended}");
}

#[tokio::test]
async fn c18_who_asks_for_a_new_beginning_does_not_wait_for_what_went_wrong_before() {
    let crew = Crew::new("[agents]\nrestarts = 9\nrestart_delay_ms = 60000\n").await;
    crew.spawn("ada");
    kill(crew.runs("ada", 1)[0]);
    eventually("its end is noticed", || {
        let note = crew.agent("ada")["note"].to_string();
        note.contains("signal") || note.contains("killed")
    });
    let again = crew.hive.cli_json(&["restart", "ada"]);
    assert_eq!(again["agent"]["state"], "starting");
    assert!(lives(crew.runs("ada", 2)[1]));
}

#[tokio::test]
async fn c18_of_two_restarts_at_once_neither_fails() {
    let crew = Crew::new("").await;
    crew.spawn("ada");
    crew.runs("ada", 1);
    let restart = json!({"cmd":"restart","name":"ada"});
    let mut operators: Vec<_> = (0..4).map(|_| crew.hive.operator()).collect();
    operators.iter_mut().for_each(|one| one.say(&restart));
    for operator in &mut operators {
        ok(operator.hear());
    }
}

#[tokio::test]
async fn c18_a_given_up_agent_stays_so_across_a_restart() {
    let mut crew = Crew::new("[agents]\nrestarts = 0\n").await;
    crew.script("ada", "exit 3");
    crew.hive.cli(&["spawn", "ada", "--runtime", "process"]);
    crew.becomes("ada", "failed");
    crew.script("ada", WAITS);
    crew.hive.restart().await.unwrap();
    let failed = crew.becomes("ada", "failed");
    assert!(failed["note"].as_str().unwrap().contains("code 3"));
    assert!(!crew.file("ada", "runs").exists(), "it was not started");
}

#[tokio::test]
async fn c13_agents_outlive_the_daemon_and_are_adopted() {
    let mut crew = Crew::new("").await;
    crew.spawn("ada");
    let pid = crew.runs("ada", 1)[0];
    for gently in [true, false] {
        if gently {
            crew.hive.terminate().await.unwrap();
        } else {
            crew.hive.kill().await.unwrap();
        }
        assert!(lives(pid), "gently: {gently}");
        crew.hive.restart().await.unwrap();
        eventually("it is adopted", || crew.agent("ada")["pid"] == pid);
        assert_eq!(crew.runs("ada", 1), [pid], "the same one");
    }
    kill(pid);
    let runs = crew.runs("ada", 2);
    assert!(lives(runs[1]), "its new daemon looks after it");
    eventually("that is counted", || crew.agent("ada")["restarts"] == 1);
    crew.hive.restart().await.unwrap();
    assert_eq!(crew.agent("ada")["restarts"], 1, "and not forgotten");
    crew.hive.cli_json(&["kill", "ada"]);
    assert!(!lives(runs[1]));
}

#[tokio::test]
async fn c13_what_died_or_was_unwanted_meanwhile_is_put_right() {
    let mut crew = Crew::new("").await;
    for agent in ["ada", "bob"] {
        crew.spawn(agent);
    }
    let (ada, bob) = (crew.runs("ada", 1)[0], crew.runs("bob", 1)[0]);
    crew.hive.cli_json(&["kill", "bob"]);
    assert!(!lives(bob));
    crew.hive.kill().await.unwrap();
    kill(ada);
    // As if a daemon had been killed between writing down a wish and acting on it.
    let bob = crew.start_unasked("bob");
    crew.hive.restart().await.unwrap();
    let runs = crew.runs("ada", 2);
    assert!(lives(runs[1]));
    crew.becomes("bob", "stopped");
    assert!(!lives(bob));
}

#[tokio::test]
async fn t25_ten_restarts_leave_one_notice() {
    let crew = Crew::new("").await;
    crew.spawn("ada");
    crew.runs("ada", 1);
    let unread = || crew.agent("ada")["unread"].clone();
    assert_eq!(unread(), 0, "a new agent has no session to go on with");
    for _ in 0..10 {
        let restarted = crew.hive.cli_json(&["restart", "ada"]);
        assert_eq!(restarted["agent"]["state"], "starting");
    }
    assert_eq!(unread(), 1);
    let taken = crew
        .hive
        .peer("ada")
        .ask(&json!({"cmd":"recv","turn":"t1","max":9}));
    assert_eq!(taken["messages"][0]["from"], "system");
    let (text, _) = mail(&taken)[0];
    assert!(
        text.contains("(re)started") && text.contains("/state"),
        "{text}"
    );
    assert_eq!(text.lines().count(), 1);
    crew.hive.cli_json(&["rebuild", "ada"]);
    let held = crew.agent("ada");
    assert_eq!(
        (&held["unread"], &held["inflight"]),
        (&json!(0), &json!(1)),
        "a turn that was cut short will bring it again"
    );
    let ids = json!([taken["messages"][0]["id"]]);
    ok(crew
        .hive
        .peer("ada")
        .ask(&json!({"cmd":"ack_turn","turn":"t1","ids":ids})));
    crew.hive.cli_json(&["restart", "ada"]);
    assert_eq!(unread(), 1, "dealt with, so there is news again");
}

#[tokio::test]
async fn c1_an_agent_that_runs_elsewhere_is_not_ours_to_start() {
    let crew = Crew::new("").await;
    crew.hive.spawn_agent("bob").await.unwrap();
    for verb in ["kill", "start", "restart", "rebuild"] {
        let said = crew.hive.cli(&[verb, "bob"]);
        assert_eq!(said.code, 1, "{verb}: {}", said.stderr);
        assert!(said.stderr.contains("runs elsewhere"), "{}", said.stderr);
        assert_eq!(crew.hive.cli(&[verb, "nobody"]).code, 3);
    }
    assert_eq!(crew.agent("bob")["unread"], 0, "T25 is not for it");
}

#[tokio::test]
async fn c12_destroy_keeps_state_and_purge_does_not() {
    let crew = Crew::new("").await;
    crew.spawn("ada");
    let pid = crew.runs("ada", 1)[0];
    let login = crew.dir("ada").join("claude/.credentials.json");
    fs::write(&login, "{}").unwrap();
    let destroyed = crew.hive.cli_json(&["destroy", "ada", "--yes"]);
    assert_eq!(destroyed["purged"], false);
    assert!(!lives(pid));
    assert!(login.exists() && crew.file("ada", "runs").exists());

    crew.spawn("ada");
    assert_eq!(crew.runs("ada", 2).len(), 2, "it finds its files again");
    let outside = crew.hive.root().join("precious");
    fs::write(&outside, "kept").unwrap();
    std::os::unix::fs::symlink(&outside, crew.file("ada", "link")).unwrap();
    let refused = cli(crew.hive.root(), &["destroy", "ada", "--purge"], "y\n");
    assert_eq!(refused.code, 2, "it asks: {}", refused.stderr);
    let purged = crew.hive.cli_json(&["destroy", "ada", "--purge", "--yes"]);
    assert_eq!(purged["purged"], true);
    assert!(!crew.dir("ada").exists());
    assert_eq!(fs::read_to_string(outside).unwrap(), "kept");
}

#[tokio::test]
async fn c18_stop_all_asks_stops_and_lasts() {
    let mut crew = Crew::new("").await;
    crew.hive.spawn_agent("elsewhere").await.unwrap();
    for agent in ["ada", "bob"] {
        crew.spawn(agent);
    }
    let pids = [crew.runs("ada", 1)[0], crew.runs("bob", 1)[0]];
    assert_eq!(crew.hive.cli(&["stop-all"]).code, 2);
    assert!(pids.iter().all(|pid| lives(*pid)));
    let stopped = crew.hive.cli_json(&["stop-all", "--yes"]);
    assert_eq!(stopped["stopped"], json!(["ada", "bob"]));
    assert!(!pids.iter().any(|pid| lives(*pid)));
    crew.hive.restart().await.unwrap();
    crew.becomes("ada", "stopped");
    crew.becomes("bob", "stopped");
    let none = crew.hive.cli_json(&["stop-all", "--yes"]);
    assert_eq!(none["stopped"], json!([]));
}

#[tokio::test]
async fn c1_what_cannot_be_run_is_said_at_once() {
    let crew = Crew::new("").await;
    let said = crew.hive.cli(&["spawn", "ada", "--engine", "nonsense"]);
    assert_eq!(said.code, 2, "{}", said.stderr);
    assert!(
        said.stderr.contains("`nonsense` is no program"),
        "{}",
        said.stderr
    );
    assert_eq!(crew.agent("ada"), Value::Null, "nothing was registered");

    // What is wrong with the directories shows when it is started.
    fs::create_dir_all(crew.dir("ada")).unwrap();
    fs::write(crew.dir("ada").join("state"), "in the way").unwrap();
    crew.hive.cli(&["spawn", "ada", "--runtime", "process"]);
    let failed = crew.becomes("ada", "failed");
    let note = failed["note"].as_str().unwrap();
    assert!(note.contains("ada/state is no directory"), "{note}");
    let said = crew.hive.cli(&["start", "ada"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    fs::remove_file(crew.dir("ada").join("state")).unwrap();
    crew.hive.cli_json(&["start", "ada"]);
    crew.runs("ada", 1);
}

#[tokio::test]
async fn c1_a_harness_that_is_no_program_fails_with_its_path() {
    let mut crew = Crew::new("").await;
    for (harness, reason) in [
        ("/nonexistent/hive", "No such file"),
        ("/etc/passwd", "not executable"),
    ] {
        crew.hive
            .set_env(vec![("HIVE_BIN".into(), harness.to_owned())]);
        crew.hive.restart().await.unwrap();
        crew.hive.cli(&["spawn", "ada", "--runtime", "process"]);
        let failed = crew.becomes("ada", "failed");
        let note = failed["note"].as_str().unwrap();
        assert!(note.contains(harness) && note.contains(reason), "{note}");
        crew.hive.cli_json(&["destroy", "ada", "--yes"]);
    }
}

#[tokio::test]
async fn c9_a_leftover_of_nobody_is_stopped() {
    let mut crew = Crew::new("").await;
    crew.hive.kill().await.unwrap();
    let pid = crew.start_unasked("ada");
    crew.hive.restart().await.unwrap();
    eventually("what is nobody's is stopped", || !lives(pid));
    assert_eq!(crew.agent("ada"), Value::Null);
    let gone = crew
        .hive
        .operator()
        .ask(&json!({"cmd":"start","name":"ada"}));
    assert_eq!(code(&gone), "not_found");
}

#[tokio::test]
async fn m11_m12_a_parent_stops_starts_and_reads_its_child_and_nobody_elses() {
    let crew = Crew::new("").await;
    crew.hive.spawn_agent("ada").await.unwrap();
    crew.hive.spawn_agent("eve").await.unwrap();
    for parent in ["ada", "eve"] {
        let grant = [
            "permissions",
            parent,
            "--grant",
            "lifecycle",
            "--grant",
            "diagnostics",
        ];
        crew.hive.cli_json(&grant);
    }
    crew.script("kid", &format!("echo 'here I am' >&2; {WAITS}"));
    let spawn = ["spawn", "kid", "--runtime", "process", "--parent", "ada"];
    crew.hive.cli_json(&spawn);
    let first = crew.runs("kid", 1)[0];
    let (mut ada, mut eve) = (crew.hive.peer("ada"), crew.hive.peer("eve"));
    let listed = ok(ada.ask(&json!({"cmd":"list_agents"})));
    assert_eq!(listed["agents"][0]["name"], "kid");
    assert_eq!(listed["agents"].as_array().unwrap().len(), 1);
    let logs = json!({"cmd":"get_logs","agent":"kid"});
    eventually("its words are read", || {
        let seen = ok(ada.ask(&logs));
        seen["output"].as_str().unwrap().contains("here I am")
    });
    assert_eq!(code(&eve.ask(&logs)), "denied");
    for cmd in ["kill", "start", "restart"] {
        assert_eq!(code(&eve.ask(&json!({"cmd":cmd,"name":"kid"}))), "denied");
    }
    assert!(lives(first), "eve changed nothing");
    for _ in 0..2 {
        let killed = ok(ada.ask(&json!({"cmd":"kill","name":"kid"})));
        assert_eq!(killed["state"], "stopped");
        assert!(!lives(first));
    }
    let start = json!({"cmd":"start","name":"kid"});
    assert_eq!(ok(ada.ask(&start))["state"], "starting");
    let second = crew.runs("kid", 2)[1];
    let restart = json!({"cmd":"restart","name":"kid","key":"once"});
    ok(ada.ask(&restart));
    let third = crew.runs("kid", 3)[2];
    assert!(!lives(second) && lives(third));
    ok(ada.ask(&restart));
    assert_eq!(crew.runs("kid", 3).len(), 3, "the same key restarts once");
    assert!(lives(third));
    let unsupported = ada.ask(&json!({"cmd":"restart","name":"ada"}));
    assert_eq!(code(&unsupported), "denied", "not even itself");
}
