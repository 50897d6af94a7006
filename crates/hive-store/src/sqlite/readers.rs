//! Reading beside the writer, on connections of its own. It waits for no sync, only for SQLite to
//! have caught up with what was acknowledged before.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use hive_wire::{
    AgentName, MessageId, SenderLabel, Timestamp,
    agent::{Message, MessageState, Receipt},
    host::{HistoryRow, QuestionRow},
    text,
};
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, named_params};

use super::{
    AgentRecord, Approval, Permissions, Schedule, approvals, behind::Behind, correspondence,
    mail::checksum, questions,
};

/// The columns that make a receipt, then body, `in_reply_to` and checksum, followed by `$tail`.
macro_rules! receipts {
    ($tail:literal) => {
        concat!(
            "SELECT m.id, m.sender, m.recipient, coalesce(r.state, l.state), \
             coalesce(r.deliveries, l.deliveries), coalesce(t.name, l.held_by), m.sent_at, \
             r.settled_at, m.body, m.in_reply_to, m.checksum \
             FROM messages m \
             LEFT JOIN receipts r ON r.message = m.id \
             LEFT JOIN mail l ON l.recipient = m.recipient AND l.state IN (0, 1, 3) \
               AND l.message = m.id \
             LEFT JOIN turns t ON t.seq = coalesce(r.turn, l.turn) ",
            $tail
        )
    };
}
pub(super) use receipts;

/// The most idle connections that are kept.
const IDLE_CONNECTIONS: usize = 4;
/// What is shown of a body that is not the one that was written.
const DAMAGED_BODY: &str = "[this message is damaged on disk: its checksum does not match]";
/// The most rows of a listing. Of questions and approvals one further is read, so that whoever lists
/// them can tell that there are more.
pub const MAX_ROWS: u32 = 1_000;

/// How many bytes of bodies a page has, so that it fits into one line of the wire.
const PAGE_BYTES: usize = 768 * 1024;
/// What a row costs in a line besides its body.
const ROW_BYTES: usize = 512;

/// As many rows as were asked for or fit into one line, and whether there are more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The rows; at least one, unless there are none.
    pub rows: Vec<T>,
    /// Whether reading on from the last of them brings more.
    pub more: bool,
}

impl<T> Page<T> {
    /// Takes rows until the page is full, and reads no further: bodies may be large.
    pub(super) fn fill(
        rows: impl Iterator<Item = rusqlite::Result<T>>,
        limit: u32,
        body: impl Fn(&T) -> &str,
    ) -> rusqlite::Result<Self> {
        let mut page = Self {
            rows: Vec::new(),
            more: false,
        };
        let mut bytes = 0;
        for row in rows {
            let row = row?;
            bytes += text::encoded_length(body(&row)) + ROW_BYTES;
            let is_full = bytes > PAGE_BYTES && !page.rows.is_empty();
            if is_full || page.rows.len() >= limit as usize {
                page.more = true;
                break;
            }
            page.rows.push(row);
        }
        Ok(page)
    }
}

/// A handle for reading; share it freely.
#[derive(Debug)]
pub struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    behind: Arc<Behind>,
}

/// Which part of the history to read.
#[derive(Debug, Clone, Default)]
pub struct HistoryQuery {
    /// Only messages to or from this party.
    pub with: Option<String>,
    /// Only the thread of this message.
    pub thread: Option<MessageId>,
    /// Only messages before this one.
    pub before: Option<MessageId>,
    /// At most so many.
    pub limit: u32,
}

/// How much there is of everything that matters to an operator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that wait or are held.
    pub undelivered: u32,
    /// Dead letters.
    pub dead: u32,
    /// Questions without an answer.
    pub questions: u32,
    /// Reminders that have not fired.
    pub reminders: u32,
}

impl Readers {
    pub(super) fn new(path: PathBuf, behind: Arc<Behind>) -> Self {
        Self {
            path,
            idle: Mutex::new(Vec::new()),
            behind,
        }
    }

