//! How many reminders of an agent may be pending: `limits.reminders_per_agent` of hive.toml, or
//! `HIVE_REMIND_MAX_PENDING_PER_AGENT` where it is set.

use std::{
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStringExt,
    process::Command,
};

use hive_testkit::hive::{Options, TestHive};
use serde_json::{Value, json};

use crate::{
    daemon::refused_as,
    mcp::Tools,
    peer::{BINARY, Doors, Peer, code, mail, ok},
};

const VARIABLE: &str = "HIVE_REMIND_MAX_PENDING_PER_AGENT";

/// A hive with these limits in its file and, where there is one, this value of the variable.
async fn hive(limits: &str, variable: Option<&str>) -> TestHive {
    let options = Options {
        config: format!("[hive]\nroot_agent = \"\"\n{limits}"),
        env: variable
            .map(|value| (VARIABLE.to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
    };
    let hive = TestHive::start_with(options).await.unwrap();
    for agent in ["ada", "bob"] {
        hive.spawn_agent(agent).await.unwrap();
    }
    hive
}

fn later(text: &str) -> Value {
    json!({"cmd":"remind","message":text,"delay_seconds":900})
}

/// How many reminders an agent may set until it is refused one; it had none.
fn room(hive: &TestHive, agent: &str) -> usize {
    let mut peer = hive.peer(agent);
    for number in 0..=60 {
        let reply = peer.ask(&later("later"));
        if reply["ok"] == false {
            assert_eq!(code(&reply), "limit_reached", "{reply}");
            assert_eq!(pending(&mut peer).len(), number, "no trace of the refused");
            return number;
        }
    }
    panic!("there is no limit");
}

/// The texts of the pending reminders.
fn pending(peer: &mut Peer) -> Vec<String> {
    let ends = ok(peer.ask(&json!({"cmd":"get_loose_ends"})));
    let ends = ends["loose_ends"].as_array().unwrap();
    let texts = ends.iter().map(|end| end["message"].as_str().unwrap());
    texts.map(str::to_owned).collect()
}

#[tokio::test]
async fn m8_the_variable_limits_each_agents_reminders_and_a_refusal_says_what_to_do() {
    let mut hive = hive("", Some("3")).await;
    for text in ["one", "two", "three"] {
        ok(hive.peer("ada").ask(&later(text)));
    }
    let refused = hive.peer("ada").ask(&later("four"));
    assert_eq!(code(&refused), "limit_reached");
    let error = &refused["error"];
    let said = error["message"].as_str().unwrap();
    assert!(said.contains("pending reminders: at most 3"), "{refused}");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("cancel"), "{refused}");
    let refused =
        Tools::of(&hive, "ada").call("remind", json!({"message": "four", "delay_seconds": 900}));
    assert_eq!(refused["isError"], true, "{refused}");
    let said = refused["content"][0]["text"].as_str().unwrap();
    for word in ["at most 3", "cancel"] {
        assert!(said.contains(word), "{word}: {said}");
    }
    assert_eq!(room(&hive, "bob"), 3, "each has its own");

    hive.restart().await.unwrap();
    let mut ada = hive.peer("ada");
    assert_eq!(pending(&mut ada), ["one", "two", "three"]);
    assert_eq!(code(&ada.ask(&later("four"))), "limit_reached");
}

#[tokio::test]
async fn m8_m7_a_reminder_that_is_cancelled_or_has_fired_makes_room() {
    let hive = hive("", Some("2")).await;
    let mut ada = hive.peer("ada");
    let kept = json!({"cmd":"remind","message":"kept","delay_seconds":900,"key":"k"});
    let first = ok(ada.ask(&kept))["reminder_id"].clone();
    let second = ok(ada.ask(&later("second")))["reminder_id"].clone();
    assert_eq!(code(&ada.ask(&later("third"))), "limit_reached");
    let again = ok(ada.ask(&kept));
    assert_eq!(again["reminder_id"], first, "one that is said again is one");

    let cancel = json!({"cmd":"cancel_loose_end","kind":"reminder","reminder_id":second});
    ok(ada.ask(&cancel));
    let now = json!({"cmd":"remind","message":"now","delay_seconds":0});
    ok(ada.ask(&now));
    let fired = ada.ask(&json!({"cmd":"recv","wait_seconds":20}));
    assert_eq!(mail(&fired), [("now", 1)]);
    ok(ada.ask(&later("fourth")));
    assert_eq!(pending(&mut ada), ["kept", "fourth"]);
    assert_eq!(code(&ada.ask(&later("fifth"))), "limit_reached");
}

#[tokio::test]
async fn m8_the_variable_wins_over_the_file_and_the_file_over_fifty() {
    let two = "[limits]\nreminders_per_agent = 2\n";
    for (limits, variable, expected) in [
        ("", None, 50),
        (two, None, 2),
        (two, Some("1"), 1),
        (two, Some("4"), 4),
        (two, Some(""), 2),
        (two, Some("0"), 0),
        ("[limits]\nreminders_per_agent = 0\n", None, 0),
        ("", Some("7"), 7),
    ] {
        let hive = hive(limits, variable).await;
        assert_eq!(room(&hive, "ada"), expected, "{limits:?} {variable:?}");
    }
}

#[test]
fn m8_a_variable_that_is_no_number_ends_the_start_with_its_name_and_what_is_right() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("hive.toml"),
        "[limits]\nreminders_per_agent = 2\n",
    )
    .unwrap();
    let refused = |value: &OsStr| refused_as(dir.path(), Command::new(BINARY).env(VARIABLE, value));
    for bad in ["-1", "many", " ", "5 ", "1.5", "4294967296", "0x10"] {
        let said = refused(OsStr::new(bad)).stderr;
        let named = format!("{VARIABLE}={bad}: ");
        for word in [&named, "a number from 0", "limits.reminders_per_agent"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
    let said = refused(&OsString::from_vec(vec![b'7', 0xff])).stderr;
    assert!(said.contains(VARIABLE), "{said}");
}

#[test]
fn m8_a_limit_in_the_file_that_is_no_number_ends_the_start_with_its_line() {
    for bad in ["-1", "\"many\"", "\"\"", "1.5", "4294967296"] {
        let dir = tempfile::tempdir().unwrap();
        let config = format!("[limits]\nreminders_per_agent = {bad}\n");
        fs::write(dir.path().join("hive.toml"), config).unwrap();
        let said = refused_as(dir.path(), &mut Command::new(BINARY)).stderr;
        for word in ["hive.toml", "line 2", "reminders_per_agent"] {
            assert!(said.contains(word), "{word}: {said}");
        }
    }
}
