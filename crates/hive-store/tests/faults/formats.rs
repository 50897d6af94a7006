//! Formats: from every earlier one to the newest, none from the future.

use hive_store::{Mail, Receive, StoreError, mail::Verdict, sqlite::MIGRATIONS};
use hive_wire::{
    MessageId,
    agent::{MessageState, TurnResult},
};

use crate::common::{Hive, agent, receive};

/// Rows as each format has them, by format. A new migration adds a line here.
const SAMPLES: &[&str] = &[
    "",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 0);
     INSERT INTO agents (name, runtime, port, created_at) VALUES ('ada', 'none', 8000, 5);
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);
     INSERT INTO messages VALUES
       (1, 'bob', 'ada', 'acked', NULL, NULL, 1000, 5, 1648208861),
       (2, 'bob', 'ada', 'dead', 1, 1, 1001, 4, 3619305896),
       (3, 'bob', 'ada', 'discarded', NULL, NULL, 1002, 9, 364024766),
       (4, 'bob', 'ada', 'held', NULL, NULL, 1003, 4, 697557347),
       (5, 'bob', 'ada', 'waits', NULL, NULL, 1004, 5, 2014179882),
       (6, 'ada', 'operator', 'for the operator', NULL, NULL, 1005, 16, 1569581979);
     INSERT INTO mail VALUES ('ada', 3, 2, 5, 5, 2, NULL, 0), ('ada', 1, 4, 2, 1, 3, 'r1', 1),
       ('ada', 0, 5, 0, 0, NULL, NULL, 0), ('operator', 0, 6, 0, 0, NULL, NULL, 0);
     INSERT INTO receipts VALUES (1, 2, 1, 1, 2000), (3, 4, 5, 2, 2001);
     INSERT INTO turns VALUES (1, 'ada', 't1', 1500, 2000, 1, 1, 0, 0),
       (2, 'ada', 't2', 2000, 2001, 2, 0, 0, 2);
     INSERT INTO open_turns VALUES ('ada', 3, 't3', 2500), ('bob', 4, 'empty', 2501);
     INSERT INTO send_keys VALUES ('bob', 'k', 5, 1004);
     INSERT INTO correspondence VALUES ('ada', 1), ('bob', 1);
     INSERT INTO questions (asker, target, question, options, multi, asked_at)
       VALUES ('ada', 'operator', 'why?', '[]', 0, 9);
     INSERT INTO schedules (agent, prompt, next_at, created_at) VALUES ('ada', 'go', 8, 7);
     INSERT INTO approvals (kind, agent, requested_by, diff, hash, reason, state, created_at)
       VALUES ('spawn', 'cid', 'ada', '', 'h', 'help', 0, 6);
     INSERT INTO permissions VALUES ('ada', '[]', '[]', 5);",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 0);
     INSERT INTO agents (name, runtime, port, created_at) VALUES ('ada', 'none', 8000, 5);
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 0);
     INSERT INTO agents (name, runtime, port, created_at, wanted, engine, generation) \
       VALUES ('ada', 'process', 8000, 5, 1, 'claude', 3);
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 0);
     INSERT INTO agents (name, runtime, port, created_at, wanted, engine, generation) \
       VALUES ('ada', 'process', 8000, 5, 1, 'claude', 3);
     INSERT INTO agent_reports VALUES ('ada', 'reading', 6, 0);
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 0);
     INSERT INTO agents (name, runtime, port, created_at, wanted, engine, generation) \
       VALUES ('ada', 'process', 8000, 5, 1, 'claude', 3);
     INSERT INTO approvals (kind, agent, requested_by, diff, hash, reason, state, created_at, parent)
       VALUES ('spawn', 'cid', 'ada', '', 'h', 'help', 0, 6, 'ada');
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 0);
     INSERT INTO agents (name, runtime, port, created_at, wanted, engine, generation) \
       VALUES ('ada', 'process', 8000, 5, 1, 'claude', 3);
     INSERT INTO permissions VALUES ('ada', '[\"meta\"]', '[]', 5, '[\"operator\"]');
     INSERT INTO schedules (agent, prompt, next_at, created_at, fired_at, message, missed) \
       VALUES ('ada', 'go', 8, 7, 7, 1, 2);
     INSERT INTO command_keys VALUES ('ada', 'k', 'remind 1', '{}', 5);
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 0);
     INSERT INTO agents (name, runtime, port, created_at, wanted, engine, generation) \
       VALUES ('ada', 'process', 8000, 5, 1, 'claude', 3);
     INSERT INTO model_spend VALUES (1, 'ada', 1, 2, 3, 4, 5, 6);
     INSERT INTO budget_days VALUES (1, 'ada', 1, 9, 0);
     INSERT INTO pauses VALUES ('ada', 'budget', 5, 'spent');
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 1);
     INSERT INTO agents (name, runtime, port, created_at, wanted, engine, generation) \
       VALUES ('ada', 'process', 8000, 5, 1, 'claude', 3);
     INSERT INTO messages VALUES (1, 'bob', 'ada', 'acked', NULL, NULL, 1000, 5, 1648208861);
     INSERT INTO receipts VALUES (1, 2, 1, 1, 2000);
     INSERT INTO correspondence VALUES ('ada', 1, x'00000000'), ('bob', 1, x'00000000');
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 0);
     INSERT INTO agents (name, runtime, port, created_at, wanted, engine, generation) \
       VALUES ('ada', 'process', 8000, 5, 1, 'claude', 3);
     UPDATE redo SET number = 17;
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 0);
     INSERT INTO agents (name, runtime, port, created_at, wanted, engine, generation) \
       VALUES ('ada', 'process', 8000, 5, 1, 'claude', 3);
     INSERT INTO turn_totals VALUES (1, 'ada', 1, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8);
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);",
    "INSERT INTO meta VALUES ('hive_id', '00112233445566778899aabbccddeeff'), \
       ('indexed_messages', 0);
     INSERT INTO agents (name, runtime, port, created_at, wanted, engine, generation, restarts, \
       restarted_at) VALUES ('ada', 'process', 8000, 5, 1, 'claude', 3, 2, 9);
     INSERT INTO reminders (agent, body, due_at) VALUES ('ada', 'soon', 7);",
];

