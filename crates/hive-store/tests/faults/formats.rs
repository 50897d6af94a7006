//! Formats: from every earlier one to the newest, none from the future.

use hive_store::{Mail, StoreError, sqlite::MIGRATIONS};

use crate::common::{Hive, agent};

/// Rows as each format has them, by format. A new migration adds a line here.
const SAMPLES: &[&str] = &[
    "",
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
];

/// Makes a database of an earlier format with rows in it, and leaves it where the hive looks.
fn lay_down(hive: &Hive, format: usize) {
    for suffix in ["", "-wal", "-shm", "-id", "-mark"] {
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
            assert_eq!(hive.run(|tx| tx.take_due_reminders()).len(), 1);
        }
        let id = hive.send("bob", "ada", "works");
        hive.crash();
        assert!(hive.run(|tx| tx.receipt(id)).is_some());
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
