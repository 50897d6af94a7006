//! A disk that is full, failing or read-only, for real: a child of this test gets one of its own.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use hive_store::{Mail, Options, Refusal, Store, StoreError, sqlite};
use hive_wire::{MessageId, WireError};

use crate::common::{at, message, receive, small};

/// Names the directory for the child; its presence tells the child that it is one.
const DIR: &str = "HIVE_FAULT_DIR";

/// In the child: the directory to work in. In the parent: runs this very test in a child that was
/// prepared by the shell lines of `prepare`, where `$1` is a fresh directory; then none.
///
/// Without the right to prepare it, the test is skipped and says so.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
fn in_child(test: &str, wrapper: &[&str], prepare: &str) -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os(DIR) {
        return Some(dir.into());
    }
    let dir = tempfile::tempdir().unwrap();
    let line = format!("{prepare} || exit 77; exec \"$0\" --exact {test} --nocapture");
    let mut words: Vec<&str> = wrapper.to_vec();
    words.extend(["sh", "-c", &line]);
    let output = Command::new(words[0])
        .args(&words[1..])
        .arg(std::env::current_exe().unwrap())
        .arg(dir.path())
        .env(DIR, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(77) || !said.contains("running 1 test") {
        eprintln!("SKIPPED {test}: no right to prepare the disk: {said}");
        return None;
    }
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "the child ran nothing: {said}");
    None
}

const OWN_MOUNTS: &[&str] = &["unshare", "-rm"];

fn open(dir: &Path, options: &Options) -> Store {
    sqlite::open(&dir.join("hive.db"), options).unwrap().0
}

fn waiting(store: &mut Store) -> u32 {
    let inbox = store.one(at(1), |tx| tx.inbox(&"ada".parse().unwrap()));
    inbox.unwrap().unwrap().unread
}

/// Sends groups of two until one fails; how many groups were kept, and the failure.
fn fill(store: &mut Store, body: &str) -> (u32, StoreError) {
    for kept in 0..10_000 {
        let mut group = store.begin(at(i64::from(kept)));
        for _ in 0..2 {
            // On a full disk the operation itself may fail already.
            if let Err(refusal) = group.run(|tx| tx.send(message("bob", "ada", body))) {
                assert!(matches!(refusal, Refusal::Sqlite(_)), "{refusal}");
            }
        }
        if let Err(error) = group.commit() {
            return (kept, error);
        }
    }
    panic!("the disk does not get full");
}

#[test]
fn a_disk_that_is_full_behind_the_journal_takes_nothing_back() {
    let test = "disk::a_disk_that_is_full_behind_the_journal_takes_nothing_back";
    let prepare = "mount -t tmpfs -o size=24m tmpfs \"$1\"";
    let Some(dir) = in_child(test, OWN_MOUNTS, prepare) else {
        return;
    };
    let options = Options {
        redo_bytes: 2 * 1024 * 1024,
        ..small()
    };
    let mut store = open(&dir, &options);
    let ballast = dir.join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    drop(file);

    // The journal has its blocks; SQLite's log finds none.
    let body = "x".repeat(30_000);
    let mut kept = 0;
    let error = loop {
        let mut group = store.begin(at(i64::from(kept)));
        let sent = group.run_checked(|tx| tx.send(message("bob", "ada", &body)));
        match group.make_durable() {
            Ok(()) => kept += u32::from(sent.is_ok()),
            Err(error) => break error,
        }
        if kept == 5 {
            let error = store.settle().unwrap_err();
            assert!(matches!(error, StoreError::DiskFull), "{error:?}");
            assert_eq!((store.behind(), waiting_in_mind(&mut store)), (5, 5));
        }
    };
    assert!(matches!(error, StoreError::DiskFull), "{error:?}");
    assert!(kept > 20, "{kept}");
    assert_eq!(waiting_in_mind(&mut store), kept, "what was answered");

    std::fs::remove_file(&ballast).unwrap();
    store.settle().unwrap();
    assert_eq!(waiting(&mut store), kept);
    // As after a kill: nothing is closed in good order.
    drop(store);
    let mut store = open(&dir, &options);
    assert_eq!(waiting(&mut store), kept);
    let got = store.one(at(7), |tx| tx.receive(&receive("ada", "t1", 99)));
    assert_eq!(got.unwrap().unwrap().messages[0].id, MessageId(1));
}

/// What the store holds, whether SQLite has committed it or not.
fn waiting_in_mind(store: &mut Store) -> u32 {
    let mut group = store.begin(at(1));
    let inbox = group.run_checked(|tx| tx.inbox(&"ada".parse().unwrap()));
    group.make_durable().unwrap();
    inbox.unwrap().unread
}

