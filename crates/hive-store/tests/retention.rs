//! Forgetting what is old, and reading what is left.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "common/hive.rs"]
mod common;

use std::{collections::BTreeSet, time::Duration};

use common::{DAY, Hive, agent, at, message, receive};
use hive_store::{
    Mail, NewMessage, Refusal,
    mail::Verdict,
    sqlite::{HistoryQuery, Pruned, Retention},
};
use hive_wire::{
    MessageId,
    agent::{MessageState, RequeueReason, TurnResult},
};

const WEEK: Retention = Retention {
    messages: Duration::from_secs(7 * 24 * 60 * 60),
};

fn prune(hive: &mut Hive, limit: u32) -> Pruned {
    hive.run(|tx| tx.prune(WEEK, limit))
}

/// Prunes to the end; how many steps it took.
fn prune_all(hive: &mut Hive, limit: u32) -> u32 {
    let mut steps = 1;
    while prune(hive, limit).more {
        steps += 1;
        assert!(steps < 10_000, "it never ends");
    }
    steps
}

fn history(hive: &Hive, query: &HistoryQuery) -> Vec<MessageId> {
    let rows = hive.readers().history(query).unwrap();
    rows.rows
        .into_iter()
        .map(|row| row.receipt.message_id)
        .collect()
}

fn with(party: &str) -> HistoryQuery {
    HistoryQuery {
        with: Some(party.to_owned()),
        limit: 1_000,
        ..HistoryQuery::default()
    }
}

#[test]
fn only_what_is_settled_and_old_goes() {
    let mut hive = Hive::new();
    let dead = hive.send("bob", "ada", "dead");
    let discarded = hive.send("bob", "ada", "discarded");
    for turn in 0..5 {
        let turn = format!("fails-{turn}");
        hive.run(|tx| tx.receive(&receive("ada", &turn, 9)));
        hive.run(|tx| tx.requeue(&agent("ada"), &turn.parse().unwrap(), RequeueReason::Failed));
    }
    hive.run(|tx| tx.settle(discarded, Verdict::Discard));
    let acked = hive.send("bob", "ada", "acked");
    hive.take("ada", 1);
    let leased = hive.send("bob", "ada", "leased");
    hive.run(|tx| tx.receive(&receive("ada", "open", 1)));
    let stored = hive.send("bob", "ada", "stored");
    hive.clock += 30 * DAY;
    let young = hive.send("bob", "cid", "young");
    hive.take("cid", 1);
    hive.send("bob", "cid", "the newest carries the counter");

    let gone = prune(&mut hive, 100);
    assert_eq!((gone.messages, gone.more), (2, false));
    assert_eq!(gone.turns, 4, "the newest that ended stays");
    for id in [discarded, acked] {
        assert_eq!(hive.run(|tx| tx.receipt(id)), None);
    }
    for (id, state) in [
        (dead, MessageState::Dead),
        (leased, MessageState::Leased),
        (stored, MessageState::Stored),
        (young, MessageState::Acked),
    ] {
        assert_eq!(hive.run(|tx| tx.receipt(id)).unwrap().state, state);
    }
    hive.crash();
    assert_eq!(prune(&mut hive, 100), Pruned::default());
    let closed = hive.run(|tx| tx.ack_turn(&agent("ada"), &"open".parse().unwrap(), &[leased]));
    assert_eq!(closed.acked, 1);
    assert_eq!(hive.take("ada", 9), [stored]);
}

#[test]
fn ids_are_not_given_again_after_everything_went() {
    let mut hive = Hive::new();
    let mut last = MessageId(0);
    for _ in 0..3 {
        for _ in 0..5 {
            last = hive.send("bob", "ada", "x");
        }
        hive.take("ada", 9);
        hive.clock += 30 * DAY;
        prune_all(&mut hive, 2);
        hive.restart();
        let next = hive.send("bob", "ada", "x");
        assert!(next > last, "{next} after {last}");
        hive.take("ada", 9);
    }
}

