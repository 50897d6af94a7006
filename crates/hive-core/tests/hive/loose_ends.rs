//! Questions and reminders: what an agent waits for, across restarts too.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};

use crate::peer::{Doors, code, eventually, hive, hive_with, mail, ok};

/// The event in a message of the system.
fn event(reply: &Value) -> Value {
    let message = &reply["messages"][0];
    assert_eq!(message["from"], "system", "{reply}");
    serde_json::from_str(message["body"].as_str().unwrap()).unwrap()
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

#[tokio::test]
async fn m4_m5_a_question_is_answered_by_its_target_alone_and_once() {
    let hive = hive(&["ada", "bob", "eve"]).await;
    let ask = json!({"cmd":"ask","question":"which?","options":["a","b"],"to":"bob"});
    let id = ok(hive.peer("ada").ask(&ask))["question_id"].clone();
    let asked = event(&hive.peer("bob").ask(&json!({"cmd":"recv"})));
    assert_eq!(asked["event"], "question_asked");
    assert_eq!(
        (&asked["question_id"], &asked["from"]),
        (&id, &json!("ada"))
    );
    assert_eq!(asked["options"], json!(["a", "b"]));

    let answer = json!({"cmd":"answer","question_id":id,"answer":"neither"});
    for other in ["eve", "ada"] {
        assert_eq!(code(&hive.peer(other).ask(&answer)), "denied", "{other}");
    }
    let by_operator = hive.cli(&["answer", &id.to_string(), "mine"]);
    assert_eq!(by_operator.code, 5, "{}", by_operator.stderr);
    ok(hive.peer("bob").ask(&answer));
    let answered = event(&hive.peer("ada").ask(&json!({"cmd":"recv"})));
    assert_eq!(answered["event"], "question_answered");
    assert_eq!(
        (&answered["question_id"], &answered["answer"]),
        (&id, &json!("neither"))
    );
    assert_eq!(code(&hive.peer("bob").ask(&answer)), "conflict");
    let nothing = json!({"cmd":"answer","question_id":4711,"answer":""});
    assert_eq!(code(&hive.peer("bob").ask(&nothing)), "not_found");
}

#[tokio::test]
async fn m4_the_operator_is_asked_unless_somebody_is_named() {
    let hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    let id = ok(ada.ask(&json!({"cmd":"ask","question":"may I?"})))["question_id"].to_string();
    let questions = hive.cli_json(&["questions"]);
    assert_eq!(questions["questions"][0]["id"], json!(id));
    assert_eq!(questions["questions"][0]["question"], "may I?");
    ada.park(&json!({"cmd":"recv","turn":"t"}));
    assert_eq!(hive.cli(&["answer", &id, "yes"]).code, 0);
    assert_eq!(event(&ada.hear())["answer"], "yes");
    assert_eq!(hive.cli(&["answer", &id, "no"]).code, 6);
    assert_eq!(hive.cli_json(&["questions"])["questions"], json!([]));
}

#[tokio::test]
async fn m4_a_question_expires_across_a_restart() {
    let mut hive = hive(&["ada", "bob"]).await;
    let ask = json!({"cmd":"ask","question":"now?","ttl_seconds":1,"to":"bob"});
    let id = ok(hive.peer("ada").ask(&ask))["question_id"].clone();
    hive.restart().await.unwrap();
    let receive = json!({"cmd":"recv","wait_seconds":20});
    let expired = event(&hive.peer("ada").ask(&receive));
    assert_eq!(
        (&expired["question_id"], &expired["answer"]),
        (&id, &json!("[expired]"))
    );
    let late = json!({"cmd":"answer","question_id":id,"answer":"here"});
    assert_eq!(code(&hive.peer("bob").ask(&late)), "conflict");
    hive.restart().await.unwrap();
    let status = ok(hive.peer("ada").ask(&json!({"cmd":"status"})));
    assert_eq!(status["unread"], 0, "it expires once");
}

#[tokio::test]
async fn m7_only_the_asker_takes_a_question_back() {
    let hive = hive(&["ada", "bob"]).await;
    let ask = json!({"cmd":"ask","question":"which?","to":"bob"});
    let id = ok(hive.peer("ada").ask(&ask))["question_id"].clone();
    let cancel = json!({"cmd":"cancel_loose_end","kind":"question","question_id":id});
    assert_eq!(code(&hive.peer("bob").ask(&cancel)), "denied");
    let ends = ok(hive.peer("bob").ask(&json!({"cmd":"get_loose_ends"})));
    assert_eq!(ends["loose_ends"][0]["question_id"], id, "owed by bob");
    ok(hive.peer("ada").ask(&cancel));
    let told = hive.peer("bob").ask(&json!({"cmd":"recv","max":9}));
    assert_eq!(mail(&told).len(), 2);
    assert!(mail(&told)[1].0.contains("question_cancelled"), "{told}");
    let answered = event(&hive.peer("ada").ask(&json!({"cmd":"recv"})));
    assert_eq!(answered["answer"], "[cancelled by ada]");
    let ends = ok(hive.peer("bob").ask(&json!({"cmd":"get_loose_ends"})));
    assert_eq!(ends["loose_ends"], json!([]));
}

#[tokio::test]
async fn m6_loose_ends_are_shown_to_oneself_and_ones_parent() {
    let hive = hive(&["ada", "eve"]).await;
    let spawn = json!({"cmd":"spawn","name":"kid","parent":"ada","runtime":"none"});
    ok(hive.operator().ask(&spawn));
    ok(hive
        .peer("kid")
        .ask(&json!({"cmd":"remind","message":"later","delay_seconds":900})));
    let look = json!({"cmd":"get_loose_ends","agent":"kid"});
    let seen = ok(hive.peer("ada").ask(&look));
    assert_eq!(seen["loose_ends"][0]["message"], "later");
    assert_eq!(code(&hive.peer("eve").ask(&look)), "denied");
    let up = json!({"cmd":"get_loose_ends","agent":"ada"});
    assert_eq!(code(&hive.peer("kid").ask(&up)), "denied");
    let all = json!({"cmd":"get_loose_ends","agent":"*"});
    assert_eq!(code(&hive.peer("ada").ask(&all)), "denied");
}

#[tokio::test]
async fn m8_a_reminder_fires_once_across_kills() {
    let mut hive = hive(&["ada"]).await;
    let due = unix_time().as_secs() + 1;
    let soon = json!({"cmd":"remind","message":"while down","at_unix_timestamp":due});
    let later = json!({"cmd":"remind","message":"while up","delay_seconds":3});
    ok(hive.peer("ada").ask(&soon));
    ok(hive.peer("ada").ask(&later));
    hive.kill().await.unwrap();
    eventually("the first is due", || unix_time().as_secs() > due);
    hive.restart().await.unwrap();
    let mut ada = hive.peer("ada");
    for body in ["while down", "while up"] {
        let got = ada.ask(&json!({"cmd":"recv","wait_seconds":20}));
        assert_eq!(mail(&got), [(body, 1)]);
        assert_eq!(got["messages"][0]["from"], "reminder");
    }
    hive.restart().await.unwrap();
    let mut ada = hive.peer("ada");
    assert_eq!(ok(ada.ask(&json!({"cmd":"status"})))["unread"], 0);
    assert_eq!(
        ok(ada.ask(&json!({"cmd":"get_loose_ends"})))["loose_ends"],
        json!([])
    );
}

#[tokio::test]
async fn m7_m8_a_reminder_is_cancelled_by_its_owner_alone() {
    let hive = hive(&["ada", "bob"]).await;
    let remind = json!({"cmd":"remind","message":"later","delay_seconds":900});
    let id = ok(hive.peer("ada").ask(&remind))["reminder_id"].clone();
    let cancel = json!({"cmd":"cancel_loose_end","kind":"reminder","reminder_id":id});
    assert_eq!(hive.peer("bob").ask(&cancel)["ok"], false);
    ok(hive.peer("ada").ask(&cancel));
    assert_eq!(code(&hive.peer("ada").ask(&cancel)), "not_found");
    let ends = ok(hive.peer("ada").ask(&json!({"cmd":"get_loose_ends"})));
    assert_eq!(ends["loose_ends"], json!([]));
}

#[tokio::test]
async fn m4_m8_as_many_as_the_limits_say() {
    let config = "[limits]\nquestions_per_agent = 1\nreminders_per_agent = 1\n";
    let hive = hive_with(config, &["ada", "bob"]).await;
    for command in [
        json!({"cmd":"ask","question":"?"}),
        json!({"cmd":"remind","message":"!","delay_seconds":900}),
    ] {
        ok(hive.peer("ada").ask(&command));
        assert_eq!(
            code(&hive.peer("ada").ask(&command)),
            "limit_reached",
            "{command}"
        );
        ok(hive.peer("bob").ask(&command));
    }
    for bad in [
        json!({"cmd":"ask","question":"  "}),
        json!({"cmd":"ask","question":"?","ttl_seconds":0}),
        json!({"cmd":"ask","question":"x".repeat(65 * 1024)}),
        json!({"cmd":"remind","message":"!"}),
        json!({"cmd":"remind","message":"!","delay_seconds":1,"at_unix_timestamp":1}),
        json!({"cmd":"remind","message":"!","delay_seconds":40_000_000}),
    ] {
        assert_eq!(code(&hive.peer("bob").ask(&bad)), "bad_request", "{bad}");
    }
    let nobody = json!({"cmd":"ask","question":"?","to":"nobody"});
    assert_eq!(code(&hive.peer("bob").ask(&nobody)), "not_found");
}

#[tokio::test]
async fn m4_agents_that_wait_for_each_other_are_told_and_so_is_the_operator() {
    let hive = hive(&["ada", "bob", "cid"]).await;
    let ask = |from: &str, to: &str| {
        ok(hive
            .peer(from)
            .ask(&json!({"cmd":"ask","question":"first you?","to":to})))
    };
    assert_eq!(ask("ada", "bob").get("circle"), None);
    let middle = ask("bob", "cid")["question_id"].clone();
    let closing = ask("cid", "ada");
    assert_eq!(closing["circle"], json!(["cid", "ada", "bob"]));
    let again = ask("cid", "ada");
    assert_eq!(again.get("circle"), None, "said once");

    let told = hive.peer("cid").ask(&json!({"cmd":"recv","max":9}));
    let circles: Vec<Value> = mail(&told)
        .into_iter()
        .map(|(body, _)| serde_json::from_str(body).unwrap())
        .filter(|event: &Value| event["event"] == "questions_in_a_circle")
        .collect();
    assert_eq!(circles.len(), 1, "{told}");
    assert_eq!(circles[0]["question_id"], closing["question_id"]);
    let inbox = hive.cli_json(&["inbox"]);
    let letters = inbox["messages"].as_array().unwrap();
    assert_eq!(letters.len(), 1, "{inbox}");
    assert_eq!(letters[0]["from"], "system");
    let body = letters[0]["body"].as_str().unwrap();
    assert!(body.contains("cid → ada → bob → cid"), "{body}");

    // Once one of them is answered there is no circle to close.
    ok(hive
        .peer("cid")
        .ask(&json!({"cmd":"answer","question_id":middle,"answer":"me"})));
    assert_eq!(
        ask("ada", "cid").get("circle"),
        Some(&json!(["ada", "cid"]))
    );
    assert_eq!(
        ask("bob", "ada").get("circle"),
        Some(&json!(["bob", "ada"]))
    );
}

#[tokio::test]
async fn m4_a_question_ends_when_one_of_the_two_is_destroyed() {
    let hive = hive(&["ada", "bob"]).await;
    let ask = |from: &str, to: &str| {
        ok(hive
            .peer(from)
            .ask(&json!({"cmd":"ask","question":"well?","to":to})))["question_id"]
            .clone()
    };
    let (to_bob, _from_bob) = (ask("ada", "bob"), ask("bob", "operator"));
    assert_eq!(hive.cli(&["destroy", "bob", "--yes"]).code, 0);
    let answered = event(&hive.peer("ada").ask(&json!({"cmd":"recv"})));
    assert_eq!(
        (&answered["question_id"], &answered["answer"]),
        (&to_bob, &json!("[cancelled by operator]"))
    );
    assert_eq!(hive.cli_json(&["questions"])["questions"], json!([]));
}

#[tokio::test]
async fn m8_a_long_reminder_is_kept_in_a_file_and_no_link_leads_elsewhere() {
    let hive = hive(&["ada"]).await;
    let long = "x".repeat(300 * 1024);
    let remind = json!({"cmd":"remind","message":long,"delay_seconds":1});
    let refused = hive.peer("ada").ask(&remind);
    assert_eq!(
        code(&refused),
        "bad_request",
        "it runs elsewhere: no directory"
    );
    let state = hive.root().join("state/agents/ada/state");
    let elsewhere = hive.root().join("elsewhere");
    fs::create_dir_all(&state).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, state.join("reminders")).unwrap();
    assert_eq!(code(&hive.peer("ada").ask(&remind)), "bad_request");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
    fs::remove_file(state.join("reminders")).unwrap();

    ok(hive.peer("ada").ask(&remind));
    let got = hive
        .peer("ada")
        .ask(&json!({"cmd":"recv","wait_seconds":20}));
    let body = mail(&got)[0].0.to_owned();
    assert!(body.len() < 4 * 1024, "{} bytes", body.len());
    let file = body.split("the file ").nth(1).unwrap();
    let file = file.split(' ').next().unwrap();
    assert_eq!(fs::read_to_string(state.join(file)).unwrap(), long);
}