    /// Opens the database of a hive that may or may not be running, for looking only.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open_file(path: &std::path::Path) -> rusqlite::Result<Self> {
        let readers = Self::new(path.to_path_buf(), Arc::default());
        readers.with(|conn| conn.query_row("SELECT count(*) FROM meta", [], |_| Ok(())))?;
        Ok(readers)
    }

    /// Messages that wait in the operator's inbox, oldest first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn operator_inbox(&self, after: Option<MessageId>) -> rusqlite::Result<Page<Message>> {
        self.with(|conn| {
            let mut inbox = conn.prepare_cached(receipts!(
                "WHERE m.id IN (SELECT message FROM mail WHERE recipient = 'operator' \
                   AND state = 0 AND message > ?1 ORDER BY message LIMIT ?2) ORDER BY m.id"
            ))?;
            let after = after.map_or(0, |id| id.0);
            let rows = inbox.query_map((after, MAX_ROWS + 1), |row| {
                let HistoryRow {
                    receipt,
                    body,
                    in_reply_to,
                } = history_from(row)?;
                Ok(Message {
                    id: receipt.message_id,
                    from: receipt.from,
                    to: receipt.to,
                    body,
                    in_reply_to,
                    sent_at: receipt.sent_at,
                    delivery: receipt.deliveries,
                })
            })?;
            Page::fill(rows, MAX_ROWS, |message| &message.body)
        })
    }

    /// What became of a message.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn receipt(&self, id: MessageId) -> rusqlite::Result<Option<Receipt>> {
        self.with(|conn| {
            conn.prepare_cached(receipts!("WHERE m.id = ?1"))?
                .query_row([id.0], receipt_from)
                .optional()
        })
    }

    /// A page of history, newest first. Its cost depends on the page, not on the history.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn history(&self, query: &HistoryQuery) -> rusqlite::Result<Page<HistoryRow>> {
        let before = query.before.map_or(i64::MAX, |id| id.0);
        let wanted = query.limit.clamp(1, MAX_ROWS);
        let limit = wanted + 1;
        self.with(|conn| match (&query.thread, &query.with) {
            (Some(thread), _) => {
                let root = thread_root(conn, *thread)?;
                let mut thread = conn.prepare_cached(receipts!(
                    "WHERE m.id IN (\
                       SELECT id FROM (SELECT id FROM messages \
                         WHERE thread = :root AND id < :before ORDER BY id DESC LIMIT :limit) \
                       UNION ALL SELECT :root WHERE :root < :before) \
                     ORDER BY m.id DESC LIMIT :limit"
                ))?;
                let rows = thread.query_map(
                    named_params! {":before": before, ":root": root, ":limit": limit},
                    history_from,
                )?;
                Page::fill(rows, wanted, |row| &row.body)
            }
            (None, Some(party)) => {
                // What is indexed and what is not must be seen at the same moment.
                let moment = conn.unchecked_transaction()?;
                let indexed = correspondence::indexed(&moment, party, before, limit)?;
                let indexed = serde_json::to_string(&indexed).expect("numbers encode");
                let mut with = moment.prepare_cached(receipts!(
                    "WHERE m.id IN (\
                       SELECT value FROM json_each(:indexed) \
                       UNION ALL SELECT id FROM (SELECT id FROM messages \
                         WHERE id > (SELECT value FROM meta WHERE key = 'indexed_messages') \
                         AND id < :before AND (sender = :party OR recipient = :party) \
                         ORDER BY id DESC LIMIT :limit)) \
                     ORDER BY m.id DESC LIMIT :limit"
                ))?;
                let rows = with.query_map(
                    named_params! {
                        ":indexed": indexed, ":before": before, ":party": party, ":limit": limit
                    },
                    history_from,
                )?;
                Page::fill(rows, wanted, |row| &row.body)
            }
            (None, None) => {
                let mut all = conn.prepare_cached(receipts!(
                    "WHERE m.id < :before ORDER BY m.id DESC LIMIT :limit"
                ))?;
                let rows = all.query_map(
                    named_params! {":before": before, ":limit": limit},
                    history_from,
                )?;
                Page::fill(rows, wanted, |row| &row.body)
            }
        })
    }

    /// The dead letters, oldest first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn dead_letters(&self, after: Option<MessageId>) -> rusqlite::Result<Page<HistoryRow>> {
        self.with(|conn| {
            let mut dead = conn.prepare_cached(receipts!(
                "WHERE m.id IN (SELECT message FROM mail \
                   WHERE state = 3 AND message > ?1 ORDER BY message LIMIT ?2) ORDER BY m.id"
            ))?;
            let after = after.map_or(0, |id| id.0);
            let rows = dead.query_map((after, MAX_ROWS + 1), history_from)?;
            Page::fill(rows, MAX_ROWS, |row| &row.body)
        })
    }

    /// How much there is of everything.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn counts(&self) -> rusqlite::Result<Counts> {
        self.with(|conn| {
            let count = |sql: &str| -> rusqlite::Result<u32> {
                conn.prepare_cached(sql)?.query_row([], |row| row.get(0))
            };
            Ok(Counts {
                undelivered: count("SELECT count(*) FROM mail WHERE state IN (0, 1)")?,
                dead: count("SELECT count(*) FROM mail WHERE state = 3")?,
                questions: count("SELECT count(*) FROM questions WHERE answer IS NULL")?,
                reminders: count("SELECT count(*) FROM reminders")?,
            })
        })
    }

    /// Every agent that is registered, by name.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn agents(&self) -> rusqlite::Result<Vec<AgentRecord>> {
        self.with(super::agents::living)
    }

    /// Whether what was acknowledged is in the redo journal alone because the disk is full. It is tried
    /// again every second.
    pub fn is_disk_full(&self) -> bool {
        self.behind.is_out_of_room()
    }

    /// Questions, or those put to `target` alone, oldest first: the oldest of those that wait for an
    /// answer, or the newest of all.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn questions(&self, all: bool, target: Option<&str>) -> rusqlite::Result<Vec<QuestionRow>> {
        self.with(|conn| questions::list(conn, all, target, MAX_ROWS + 1))
    }

    /// Schedules, or those of one agent alone, the next to fire first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn schedules(&self, agent: Option<&AgentName>) -> rusqlite::Result<Vec<Schedule>> {
        self.with(|conn| super::schedules::all(conn, agent, MAX_ROWS))
    }

    /// Approvals that wait for a decision, oldest first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn pending_approvals(&self) -> rusqlite::Result<Vec<Approval>> {
        self.with(|conn| approvals::pending(conn, MAX_ROWS + 1))
    }

    /// All approvals, newest first.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn approvals(&self) -> rusqlite::Result<Vec<Approval>> {
        self.with(|conn| approvals::newest(conn, MAX_ROWS + 1))
    }

    /// What the operator granted, and when; agents that are not there have the defaults.
    ///
    /// # Errors
    /// Those of SQLite. A row that cannot be read is one: the agent must not fall back to more
    /// than it was left with.
    pub fn permissions(&self) -> rusqlite::Result<Vec<(AgentName, Permissions, Timestamp)>> {
        self.with(super::permissions::all)
    }

    /// Checks the whole file, which takes a while on a large one; what is wrong with it, or none.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn integrity(&self) -> rusqlite::Result<Option<String>> {
        self.with(|conn| super::open::check(conn, "PRAGMA integrity_check(10)"))
    }

    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        self.behind.catch_up();
        let idle = self
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        let conn = idle.map_or_else(|| self.connect(), Ok)?;
        let result = read(&conn);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_CONNECTIONS {
            idle.push(conn);
        }
        result
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        // A small cache will do: readers list, they do not scan.
        conn.pragma_update(None, "cache_size", -512)?;
        Ok(conn)
    }
}