#[test]
fn the_turn_in_a_receipt_is_never_another_one() {
    let mut hive = Hive::new();
    let dead = hive.send("bob", "ada", "poison");
    for turn in ["one", "two", "three", "four", "five"] {
        hive.run(|tx| tx.receive(&receive("ada", turn, 9)));
        hive.run(|tx| tx.requeue(&agent("ada"), &turn.parse().unwrap(), RequeueReason::Crash));
    }
    assert_eq!(
        hive.run(|tx| tx.receipt(dead)).unwrap().state,
        MessageState::Dead
    );
    hive.clock += 30 * DAY;
    prune_all(&mut hive, 100);
    hive.restart();
    for turn in 0..9 {
        let turn = format!("other-{turn}");
        hive.run(|tx| tx.receive(&receive("bob", &turn, 9)));
        hive.run(|tx| tx.ack_turn(&agent("bob"), &turn.parse().unwrap(), &[]));
        let told = hive.run(|tx| tx.receipt(dead)).unwrap().turn;
        assert!(told.is_none_or(|turn| turn.as_str() == "five"));
    }
}

#[test]
fn a_step_is_small_and_says_whether_there_is_more() {
    let mut hive = Hive::new();
    let waits = hive.send("bob", "cid", "waits in front of all");
    hive.run(|tx| tx.receive(&receive("bob", "open for ever", 1)));
    for n in 0..25 {
        let key = format!("k{n}").parse().unwrap();
        let message = NewMessage {
            key: Some(key),
            ..message("bob", "ada", "x")
        };
        hive.run(|tx| tx.send(message));
        let turn = format!("t{n}");
        let received = hive.run(|tx| tx.receive(&receive("ada", &turn, 9)));
        let ids: Vec<_> = received.messages.iter().map(|m| m.id).collect();
        hive.run(|tx| tx.ack_turn(&agent("ada"), &turn.parse().unwrap(), &ids));
    }
    hive.clock += 30 * DAY;
    let mut total = Pruned::default();
    loop {
        let step = prune(&mut hive, 10);
        assert!(
            step.messages <= 10 && step.turns <= 10 && step.keys <= 10,
            "{step:?}"
        );
        total.messages += step.messages;
        total.turns += step.turns;
        total.keys += step.keys;
        if !step.more {
            break;
        }
    }
    assert_eq!(
        (total.messages, total.turns, total.keys),
        (24, 24, 25),
        "but the newest"
    );
    assert_eq!(hive.take("cid", 9), [waits]);
}

#[test]
fn a_young_row_in_front_holds_up_nothing_behind_it() {
    let mut hive = Hive::new();
    let dead = hive.send("bob", "ada", "poison");
    for turn in ["a", "b", "c", "d", "e"] {
        hive.run(|tx| tx.receive(&receive("ada", turn, 9)));
        hive.run(|tx| tx.requeue(&agent("ada"), &turn.parse().unwrap(), RequeueReason::Crash));
    }
    for _ in 0..50 {
        hive.send("bob", "ada", "x");
    }
    hive.take("ada", 50);
    hive.clock += 30 * DAY;
    hive.run(|tx| tx.settle(dead, Verdict::Discard));
    prune_all(&mut hive, 10);
    assert_eq!(
        history(&hive, &with("bob")).len(),
        2,
        "the young one and the newest"
    );
}

#[test]
fn a_clock_that_was_ahead_for_a_while_does_not_end_retention() {
    let mut hive = Hive::new();
    let now = hive.clock;
    hive.clock += 20_000 * DAY;
    for n in 0..20 {
        let turn = format!("future-{n}");
        hive.send("bob", "ada", "from the future");
        hive.run(|tx| tx.receive(&receive("ada", &turn, 9)));
        let turn = turn.parse().unwrap();
        hive.run(|tx| tx.ack_turn(&agent("ada"), &turn, &[MessageId(n + 1)]));
    }
    hive.clock = now;
    for _ in 0..20 {
        hive.send("bob", "ada", "x");
    }
    hive.take("ada", 32);
    prune_all(&mut hive, 5);
    for week in 0..12 {
        hive.clock = now + week * 8 * DAY;
        prune_all(&mut hive, 5);
    }
    assert_eq!(
        history(&hive, &with("ada")).len(),
        1,
        "only the newest is left"
    );
}

