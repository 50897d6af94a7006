//! Files that are gone, replaced or somebody else's.

use std::fs;

use hive_store::{
    Mail, StoreError,
    sqlite::{LockError, RootLock},
};

use crate::common::{Hive, fast_dir, message};

fn send_fails(hive: &mut Hive) -> StoreError {
    let outcome = hive.try_run(|tx| tx.send(message("bob", "ada", "lost")));
    let error = outcome.unwrap_err();
    assert!(
        !error.is_passing(),
        "the store must not be used again: {error}"
    );
    error
}

#[test]
fn a_database_deleted_while_open_ends_the_store() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "kept");
    fs::remove_file(hive.path()).unwrap();
    let error = send_fails(&mut hive);
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
    hive.open = None;
    let error = hive.start().unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
    assert!(error.to_string().contains("missing"), "{error}");
    assert!(
        !hive.path().exists(),
        "no new hive in the place of the old one"
    );
    // The loss is accepted on purpose: a new hive begins.
    for file in ["-id", "-mark", "-redo"] {
        fs::remove_file(hive.file(file)).unwrap();
    }
    hive.start().unwrap();
    assert_eq!(hive.send("bob", "ada", "first").0, 1);
}

#[test]
fn a_database_deleted_between_runs_is_missed() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "kept");
    hive.stop();
    let kept = fs::read(hive.path()).unwrap();
    fs::remove_file(hive.path()).unwrap();
    let error = hive.start().unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
    fs::write(hive.path(), kept).unwrap();
    hive.start().unwrap();
    assert_eq!(
        hive.take("ada", 9).len(),
        1,
        "put back, it is as good as before"
    );
}

#[test]
fn a_database_replaced_while_open_ends_the_store() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "kept");
    let other = fast_dir();
    let copy = other.path().join("copy");
    fs::copy(hive.path(), &copy).unwrap();
    let moved = hive.file("-moved");
    fs::copy(&copy, &moved).unwrap();
    fs::rename(&moved, hive.path()).unwrap();
    let error = send_fails(&mut hive);
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
}

#[test]
fn a_log_deleted_or_replaced_while_open_ends_the_store() {
    for replaced in [false, true] {
        let mut hive = Hive::new();
        hive.send("bob", "ada", "kept");
        let bytes = fs::read(hive.file("-wal")).unwrap();
        fs::remove_file(hive.file("-wal")).unwrap();
        if replaced {
            fs::write(hive.file("-wal"), bytes).unwrap();
        }
        let error = send_fails(&mut hive);
        assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
    }
}

#[test]
fn a_read_only_group_asks_nothing_of_the_files() {
    let mut hive = Hive::new();
    let id = hive.send("bob", "ada", "kept");
    fs::remove_file(hive.path()).unwrap();
    assert!(hive.run(|tx| tx.receipt(id)).is_some());
}

#[test]
fn another_hives_database_is_refused_untouched() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "ours");
    hive.stop();
    let mut other = Hive::new();
    other.send("bob", "ada", "theirs");
    other.stop();
    let theirs = fs::read(other.path()).unwrap();
    fs::write(hive.path(), &theirs).unwrap();
    let error = hive.start().unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
    assert_eq!(fs::read(hive.path()).unwrap(), theirs);
}

#[test]
fn an_empty_database_in_place_of_ours_is_refused_untouched() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "kept");
    hive.kill();
    let log = fs::read(hive.file("-wal")).unwrap();
    let whole = fs::read(hive.path()).unwrap();
    fs::write(hive.path(), b"").unwrap();
    let error = hive.start().unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
    assert_eq!(
        fs::read(hive.file("-wal")).unwrap(),
        log,
        "SQLite would have removed it"
    );
    fs::write(hive.path(), whole).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9).len(), 1);
}

#[test]
fn a_database_of_another_program_is_refused_untouched() {
    let mut hive = Hive::new();
    hive.stop();
    fs::remove_file(hive.path()).unwrap();
    let raw = hive.raw();
    raw.execute_batch("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
        .unwrap();
    raw.close().unwrap();
    let error = hive.start().unwrap_err();
    assert!(matches!(error, StoreError::NotOurs { .. }), "{error}");
    let tables: u32 = hive
        .raw()
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .unwrap();
    assert_eq!(tables, 1, "nothing of ours was put into it");
}

#[test]
fn a_backup_taken_while_running_is_restored() {
    let mut hive = Hive::new();
    let kept = hive.send("bob", "ada", "before the backup");
    let backup = hive.dir.path().join("backup.db");
    hive.raw()
        .execute("VACUUM INTO ?1", [backup.to_str().unwrap()])
        .unwrap();
    hive.send("bob", "ada", "after the backup");
    hive.kill();
    for suffix in ["", "-wal", "-mark"] {
        fs::remove_file(hive.file(suffix)).unwrap();
    }
    fs::rename(hive.dir.path().join("backup.db"), hive.path()).unwrap();
    hive.start().unwrap();
    assert_eq!(hive.take("ada", 9), [kept]);
}

#[test]
fn garbage_is_told_and_left_as_it_is() {
    let mut header = b"SQLite format 3\0 and then nothing of the kind".to_vec();
    header.resize(8192, b'x');
    for garbage in [&[0xa5; 100_000], &header[..], &header[..40], b"x"] {
        let mut hive = Hive::new();
        hive.stop();
        fs::write(hive.path(), garbage).unwrap();
        let error = hive.start().unwrap_err();
        let told = match error {
            StoreError::Damaged { .. } => garbage.len() > 40,
            // SQLite takes it for an empty one.
            StoreError::NotOurs { .. } => garbage.len() <= 40,
            _ => false,
        };
        assert!(told, "{error}");
        assert_eq!(
            fs::read(hive.path()).unwrap(),
            garbage,
            "left as it was found"
        );
    }
}

#[test]
fn a_crash_before_the_id_was_written_is_healed() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "kept");
    for id in [Some(""), Some("\n"), None] {
        hive.kill();
        match id {
            Some(text) => fs::write(hive.file("-id"), text).unwrap(),
            None => fs::remove_file(hive.file("-id")).unwrap(),
        }
        hive.start().unwrap();
        assert_eq!(
            fs::read_to_string(hive.file("-id")).unwrap().trim().len(),
            32
        );
    }
    assert_eq!(hive.take("ada", 9).len(), 1);
}

#[test]
fn the_files_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let mut hive = Hive::new();
    hive.send("bob", "ada", "private");
    for suffix in ["", "-wal", "-shm", "-mark", "-id"] {
        let mode = fs::metadata(hive.file(suffix))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "hive.db{suffix}: {mode:o}");
    }
}

#[test]
fn a_second_daemon_is_told_the_pid_of_the_first() {
    let dir = fast_dir();
    let path = dir.path().join("hive.lock");
    let first = RootLock::acquire(&path).unwrap();
    let refused = RootLock::acquire(&path).unwrap_err();
    let LockError::Held { pid } = refused else {
        panic!("{refused}")
    };
    assert_eq!(pid, Some(std::process::id()));
    drop(first);
    fs::write(&path, "no number, and longer than a pid\n").unwrap();
    let again = RootLock::acquire(&path).unwrap();
    let pid = fs::read_to_string(&path).unwrap();
    assert_eq!(pid.trim(), std::process::id().to_string());
    drop(again);
    let missing = RootLock::acquire(&dir.path().join("none/hive.lock")).unwrap_err();
    assert!(matches!(missing, LockError::Io { .. }), "{missing}");
}
