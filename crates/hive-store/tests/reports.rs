//! What agents report of themselves: kept once, bounded by number and age, summed up by day.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "common/hive.rs"]
mod common;

use std::time::Duration;

use common::{DAY, Hive, agent, at};
use hive_store::sqlite::{Retention, StatusLine};
use hive_wire::{
    MessageId, TurnRowId,
    host::{DayTotal, TurnRow},
    report::{PostTurnCounts, ToolCount, TurnKind},
};

fn counts(turn: &str, outcome: &str) -> PostTurnCounts {
    PostTurnCounts {
        turn: turn.parse().unwrap(),
        kind: TurnKind::Mail,
        started_at: at(1_000),
        duration_ms: 50,
        engine_ms: 40,
        model: "haiku".into(),
        input_tokens: 1,
        output_tokens: 2,
        cache_read_tokens: 3,
        cache_creation_tokens: 4,
        cost_micro_usd: 5,
        context_tokens: 6,
        window: 7,
        outcome: outcome.into(),
        note: Some("a note".into()),
        session_id: Some("s".into()),
        messages: vec![MessageId(9)],
        tools: vec![ToolCount {
            name: "Read".into(),
            count: 2,
        }],
    }
}

fn keep(hive: &mut Hive, name: &str, counts: &PostTurnCounts) -> bool {
    hive.run(|tx| tx.keep_turn_counts(&agent(name), counts, 5))
}

fn page(hive: &Hive, before: Option<TurnRowId>, limit: u32) -> Vec<TurnRow> {
    let page = hive.readers().turn_rows(&agent("ada"), before, limit);
    page.unwrap().rows
}

fn totals(hive: &Hive, days: u32) -> Vec<DayTotal> {
    let now = at(hive.clock);
    hive.readers().turn_totals(None, days, now).unwrap().rows
}

#[test]
fn m10_a_status_line_survives_a_crash() {
    let mut hive = Hive::new();
    hive.run(|tx| tx.set_status(&agent("ada"), "first"));
    let line = hive.run(|tx| tx.set_status(&agent("ada"), "reading"));
    assert_eq!(line.set_at, Some(at(hive.clock)));
    keep(&mut hive, "bob", &counts("t", "ok"));
    hive.crash();
    let lines = hive.readers().status_lines().unwrap();
    assert_eq!(lines, [(agent("ada"), line)], "bob never said anything");
    let cleared = hive.run(|tx| tx.set_status(&agent("ada"), ""));
    assert_ne!(
        cleared,
        StatusLine::default(),
        "when it was cleared is known"
    );
}

#[test]
fn t12_the_same_run_is_one_row_however_often_it_is_posted() {
    let mut hive = Hive::new();
    let first = counts("t-1", "ok");
    assert!(keep(&mut hive, "ada", &first));
    hive.crash();
    assert!(!keep(&mut hive, "ada", &first));
    assert!(
        !keep(&mut hive, "ada", &counts("t-1", "failed")),
        "the first word counts"
    );
    let mut checkpoint = first.clone();
    checkpoint.kind = TurnKind::Checkpoint;
    assert!(keep(&mut hive, "ada", &checkpoint));
    let mut later = first.clone();
    later.started_at = at(2_000);
    assert!(keep(&mut hive, "ada", &later));
    assert!(keep(&mut hive, "bob", &first), "of another agent");
    let rows = page(&hive, None, 10);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2].counts, first, "it comes back as it was");
    assert_eq!(totals(&hive, 1).iter().map(|day| day.turns).sum::<u64>(), 4);
}

