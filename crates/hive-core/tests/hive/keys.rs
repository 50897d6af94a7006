//! Commands under a key: one effect and one answer, however often and over whatever restarts.

use serde_json::{Value, json};

use crate::{
    approvals::{Stage, id},
    peer::{Doors, cli, code, eventually, hive, ok},
};

#[tokio::test]
async fn a_key_makes_a_repeated_command_one_and_gives_the_same_answer() {
    let mut hive = hive(&["ada", "bob"]).await;
    hive.cli_json(&["permissions", "ada", "--grant", "scheduling"]);
    let question = json!({"cmd":"ask","question":"?","to":"ada"});
    let owed = ok(hive.peer("bob").ask(&question))["question_id"].clone();
    let commands = [
        json!({"cmd":"send","to":"bob","body":"x","key":"k-send"}),
        json!({"cmd":"wake","from":"matrix","body":"x","key":"k-wake"}),
        json!({"cmd":"ask","question":"?","to":"bob","key":"k-ask"}),
        json!({"cmd":"answer","question_id":owed,"answer":"so","key":"k-answer"}),
        json!({"cmd":"remind","message":"x","delay_seconds":900,"key":"k-remind"}),
        json!({"cmd":"schedule","prompt":"x","delay_seconds":900,"key":"k-schedule"}),
        json!({"cmd":"set_status","text":"busy","key":"k-status"}),
    ];
    let first: Vec<Value> = commands
        .iter()
        .map(|c| ok(hive.peer("ada").ask(c)))
        .collect();
    let counts = |hive: &hive_testkit::hive::TestHive| {
        let unread =
            |agent: &str| ok(hive.peer(agent).ask(&json!({"cmd":"status"})))["unread"].clone();
        let ends = ok(hive.peer("ada").ask(&json!({"cmd":"get_loose_ends"})));
        (
            [unread("ada"), unread("bob")],
            ends["loose_ends"].as_array().unwrap().len(),
            hive.cli_json(&["schedules"])["schedules"]
                .as_array()
                .unwrap()
                .len(),
        )
    };
    let before = counts(&hive);
    for round in 0..2 {
        for (command, first) in commands.iter().zip(&first) {
            let mut again = ok(hive.peer("ada").ask(command));
            // A repeated send says so; it did before keys were everywhere.
            again.as_object_mut().unwrap().remove("duplicate");
            assert_eq!(again, *first, "round {round}: {command}");
        }
        assert_eq!(counts(&hive), before, "round {round}");
        hive.restart().await.unwrap();
    }
    // What they made can be taken back once, and that answer is kept too.
    for (first, kind) in [(&first[2], "question"), (&first[4], "reminder")] {
        let field = format!("{kind}_id");
        let mut cancel = json!({"cmd":"cancel_loose_end","kind":kind,"key":format!("c-{kind}")});
        cancel[&field] = first[&field].clone();
        ok(hive.peer("ada").ask(&cancel));
        ok(hive.peer("ada").ask(&cancel));
        cancel.as_object_mut().unwrap().remove("key");
        assert_eq!(
            hive.peer("ada").ask(&cancel)["ok"],
            false,
            "it is gone: {kind}"
        );
    }
    let id = &first[5]["schedule_id"];
    let cancel = json!({"cmd":"cancel_schedule","schedule_id":id,"key":"c-schedule"});
    ok(hive.peer("ada").ask(&cancel));
    ok(hive.peer("ada").ask(&cancel));
}

#[tokio::test]
async fn a_key_is_its_agents_own_and_stands_for_one_request() {
    let hive = hive(&["ada", "bob"]).await;
    let remind = json!({"cmd":"remind","message":"x","delay_seconds":900,"key":"k"});
    let first = ok(hive.peer("ada").ask(&remind));
    let other = ok(hive.peer("bob").ask(&remind));
    assert_ne!(first["reminder_id"], other["reminder_id"]);
    for changed in [
        json!({"cmd":"remind","message":"y","delay_seconds":900,"key":"k"}),
        json!({"cmd":"ask","question":"?","key":"k"}),
    ] {
        let reply = hive.peer("ada").ask(&changed);
        assert_eq!(code(&reply), "conflict", "{changed}");
        assert!(
            reply["error"]["hint"]
                .as_str()
                .unwrap()
                .contains("another key")
        );
    }
    // What was refused is not remembered: the same key may try again.
    let gone = json!({"cmd":"answer","question_id":99,"answer":"x","key":"a"});
    assert_eq!(code(&hive.peer("ada").ask(&gone)), "not_found");
    assert_eq!(code(&hive.peer("ada").ask(&gone)), "not_found");
    let transient = json!({"cmd":"wake","from":"x","body":"x","transient":true,"key":"t"});
    assert_eq!(code(&hive.peer("ada").ask(&transient)), "bad_request");
}

#[tokio::test]
async fn a_key_stands_for_its_request_after_the_operator_has_decided() {
    let mut stage = Stage::new("").await;
    let keyed = |name: &str| json!({"cmd":"request_spawn","name":name,"key":format!("k-{name}")});
    for (name, decision) in [("bob", "deny"), ("cid", "approve")] {
        let first = stage.ruth(&keyed(name));
        assert_eq!(stage.ruth(&keyed(name)), first, "{name}: while it waits");
        let (root, number) = (stage.crew.hive.root().to_owned(), id(&first));
        let decided = std::thread::spawn(move || cli(&root, &[decision, &number], ""));
        if decision == "approve" {
            // Its operator waits until the new agent asks for work.
            eventually("it has a socket", || stage.crew.agent(name) != Value::Null);
            stage.connect(name);
        }
        let decided = decided.join().unwrap();
        assert_eq!(decided.code, 0, "{name}: {}", decided.stderr);
        assert_eq!(stage.ruth(&keyed(name)), first, "{name}: {decision}");
        stage.disconnect();
        stage.crew.hive.restart().await.unwrap();
        assert_eq!(stage.ruth(&keyed(name)), first, "{name}: after a restart");
        assert!(stage.pending().is_empty(), "{name}: nothing is asked anew");
    }
    // Without the key it is another request, which the decision does not stand in for.
    let anew = ok(stage.ruth(&json!({"cmd":"request_spawn","name":"bob"})));
    let denied = ok(stage.ruth(&keyed("bob")));
    assert_ne!(anew["approval_id"], denied["approval_id"]);
    let taken = stage.ruth(&json!({"cmd":"request_spawn","name":"cid"}));
    assert_eq!(code(&taken), "conflict");
}
