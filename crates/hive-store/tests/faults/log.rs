//! The write-ahead log and the note on it, across crashes, checkpoints and power cuts.

use std::{fs, time::Instant};

use hive_store::{Mail, Options, StoreError};

use crate::common::{Hive, copy_files, fast_dir, message};

fn is_lost(error: &StoreError) -> bool {
    matches!(error, StoreError::LostCommits { .. })
}

/// Bytes of the log up to the last frame that was written.
fn used(wal: &[u8]) -> usize {
    wal.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

#[test]
fn a_kill_loses_nothing() {
    let mut hive = Hive::new();
    let mut sent = Vec::new();
    for n in 0..20 {
        sent.push(hive.send("bob", "ada", &"x".repeat(n * 100)));
        if n % 7 == 3 {
            hive.crash();
        }
    }
    assert_eq!(hive.take("ada", 32), sent);
}

#[test]
fn a_store_that_is_dropped_loses_nothing() {
    let mut hive = Hive::new();
    for n in 0..5 {
        hive.send("bob", "ada", &n.to_string());
        let log = fs::metadata(hive.file("-wal")).unwrap().len();
        hive.open = None;
        assert_eq!(
            fs::metadata(hive.file("-wal")).unwrap().len(),
            log,
            "left as it was"
        );
        hive.start().unwrap();
    }
    assert_eq!(hive.take("ada", 9).len(), 5);
    hive.stop();
    assert!(
        !hive.file("-wal").exists(),
        "closed in good order, no log is needed"
    );
    hive.start().unwrap();
}

#[test]
fn a_truncated_log_is_told_and_left_as_it_is() {
    let mut hive = Hive::new();
    for n in 0..5 {
        hive.send("bob", "ada", &n.to_string());
    }
    hive.kill();
    let whole = fs::read(hive.file("-wal")).unwrap();
    let end = used(&whole);
    for keep in [end - 1, end - 10_000, end / 2, 5_000, 32, 31, 1, 0] {
        fs::write(hive.file("-wal"), &whole[..keep]).unwrap();
        for _ in 0..2 {
            let error = hive.start().unwrap_err();
            assert!(is_lost(&error), "{keep} bytes kept: {error}");
            assert_eq!(
                fs::read(hive.file("-wal")).unwrap(),
                &whole[..keep],
                "evidence"
            );
        }
    }
    fs::remove_file(hive.file("-wal")).unwrap();
    assert!(is_lost(&hive.start().unwrap_err()));
    // Found again, it is as good as before.
    fs::write(hive.file("-wal"), &whole).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9).len(), 5);
}

#[test]
fn a_loss_can_be_accepted() {
    let mut hive = Hive::new();
    for n in 0..5 {
        hive.send("bob", "ada", &n.to_string());
    }
    hive.kill();
    let whole = fs::read(hive.file("-wal")).unwrap();
    fs::write(hive.file("-wal"), &whole[..used(&whole) - 1]).unwrap();
    assert!(is_lost(&hive.start().unwrap_err()));
    fs::remove_file(hive.file("-mark")).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9).len(), 4);
}

#[test]
fn a_flipped_byte_in_the_log_is_told() {
    let mut hive = Hive::new();
    for n in 0..3 {
        hive.send("bob", "ada", &n.to_string());
    }
    hive.kill();
    let whole = fs::read(hive.file("-wal")).unwrap();
    let end = used(&whole);
    for at in [
        0,
        9,
        17,
        21,
        25,
        33,
        41,
        45,
        60,
        end / 3,
        end / 2,
        end - 9_000,
        end - 1,
    ] {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        fs::write(hive.file("-wal"), flipped).unwrap();
        let error = hive.start().unwrap_err();
        assert!(is_lost(&error), "byte {at} of {end}: {error}");
    }
}

#[test]
fn a_log_that_started_over_with_a_longer_commit_is_watched_too() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "1");
    // After a crash everything is copied, so that the first commit starts the log over: here with
    // more pages than were noted before.
    hive.crash();
    let big = "x".repeat(200_000);
    let mut group = hive.clock;
    for _ in 0..3 {
        group += 1;
        let now = crate::common::at(group);
        let mut group = hive.store().begin(now);
        for _ in 0..4 {
            group
                .run(|tx| tx.send(message("bob", "ada", &big)))
                .unwrap();
        }
        group.commit().unwrap();
    }
    hive.kill();
    let whole = fs::read(hive.file("-wal")).unwrap();
    fs::write(hive.file("-wal"), &whole[..whole.len() / 2]).unwrap();
    let error = hive.start().unwrap_err();
    assert!(is_lost(&error), "{error}");
    fs::write(hive.file("-wal"), &whole).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.run(|tx| tx.inbox(&"ada".parse().unwrap())).unread, 13);
}