#[test]
fn t12_pages_go_from_the_newest_to_the_oldest() {
    let mut hive = Hive::new();
    for n in 0..5 {
        keep(&mut hive, "ada", &counts(&format!("t-{n}"), "ok"));
        keep(&mut hive, "bob", &counts(&format!("t-{n}"), "ok"));
    }
    let names = |rows: &[TurnRow]| -> Vec<String> {
        let turns = rows.iter().map(|row| row.counts.turn.to_string());
        turns.collect()
    };
    let first = page(&hive, None, 2);
    assert_eq!(names(&first), ["t-4", "t-3"]);
    let second = page(&hive, Some(first[1].turn_row_id), 2);
    assert_eq!(names(&second), ["t-2", "t-1"]);
    let last = page(&hive, Some(second[1].turn_row_id), 2);
    assert_eq!(names(&last), ["t-0"]);
    assert_eq!(page(&hive, Some(last[0].turn_row_id), 2), []);
}

#[test]
fn t12_an_agent_keeps_its_newest_rows_and_all_of_its_sums() {
    let mut hive = Hive::new();
    keep(&mut hive, "bob", &counts("t", "ok"));
    for n in 0..12 {
        keep(&mut hive, "ada", &counts(&format!("t-{n}"), "ok"));
    }
    let rows = page(&hive, None, 50);
    assert_eq!(rows.len(), 5);
    assert_eq!(rows[4].counts.turn.as_str(), "t-7");
    assert_eq!(
        hive.readers().turn_row_counts(&agent("ada")).unwrap(),
        (5, 5)
    );
    assert_eq!(
        hive.readers().turn_row_counts(&agent("bob")).unwrap(),
        (1, 1)
    );
    let days = totals(&hive, 1);
    assert_eq!(days.len(), 2);
    assert_eq!((days[0].agent.as_str(), days[0].turns), ("ada", 12));
}

#[test]
fn t12_sums_tell_failures_from_what_was_put_off() {
    let mut hive = Hive::new();
    for (n, outcome) in [
        "ok",
        "compacted",
        "failed",
        "crash",
        "rate_limited",
        "interrupted",
    ]
    .into_iter()
    .enumerate()
    {
        let mut counts = counts(&format!("t-{n}"), outcome);
        counts.context_tokens = [6, 90, 40][n % 3];
        keep(&mut hive, "ada", &counts);
    }
    let yesterday = totals(&hive, 1).remove(0);
    hive.clock += DAY;
    keep(&mut hive, "ada", &counts("t-9", "ok"));
    let days = totals(&hive, 7);
    assert_eq!(days.len(), 2, "{days:?}");
    assert_eq!(days[1], yesterday);
    assert_eq!(
        (yesterday.turns, yesterday.failed, yesterday.deferred),
        (6, 2, 2)
    );
    assert_eq!((yesterday.input_tokens, yesterday.output_tokens), (6, 12));
    assert_eq!(
        (yesterday.cache_read_tokens, yesterday.cache_creation_tokens),
        (18, 24)
    );
    assert_eq!((yesterday.cost_micro_usd, yesterday.duration_ms), (30, 300));
    assert_eq!(yesterday.context_tokens, 90, "at its fullest");
    assert!(days[0].day > days[1].day, "newest first");
    assert_eq!(totals(&hive, 1).len(), 1, "today alone");
    let one = hive
        .readers()
        .turn_totals(Some(&agent("bob")), 7, at(hive.clock));
    assert_eq!(one.unwrap().rows, []);
}

#[test]
fn c16_old_rows_and_very_old_sums_are_forgotten() {
    let mut hive = Hive::new();
    let retention = Retention {
        messages: Duration::from_secs(30 * 24 * 60 * 60),
    };
    keep(&mut hive, "ada", &counts("old", "ok"));
    hive.clock += 31 * DAY;
    keep(&mut hive, "ada", &counts("new", "ok"));
    let pruned = hive.run(|tx| tx.prune(retention, 100));
    assert_eq!(pruned.turn_counts, 1);
    let rows = page(&hive, None, 10);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].counts.turn.as_str(), "new");
    assert_eq!(
        hive.readers().turn_row_counts(&agent("ada")).unwrap(),
        (1, 1)
    );
    assert_eq!(totals(&hive, 400).len(), 2, "sums stay");
    hive.clock += 380 * DAY;
    hive.run(|tx| tx.prune(retention, 100));
    assert_eq!(totals(&hive, 4_000).len(), 1);
}
