//! A disk that changes what was written: an error, a dead letter, never a wrong body.

use std::{fs, os::unix::fs::FileExt};

use hive_store::{Mail, StoreError, sqlite::HistoryQuery};
use hive_wire::agent::MessageState;
use proptest::{prelude::*, test_runner::TestRunner};

use crate::common::{Hive, copy_files, fast_dir, receive, small};

/// Everything in the main file, nothing in the log.
fn stopped(bodies: &[String]) -> Hive {
    let mut hive = Hive::new();
    for body in bodies {
        hive.send("bob", "ada", body);
    }
    hive.stop();
    hive
}

fn flip(hive: &Hive, at: usize, bits: u8) {
    let file = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(hive.path())
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at as u64).unwrap();
    file.write_all_at(&[byte[0] ^ bits], at as u64).unwrap();
}

fn place_of(hive: &Hive, text: &str) -> usize {
    let bytes = fs::read(hive.path()).unwrap();
    let found = bytes
        .windows(text.len())
        .position(|window| window == text.as_bytes());
    found.expect("the text is in the file")
}

#[test]
fn a_changed_body_is_a_dead_letter_and_blocks_nobody() {
    // The second flip makes it no text at all.
    for bits in [0x01, 0x80] {
        for max in [1, 9] {
            let mut hive = stopped(&[
                "first-body".into(),
                "second-body".into(),
                "third-body".into(),
            ]);
            flip(&hive, place_of(&hive, "first-body"), bits);
            flip(&hive, place_of(&hive, "second-body") + 3, bits);
            hive.start().unwrap();
            let received = hive.run(|tx| tx.receive(&receive("ada", "t1", max)));
            let bodies: Vec<_> = received.messages.iter().map(|m| m.body.as_str()).collect();
            assert_eq!(bodies, ["third-body"], "found behind the damaged ones");
            let dead = hive.readers().dead_letters(None).unwrap();
            assert_eq!(dead.rows.len(), 2);
            assert!(
                dead.rows.iter().all(|row| row.body.contains("damaged")),
                "{dead:?}"
            );
            let states = dead.rows.iter().map(|row| row.receipt.state);
            assert!(states.into_iter().all(|state| state == MessageState::Dead));
            let inbox = hive.run(|tx| tx.inbox(&"ada".parse().unwrap()));
            assert_eq!((inbox.unread, inbox.inflight), (0, 1));
            hive.restart();
            assert_eq!(hive.run(|tx| tx.inbox(&"ada".parse().unwrap())), inbox);
        }
    }
}

#[test]
fn a_changed_body_is_not_shown_as_if_it_were_true() {
    for bits in [0x01, 0x80] {
        let mut hive = Hive::new();
        hive.send("bob", "operator", "for-the-operator");
        hive.send("bob", "operator", "another");
        hive.stop();
        flip(&hive, place_of(&hive, "for-the-operator"), bits);
        hive.start().unwrap();
        let inbox = hive.readers().operator_inbox(None).unwrap();
        assert!(
            inbox.rows[0].body.contains("damaged"),
            "{:?}",
            inbox.rows[0].body
        );
        assert_eq!(inbox.rows[1].body, "another");
        let query = HistoryQuery {
            limit: 9,
            ..HistoryQuery::default()
        };
        let history = hive.readers().history(&query).unwrap();
        assert!(
            history.rows[1].body.contains("damaged"),
            "{:?}",
            history.rows[1].body
        );
    }
}

#[test]
fn a_leased_message_that_changed_is_not_brought_again() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "leased-body");
    let named = hive_store::Receive {
        req: Some("r1".parse().unwrap()),
        ..receive("ada", "t1", 9)
    };
    hive.run(|tx| tx.receive(&named));
    hive.stop();
    flip(&hive, place_of(&hive, "leased-body"), 1);
    hive.start().unwrap();
    let again = hive.try_run(|tx| tx.receive(&named)).unwrap();
    assert!(
        matches!(again, Err(hive_store::Refusal::Damaged(_))),
        "{again:?}"
    );
}

#[test]
fn a_message_that_is_gone_is_a_dead_letter() {
    let mut hive = stopped(&["1".into(), "2".into()]);
    hive.raw()
        .execute("DELETE FROM messages WHERE id = 1", [])
        .unwrap();
    hive.start().unwrap();
    let received = hive.run(|tx| tx.receive(&receive("ada", "t1", 1)));
    assert_eq!(received.messages.len(), 1);
    assert_eq!(hive.readers().counts().unwrap().dead, 1);
}