fn thread_root(conn: &Connection, of: MessageId) -> rusqlite::Result<i64> {
    let root: Option<Option<i64>> = conn
        .prepare_cached("SELECT thread FROM messages WHERE id = ?1")?
        .query_row([of.0], |row| row.get(0))
        .optional()?;
    Ok(root.flatten().unwrap_or(of.0))
}

fn history_from(row: &Row<'_>) -> rusqlite::Result<HistoryRow> {
    let receipt = receipt_from(row)?;
    let in_reply_to = row.get::<_, Option<i64>>(9)?.map(MessageId);
    let intact = |body: &String| {
        let (from, to) = (receipt.from.as_str(), &receipt.to);
        let sum = checksum(
            receipt.message_id,
            from,
            to,
            body,
            in_reply_to,
            receipt.sent_at,
        );
        row.get::<_, u32>(10) == Ok(sum)
    };
    // One body that the disk changed must neither be shown nor hide the others.
    let body = row.get(8).ok().filter(intact);
    Ok(HistoryRow {
        body: body.unwrap_or_else(|| DAMAGED_BODY.to_owned()),
        receipt,
        in_reply_to,
    })
}

pub(super) fn receipt_from(row: &Row<'_>) -> rusqlite::Result<Receipt> {
    let state = state_from(row.get(3)?);
    let settled_at = row.get::<_, Option<i64>>(7)?.map(Timestamp::from_millis);
    Ok(Receipt {
        message_id: MessageId(row.get(0)?),
        from: label_from(row, 1)?,
        to: row.get(2)?,
        state,
        deliveries: row.get(4)?,
        turn: row
            .get::<_, Option<String>>(5)?
            .and_then(|name| name.parse().ok()),
        sent_at: Timestamp::from_millis(row.get(6)?),
        acked_at: settled_at.filter(|_| state == MessageState::Acked),
    })
}

/// A sender label from a column.
pub(super) fn label_from(row: &Row<'_>, column: usize) -> rusqlite::Result<SenderLabel> {
    parsed(row, column)
}

/// A column whose text has a type of its own.
pub(super) fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: std::str::FromStr,
    T::Err: std::error::Error + Send + Sync + 'static,
{
    row.get_ref(column)?
        .as_str()?
        .parse()
        .map_err(|error: T::Err| {
            rusqlite::Error::FromSqlConversionFailure(
                column,
                rusqlite::types::Type::Text,
                Box::new(error),
            )
        })
}

/// The state behind its stored number, which is its place in [`MessageState`].
pub(super) fn state_from(code: i64) -> MessageState {
    const STATES: [MessageState; 5] = [
        MessageState::Stored,
        MessageState::Leased,
        MessageState::Acked,
        MessageState::Dead,
        MessageState::Discarded,
    ];
    let known = usize::try_from(code).ok().and_then(|code| STATES.get(code));
    // A number that no build wrote: treat it as something the operator has to look at.
    known.copied().unwrap_or(MessageState::Dead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_stored_by_their_place() {
        for code in 0..5 {
            assert_eq!(state_from(code) as i64, code);
        }
        assert_eq!(state_from(99), MessageState::Dead);
    }
}