#[test]
fn a_clock_set_back_forgets_nothing() {
    let mut hive = Hive::new();
    for _ in 0..5 {
        hive.send("bob", "ada", "x");
    }
    hive.take("ada", 9);
    hive.clock -= 1_000 * DAY;
    assert_eq!(prune(&mut hive, 100).messages, 0);
    assert_eq!(history(&hive, &with("ada")).len(), 5);
}

#[test]
fn a_turn_that_was_forgotten_is_unknown_and_its_name_free() {
    let mut hive = Hive::new();
    for turn in ["t1", "t2"] {
        hive.run(|tx| tx.receive(&receive("ada", turn, 9)));
        hive.run(|tx| tx.ack_turn(&agent("ada"), &turn.parse().unwrap(), &[]));
    }
    hive.clock += 30 * DAY;
    assert_eq!(prune(&mut hive, 100).turns, 1);
    let late = |hive: &mut Hive, turn: &str| {
        let turn = turn.parse().unwrap();
        hive.run(|tx| tx.ack_turn(&agent("ada"), &turn, &[])).result
    };
    assert_eq!(late(&mut hive, "t1"), TurnResult::Unknown);
    assert_eq!(late(&mut hive, "t2"), TurnResult::Already);
    hive.run(|tx| tx.receive(&receive("ada", "t1", 9)));
    assert_eq!(late(&mut hive, "t1"), TurnResult::Acked);
}

#[test]
fn a_reply_to_a_forgotten_message_is_taken() {
    let mut hive = Hive::new();
    let old = hive.send("bob", "ada", "old");
    hive.take("ada", 9);
    hive.clock += 30 * DAY;
    hive.send("bob", "ada", "newest");
    prune_all(&mut hive, 10);
    assert_eq!(hive.run(|tx| tx.receipt(old)), None);
    let reply = NewMessage {
        in_reply_to: Some(old),
        ..message("ada", "bob", "late")
    };
    let reply = hive.run(|tx| tx.send(reply)).message_id;
    let thread = HistoryQuery {
        thread: Some(reply),
        limit: 10,
        ..HistoryQuery::default()
    };
    assert_eq!(history(&hive, &thread), [reply]);
}

/// Reads page by page as a client does.
fn pages(hive: &Hive, query: &HistoryQuery, size: u32) -> Vec<MessageId> {
    let mut all = Vec::new();
    let mut query = HistoryQuery {
        limit: size,
        ..query.clone()
    };
    loop {
        let page = history(hive, &query);
        assert!(page.len() <= size as usize);
        let Some(last) = page.last() else { return all };
        query.before = Some(*last);
        all.extend(page);
    }
}

#[test]
fn history_is_complete_however_far_the_index_lags() {
    let names = ["ada", "bob", "cid"];
    let mut hive = Hive::new();
    let mut sent = Vec::new();
    for n in 0..60_usize {
        let (from, to) = (names[n % 3], names[(n / 3) % 3]);
        sent.push((from, to, hive.send(from, to, "x")));
    }
    loop {
        for name in names {
            let expected: Vec<_> = sent
                .iter()
                .rev()
                .filter(|(from, to, _)| [from, to].contains(&&name))
                .map(|(_, _, id)| *id)
                .collect();
            for size in [1, 7, 100] {
                assert_eq!(
                    pages(&hive, &with(name), size),
                    expected,
                    "{name} by {size}"
                );
            }
        }
        let everything = HistoryQuery::default();
        assert_eq!(pages(&hive, &everything, 9).len(), 60);
        if hive.run(|tx| tx.index_correspondence(13)) == 0 {
            break;
        }
    }
    let indexed: u32 = hive
        .raw()
        .query_row(
            "SELECT sum(length(messages)) / 4 FROM correspondence",
            [],
            |row| row.get(0),
        )
        .unwrap();
    // A message to oneself has one party.
    assert_eq!(indexed, 60 * 2 - 20);
    let new = hive.send("ada", "bob", "after the index");
    assert_eq!(history(&hive, &with("ada"))[0], new);
}