/// Makes a database of an earlier format with rows in it, and leaves it where the hive looks.
fn lay_down(hive: &Hive, format: usize) {
    for suffix in ["", "-wal", "-shm", "-id", "-mark", "-redo"] {
        let file = hive.file(suffix);
        if file.exists() {
            std::fs::remove_file(file).unwrap();
        }
    }
    let raw = hive.raw();
    for script in &MIGRATIONS[..format] {
        raw.execute_batch(script).unwrap();
    }
    raw.execute_batch(SAMPLES[format]).unwrap();
    raw.pragma_update(None, "user_version", u32::try_from(format).unwrap())
        .unwrap();
    raw.close().unwrap();
}

#[test]
fn every_earlier_format_is_brought_to_the_newest() {
    assert_eq!(
        SAMPLES.len(),
        MIGRATIONS.len() + 1,
        "each format has its sample"
    );
    for format in 0..SAMPLES.len() {
        let mut hive = Hive::new();
        hive.stop();
        lay_down(&hive, format);
        hive.start().unwrap();
        let newest: u32 = hive
            .raw()
            .pragma_query_value(None, "user_version", |row| row.get(0))
            .unwrap();
        assert_eq!(newest as usize, MIGRATIONS.len());
        if format > 0 {
            assert!(
                hive.run(|tx| tx.agent(&agent("ada"))).is_some(),
                "format {format}"
            );
            assert_eq!(hive.run(|tx| tx.take_due_reminders(100)).len(), 1);
        }
        let id = hive.send("bob", "ada", "works");
        hive.crash();
        assert!(hive.run(|tx| tx.receipt(id)).is_some());
    }
}

