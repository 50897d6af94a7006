//! The redo journal across kills, power cuts, damage, and files that do not belong together.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use hive_store::{Mail, Options, Receive, Refusal, StoreError, sqlite::AtOnce};
use hive_wire::{
    MessageId,
    agent::{RequeueReason, TurnResult},
};

use crate::common::{Hive, agent, copy_files, fast_dir, message, receive, small};

/// Where the first record begins.
const FIRST: usize = 4096;

fn is_lost(error: &StoreError) -> bool {
    matches!(error, StoreError::LostCommits { .. })
}

/// Bytes of the journal up to the last that was written.
fn used(journal: &[u8]) -> usize {
    journal.iter().rposition(|byte| *byte != 0).unwrap() + 1
}

/// A hive that was killed with five messages in its journal alone.
fn killed() -> (Hive, Vec<MessageId>) {
    let mut hive = Hive::new();
    let sent = (0..5)
        .map(|n| hive.send_durably("bob", "ada", &n.to_string()))
        .collect();
    assert_eq!(hive.store().behind(), 5);
    hive.kill();
    (hive, sent)
}

#[test]
fn a_kill_loses_nothing_and_brings_nothing_in_twice() {
    let mut hive = Hive::new();
    let mut sent = Vec::new();
    for n in 0..40 {
        sent.push(hive.send_durably("bob", "ada", &"x".repeat(n * 100)));
        match n % 7 {
            3 => hive.crash(),
            4 => hive.store().settle().unwrap(),
            5 => {
                hive.crash();
                hive.crash();
            }
            _ => {}
        }
    }
    assert_eq!(hive.take("ada", 64), sent);
    hive.crash();
    assert!(hive.take("ada", 64).is_empty());
}

#[test]
fn turns_go_on_from_the_journal() {
    let (mut hive, sent) = killed();
    hive.start().unwrap();
    let ada = agent("ada");
    let turn = "t1".parse().unwrap();
    let held = hive.try_run_durably(|tx| tx.receive(&receive("ada", "t1", 2)));
    assert_eq!(held.unwrap().messages.len(), 2);
    hive.crash();
    let acked = hive.try_run_durably(|tx| tx.ack_turn(&ada, &turn, &sent[..2]));
    assert_eq!(acked.unwrap().acked, 2);
    hive.crash();
    let again = hive.try_run_durably(|tx| tx.ack_turn(&ada, &turn, &sent[..2]));
    assert_eq!(again.unwrap().result, TurnResult::Already);
    assert_eq!(hive.take("ada", 9), sent[2..]);
}

#[test]
fn what_is_not_mail_is_committed_at_once() {
    let mut hive = Hive::new();
    hive.send_durably("bob", "ada", "first");
    let now = hive_wire::Timestamp::from_millis(1);
    let mut group = hive.store().begin(now);
    group
        .run(|tx| tx.send(message("bob", "ada", "second")))
        .unwrap();
    group
        .run(|tx| tx.remind(&agent("ada"), "later", now, 9))
        .unwrap();
    group.make_durable().unwrap();
    assert_eq!(hive.store().behind(), 0);
    hive.kill();
    // All of it is in SQLite's log; the journal says nothing new.
    fs::remove_file(hive.file("-redo")).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9).len(), 2);
    assert_eq!(hive.run(|tx| tx.take_due_reminders(9)).len(), 1);
}

#[test]
fn a_refused_operation_is_not_in_the_journal() {
    let mut hive = Hive::with(Options {
        inbox_depth: 2,
        ..small()
    });
    let now = hive_wire::Timestamp::from_millis(1);
    let mut group = hive.store().begin(now);
    let mut full = 0;
    for n in 0..4 {
        let both = group.run(|tx| {
            tx.send(message("bob", "cid", &n.to_string()))?;
            tx.send(message("bob", "ada", &n.to_string()))
        });
        full += u32::from(matches!(both, Err(Refusal::InboxFull { .. })));
    }
    group.make_durable().unwrap();
    assert_eq!((full, hive.store().behind()), (2, 1));
    hive.crash();
    assert_eq!(hive.take("cid", 9).len(), 2, "undone with the refused one");
    assert_eq!(hive.take("ada", 9).len(), 2);
}