#[test]
fn a_turn_whose_name_changed_gives_back_what_it_holds() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "1");
    hive.run(|tx| tx.receive(&receive("ada", "t1", 9)));
    hive.stop();
    hive.raw()
        .execute("UPDATE mail SET held_by = 't' || char(7)", [])
        .unwrap();
    hive.start().unwrap();
    let received = hive.run(|tx| tx.receive(&receive("ada", "t2", 9)));
    assert_eq!(received.messages.len(), 1);
}

#[test]
fn an_empty_turn_whose_name_changed_can_be_displaced() {
    let mut hive = Hive::new();
    hive.run(|tx| tx.receive(&receive("ada", "t1", 9)));
    hive.stop();
    hive.raw()
        .execute("UPDATE open_turns SET name = 't' || char(7)", [])
        .unwrap();
    hive.start().unwrap();
    let received = hive.run(|tx| tx.receive(&receive("ada", "t2", 9)));
    assert!(received.displaced.is_some());
}

/// That of a new database.
const PAGE: usize = 16384;

#[test]
fn a_damaged_tree_is_told_at_the_start() {
    let mut hive = stopped(&["x".repeat(5_000), "y".repeat(5_000)]);
    let pages = fs::metadata(hive.path()).unwrap().len() / PAGE as u64;
    // The header of every page but the first: the kind of page, then how many cells it has.
    let mut told = 0;
    for page in 1..usize::try_from(pages).unwrap() {
        let copy = fs::read(hive.path()).unwrap();
        flip(&hive, page * PAGE, 0xff);
        match hive.start() {
            Err(StoreError::Damaged { .. }) => told += 1,
            Err(error) => panic!("page {page}: {error}"),
            // A page that is free or in the middle of a long body has no header.
            Ok(()) => hive.stop(),
        }
        hive.open = None;
        fs::write(hive.path(), copy).unwrap();
    }
    assert!(told >= pages as usize / 2, "{told} of {pages}");
}

/// What a receiver, a reader or an opener of this copy gets is true or an error.
fn nothing_wrong_comes_out(copy: &std::path::Path, sent: &[String]) {
    let Ok((mut store, readers)) = hive_store::sqlite::open(&copy.join("hive.db"), &small()) else {
        return;
    };
    let now = crate::common::at(2_000_000_000_000);
    for turn in 0..sent.len() + 1 {
        let turn = format!("t{turn}");
        let received = store.one(now, |tx| tx.receive(&receive("ada", &turn, 1)));
        let Ok(Ok(received)) = received else { break };
        for message in received.messages {
            let place = usize::try_from(message.id.0 - 1).unwrap();
            assert_eq!(
                Some(&message.body),
                sent.get(place),
                "message {}",
                message.id
            );
            assert_eq!((message.from.as_str(), message.to.as_str()), ("bob", "ada"));
        }
    }
    let query = HistoryQuery {
        limit: 100,
        ..HistoryQuery::default()
    };
    for row in readers
        .history(&query)
        .map(|page| page.rows)
        .unwrap_or_default()
    {
        let place = usize::try_from(row.receipt.message_id.0 - 1).unwrap_or(usize::MAX);
        let is_true = sent.get(place) == Some(&row.body);
        assert!(is_true || row.body.contains("damaged on disk"), "{row:?}");
    }
}

#[test]
fn prop_a_flipped_bit_brings_no_wrong_body() {
    let sent: Vec<String> = (0..12)
        .map(|n| format!("body {n} ").repeat(1 + n * 40))
        .collect();
    let hive = stopped(&sent);
    let bytes = fs::read(hive.path()).unwrap();
    let mut runner = TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let flips = (any::<prop::sample::Index>(), 0_u8..8);
    let outcome = runner.run(&flips, |(at, bit)| {
        let copy = fast_dir();
        copy_files(hive.dir.path(), copy.path());
        let mut bytes = bytes.clone();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        fs::write(copy.path().join("hive.db"), bytes)?;
        nothing_wrong_comes_out(copy.path(), &sent);
        Ok(())
    });
    outcome.unwrap();
}