#[test]
fn mail_and_turns_of_the_first_format_go_on() {
    let mut hive = Hive::new();
    hive.stop();
    lay_down(&hive, 1);
    hive.start().unwrap();
    let look = |hive: &mut Hive, id: i64| {
        let receipt = hive.run(|tx| tx.receipt(MessageId(id))).unwrap();
        let turn = receipt.turn.map(|turn| turn.to_string());
        (receipt.state, receipt.deliveries, turn)
    };
    let named = |turn: &str| Some(turn.to_owned());
    for (id, receipt) in [
        (1, (MessageState::Acked, 1, named("t1"))),
        (2, (MessageState::Dead, 5, named("t2"))),
        (3, (MessageState::Discarded, 5, named("t2"))),
        (4, (MessageState::Leased, 2, named("t3"))),
        (5, (MessageState::Stored, 0, None)),
    ] {
        assert_eq!(look(&mut hive, id), receipt, "message {id}");
    }
    let ada = agent("ada");
    let end = |hive: &mut Hive, name: &str, turn: &str| {
        let (name, turn) = (agent(name), turn.parse().unwrap());
        hive.run(|tx| tx.ack_turn(&name, &turn, &[])).result
    };
    assert_eq!(end(&mut hive, "ada", "t1"), TurnResult::Already);
    assert_eq!(end(&mut hive, "ada", "t2"), TurnResult::Superseded);
    assert_eq!(
        hive.run(|tx| tx.open_turn_id(&agent("bob"))),
        Some("empty".parse().unwrap())
    );
    let repeated = Receive {
        req: Some("r1".parse().unwrap()),
        ..receive("ada", "t3", 9)
    };
    let held = hive.run(|tx| tx.receive(&repeated)).messages;
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].id, held[0].delivery), (MessageId(4), 2));
    let closed = hive.run(|tx| tx.ack_turn(&ada, &"t3".parse().unwrap(), &[]));
    assert_eq!((closed.acked, closed.requeued), (1, 0), "it was confirmed");
    assert_eq!(end(&mut hive, "bob", "empty"), TurnResult::Acked);
    assert_eq!(hive.take("ada", 9), [MessageId(5)]);
    let redelivered = hive.run(|tx| tx.settle(MessageId(2), Verdict::Redeliver));
    assert_eq!(redelivered, MessageState::Stored);
    assert_eq!(hive.take("ada", 9), [MessageId(2)]);
    assert_eq!(hive.readers().operator_inbox(None).unwrap().rows.len(), 1);
    hive.restart();
    assert_eq!(look(&mut hive, 4), (MessageState::Acked, 2, named("t3")));
    assert_eq!(hive.run(|tx| tx.open_turn_id(&ada)), None);
}

#[test]
fn a_journal_beside_an_older_format_is_told() {
    for format in [1, 8] {
        let mut hive = Hive::new();
        hive.send_durably("bob", "ada", "answered");
        hive.kill();
        let kept: Vec<_> = ["-redo", "-mark"]
            .map(|suffix| (suffix, std::fs::read(hive.file(suffix)).unwrap()))
            .into();
        // An older state of the same hive.
        let id = std::fs::read_to_string(hive.file("-id")).unwrap();
        lay_down(&hive, format);
        let raw = hive.raw();
        let set_id = "UPDATE meta SET value = ?1 WHERE key = 'hive_id'";
        raw.execute(set_id, [id.trim()]).unwrap();
        raw.close().unwrap();
        for (suffix, bytes) in &kept {
            std::fs::write(hive.file(suffix), bytes).unwrap();
        }
        for file in ["-mark", "-redo"] {
            let error = hive.start().unwrap_err();
            assert!(matches!(error, StoreError::LostCommits { .. }), "{error}");
            std::fs::remove_file(hive.file(file)).unwrap();
        }
        hive.start().unwrap();
    }
}

#[test]
fn a_newer_format_is_refused_untouched() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "kept");
    hive.stop();
    let newer = u32::try_from(MIGRATIONS.len()).unwrap() + 1;
    let raw = hive.raw();
    raw.pragma_update(None, "user_version", newer).unwrap();
    raw.close().unwrap();
    let error = hive.start().unwrap_err();
    let StoreError::TooNew { found, known, .. } = &error else {
        panic!("{error}")
    };
    assert_eq!((*found, *known), (newer, newer - 1));
    assert!(error.remedy().contains("newer"), "{}", error.remedy());
    let raw = hive.raw();
    raw.pragma_update(None, "user_version", newer - 1).unwrap();
    raw.close().unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9).len(), 1);
}

#[test]
fn a_migration_that_fails_halfway_leaves_nothing() {
    let mut hive = Hive::new();
    hive.stop();
    lay_down(&hive, 0);
    // The last table of the first script is in the way.
    let raw = hive.raw();
    raw.execute_batch("CREATE TABLE permissions (x)").unwrap();
    raw.close().unwrap();
    let error = hive.start().unwrap_err();
    assert!(matches!(error, StoreError::Sqlite(_)), "{error}");
    let raw = hive.raw();
    let tables: Vec<String> = raw
        .prepare("SELECT name FROM sqlite_schema")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(tables, ["permissions"]);
    raw.execute_batch("DROP TABLE permissions").unwrap();
    raw.close().unwrap();
    hive.start().unwrap();
    assert_eq!(hive.send("bob", "ada", "works").0, 1);
}