#[test]
fn an_old_note_after_a_power_cut_is_no_loss() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "1");
    let old = fs::read(hive.file("-mark")).unwrap();
    let body = "x".repeat(200_000);
    let mut marks = Vec::new();
    // The log starts over several times: it is filled more than three times.
    for _ in 0..500 {
        hive.send("bob", "ada", &body);
        marks.push(fs::read(hive.file("-mark")).unwrap());
    }
    let salts: std::collections::BTreeSet<_> = marks.iter().map(|m| m[..8].to_vec()).collect();
    assert!(
        salts.len() >= 3,
        "the log started over {} times",
        salts.len() - 1
    );
    settle(&hive);
    hive.kill();
    for mark in [
        &old,
        &marks[0],
        &marks[marks.len() / 2],
        marks.last().unwrap(),
    ] {
        let copy = fast_dir();
        copy_files(hive.dir.path(), copy.path());
        fs::write(copy.path().join("hive.db-mark"), mark).unwrap();
        let opened = hive_store::sqlite::open(&copy.path().join("hive.db"), &hive.options);
        let (mut store, _readers) = opened.unwrap();
        let inbox = store.one(crate::common::at(1), |tx| tx.inbox(&"ada".parse().unwrap()));
        assert_eq!(inbox.unwrap().unwrap().unread, 501);
    }
}

/// Waits until the background copy stands still: a copy of the files is one moment only then.
fn settle(hive: &Hive) {
    let state = || {
        (
            fs::read(hive.file("-mark")).unwrap(),
            fs::read(hive.path()).unwrap(),
        )
    };
    let mut last = state();
    loop {
        std::thread::sleep(std::time::Duration::from_millis(100));
        let next = state();
        if next == last {
            return;
        }
        last = next;
    }
}

#[test]
fn restarts_and_crashes_in_any_order_keep_the_note_true() {
    let mut hive = Hive::new();
    let mut sent = 0;
    for round in 0..12_usize {
        for n in 0..round % 4 {
            hive.send("bob", "ada", &"x".repeat(1 + n * 30_000));
            sent += 1;
        }
        if round % 3 == 0 {
            hive.restart();
        } else {
            hive.crash();
        }
        assert_eq!(
            hive.run(|tx| tx.inbox(&"ada".parse().unwrap())).unread,
            sent
        );
    }
}

#[test]
fn the_log_is_laid_out_from_the_first_start_on() {
    let mut hive = Hive::with(Options::default());
    let length = |hive: &Hive| fs::metadata(hive.file("-wal")).unwrap().len();
    assert_eq!(length(&hive), Options::default().wal_bytes);
    hive.send("bob", "ada", "1");
    hive.restart();
    assert_eq!(length(&hive), Options::default().wal_bytes);
    hive.crash();
    assert_eq!(length(&hive), Options::default().wal_bytes);
    assert_eq!(hive.take("ada", 9).len(), 1);
}

#[test]
fn the_log_does_not_grow_for_ever() {
    let mut hive = Hive::with(Options {
        inbox_depth: 1_000_000,
        ..Options::default()
    });
    let body = "x".repeat(4_000);
    for _ in 0..2_500 {
        let now = crate::common::at(hive.clock);
        let mut group = hive.store().begin(now);
        for _ in 0..4 {
            group
                .run(|tx| tx.send(message("bob", "ada", &body)))
                .unwrap();
        }
        group.commit().unwrap();
    }
    let length = fs::metadata(hive.file("-wal")).unwrap().len();
    assert!(
        length < 64 * 1024 * 1024,
        "{length} bytes after 10,000 messages of 4 KB"
    );
    assert!(
        fs::metadata(hive.path()).unwrap().len() > 20 * 1024 * 1024,
        "copied meanwhile"
    );
}

#[test]
fn a_long_read_stalls_no_commit() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "1");
    let body = "x".repeat(100_000);
    let mut reader = hive.raw();
    let mut slowest = std::time::Duration::ZERO;
    // Past the length from which the writer itself copies what is left.
    for n in 0..420 {
        // A reader that always looks at something recent, as a listing under load does.
        let looking = reader.transaction().unwrap();
        looking
            .query_row("SELECT count(*) FROM mail", [], |row| row.get::<_, i64>(0))
            .unwrap();
        let began = Instant::now();
        hive.send("bob", "ada", &body);
        slowest = slowest.max(began.elapsed());
        drop(looking);
        assert!(slowest.as_secs() < 2, "commit {n} took {slowest:?}");
    }
}