#[test]
fn a_group_that_is_dropped_takes_no_earlier_one_with_it() {
    let mut hive = Hive::new();
    let kept = hive.send_durably("bob", "ada", "kept");
    let now = hive_wire::Timestamp::from_millis(1);
    let mut group = hive.store().begin(now);
    group
        .run_checked(|tx| tx.send(message("bob", "ada", "dropped")))
        .unwrap();
    drop(group);
    let last = hive.send_durably("bob", "ada", "last");
    hive.crash();
    assert_eq!(hive.take("ada", 9), [kept, last]);
}

#[test]
fn the_journal_starts_over_and_large_groups_pass_it_by() {
    let mut hive = Hive::with(Options {
        redo_bytes: 16 * 1024,
        ..small()
    });
    let mut sent = Vec::new();
    let mut passed_by = 0;
    for n in 0..200_usize {
        let body = "x".repeat(if n % 50 == 49 { 40_000 } else { n * 7 });
        sent.push(hive.send_durably("bob", "ada", &body));
        passed_by += u32::from(hive.store().behind() == 0);
        if n % 9 == 0 {
            hive.crash();
        }
    }
    assert!((5..100).contains(&passed_by), "{passed_by}");
    assert_eq!(fs::metadata(hive.file("-redo")).unwrap().len(), 16 * 1024);
    let mut taken = Vec::new();
    while taken.len() < sent.len() {
        taken.extend(hive.take("ada", 64));
    }
    assert_eq!(taken, sent);
}

#[test]
fn the_halves_change_places_while_sqlite_syncs_in_the_background() {
    let mut hive = Hive::with(Options {
        redo_bytes: 16 * 1024,
        ..small()
    });
    let mut sent = Vec::new();
    for n in 0..400_usize {
        if n % 57 == 0 {
            // As after a kill: nothing is closed in good order.
            hive.open = None;
            hive.start().unwrap();
            hive.store().settle_in_background(|| {}).unwrap();
        }
        sent.push(hive.send_durably("bob", "ada", &"x".repeat(n * 3)));
    }
    hive.open = None;
    hive.start().unwrap();
    let mut taken = Vec::new();
    while taken.len() < sent.len() {
        taken.extend(hive.take("ada", 64));
    }
    assert_eq!(taken, sent);
}

#[test]
fn a_hole_between_the_halves_is_told() {
    let mut hive = Hive::with(Options {
        redo_bytes: 16 * 1024,
        ..small()
    });
    for n in 0..8 {
        hive.send_durably("bob", "ada", &"x".repeat(1_000 + n));
    }
    assert_eq!(
        hive.store().behind(),
        8,
        "all of it is in the journal alone"
    );
    hive.kill();
    let whole = fs::read(hive.file("-redo")).unwrap();
    let middle = FIRST + (whole.len() - FIRST) / 2;
    let last_in_first = middle - 900;
    let mut flipped = whole.clone();
    flipped[last_in_first] ^= 1;
    fs::write(hive.file("-redo"), &flipped).unwrap();
    assert!(is_lost(&hive.start().unwrap_err()));
    fs::write(hive.file("-redo"), &whole).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9).len(), 8);
}

#[test]
fn a_store_without_a_journal_keeps_its_promises() {
    let mut hive = Hive::with(Options {
        redo_bytes: 0,
        ..small()
    });
    let sent = hive.send_durably("bob", "ada", "x");
    assert_eq!(hive.store().behind(), 0);
    assert!(!hive.file("-redo").exists());
    hive.crash();
    assert_eq!(hive.take("ada", 9), [sent]);
}

