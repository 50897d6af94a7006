//! What the operator grants, as agents feel it: tool groups, capabilities, recipients (M1, M2, C14).

use hive_testkit::hive::TestHive;
use serde_json::{Value, json};

use crate::peer::{Doors, code, hive, hive_with, ok};

/// A request of each group that changes nothing by itself, and what grants it.
fn by_group() -> Vec<(&'static str, Value)> {
    vec![
        ("messaging", json!({"cmd":"send","to":"bob","body":"x"})),
        ("meta", json!({"cmd":"list_peers"})),
        ("inbox", json!({"cmd":"get_loose_ends"})),
        ("lifecycle", json!({"cmd":"list_agents"})),
        ("scheduling", json!({"cmd":"list_schedules"})),
        ("diagnostics", json!({"cmd":"get_logs"})),
    ]
}

fn granted(hive: &TestHive, agent: &str) -> Value {
    let mut reply = ok(hive.peer(agent).ask(&json!({"cmd":"get_permissions"})));
    reply.as_object_mut().unwrap().remove("ok");
    reply
}

#[tokio::test]
async fn m1_c14_groups_hold_for_every_request_from_the_moment_they_change() {
    let mut hive = hive(&["ada", "bob"]).await;
    // One connection all the time: nothing is decided when it is made.
    let mut ada = hive.peer("ada");
    for (group, request) in by_group() {
        let is_default = ["messaging", "meta", "inbox"].contains(&group);
        assert_eq!(ada.ask(&request)["ok"], is_default, "{group}");
        let other = if is_default { "--revoke" } else { "--grant" };
        let changed = hive.cli_json(&["permissions", "ada", other, group]);
        assert_eq!(changed["agents"][0]["name"], "ada");
        let reply = ada.ask(&request);
        assert_eq!(reply["ok"], !is_default, "{group}: {reply}");
        if is_default {
            assert_eq!(code(&reply), "denied");
            let hint = reply["error"]["hint"].as_str().unwrap();
            assert!(hint.contains(&format!("--grant {group}")), "{hint}");
        }
    }
    let now = json!({"groups":["execution","lifecycle","scheduling","diagnostics"],
        "capabilities":[],"recipients":[]});
    assert_eq!(granted(&hive, "ada"), now);
    hive.restart().await.unwrap();
    assert_eq!(granted(&hive, "ada"), now, "it is on disk");
    assert_eq!(
        granted(&hive, "bob")["groups"],
        json!(["messaging", "meta", "inbox", "execution"])
    );
    hive.cli_json(&["permissions", "ada", "--reset"]);
    assert_eq!(granted(&hive, "ada"), granted(&hive, "bob"));
}

#[tokio::test]
async fn m1_what_a_harness_lives_on_needs_no_group() {
    let hive = hive(&["ada"]).await;
    let all = "messaging,meta,inbox,execution".split(',');
    let args: Vec<&str> = all.flat_map(|group| ["--revoke", group]).collect();
    hive.cli_json(&[&["permissions", "ada"][..], &args].concat());
    let mut ada = hive.peer("ada");
    for request in [
        json!({"cmd":"wake","from":"matrix","body":"x"}),
        json!({"cmd":"recv","turn":"t","req":"r"}),
        json!({"cmd":"confirm","turn":"t","req":"r"}),
        json!({"cmd":"ack_turn","turn":"t"}),
        json!({"cmd":"requeue_inflight","turn":"t"}),
        json!({"cmd":"status"}),
        json!({"cmd":"control","hello":true}),
        json!({"cmd":"post_state","turn_state":"idle","since":"2026-01-02T03:04:05Z"}),
    ] {
        ok(ada.ask(&request));
    }
    assert_eq!(
        code(&ada.ask(&json!({"cmd":"ask","question":"?"}))),
        "denied"
    );
}

#[tokio::test]
async fn m12_the_hosts_journal_needs_its_capability_and_shows_the_daemons_log() {
    let hive = hive(&["ada"]).await;
    let journal = json!({"cmd":"get_host_journal","lines":50});
    assert_eq!(code(&hive.peer("ada").ask(&journal)), "denied");
    hive.cli_json(&["permissions", "ada", "--cap", "read_host_journal"]);
    let seen = ok(hive.peer("ada").ask(&journal));
    let said = seen["journal"].as_str().unwrap();
    assert!(said.contains("up root="), "{seen}");
    hive.cli_json(&["permissions", "ada", "--revoke-cap", "read_host_journal"]);
    assert_eq!(code(&hive.peer("ada").ask(&journal)), "denied");
}

#[tokio::test]
async fn m6_the_capability_opens_the_affairs_of_others() {
    let hive = hive(&["ada", "bob"]).await;
    ok(hive
        .peer("bob")
        .ask(&json!({"cmd":"remind","message":"later","delay_seconds":900})));
    let look = json!({"cmd":"get_loose_ends","agent":"bob"});
    assert_eq!(code(&hive.peer("ada").ask(&look)), "denied");
    hive.cli_json(&["permissions", "ada", "--cap", "query_agent_state"]);
    let seen = ok(hive.peer("ada").ask(&look));
    assert_eq!(seen["loose_ends"][0]["message"], "later");
    let all = json!({"cmd":"get_loose_ends","agent":"*"});
    assert_eq!(code(&hive.peer("ada").ask(&all)), "denied");
    let id = &seen["loose_ends"][0]["reminder_id"];
    let cancel = json!({"cmd":"cancel_loose_end","kind":"reminder","reminder_id":id});
    assert_eq!(hive.peer("ada").ask(&cancel)["ok"], false, "looking is all");
}

