//! Old messages by the million, written straight into the hive's database while the daemon is down:
//! sending them would take an hour and measure nothing.
//!
//! This is the one place of the benchmark that knows the store's schema
//! (`crates/hive-store/src/sqlite/migrations/`): each message is sent, delivered once and acked in
//! a turn of its own, between the same agents that the measurement uses.

use std::{
    fs::File,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result};
use rusqlite::{Connection, Transaction, params};

use crate::workload::body;

const BODY_BYTES: usize = 200;
/// The history ends an hour ago and holds ten messages a second: old, but within any retention.
const AGE_MS: i64 = 3_600_000;
const INTERVAL_MS: i64 = 100;
/// Large transactions, small enough to stay in SQLite's memory.
const PER_TRANSACTION: i64 = 250_000;
/// How many messages a row of the index of correspondence holds.
const PER_ROW: usize = 240;

/// Adds `messages` acked messages among the agents of `clients` pairs, and folds the write-ahead
/// log into the database, so that the daemon finds an ordinary file.
pub(super) fn prefill(database: &Path, messages: u64, clients: usize) -> Result<()> {
    let mut conn = Connection::open(database).context("cannot open the hive's database")?;
    conn.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -262144;")?;
    let last = |sql| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let history = Past {
        first: last("SELECT ifnull(max(id), 0) + 1 FROM messages")?,
        first_turn: last("SELECT ifnull(max(seq), 0) + 1 FROM turns")?,
        count: i64::try_from(messages)?,
        clients: i64::try_from(clients)?,
        end_ms: i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis())? - AGE_MS,
    };
    let mut done = 0;
    while done < history.count {
        let end = (done + PER_TRANSACTION).min(history.count);
        let tx = conn.transaction()?;
        history.insert(&tx, done..end)?;
        tx.commit()?;
        done = end;
    }
    let tx = conn.transaction()?;
    history.insert_correspondence(&tx)?;
    tx.commit()?;
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    // All of it reaches the disk now: what is left to write back would slow every sync that follows.
    File::open(database)?
        .sync_all()
        .context("cannot sync the hive's database")
}

/// What is to be written.
struct Past {
    first: i64,
    first_turn: i64,
    count: i64,
    clients: i64,
    end_ms: i64,
}

impl Past {
    fn insert(&self, tx: &Transaction<'_>, numbers: std::ops::Range<i64>) -> Result<()> {
        let text = body(BODY_BYTES);
        let mut message = tx.prepare_cached(
            "INSERT INTO messages (id, sender, recipient, body, sent_at, size, checksum) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let mut receipt = tx.prepare_cached("INSERT INTO receipts VALUES (?1, 2, 1, ?2, ?3)")?;
        let mut turn =
            tx.prepare_cached("INSERT INTO turns VALUES (?1, ?2, ?3, ?4, ?4, 1, 1, 0, 0)")?;
        for number in numbers {
            let (id, seq) = (self.first + number, self.first_turn + number);
            let client = number % self.clients;
            let (from, to) = (format!("s{client}"), format!("r{client}"));
            let at = self.end_ms - (self.count - number) * INTERVAL_MS;
            let checksum = checksum(id, at, [&from, &to, &text]);
            message.execute(params![id, from, to, text, at, BODY_BYTES as i64, checksum])?;
            receipt.execute(params![id, seq, at])?;
            turn.execute(params![seq, to, format!("P{number}"), at])?;
        }
        Ok(())
    }

    /// In the order of the table's key, so that its pages are filled one after the other. A row
    /// holds the distances of its messages from the first.
    fn insert_correspondence(&self, tx: &Transaction<'_>) -> Result<()> {
        let mut row = tx.prepare_cached("INSERT INTO correspondence VALUES (?1, ?2, ?3)")?;
        let mut parties: Vec<(String, i64)> = (0..self.clients)
            .flat_map(|client| {
                [
                    (format!("r{client}"), client),
                    (format!("s{client}"), client),
                ]
            })
            .collect();
        parties.sort_unstable();
        let step = usize::try_from(self.clients)?;
        for (party, client) in parties {
            let numbers: Vec<i64> = (client..self.count).step_by(step).collect();
            for batch in numbers.chunks(PER_ROW) {
                let mut distances = Vec::with_capacity(batch.len() * size_of::<u32>());
                for number in batch {
                    distances.extend(u32::try_from(number - batch[0])?.to_le_bytes());
                }
                row.execute(params![party, self.first + batch[0], distances])?;
            }
        }
        // So that the daemon does not index them once more in the background.
        tx.execute(
            "UPDATE meta SET value = ?1 WHERE key = 'indexed_messages'",
            [self.first + self.count - 1],
        )?;
        Ok(())
    }
}

/// The store's guard over a message row.
fn checksum(id: i64, sent_at: i64, parts: [&str; 3]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for number in [id, 0, sent_at] {
        hasher.update(&number.to_le_bytes());
    }
    for part in parts {
        hasher.update(part.as_bytes());
        hasher.update(&[0xff]);
    }
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_a_store_with_settled_messages() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hive.db");
        let conn = Connection::open(&path).unwrap();
        for migration in hive_store::sqlite::MIGRATIONS {
            conn.execute_batch(migration).unwrap();
        }
        conn.execute("INSERT INTO meta VALUES ('indexed_messages', 0)", [])
            .unwrap();
        drop(conn);
        prefill(&path, 96, 8).unwrap();
        prefill(&path, 32, 8).unwrap();

        let conn = Connection::open(&path).unwrap();
        let count = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap();
        for (sql, want) in [
            (
                "SELECT count(*) FROM messages WHERE recipient = 'r3' AND sender = 's3'",
                16,
            ),
            ("SELECT count(*) FROM receipts WHERE state = 2", 128),
            ("SELECT count(*) FROM mail", 0),
            (
                "SELECT count(*) FROM turns WHERE outcome = 1 AND acked = 1",
                128,
            ),
            ("SELECT sum(length(messages)) / 4 FROM correspondence", 256),
            ("SELECT value FROM meta WHERE key = 'indexed_messages'", 128),
            (
                "SELECT count(*) FROM correspondence c JOIN messages m ON m.id = c.first \
              WHERE c.party IN (m.sender, m.recipient)",
                32,
            ),
            (
                "SELECT count(*) FROM receipts r JOIN messages m ON m.id = r.message \
              JOIN turns t ON t.seq = r.turn WHERE t.agent = m.recipient",
                128,
            ),
        ] {
            assert_eq!(count(sql), want, "{sql}");
        }
    }
}