#[test]
fn a_journal_that_is_cut_short_is_told_and_left_as_it_is() {
    let (mut hive, sent) = killed();
    let whole = fs::read(hive.file("-redo")).unwrap();
    let end = used(&whole);
    for keep in [end - 1, end - 600, FIRST + 700, FIRST + 1, FIRST, 50, 0] {
        fs::write(hive.file("-redo"), &whole[..keep]).unwrap();
        for _ in 0..2 {
            let error = hive.start().unwrap_err();
            assert!(is_lost(&error), "{keep} bytes kept: {error}");
            assert_eq!(fs::read(hive.file("-redo")).unwrap(), &whole[..keep]);
        }
    }
    fs::remove_file(hive.file("-redo")).unwrap();
    assert!(is_lost(&hive.start().unwrap_err()));
    // Found again, it is as good as before.
    fs::write(hive.file("-redo"), &whole).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9), sent);
}

#[test]
fn a_flipped_byte_in_the_journal_is_told() {
    let (mut hive, sent) = killed();
    let whole = fs::read(hive.file("-redo")).unwrap();
    let end = used(&whole);
    for at in [
        0,
        9,
        41,
        FIRST,
        FIRST + 8,
        FIRST + 17,
        FIRST + 21,
        FIRST + 60,
        end - 1,
    ] {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        fs::write(hive.file("-redo"), &flipped).unwrap();
        let error = hive.start().unwrap_err();
        let is_told = is_lost(&error) || matches!(error, StoreError::Damaged { .. });
        assert!(is_told, "byte {at}: {error}");
    }
    fs::write(hive.file("-redo"), &whole).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9), sent);
}

#[test]
fn a_loss_can_be_accepted() {
    let (mut hive, sent) = killed();
    let whole = fs::read(hive.file("-redo")).unwrap();
    fs::write(hive.file("-redo"), &whole[..used(&whole) - 1]).unwrap();
    assert!(is_lost(&hive.start().unwrap_err()));
    fs::remove_file(hive.file("-mark")).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9), sent[..4]);
}

#[test]
fn what_a_power_cut_takes_from_sqlite_is_in_the_journal() {
    let mut hive = Hive::new();
    let mut sent = vec![hive.send("bob", "ada", "synced")];
    let before = fast_dir();
    copy_files(hive.dir.path(), before.path());
    for n in 0..9 {
        sent.push(hive.send_durably("bob", "ada", &n.to_string()));
        if n % 4 == 2 {
            hive.store().settle().unwrap();
        }
    }
    hive.kill();
    // SQLite's own files as they were at the last sync, or anything in between.
    let log = fs::read(hive.file("-wal")).unwrap();
    let synced = fs::read(before.path().join("hive.db-wal")).unwrap();
    assert!(synced.len() < log.len());
    for keep in [synced.len(), synced.len() + 5_000, log.len() - 1, log.len()] {
        let copy = fast_dir();
        copy_files(hive.dir.path(), copy.path());
        fs::write(copy.path().join("hive.db-wal"), &log[..keep]).unwrap();
        let mut cut = Hive {
            dir: copy,
            options: small(),
            open: None,
            clock: hive.clock,
        };
        cut.start().unwrap();
        assert_eq!(cut.take("ada", 20), sent, "{keep} bytes of the log");
    }
}

#[test]
fn a_journal_beside_another_database_is_refused() {
    let (mut hive, _) = killed();
    let mut other = Hive::new();
    other.stop();
    for suffix in ["-redo", "-mark"] {
        fs::copy(hive.file(suffix), other.file(suffix)).unwrap();
    }
    let error = other.start().unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
    hive.start().unwrap();

    // An older copy of the same database: something lies between the two.
    let backup = fast_dir();
    hive.restart();
    fs::copy(hive.path(), backup.path().join("hive.db")).unwrap();
    hive.run(|tx| {
        tx.remind(
            &agent("ada"),
            "between",
            hive_wire::Timestamp::from_millis(1),
            9,
        )
    });
    hive.send_durably("bob", "ada", "after");
    hive.kill();
    for suffix in ["-wal", "-mark"] {
        fs::remove_file(hive.file(suffix)).unwrap();
    }
    fs::copy(backup.path().join("hive.db"), hive.path()).unwrap();
    assert!(is_lost(&hive.start().unwrap_err()));
    fs::remove_file(hive.file("-redo")).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9).len(), 5);
}