/// The files of an agent's long reminders.
fn files(dir: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.map(|file| file.path()).collect()
}

fn make_old(file: &Path) {
    let two_days_ago = SystemTime::now() - Duration::from_secs(2 * 24 * 3600);
    let file = fs::File::options().write(true).open(file).unwrap();
    file.set_modified(two_days_ago).unwrap();
}

#[tokio::test]
async fn m8_the_file_of_a_long_reminder_goes_with_it_and_not_before() {
    let mut hive = hive(&["ada"]).await;
    let dir = hive.root().join("state/agents/ada/state/reminders");
    fs::create_dir_all(&dir).unwrap();
    let long = "x".repeat(20 * 1024);
    let remind = |delay: u32| json!({"cmd":"remind","message":long,"delay_seconds":delay});

    let id = ok(hive.peer("ada").ask(&remind(900)))["reminder_id"].clone();
    assert_eq!(files(&dir).len(), 1);
    let cancel = json!({"cmd":"cancel_loose_end","kind":"reminder","reminder_id":id});
    ok(hive.peer("ada").ask(&cancel));
    eventually("it goes with what was cancelled", || files(&dir).is_empty());

    ok(hive.peer("ada").ask(&remind(1)));
    ok(hive.peer("ada").ask(&remind(900)));
    let needed = files(&dir);
    assert_eq!(needed.len(), 2);
    eventually("one has fired", || {
        ok(hive.peer("ada").ask(&json!({"cmd":"status"})))["unread"] == 1
    });
    let (own, left) = (
        dir.join("notes.md"),
        dir.join("reminder-0123456789abcdef.md"),
    );
    for file in [&own, &left] {
        fs::write(file, "").unwrap();
        make_old(file);
    }
    needed.iter().for_each(|file| make_old(file));
    hive.restart().await.unwrap();
    eventually("what nothing names goes", || !left.exists());
    assert_eq!(
        files(&dir).len(),
        3,
        "what waits to be read or to fire stays"
    );

    let got = hive.peer("ada").ask(&json!({"cmd":"recv"}));
    assert!(mail(&got)[0].0.contains("reminders/reminder-"), "{got}");
    hive.restart().await.unwrap();
    eventually("what was dealt with goes", || files(&dir).len() == 2);
    assert!(own.exists());
}

