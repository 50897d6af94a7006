//! The checker of campaigns of turns finds every fault that is planted, and none where there is none.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use hive_testkit::turns::{
    check::{Rule, check},
    log::{Engines, Life, Log, Run, Sent, Usage},
};
use hive_wire::{
    MessageId, Timestamp,
    agent::{MessageState, Receipt},
};

fn sent(id: i64, from: &str) -> Sent {
    Sent {
        id: MessageId(id),
        key: format!("m{id}"),
        from: from.to_owned(),
        to: "ada".to_owned(),
    }
}

fn receipt(id: i64, state: MessageState, deliveries: u32) -> Receipt {
    Receipt {
        message_id: MessageId(id),
        from: "operator".parse().unwrap(),
        to: "ada".to_owned(),
        state,
        deliveries,
        turn: None,
        sent_at: Timestamp::from_millis(0),
        acked_at: None,
    }
}

fn run(id: i64, from: &str, delivery: u32, result: Option<bool>) -> Run {
    Run {
        pid: 7,
        message: MessageId(id),
        from: from.to_owned(),
        key: format!("m{id}"),
        delivery,
        is_marked: delivery > 1,
        result,
    }
}

fn usage(files: u64, memory_kib: u64) -> Usage {
    Usage {
        name: "daemon".to_owned(),
        pid: 3,
        files,
        memory_kib,
    }
}

/// One message that went well, one that was run twice within a delivery, one that needed a third
/// delivery, and one that is dead.
fn clean() -> Log {
    let mut runs = vec![
        run(1, "operator", 1, Some(true)),
        run(2, "operator", 1, Some(false)),
        Run {
            is_marked: true,
            ..run(2, "operator", 1, Some(true))
        },
        run(3, "bob", 1, None),
        run(3, "bob", 3, Some(true)),
    ];
    runs.extend((1..=5).map(|delivery| run(4, "operator", delivery, None)));
    let life = |pid, first, last| Life { pid, first, last };
    let engines = Engines {
        runs,
        lives: vec![life(7, 0, 4), life(8, 5, 9)],
        kills: 1,
    };
    let acked = MessageState::Acked;
    Log {
        dead_after: 5,
        sends: vec![
            sent(1, "operator"),
            sent(2, "operator"),
            sent(3, "bob"),
            sent(4, "operator"),
        ],
        receipts: vec![
            receipt(1, acked, 1),
            receipt(2, acked, 1),
            receipt(3, acked, 3),
            receipt(4, MessageState::Dead, 5),
        ],
        agents: [("ada".to_owned(), engines)].into(),
        usage: vec![usage(9, 900), usage(20, 9_000), usage(22, 10_000)],
        strays: Vec::new(),
    }
}

/// The log with something changed about its agent's engines.
fn with_engines(change: impl FnOnce(&mut Engines)) -> Log {
    let mut log = clean();
    change(log.agents.get_mut("ada").unwrap());
    log
}

fn with(change: impl FnOnce(&mut Log)) -> Log {
    let mut log = clean();
    change(&mut log);
    log
}

#[test]
fn a_clean_log_is_clean() {
    let report = check(&clean());
    assert!(report.is_clean(), "{report}");
    let counts = (report.sends, report.runs, report.good_runs, report.repeats);
    assert_eq!(counts, (4, 10, 3, 6));
    assert_eq!((report.acked, report.dead, report.kills), (3, 1, 1));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table, a row for each fault")]
fn every_planted_fault_is_found() {
    let cases = [
        (
            "a message without a receipt",
            Rule::Lost,
            with(|log| drop(log.receipts.remove(0))),
        ),
        (
            "a message that still waits",
            Rule::Lost,
            with(|log| log.receipts[0].state = MessageState::Stored),
        ),
        (
            "a message that a turn holds for ever",
            Rule::Lost,
            with(|log| log.receipts[0].state = MessageState::Leased),
        ),
        (
            "an ack without any run",
            Rule::AckWithoutRun,
            with_engines(|engines| engines.runs.retain(|run| run.message.0 != 1)),
        ),
        (
            "an ack after a run without a result",
            Rule::AckWithoutRun,
            with_engines(|engines| engines.runs[0].result = None),
        ),
        (
            "an ack after a run with a bad result",
            Rule::AckWithoutRun,
            with_engines(|engines| engines.runs[0].result = Some(false)),
        ),
        (
            "an ack for a good run of an earlier delivery",
            Rule::AckWithoutRun,
            with_engines(|engines| {
                engines.runs[3].result = Some(true);
                engines.runs[4].result = None;
            }),
        ),
        (
            "a run after the ack",
            Rule::RunAgain,
            with_engines(|engines| engines.runs.push(run(4, "operator", 6, Some(true)))),
        ),
        (
            "a repeat that does not say so",
            Rule::Unmarked,
            with_engines(|engines| engines.runs[2].is_marked = false),
        ),
        (
            "a repeat with the number of the first delivery",
            Rule::Unmarked,
            with_engines(|engines| engines.runs[9].delivery = 3),
        ),
        (
            "messages of one sender the wrong way round",
            Rule::Order,
            with_engines(|engines| engines.runs.swap(0, 1)),
        ),
        (
            "a message that nobody sent",
            Rule::Invented,
            with(|log| drop(log.sends.remove(0))),
        ),
        (
            "a message with the body of another",
            Rule::Invented,
            with_engines(|engines| engines.runs[0].key = "m2".to_owned()),
        ),
        (
            "a message in the name of another",
            Rule::Invented,
            with_engines(|engines| engines.runs[0].from = "bob".to_owned()),
        ),
        (
            "a dead letter after too few deliveries",
            Rule::DeadTooEarly,
            with(|log| log.receipts[3].deliveries = 4),
        ),
        (
            "a dead letter whose runs went well",
            Rule::DeadTooEarly,
            with_engines(|engines| {
                for run in &mut engines.runs[5..7] {
                    run.result = Some(true);
                }
            }),
        ),
        (
            "two engines at once",
            Rule::TwoEngines,
            with_engines(|engines| engines.lives[0].last = 6),
        ),
        (
            "a process that is left",
            Rule::Stray,
            with(|log| log.strays.push("process 9: sleep 600".to_owned())),
        ),
        (
            "files that pile up",
            Rule::Growth,
            with(|log| log.usage[2].files = 40),
        ),
        (
            "memory that piles up",
            Rule::Growth,
            with(|log| log.usage[2].memory_kib = 20_000),
        ),
    ];
    for (name, rule, log) in cases {
        let report = check(&log);
        assert!(report.found(rule), "{name}: {report}");
    }
}
