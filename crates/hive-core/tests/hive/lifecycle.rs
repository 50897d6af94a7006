//! Agents come, are made anew and go, and the daemon dies at every step of it: the next one ends
//! where the first was going, with nothing doubled and nothing left over.

use std::fs;

use serde_json::json;

use crate::{
    crew::{Crew, lives},
    peer::{Doors, eventually, ok},
};

#[cfg(feature = "failpoints")]
mod crashes {
    use super::*;

    /// Orders a crash at a place, does something that leads there, and starts the next daemon.
    async fn crash_at(crew: &mut Crew, place: &str, args: &[&str]) {
        let env = crew.env();
        let with_crash = [("FAILPOINTS".to_owned(), format!("{place}=100%"))];
        crew.hive
            .set_env([env.clone(), with_crash.to_vec()].concat());
        crew.hive.restart().await.unwrap();
        let said = crew.hive.cli(args);
        assert_ne!(said.code, 0, "{place}: the daemon died under it");
        crew.hive.died().await.unwrap();
        crew.hive.set_env(env);
        crew.hive.restart().await.unwrap();
    }

    /// The processes of all starts that live.
    fn living(crew: &Crew, agent: &str) -> Vec<i32> {
        let runs = fs::read_to_string(crew.file(agent, "runs")).unwrap_or_default();
        let runs = runs.lines().filter_map(|line| line.parse().ok());
        runs.filter(|pid| lives(*pid)).collect()
    }

    /// Waits until exactly one process of an agent lives, and it is the one that is listed.
    fn runs_once(crew: &Crew, agent: &str, place: &str) {
        eventually(&format!("{place}: it runs"), || {
            let row = crew.agent(agent);
            let living = living(crew, agent);
            living.len() == 1 && row["pid"] == living[0]
        });
    }

    #[tokio::test]
    async fn c13_a_daemon_that_dies_while_it_creates_ends_with_one_agent() {
        for place in [
            "spawn::registered",
            "spawn::socket_open",
            "spawn::looked_after",
            "supervisor::before_start",
            "supervisor::started",
        ] {
            let mut crew = Crew::new("").await;
            crash_at(&mut crew, place, &["spawn", "ada", "--runtime", "process"]).await;
            runs_once(&crew, "ada", place);
            ok(crew.hive.peer("ada").ask(&json!({"cmd":"status"})));
            let again = crew.hive.cli(&["spawn", "ada", "--runtime", "process"]);
            assert_ne!(again.code, 0, "{place}: there is one already");
        }
    }

    #[tokio::test]
    async fn c7_a_daemon_that_dies_while_it_rebuilds_ends_with_a_new_one() {
        for place in [
            "supervisor::wished",
            "supervisor::before_stop",
            "supervisor::stopped",
            "supervisor::before_start",
            "supervisor::started",
        ] {
            let mut crew = Crew::new("").await;
            crew.spawn("ada");
            let first = crew.runs("ada", 1)[0];
            crash_at(&mut crew, place, &["rebuild", "ada"]).await;
            eventually(&format!("{place}: the first is gone"), || !lives(first));
            runs_once(&crew, "ada", place);
        }
    }

    #[tokio::test]
    async fn c12_a_daemon_that_dies_while_it_destroys_ends_without_the_agent() {
        for place in [
            "supervisor::wished",
            "supervisor::before_stop",
            "supervisor::stopped",
            "destroy::stopped",
            "destroy::unregistered",
            "destroy::closed",
        ] {
            let mut crew = Crew::new("").await;
            crew.spawn("ada");
            let pid = crew.runs("ada", 1)[0];
            fs::write(crew.file("ada", "notes.md"), "kept").unwrap();
            crash_at(&mut crew, place, &["destroy", "ada", "--yes"]).await;
            eventually(&format!("{place}: it is off the list"), || {
                crew.agent("ada").is_null() && !lives(pid)
            });
            eventually(&format!("{place}: its socket is gone"), || {
                !crew.hive.agent_socket("ada").exists()
            });
            assert_eq!(
                fs::read_to_string(crew.file("ada", "notes.md")).unwrap(),
                "kept",
                "{place}"
            );
            crew.spawn("ada");
            runs_once(&crew, "ada", place);
        }
    }
}

#[tokio::test]
async fn c13_what_is_out_of_place_is_put_right_without_being_asked() {
    let crew = Crew::new("[agents]\nlook_secs = 1\n").await;
    crew.spawn("ada");
    let stray = crew.start_unasked("bob");
    eventually("what is nobody's is stopped", || !lives(stray));
    let pid = crew.runs("ada", 1)[0];
    assert!(lives(pid), "its neighbour is not");
    let socket = crew.hive.agent_socket("ada");
    fs::remove_file(&socket).unwrap();
    eventually("the socket is back", || socket.exists());
    ok(crew.hive.peer("ada").ask(&json!({"cmd":"status"})));
    let old = crew.hive.agent_socket("old");
    fs::create_dir(old.parent().unwrap()).unwrap();
    eventually("what is left of old sockets goes", || {
        !old.parent().unwrap().exists()
    });
}

#[tokio::test]
async fn c12_a_new_agent_of_an_old_name_is_another_generation() {
    let crew = Crew::new("").await;
    crew.spawn("ada");
    crew.runs("ada", 1);
    let mut open = crew.hive.peer("ada");
    ok(open.ask(&json!({"cmd":"status"})));
    fs::write(crew.dir("ada").join("claude/login"), "hers").unwrap();
    crew.hive.cli(&["send", "ada", "to the first"]);
    let destroyed = crew.hive.cli_json(&["destroy", "ada", "--yes"]);
    assert_eq!(destroyed["kept_messages"], 1, "{destroyed}");
    assert!(open.is_over(), "open connections end");

    let spawned = crew.spawn("ada");
    let note = spawned["note"].as_str().unwrap();
    assert!(note.contains("1 messages to the ada before it"), "{note}");
    let login = fs::read_to_string(crew.dir("ada").join("claude/login"));
    assert_eq!(login.unwrap(), "hers", "credentials are kept");
    // The log is a moment behind what was answered.
    eventually("the log says what was kept", || {
        let events = crew.hive.cli_json(&["logs", "ada"]);
        events.to_string().contains("\"kept_messages\":1")
    });
}