#[test]
fn a_full_disk_fails_whole_groups_and_passes() {
    let test = "disk::a_full_disk_fails_whole_groups_and_passes";
    let prepare = "mount -t tmpfs -o size=24m tmpfs \"$1\"";
    let Some(dir) = in_child(test, OWN_MOUNTS, prepare) else {
        return;
    };
    let ballast = dir.join("ballast");
    std::fs::write(&ballast, vec![1_u8; 12 * 1024 * 1024]).unwrap();
    // More is to be laid out than there is room for: the commits need the little there is.
    let mut store = open(&dir, &Options::default());
    let (kept, error) = fill(&mut store, &"x".repeat(30_000));
    assert!(matches!(error, StoreError::DiskFull), "{error:?}");
    assert!(error.is_passing() && kept > 10, "{kept}");
    assert_eq!(
        waiting(&mut store),
        2 * kept,
        "a group is kept whole or not at all"
    );

    // Still full: every write fails alike, reading goes on.
    let mut group = store.begin(at(5));
    let big = "y".repeat(200_000);
    let outcome = group.run(|tx| tx.send(message("bob", "ada", &big)));
    if let Err(refusal) = &outcome {
        assert!(
            WireError::from(refusal).to_string().contains("full"),
            "{refusal}"
        );
    }
    assert!(matches!(group.commit(), Err(StoreError::DiskFull)));
    assert_eq!(waiting(&mut store), 2 * kept);

    // With room again, the same store works on.
    std::fs::remove_file(&ballast).unwrap();
    let sent = store.one(at(6), |tx| tx.send(message("bob", "ada", &big)));
    let last = sent.unwrap().unwrap().message_id;
    assert_eq!(waiting(&mut store), 2 * kept + 1);
    store.close().unwrap();
    let mut store = open(&dir, &small());
    assert_eq!(waiting(&mut store), 2 * kept + 1);
    let all = store.one(at(7), |tx| tx.receive(&receive("ada", "t1", 10)));
    assert_eq!(all.unwrap().unwrap().messages[0].id, MessageId(1));
    assert!(
        store
            .one(at(7), |tx| tx.receipt(last))
            .unwrap()
            .unwrap()
            .is_some()
    );
}

#[test]
fn a_checkpoint_that_finds_no_room_fails_no_commit() {
    let test = "disk::a_checkpoint_that_finds_no_room_fails_no_commit";
    let prepare = "mount -t tmpfs -o size=112m tmpfs \"$1\"";
    let Some(dir) = in_child(test, OWN_MOUNTS, prepare) else {
        return;
    };
    // Much of the room goes to the log, so that it can take commits which the database cannot.
    let options = Options {
        wal_bytes: 40 * 1024 * 1024,
        ..Options::default()
    };
    let mut store = open(&dir, &options);
    let body = "x".repeat(20_000);
    let mut sent = 0;
    let mut send = |store: &mut Store| {
        sent += 1;
        store
            .one(at(sent), |tx| tx.send(message("bob", "ada", &body)))
            .unwrap()
            .unwrap();
    };
    // A reader of something old keeps the log from being copied and started over, which is due at
    // 31 MiB, or 1,984 pages.
    send(&mut store);
    let reader = rusqlite::Connection::open(dir.join("hive.db")).unwrap();
    let look = "BEGIN; SELECT count(*) FROM mail";
    reader.execute_batch(look).unwrap();
    while noted(&dir).0 < 1_950 {
        send(&mut store);
    }
    // Now it looks at the newest, so that nearly all is copied: the rest is left to the writer.
    reader.execute_batch(&format!("COMMIT; {look}")).unwrap();
    send(&mut store);
    let deadline = Instant::now() + Duration::from_secs(20);
    while noted(&dir).1 < 1_950 {
        assert!(
            Instant::now() < deadline,
            "the log is not copied: {:?}",
            noted(&dir)
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    reader.execute_batch("COMMIT").unwrap();
    let ballast = dir.join("ballast");
    let mut file = std::fs::File::create(&ballast).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    drop(file);
    while noted(&dir).0 < 2_025 {
        send(&mut store);
    }
    assert!(
        noted(&dir).1 < 1_965,
        "the database had room: {:?}",
        noted(&dir)
    );
    let (kept, error) = fill(&mut store, &body);
    assert!(matches!(error, StoreError::DiskFull), "{error:?}");
    let all = u32::try_from(sent).unwrap() + 2 * kept;
    assert_eq!(waiting(&mut store), all);
    std::fs::remove_file(&ballast).unwrap();
    let more = store.one(at(6), |tx| tx.send(message("bob", "ada", &body)));
    assert!(more.unwrap().is_ok());
    assert_eq!(waiting(&mut store), all + 1);
}

/// Frames in the log and frames of those in the database, as the note beside it says.
fn noted(dir: &Path) -> (u32, u32) {
    let note = std::fs::read(dir.join("hive.db-mark")).unwrap();
    let word = |at: usize| u32::from_le_bytes(note[at..at + 4].try_into().unwrap());
    (word(8), word(12))
}

#[test]
fn a_failing_disk_ends_the_store_and_loses_nothing() {
    let test = "disk::a_failing_disk_ends_the_store_and_loses_nothing";
    // A limit on the size of files: writes beyond it fail as on a broken disk, also for root.
    let prepare = "trap '' XFSZ; ulimit -f 4096";
    let Some(dir) = in_child(test, &["env"], prepare) else {
        return;
    };
    let mut store = open(&dir, &small());
    let (kept, error) = fill(&mut store, &"x".repeat(30_000));
    assert!(!error.is_passing(), "{error:?}");
    assert!(
        matches!(error, StoreError::Sqlite(_)) && kept > 5,
        "{kept} {error:?}"
    );
    drop(store);
    let (mut store, readers) = sqlite::open(&dir.join("hive.db"), &small()).unwrap();
    assert_eq!(waiting(&mut store), 2 * kept);
    assert_eq!(readers.integrity().unwrap(), None);
    assert_eq!(readers.counts().unwrap().undelivered, 2 * kept);
}

#[test]
fn a_read_only_directory_is_told() {
    let test = "disk::a_read_only_directory_is_told";
    let prepare = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\"";
    let Some(dir) = in_child(test, OWN_MOUNTS, prepare) else {
        return;
    };
    let error = sqlite::open(&dir.join("hive.db"), &small()).unwrap_err();
    let StoreError::Io { path, source } = &error else {
        panic!("{error:?}")
    };
    assert!(path.contains("hive.db"), "{path}");
    assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    assert!(error.remedy().contains("written"), "{}", error.remedy());
}

#[test]
fn a_directory_that_is_not_there_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let error = sqlite::open(&dir.path().join("none/hive.db"), &small()).unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error:?}");
}