#[test]
fn a_file_that_is_removed_under_the_store_ends_it_at_once() {
    let files = ["-redo", "-wal", ""];
    for (suffix, replace) in files
        .into_iter()
        .flat_map(|file| [(file, false), (file, true)])
    {
        let mut hive = Hive::new();
        hive.send_durably("bob", "ada", "safe");
        let gone = fs::read(hive.file(suffix)).unwrap();
        fs::remove_file(hive.file(suffix)).unwrap();
        if replace {
            fs::write(hive.file(suffix), gone).unwrap();
        }
        let outcome = hive.try_run_durably(|tx| tx.send(message("bob", "ada", "x")));
        let error = outcome.unwrap_err();
        assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
        assert!(!error.is_passing());
    }
}

#[test]
fn what_is_moved_ends_the_store_with_the_next_commit() {
    for file in ["-redo", "-wal", "", "the directory"] {
        let mut hive = Hive::new();
        let moved = fast_dir();
        let (from, aside) = match file {
            "the directory" => (hive.dir.path().to_owned(), moved.path().join("aside")),
            file => (hive.file(file), hive.file("-aside")),
        };
        fs::rename(&from, &aside).unwrap();
        hive.send_durably("bob", "ada", "it is on disk, in another place");
        let error = hive.store().settle().unwrap_err();
        assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
        hive.open = None;
        fs::rename(&aside, &from).unwrap();
        hive.start().unwrap();
        assert_eq!(hive.take("ada", 9).len(), 1, "{file}");
    }
}

#[test]
fn a_group_may_be_missing_as_long_as_it_was_not_acknowledged() {
    for acknowledged in [false, true] {
        let mut hive = Hive::new();
        hive.send_durably("bob", "ada", "answered");
        let journal = fs::read(hive.file("-redo")).unwrap();
        let mut group = hive.store().begin(hive_wire::Timestamp::from_millis(9));
        group
            .run_checked(|tx| tx.send(message("bob", "ada", "on disk")))
            .unwrap();
        group.make_durable().unwrap();
        if acknowledged {
            hive.store().acknowledged();
        }
        hive.kill();
        fs::write(hive.file("-redo"), journal).unwrap();
        match hive.start() {
            Ok(()) => assert!(!acknowledged && hive.take("ada", 9).len() == 1),
            Err(error) => assert!(acknowledged && is_lost(&error), "{error}"),
        }
    }
}

#[test]
fn what_an_agent_writes_is_never_taken_for_a_record() {
    let mut hive = Hive::new();
    hive.send_durably("bob", "ada", "x");
    let journal = fs::read(hive.file("-redo")).unwrap();
    // The agent knows everything but the round: a record that forges another message, where the
    // next round's second record would begin.
    let mut forged = journal[FIRST..used(&journal)].to_vec();
    forged[..8].fill(b'R');
    forged.retain(|byte| *byte != 0);
    let body = String::from_utf8_lossy(&forged).repeat(40);
    hive.send_durably("bob", "ada", &body);
    hive.run(|tx| {
        tx.remind(
            &agent("ada"),
            "sync",
            hive_wire::Timestamp::from_millis(1),
            9,
        )
    });
    hive.send_durably("bob", "ada", "y");
    hive.crash();
    assert_eq!(hive.take("ada", 9).len(), 3);
}

#[test]
fn readers_see_what_was_durable_when_they_came() {
    let mut hive = Hive::new();
    hive.store()
        .settle_in_background(|| panic!("SQLite does not fail"))
        .unwrap();
    for _ in 0..50 {
        let id = hive.send_durably("bob", "ada", "x");
        assert!(hive.readers().receipt(id).unwrap().is_some());
    }
}

