//! The queries that run often stay flat as history grows: they search an index, whatever its size.
//!
//! The texts are read from the sources, so that a statement that is added is looked at too.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "common/hive.rs"]
mod common;

use std::{collections::BTreeSet, fs, path::Path};

use common::Hive;

/// Tables that grow with history. What is open lies in tables and partial indexes of its own.
const LARGE: [&str; 9] = [
    "messages",
    "receipts",
    "turns",
    "send_keys",
    "command_keys",
    "correspondence",
    "questions",
    "approvals",
    "turn_counts",
];
/// Indexes that hold what is open only, so that walking all of one is no harm.
const SMALL_INDEXES: [&str; 5] = [
    "questions_owed",
    "questions_asked",
    "approvals_pending",
    "approvals_expiry",
    "approvals_due",
];
/// Statements that walk a whole table on purpose, and why that is no harm.
const ON_PURPOSE: [&str; 4] = [
    // Once at the start, over a bounded number of the newest turns.
    "SELECT seq, agent, name FROM (SELECT seq, agent, name FROM turns",
    // A listing of everything, newest first: it stops at its limit.
    "FROM questions ORDER BY id DESC LIMIT",
    "FROM approvals ORDER BY id DESC LIMIT",
    // The oldest ones, in the order of their key: it stops at its limit.
    "FROM turn_counts ORDER BY id LIMIT",
];

/// A part of a statement that runs often, and the index that it must use.
const HOT: &[(&str, &str)] = &[
    (
        "WHERE l.recipient = ?1 AND l.state = 0 ORDER BY l.message",
        "PRIMARY KEY (recipient=? AND state=?)",
    ),
    (
        "WHERE l.recipient = ?1 AND l.state = 1 AND l.req = ?2",
        "PRIMARY KEY (recipient=? AND state=?)",
    ),
    (
        "confirmed = 1 WHERE recipient = ?1",
        "PRIMARY KEY (recipient=? AND state=?)",
    ),
    (
        "SELECT message, deliveries, failures, req, confirmed",
        "PRIMARY KEY (recipient=? AND state=?)",
    ),
    (
        "count(*) FROM mail WHERE recipient = ?1",
        "PRIMARY KEY (recipient=? AND state=?)",
    ),
    (
        "DELETE FROM mail WHERE recipient = ?1",
        "PRIMARY KEY (recipient=? AND state=? AND message=?)",
    ),
    (
        "UPDATE mail SET state = 1",
        "PRIMARY KEY (recipient=? AND state=? AND message=?)",
    ),
    ("FROM open_turns WHERE agent = ?1", "PRIMARY KEY (agent=?)"),
    (
        "SELECT coalesce(r.state, l.state), m.recipient",
        "PRIMARY KEY (recipient=? AND state=? AND message=?)",
    ),
    (
        "SELECT message FROM send_keys",
        "PRIMARY KEY (sender=? AND key=?)",
    ),
    (
        "WHERE recipient = 'operator'",
        "PRIMARY KEY (recipient=? AND state=? AND message>?)",
    ),
    (
        "WHERE thread = :root",
        "INDEX messages_thread (thread=? AND rowid<?)",
    ),
    (
        "FROM correspondence WHERE party = ?1 AND first < ?2",
        "PRIMARY KEY (party=? AND first<?)",
    ),
    (
        "WHERE state = 3 AND message > ?1",
        "INDEX mail_dead (message>?)",
    ),
    ("(asker = ?1 OR target = ?1)", "INDEX questions_asked"),
    (
        "answer IS NULL AND expires_at <= ?1",
        "INDEX questions_expiry (expires_at<?)",
    ),
    (
        "state = 0 AND expires_at <= ?1",
        "INDEX approvals_expiry (expires_at<?)",
    ),
    (
        "FROM reminders WHERE due_at <= ?1",
        "INDEX reminders_due (due_at<?)",
    ),
    (
        "FROM turn_counts WHERE agent = ?1 AND id < ?2",
        "INDEX turn_counts_agent (agent=? AND rowid<?)",
    ),
    (
        "SELECT request, reply FROM command_keys",
        "PRIMARY KEY (agent=? AND key=?)",
    ),
    (
        "FROM command_keys WHERE used_at < ?1",
        "INDEX command_keys_age (used_at<?)",
    ),
    ("WHERE next_at <= ?1", "INDEX schedules_next (next_at<?)"),
    (
        "FROM send_keys WHERE used_at < ?1",
        "INDEX send_keys_age (used_at<?)",
    ),
];