#[tokio::test]
async fn a5_one_who_waits_has_the_answer_in_the_reply_and_no_mail() {
    let hive = hive(&["ada", "bob"]).await;
    let ask = |ttl: u32| json!({"cmd":"ask","question":"may I?","wait":true,"ttl_seconds":ttl});
    let open = || {
        hive.cli_json(&["questions"])["questions"]
            .as_array()
            .unwrap()
            .clone()
    };
    let mut ada = hive.peer("ada");
    ada.say(&ask(600));
    eventually("the operator is asked", || open().len() == 1);
    let id = open()[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(hive.cli(&["answer", &id, "you may"]).code, 0);
    let answered = ok(ada.hear());
    assert_eq!(
        (answered["question_id"].to_string(), &answered["answer"]),
        (id, &json!("you may"))
    );
    // Nobody answers: the time runs out.
    assert_eq!(ok(ada.ask(&ask(1)))["answer"], "[expired]");
    // One who hangs up takes the question back.
    ada.say(&ask(600));
    eventually("the operator is asked again", || open().len() == 1);
    drop(ada);
    eventually("it is taken back", || open().is_empty());
    // Neither of the three left any mail.
    let nothing = hive.peer("ada").ask(&json!({"cmd":"recv"}));
    assert_eq!(nothing["messages"], json!([]), "{nothing}");
    // A wait has an end.
    for ttl in [0, 3_601] {
        assert_eq!(code(&hive.peer("ada").ask(&ask(ttl))), "bad_request");
    }
    // A daemon that stops lets nobody wait.
    let mut ada = hive.peer("ada");
    ada.say(&ask(600));
    eventually("the operator is asked once more", || open().len() == 1);
    let mut hive = hive;
    hive.terminate().await.unwrap();
    assert_eq!(code(&ada.hear()), "shutting_down");
}