#[test]
fn what_is_durable_is_committed_without_being_asked_for() {
    let mut hive = Hive::new();
    hive.store().settle_in_background(|| {}).unwrap();
    for n in 0..3 {
        hive.send_durably("bob", "ada", &n.to_string());
        while hive.store().behind() > 0 {
            std::thread::yield_now();
        }
    }
    hive.kill();
    // Nothing of it is needed any more, and it may even be of an earlier time.
    fs::remove_file(hive.file("-redo")).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9).len(), 3);
}

#[test]
fn a_database_that_fails_in_the_background_ends_the_store() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "x");
    let failed = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&failed);
    hive.store()
        .settle_in_background(move || {
            counter.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
    hive.raw().execute_batch("DROP TABLE messages").unwrap();
    hive.send_durably("bob", "ada", "acknowledged");
    while failed.load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    let outcome = hive.try_run_durably(|tx| tx.send(message("bob", "ada", "y")));
    let error = outcome.unwrap_err();
    assert!(matches!(error, StoreError::Sqlite(_)), "{error}");
    assert!(!error.is_passing());
}

#[test]
fn what_came_and_went_in_the_meantime_ends_up_as_if_it_had_not_been_left_out() {
    let (mut late, mut at_once) = (Hive::new(), Hive::new());
    let ada = agent("ada");
    for n in 0..12 {
        let turn = format!("t{n}").parse().unwrap();
        let waiting = Receive {
            req: Some("r1".parse().unwrap()),
            parks: true,
            ..receive("ada", &format!("t{n}"), 1)
        };
        for hive in [&mut late, &mut at_once] {
            let held = hive.try_run_durably(|tx| tx.receive(&waiting)).unwrap();
            let ids: Vec<_> = held.messages.iter().map(|message| message.id).collect();
            if ids.is_empty() {
                let new = message("bob", "ada", &n.to_string());
                let sent = hive.try_run_durably(|tx| tx.lease_at_once(new, &waiting));
                assert!(matches!(sent.unwrap(), AtOnce::Leased(..)));
            }
            let ended = hive.try_run_durably(|tx| match n % 4 {
                0 => tx.requeue(&ada, &turn, RequeueReason::Failed),
                1 => tx.ack_turn(&ada, &turn, &ids),
                2 => {
                    tx.confirm(&ada, &turn, &"r1".parse().unwrap())?;
                    tx.ack_turn(&ada, &turn, &[])
                }
                _ => tx.ack_turn(&ada, &turn, &[]),
            });
            assert_eq!(ended.unwrap().acked, u32::from(matches!(n % 4, 1 | 2)));
        }
        at_once.store().settle().unwrap();
    }
    assert!(late.store().behind() > 20);
    late.store().settle().unwrap();
    let rows = |hive: &Hive| {
        let raw = hive.raw();
        ["mail", "messages", "receipts", "turns", "open_turns"].map(|table| {
            let mut all = raw.prepare(&format!("SELECT * FROM {table}")).unwrap();
            let columns = all.column_count();
            let row = |row: &rusqlite::Row<'_>| {
                (0..columns)
                    .map(|column| row.get::<_, rusqlite::types::Value>(column))
                    .collect::<Result<Vec<_>, _>>()
            };
            all.query_map([], row)
                .unwrap()
                .map(Result::unwrap)
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(rows(&late), rows(&at_once));
    assert_eq!(rows(&late)[2].len(), 6, "acked");
}

#[test]
fn readers_do_not_wait_for_a_store_that_is_gone() {
    let mut hive = Hive::new();
    let id = hive.send_durably("bob", "ada", "x");
    let (store, readers) = hive.open.take().unwrap();
    drop(store);
    assert!(readers.receipt(id).unwrap().is_none(), "not committed");
    drop(readers);
    hive.start().unwrap();
    assert!(hive.readers().receipt(id).unwrap().is_some());
}
