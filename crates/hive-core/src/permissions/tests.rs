use super::*;

/// Every command with the least that it takes, and what it needs.
const COMMANDS: &[(&str, &str, Need)] = &[
    (
        "send",
        r#""to":"bob","body":"x""#,
        Need::Group(Group::Messaging),
    ),
    ("recv", r#""max":1"#, Need::Nothing),
    ("confirm", r#""turn":"t","req":"r""#, Need::Nothing),
    ("ack_turn", r#""turn":"t""#, Need::Nothing),
    ("requeue_inflight", r#""turn":"t""#, Need::Nothing),
    ("status", "", Need::Nothing),
    ("wake", r#""from":"matrix","body":"x""#, Need::Nothing),
    ("ask", r#""question":"why?""#, Need::Group(Group::Messaging)),
    (
        "answer",
        r#""question_id":1,"answer":"so""#,
        Need::Group(Group::Messaging),
    ),
    ("get_loose_ends", "", Need::Group(Group::Inbox)),
    (
        "cancel_loose_end",
        r#""kind":"reminder","reminder_id":1"#,
        Need::Group(Group::Inbox),
    ),
    (
        "remind",
        r#""message":"x","delay_seconds":1"#,
        Need::Group(Group::Inbox),
    ),
    ("receipt", r#""message_id":1"#, Need::Nothing),
    ("set_status", r#""text":"x""#, Need::Group(Group::Meta)),
    ("get_agent_meta", "", Need::Group(Group::Meta)),
    ("list_peers", "", Need::Group(Group::Meta)),
    (
        "post_turn_counts",
        r#""turn":"t","kind":"mail","started_at":"2026-01-02T03:04:05Z","duration_ms":1,"outcome":"ok""#,
        Need::Nothing,
    ),
    (
        "post_state",
        r#""turn_state":"idle","since":"2026-01-02T03:04:05Z""#,
        Need::Nothing,
    ),
    ("post_events", r#""epoch":"e","events":[]"#, Need::Nothing),
    ("control", "", Need::Nothing),
    ("get_permissions", "", Need::Nothing),
    ("kill", r#""name":"bob""#, Need::Group(Group::Lifecycle)),
    ("start", r#""name":"bob""#, Need::Group(Group::Lifecycle)),
    ("restart", r#""name":"bob""#, Need::Group(Group::Lifecycle)),
    ("list_agents", "", Need::Group(Group::Lifecycle)),
    (
        "request_spawn",
        r#""name":"bob""#,
        Need::Group(Group::Approvals),
    ),
    (
        "request_apply_commit",
        r#""agent":"bob","commit_ref":"main""#,
        Need::Group(Group::Approvals),
    ),
    (
        "schedule",
        r#""prompt":"x","cron":"0 9 * * *""#,
        Need::Group(Group::Scheduling),
    ),
    ("list_schedules", "", Need::Group(Group::Scheduling)),
    (
        "cancel_schedule",
        r#""schedule_id":1"#,
        Need::Group(Group::Scheduling),
    ),
    ("get_logs", "", Need::Group(Group::Diagnostics)),
    (
        "get_host_journal",
        "",
        Need::Capability(Capability::ReadHostJournal),
    ),
];

fn name(text: &str) -> AgentName {
    text.parse().unwrap()
}

fn request(cmd: &str, fields: &str) -> AgentRequest {
    let comma = if fields.is_empty() { "" } else { "," };
    let line = format!("{{\"cmd\":\"{cmd}\"{comma}{fields}}}");
    AgentRequest::parse(cmd, line.as_bytes()).unwrap()
}

fn with(groups: &[Group], capabilities: &[Capability]) -> Grants {
    Grants {
        groups: groups.iter().copied().collect(),
        capabilities: capabilities.iter().copied().collect(),
        ..Grants::default()
    }
}

#[test]
fn m1_every_command_by_every_group_and_capability() {
    let listed: Vec<&str> = COMMANDS.iter().map(|(cmd, ..)| *cmd).collect();
    for known in AgentRequest::NAMES {
        assert!(listed.contains(known), "`{known}` is not in the table");
    }
    for (cmd, fields, needed) in COMMANDS {
        let request = request(cmd, fields);
        assert_eq!(need(&request), *needed, "{cmd}");
        let may = |grants: &Grants| check(&name("ada"), &request, grants).is_ok();
        for group in Group::ALL {
            let expected = matches!(needed, Need::Nothing) || *needed == Need::Group(*group);
            assert_eq!(may(&with(&[*group], &[])), expected, "{cmd} with {group}");
            let others: Vec<_> = Group::ALL.iter().copied().filter(|g| g != group).collect();
            let expected = !matches!(needed, Need::Capability(_)) && *needed != Need::Group(*group);
            assert_eq!(may(&with(&others, &[])), expected, "{cmd} without {group}");
        }
        for capability in Capability::ALL {
            let expected =
                matches!(needed, Need::Nothing) || *needed == Need::Capability(*capability);
            assert_eq!(
                may(&with(&[], &[*capability])),
                expected,
                "{cmd} with {capability}"
            );
        }
        assert!(may(&with(Group::ALL, Capability::ALL)), "{cmd}");
    }
}

#[test]
fn m1_a_refusal_says_what_is_lacking_and_who_can_grant_it() {
    let nothing = with(&[], &[]);
    for (cmd, fields, remedy) in [
        ("send", COMMANDS[0].1, "permissions ada --grant messaging"),
        (
            "get_host_journal",
            "",
            "permissions ada --cap read_host_journal",
        ),
    ] {
        let error = check(&name("ada"), &request(cmd, fields), &nothing).unwrap_err();
        assert_eq!(error.code, ErrorCode::Denied);
        assert!(error.message.contains(cmd), "{error}");
        assert!(error.hint.contains(remedy), "{}", error.hint);
        assert!(error.hint.contains("operator"), "{}", error.hint);
    }
}

#[test]
fn m1_the_defaults_are_four_groups_and_the_root_agent_manages() {
    let groups = |is_root| Grants::defaults(is_root).groups().join();
    assert_eq!(groups(false), "messaging,meta,inbox,execution");
    assert_eq!(
        groups(true),
        "messaging,meta,inbox,execution,lifecycle,approvals,scheduling,diagnostics"
    );
}

#[test]
fn m2_recipients_are_limited_and_parent_and_operator_always_reachable() {
    let to = |text: &str| text.parse::<Recipient>().unwrap();
    let may = |list: &[&str], whom: &str| {
        let grants = Grants {
            recipients: list.iter().map(|name| to(name)).collect(),
            ..Grants::default()
        };
        let (ada, ruth) = (name("ada"), name("ruth"));
        grants.check_recipient(&ada, Some(&ruth), &to(whom)).is_ok()
    };
    for (list, whom, expected) in [
        (&[][..], "bob", true),
        (&["bob"], "bob", true),
        (&["bob"], "cid", false),
        (&["bob"], "ruth", true),
        (&["bob"], "operator", true),
        (&["bob"], "ada", true),
        (&["operator"], "bob", false),
        (&["operator"], "ruth", true),
    ] {
        assert_eq!(may(list, whom), expected, "{list:?} → {whom}");
    }
}

#[test]
fn c14_a_change_gives_takes_and_begins_anew() {
    let change = SetPermissions {
        name: name("ada"),
        reset: false,
        grant: vec![Group::Scheduling],
        revoke: vec![Group::Messaging],
        grant_capabilities: vec![Capability::QueryAgentState],
        revoke_capabilities: vec![Capability::ReadHostJournal],
        recipients: Some(vec![Recipient::Operator]),
    };
    let now = Timestamp::from_millis(5);
    let before = with(
        &[Group::Messaging, Group::Meta],
        &[Capability::ReadHostJournal],
    );
    let after = before.changed(&change, now).unwrap();
    assert_eq!(after.groups.join(), "meta,scheduling");
    assert!(after.has(Capability::QueryAgentState) && !after.has(Capability::ReadHostJournal));
    assert_eq!(after.shown().recipients, [Recipient::Operator]);
    assert_eq!(after.changed_at(), Some(now));
    let kept = SetPermissions {
        recipients: None,
        ..change.clone()
    };
    assert_eq!(
        after.changed(&kept, now).unwrap().shown().recipients,
        [Recipient::Operator]
    );
    let anew = SetPermissions {
        reset: true,
        grant: vec![],
        revoke: vec![],
        grant_capabilities: vec![],
        revoke_capabilities: vec![],
        recipients: None,
        ..change.clone()
    };
    let defaults = after.changed(&anew, now).unwrap();
    assert_eq!(defaults.shown(), Grants::defaults(false).shown());
    let torn = SetPermissions {
        revoke: vec![Group::Scheduling],
        ..change
    };
    let error = before.changed(&torn, now).unwrap_err();
    assert_eq!(error.code, ErrorCode::BadRequest);
}

#[test]
fn c14_what_is_stored_is_read_back_and_unknown_words_grant_nothing() {
    let grants = Grants {
        recipients: [Recipient::Operator, Recipient::Agent(name("bob"))].into(),
        changed_at: Some(Timestamp::from_millis(7)),
        ..with(&[Group::Meta, Group::WebTools], Capability::ALL)
    };
    let back = Grants::stored(false, &grants.to_store(), Timestamp::from_millis(7));
    assert_eq!(back, grants);
    let strange = Permissions {
        groups: vec!["root".to_owned()],
        capabilities: vec!["everything".to_owned()],
        recipients: vec!["<parent>".to_owned()],
    };
    let read = Grants::stored(false, &strange, Timestamp::from_millis(7));
    assert_eq!(read.groups.iter().count(), 0);
    assert_eq!(
        read.shown().recipients,
        [Recipient::Operator],
        "a list that cannot be read stays a limit"
    );
}

#[test]
fn a_gate_lets_through_what_was_granted_last_and_no_faster_than_allowed() {
    let rate = Rate {
        per_minute: 1,
        burst: 2,
    };
    let stored = vec![(
        name("bob"),
        with(&[Group::Meta], &[]).to_store(),
        Timestamp::from_millis(1),
    )];
    let gate = Gate::new("ruth", rate, stored);
    let (ada, bob, ruth) = (name("ada"), name("bob"), name("ruth"));
    let send = request("send", COMMANDS[0].1);
    assert_eq!(
        gate.admit(&bob, &send, 40).unwrap_err().code,
        ErrorCode::Denied
    );
    assert!(gate.grants(&ruth).is_root());
    assert!(gate.admit(&ada, &send, 40).is_ok());
    assert!(gate.admit(&ada, &send, 40).is_ok());
    let error = gate.admit(&ada, &send, 40).unwrap_err();
    assert_eq!(error.code, ErrorCode::LimitReached);
    assert!(error.hint.contains("wait 60 s"), "{}", error.hint);
    let read = request("list_peers", "");
    assert!(gate.admit(&ada, &read, 40).is_ok(), "reading is free");
    assert!(
        gate.admit(&ruth, &send, 40).is_ok(),
        "each has its own bucket"
    );
    gate.set(&ada, with(&[], &[]));
    assert_eq!(
        gate.admit(&ada, &read, 40).unwrap_err().code,
        ErrorCode::Denied
    );
    gate.forget(&ada);
    assert!(gate.admit(&ada, &read, 40).is_ok(), "the defaults again");
}