#[tokio::test]
async fn m2_recipients_are_limited_but_never_parent_and_operator() {
    let hive = hive(&["ruth", "bob", "cid"]).await;
    let spawn = json!({"cmd":"spawn","name":"ada","parent":"ruth","runtime":"none"});
    ok(hive.operator().ask(&spawn));
    hive.cli_json(&["permissions", "ada", "--recipients", "bob,operator"]);
    let mut ada = hive.peer("ada");
    for (to, expected) in [
        ("bob", true),
        ("operator", true),
        ("<parent>", true),
        ("ruth", true),
        ("cid", false),
    ] {
        for request in [
            json!({"cmd":"send","to":to,"body":"x"}),
            json!({"cmd":"ask","to":to,"question":"?"}),
        ] {
            let reply = ada.ask(&request);
            assert_eq!(reply["ok"], expected, "{request}: {reply}");
            if !expected {
                assert_eq!(code(&reply), "denied");
            }
        }
    }
    // It may still answer whoever asked.
    let ask = json!({"cmd":"ask","question":"?","to":"ada"});
    let id = ok(hive.peer("cid").ask(&ask))["question_id"].clone();
    ok(ada.ask(&json!({"cmd":"answer","question_id":id,"answer":"so"})));
    hive.cli_json(&["permissions", "ada", "--any-recipient"]);
    ok(ada.ask(&json!({"cmd":"send","to":"cid","body":"x"})));
}

#[tokio::test]
async fn c14_a_later_agent_of_the_name_begins_with_the_defaults() {
    let hive = hive(&["ada"]).await;
    let grant = [
        "permissions",
        "ada",
        "--grant",
        "lifecycle",
        "--grant",
        "scheduling",
    ];
    hive.cli_json(&grant);
    let schedule = json!({"cmd":"schedule","prompt":"go","cron":"0 9 * * *"});
    ok(hive.peer("ada").ask(&schedule));
    let said = hive.cli(&["destroy", "ada", "--yes"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    hive.spawn_agent("ada").await.unwrap();
    assert_eq!(
        granted(&hive, "ada")["groups"],
        json!(["messaging", "meta", "inbox", "execution"])
    );
    assert_eq!(hive.cli_json(&["schedules"])["schedules"], json!([]));
}

#[tokio::test]
async fn c14_a_harness_is_told_of_its_groups_and_again_after_a_restart() {
    let mut hive = hive(&["ada"]).await;
    let mut ada = hive.peer("ada");
    ada.say(&json!({"cmd":"control","wait_seconds":60,"hello":true}));
    hive.cli_json(&["permissions", "ada", "--grant", "web_tools"]);
    let groups = json!({"kind":"tool_groups",
        "groups":["messaging","meta","inbox","execution","web_tools"]});
    assert_eq!(ok(ada.hear())["requests"][0]["action"], groups);
    let nothing = ok(ada.ask(&json!({"cmd":"control"})));
    assert_eq!(nothing["requests"], json!([]), "said once to a connection");
    hive.restart().await.unwrap();
    let again = ok(hive.peer("ada").ask(&json!({"cmd":"control","hello":true})));
    assert_eq!(again["requests"][0]["action"], groups);
}

#[tokio::test]
async fn c8_m7_the_root_agent_manages_and_alone_takes_approvals_back() {
    let hive = hive_with("", &["ada"]).await;
    drop(hive);
    let options = hive_testkit::hive::Options {
        config: "[hive]\nroot_agent = \"ruth\"\n".to_owned(),
        ..hive_testkit::hive::Options::default()
    };
    let hive = TestHive::start_with(options).await.unwrap();
    for agent in ["ruth", "ada"] {
        // `serve` may have made the root agent already.
        drop(hive.spawn_agent(agent).await);
    }
    let ruth = granted(&hive, "ruth");
    assert_eq!(ruth["is_root"], true);
    let groups = ruth["groups"].as_array().unwrap();
    assert!(groups.contains(&json!("approvals")), "{ruth}");
    let cancel = json!({"cmd":"cancel_loose_end","kind":"approval","approval_id":99});
    assert_eq!(code(&hive.peer("ada").ask(&cancel)), "denied");
    assert_eq!(code(&hive.peer("ruth").ask(&cancel)), "not_found");
}

#[tokio::test]
async fn c14_the_command_line_shows_and_refuses() {
    let hive = hive(&["ada", "bob"]).await;
    let all = hive.cli_json(&["permissions"]);
    assert_eq!(all["agents"].as_array().unwrap().len(), 2);
    assert_eq!(all["agents"][0]["changed_at"], Value::Null);
    let shown = hive.cli(&["permissions", "ada"]);
    assert!(shown.stdout.contains("everybody"), "{}", shown.stdout);
    for (args, expected) in [
        (&["permissions", "zoe"][..], 3),
        (&["permissions", "zoe", "--grant", "meta"], 3),
        (&["permissions", "ada", "--grant", "lifecycel"], 2),
        (&["permissions", "ada", "--cap", "everything"], 2),
        (&["permissions", "--grant", "meta"], 2),
        (&["permissions", "ada", "--recipients", "Ada"], 2),
        (
            &[
                "permissions",
                "ada",
                "--grant",
                "lifecycle",
                "--revoke",
                "lifecycle",
            ],
            2,
        ),
    ] {
        let said = hive.cli(args);
        assert_eq!(said.code, expected, "{args:?}: {}", said.stderr);
    }
    let guess = hive
        .cli(&["permissions", "ada", "--grant", "lifecycel"])
        .stderr;
    assert!(guess.contains("did you mean `lifecycle`?"), "{guess}");
}