/// Every SQL text in the sources of the store, as the compiler sees it.
fn statements() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite");
    let readers = fs::read_to_string(sources.join("readers.rs")).unwrap();
    let receipts = literals(&readers)
        .into_iter()
        .find(|text| text.starts_with("SELECT m.id"))
        .expect("the columns of a receipt");
    let files = [sources.clone(), sources.join("mail"), sources.join("redo")]
        .into_iter()
        .flat_map(|dir| fs::read_dir(dir).unwrap());
    for entry in files {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|kind| kind == "rs") {
            let source = fs::read_to_string(&path).unwrap();
            let code = source.split("#[cfg(test)]").next().unwrap();
            found.extend(texts(code, &receipts));
        }
    }
    found
}

/// The string literals of a source that are SQL, with constants of the same file put in.
fn texts(source: &str, receipts: &str) -> Vec<String> {
    let literals = literals(source);
    let columns = literals
        .iter()
        .find(|text| text.starts_with("SELECT") && !text.contains('?') && *text != receipts);
    let columns = columns.cloned().unwrap_or_default();
    let whole = literals
        .into_iter()
        .filter(|text| *text != columns && text != receipts)
        .flat_map(|text| {
            if text.starts_with("WHERE m.") {
                return vec![format!("{receipts}{text}")];
            }
            let text = text.replace("{COLUMNS}", &columns);
            if text.contains("{which}") {
                let all = text.replace("{which}", "ORDER BY id");
                return vec![
                    all,
                    text.replace("{which}", "WHERE answer IS NULL ORDER BY +id"),
                ];
            }
            vec![text]
        });
    let starts = ["SELECT", "UPDATE", "DELETE", "INSERT"];
    whole
        .filter(|text| starts.iter().any(|start| text.starts_with(start)))
        .filter(|text| {
            text.contains(" WHERE ") || text.contains(" FROM ") || text.contains(" INTO ")
        })
        .collect()
}

/// The string literals of a source, with their line breaks taken out.
fn literals(source: &str) -> Vec<String> {
    let mut literals = Vec::new();
    let mut rest = source;
    while let Some(start) = rest.find('"') {
        rest = &rest[start + 1..];
        let mut end = 0;
        let bytes = rest.as_bytes();
        while bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        let literal: Vec<&str> = rest[..end].split("\\\n").map(str::trim_start).collect();
        literals.push(literal.concat());
        rest = &rest[end + 1..];
    }
    literals
}

#[test]
fn no_statement_walks_a_table_that_grows() {
    let hive = Hive::new();
    let raw = planner(&hive);
    let mut checked = 0;
    for sql in statements() {
        let Ok(mut plan) = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")) else {
            // A fragment that another one is made of.
            continue;
        };
        checked += 1;
        let count = plan.parameter_count();
        let nothing = vec![rusqlite::types::Null; count];
        let steps: Vec<String> = plan
            .query_map(rusqlite::params_from_iter(nothing), |row| row.get(3))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        for step in &steps {
            if is_long_walk(step, &sql) {
                assert!(
                    ON_PURPOSE.iter().any(|known| sql.contains(known)),
                    "{step}\n  in {sql}\n  {steps:#?}"
                );
            }
        }
    }
    assert!(checked > 60, "only {checked} statements were found");
}

/// A connection that plans as the store's own do: without looking at bound values.
fn planner(hive: &Hive) -> rusqlite::Connection {
    let raw = hive.raw();
    let stable = rusqlite::config::DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG;
    raw.set_db_config(stable, true).unwrap();
    raw
}

/// Whether this step of a plan looks at every row of a table that grows.
fn is_long_walk(step: &str, sql: &str) -> bool {
    let Some(walked) = step.strip_prefix("SCAN ") else {
        return false;
    };
    let table = walked.split(' ').next().unwrap();
    // Aliases of the joins.
    let table = match table {
        "m" => "messages",
        "l" => "mail",
        "t" => "turns",
        other => other,
    };
    let by_small_index = SMALL_INDEXES.iter().any(|index| step.ends_with(index));
    // The greatest or least of an index is its end, found at once.
    let is_end = sql.contains("max(") || sql.contains("min(");
    LARGE.contains(&table) && !by_small_index && !is_end
}

#[test]
fn the_hot_paths_use_their_indexes() {
    let hive = Hive::new();
    let raw = planner(&hive);
    let plan = |sql: &str| -> String {
        let mut plan = raw.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let nothing = vec![rusqlite::types::Null; plan.parameter_count()];
        let steps = plan
            .query_map(rusqlite::params_from_iter(nothing), |row| {
                row.get::<_, String>(3)
            })
            .unwrap();
        steps.map(Result::unwrap).collect::<Vec<_>>().join("; ")
    };
    let all = statements();
    for (part, index) in HOT {
        let sql = all.iter().find(|sql| sql.contains(part));
        let sql = sql.unwrap_or_else(|| panic!("no statement has {part:?}"));
        let plan = plan(sql);
        assert!(plan.contains(index), "{sql}\n  {plan}");
        let sorts = plan.contains("TEMP B-TREE") && !part.contains("asker");
        assert!(!sorts, "{sql}\n  {plan}");
    }
}