#[test]
fn the_index_forgets_with_the_messages() {
    let mut hive = Hive::new();
    for n in 0..20 {
        hive.send(if n % 2 == 0 { "bob" } else { "cid" }, "ada", "x");
    }
    hive.take("ada", 32);
    hive.run(|tx| tx.index_correspondence(15));
    hive.clock += 30 * DAY;
    prune_all(&mut hive, 4);
    while hive.run(|tx| tx.index_correspondence(4)) > 0 {}
    let rows: Vec<(String, i64, i64)> = hive
        .raw()
        .prepare("SELECT party, first, length(messages) / 4 FROM correspondence")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let newest = [("ada".to_owned(), 20, 1), ("cid".to_owned(), 20, 1)];
    assert_eq!(rows, newest, "both parties of the newest");
}

#[test]
fn the_index_fills_rows_and_forgets_from_their_middle() {
    let mut hive = Hive::new();
    let mut kept = Vec::new();
    for n in 0..600_u32 {
        let id = hive.send("bob", "ada", "x");
        assert_eq!(hive.take("ada", 32), [id]);
        // Every seventh goes to somebody who does not look at it.
        if n % 7 == 0 {
            kept.push(hive.send("bob", "cid", "x"));
        }
        if n % 301 == 0 {
            hive.run(|tx| tx.index_correspondence(250));
        }
    }
    while hive.run(|tx| tx.index_correspondence(4_096)) > 0 {}
    assert_eq!(pages(&hive, &with("bob"), 77).len(), 600 + kept.len());
    let rows = |hive: &Hive| -> u32 {
        let sql = "SELECT count(*) FROM correspondence WHERE party = 'bob'";
        hive.raw().query_row(sql, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(rows(&hive), 3, "240 messages to a row");
    hive.clock += 30 * DAY;
    prune_all(&mut hive, 64);
    let newest = history(&hive, &HistoryQuery::default())[0];
    let expected: Vec<_> = std::iter::once(newest)
        .chain(kept.into_iter().rev())
        .collect();
    assert_eq!(pages(&hive, &with("bob"), 77), expected);
    assert_eq!(pages(&hive, &with("ada"), 77), [newest]);
}

#[test]
fn a_thread_is_followed_from_any_of_its_messages() {
    let mut hive = Hive::new();
    let root = hive.send("bob", "ada", "root");
    hive.send("bob", "ada", "another thread");
    let mut thread = vec![root];
    for n in 0..20 {
        let (from, to) = if n % 2 == 0 {
            ("ada", "bob")
        } else {
            ("bob", "ada")
        };
        let reply = NewMessage {
            in_reply_to: thread.last().copied(),
            ..message(from, to, "re")
        };
        thread.push(hive.run(|tx| tx.send(reply)).message_id);
    }
    let newest_first: Vec<_> = thread.iter().rev().copied().collect();
    for from in [root, thread[7], *thread.last().unwrap()] {
        let query = HistoryQuery {
            thread: Some(from),
            ..HistoryQuery::default()
        };
        for size in [1, 6, 50] {
            assert_eq!(pages(&hive, &query, size), newest_first);
        }
    }
    let nobody = HistoryQuery {
        thread: Some(MessageId(999)),
        limit: 5,
        ..HistoryQuery::default()
    };
    assert_eq!(history(&hive, &nobody), []);
}

#[test]
fn a_page_has_at_least_one_row_and_at_most_a_thousand() {
    let mut hive = Hive::new();
    let mut group = hive.store().begin(at(1));
    for _ in 0..1_100 {
        let system = NewMessage {
            bounded: false,
            ..message("system", "ada", "x")
        };
        group.run(|tx| tx.send(system)).unwrap();
    }
    group.commit().unwrap();
    for (limit, rows) in [(0, 1), (1, 1), (5_000, 1_000)] {
        let query = HistoryQuery {
            limit,
            ..HistoryQuery::default()
        };
        assert_eq!(history(&hive, &query).len(), rows);
    }
}

#[test]
fn the_operators_inbox_is_read_and_acked() {
    let mut hive = Hive::new();
    let ids: Vec<_> = (0..4)
        .map(|n| hive.send("ada", "operator", &n.to_string()))
        .collect();
    let other = hive.send("ada", "bob", "not the operator's");
    let inbox = |hive: &Hive, after| -> Vec<MessageId> {
        let rows = hive.readers().operator_inbox(after).unwrap();
        rows.rows.into_iter().map(|message| message.id).collect()
    };
    assert_eq!(inbox(&hive, None), ids);
    assert_eq!(inbox(&hive, Some(ids[1])), ids[2..]);
    // The first to ask after a start: the depth is counted before the rows change.
    hive.restart();
    let some = [ids[0], ids[0], other, MessageId(99)];
    assert_eq!(hive.run(|tx| tx.ack_operator_mail(&some)), 1);
    let unread = |hive: &mut Hive| hive.run(|tx| tx.inbox(&"operator".parse().unwrap())).unread;
    assert_eq!(unread(&mut hive), 3);
    assert_eq!(inbox(&hive, None), ids[1..]);
    let receipt = hive.run(|tx| tx.receipt(ids[0])).unwrap();
    assert_eq!(
        (receipt.state, receipt.deliveries),
        (MessageState::Acked, 1)
    );
    let state = hive.run(|tx| tx.receipt(other)).unwrap().state;
    assert_eq!(state, MessageState::Stored, "somebody else's");
    hive.restart();
    assert_eq!(unread(&mut hive), 3);
    let undone = hive.try_run(|tx| {
        tx.ack_operator_mail(&ids)?;
        Err::<(), _>(Refusal::Denied("no".to_owned()))
    });
    assert!(undone.unwrap().is_err());
    assert_eq!(unread(&mut hive), 3);
}

#[test]
fn counts_and_receipts_are_read_beside_the_writer() {
    let mut hive = Hive::new();
    let first = hive.send("bob", "ada", "1");
    hive.send("bob", "ada", "2");
    hive.run(|tx| tx.receive(&receive("ada", "t1", 1)));
    let counts = hive.readers().counts().unwrap();
    assert_eq!((counts.undelivered, counts.dead), (2, 0));
    let by_reader = hive.readers().receipt(first).unwrap();
    assert_eq!(by_reader, hive.run(|tx| tx.receipt(first)));
    assert_eq!(hive.readers().receipt(MessageId(99)).unwrap(), None);
    assert_eq!(hive.readers().integrity().unwrap(), None);
}

#[test]
fn nothing_of_an_open_group_is_visible() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "1");
    let (store, readers) = hive.open.as_mut().unwrap();
    let mut group = store.begin(at(5));
    let id = group
        .run(|tx| tx.send(message("bob", "ada", "2")))
        .unwrap()
        .message_id;
    assert_eq!(readers.receipt(id).unwrap(), None);
    group.commit().unwrap();
    assert!(readers.receipt(id).unwrap().is_some());
    let ids: BTreeSet<_> = [MessageId(1), id].into();
    assert_eq!(
        history(&hive, &with("ada"))
            .into_iter()
            .collect::<BTreeSet<_>>(),
        ids
    );
}
