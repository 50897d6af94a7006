//! What the writer keeps in mind between groups, so that the common path asks SQLite little.
//!
//! Everything but transient messages and turns that nothing was answered about is a copy of rows.
//! It is undone with the operation or group that changed it, so that it never says more or less
//! than the database; only the counters run on, because gaps are fine and reuse is not.

use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use hive_wire::{MessageId, ReqId, Timestamp, TurnId};
use rusqlite::{Connection, OptionalExtension, Row};

use super::{OnDemand, transient::Transients, turns::TurnIndex};

/// The writer's memory.
#[derive(Debug)]
pub(super) struct Books {
    /// The id of the next durable message. Gaps are fine, reuse is not.
    next_message: i64,
    /// The number of the next turn.
    next_turn: i64,
    inboxes: HashMap<Arc<str>, Inbox>,
    /// How inboxes stood before this group changed them or had them read, in that order.
    undo: Vec<(Arc<str>, Option<Inbox>)>,
    /// Where the current operation begins in `undo`.
    operation: usize,
    pub(super) turns: TurnIndex,
    pub(super) transients: Transients,
}

/// How one inbox stands.
#[derive(Debug, Clone, Default)]
pub(super) struct Inbox {
    /// Messages in state stored.
    pub(super) depth: u32,
    /// Shared with whoever looks at it and with the way back; changed as a copy if need be.
    pub(super) open: Option<Arc<OpenTurn>>,
}

/// The open turn of an agent. It is on disk in the rows of what it holds, or else in a row of its
/// own, or, while nothing about it was answered yet, not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenTurn {
    pub(super) name: TurnId,
    pub(super) opened_at: Timestamp,
    pub(super) has_row: bool,
    /// The durable messages it holds.
    pub(super) held: Vec<Held>,
}

/// A message that a turn holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) message: MessageId,
    pub(super) deliveries: u32,
    pub(super) failures: u32,
    /// The receive that brought it.
    pub(super) req: Option<ReqId>,
    pub(super) confirmed: bool,
}

impl OpenTurn {
    pub(super) fn is_on_disk(&self) -> bool {
        self.has_row || !self.held.is_empty()
    }
}

impl Books {
    /// Reads the counters and the index of turns. The rest is read when it is needed.
    pub(super) fn load(conn: &Connection) -> rusqlite::Result<Self> {
        let last = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        Ok(Self {
            next_message: last("SELECT max(id) FROM messages")?.unwrap_or(0) + 1,
            next_turn: last("SELECT max(seq) FROM turns")?.unwrap_or(0) + 1,
            inboxes: HashMap::new(),
            undo: Vec::new(),
            operation: 0,
            turns: TurnIndex::load(conn)?,
            transients: Transients::new(),
        })
    }

    pub(super) fn begin_operation(&mut self) {
        self.operation = self.undo.len();
        self.transients.begin_operation();
    }

    /// Back to how everything stood when the operation began.
    pub(super) fn undo_operation(&mut self) {
        for (recipient, before) in self.undo.drain(self.operation..).rev() {
            match before {
                Some(inbox) => self.inboxes.insert(recipient, inbox),
                None => self.inboxes.remove(&recipient),
            };
        }
        self.transients.undo_operation();
    }

    /// Back to how everything stood when the group began.
    pub(super) fn undo_group(&mut self) {
        self.operation = 0;
        self.transients.widen_to_group();
        self.undo_operation();
    }

    /// The group is durable: there is no way back.
    pub(super) fn keep(&mut self) {
        self.undo.clear();
        self.operation = 0;
        self.transients.keep();
    }

    pub(super) fn take_message_id(&mut self) -> MessageId {
        let id = self.next_message;
        self.next_message += 1;
        MessageId(id)
    }

    pub(super) fn last_message_id(&self) -> MessageId {
        MessageId(self.next_message - 1)
    }

    pub(super) fn take_turn_seq(&mut self) -> i64 {
        let seq = self.next_turn;
        self.next_turn += 1;
        seq
    }

    /// The recipient's inbox, read from the database when it is not in mind.
    pub(super) fn inbox(
        &mut self,
        on_demand: &OnDemand,
        recipient: &str,
    ) -> rusqlite::Result<&Inbox> {
        // Two look-ups instead of the entry API: a hit must not allocate the key.
        if !self.inboxes.contains_key(recipient) {
            let inbox = read_inbox(on_demand.conn()?, recipient)?;
            let name: Arc<str> = recipient.into();
            self.inboxes.insert(Arc::clone(&name), inbox);
            // It may have been read after the group changed its rows.
            self.undo.push((name, None));
        }
        Ok(&self.inboxes[recipient])
    }

    /// The recipient's inbox, to be changed. Call it before the rows are changed that it mirrors:
    /// it may have to be read first.
    pub(super) fn inbox_mut(
        &mut self,
        on_demand: &OnDemand,
        recipient: &str,
    ) -> rusqlite::Result<&mut Inbox> {
        let before = self.inbox(on_demand, recipient)?.clone();
        let of_operation = &self.undo[self.operation..];
        if !of_operation
            .iter()
            .any(|(changed, _)| **changed == *recipient)
        {
            let (name, _) = self.inboxes.get_key_value(recipient).expect("read above");
            self.undo.push((Arc::clone(name), Some(before)));
        }
        Ok(self.inboxes.get_mut(recipient).expect("read above"))
    }
}

fn read_inbox(conn: &Connection, recipient: &str) -> rusqlite::Result<Inbox> {
    let depth = conn
        .prepare_cached("SELECT count(*) FROM mail WHERE recipient = ?1 AND state = 0")?
        .query_row([recipient], |row| row.get(0))?;
    let open = read_open_turn(conn, recipient)?;
    Ok(Inbox {
        depth,
        open: open.map(Arc::new),
    })
}

fn read_open_turn(conn: &Connection, agent: &str) -> rusqlite::Result<Option<OpenTurn>> {
    let mut open = conn
        .prepare_cached("SELECT name, opened_at FROM open_turns WHERE agent = ?1")?
        .query_row([agent], |row| turn_from(row, 0, true))
        .optional()?;
    let mut held = conn.prepare_cached(
        "SELECT message, deliveries, failures, req, confirmed, held_by, held_since FROM mail \
         WHERE recipient = ?1 AND state = 1 ORDER BY message",
    )?;
    let mut rows = held.query([agent])?;
    while let Some(row) = rows.next()? {
        if open.is_none() {
            open = Some(turn_from(row, 5, false)?);
        }
        let message = held_from(row)?;
        open.iter_mut()
            .for_each(|open| open.held.push(message.clone()));
    }
    Ok(open)
}

/// The turn whose name and time stand from `column` on. One that the disk changed still has to
/// give back what it holds.
fn turn_from(row: &Row<'_>, column: usize, has_row: bool) -> rusqlite::Result<OpenTurn> {
    let name = row.get::<_, String>(column).ok();
    let name = name.and_then(|name| name.parse().ok());
    Ok(OpenTurn {
        name: name.unwrap_or_else(|| "damaged".parse().expect("a legal name")),
        opened_at: Timestamp::from_millis(row.get(column + 1).unwrap_or(0)),
        has_row,
        held: Vec::new(),
    })
}

fn held_from(row: &Row<'_>) -> rusqlite::Result<Held> {
    let req: Option<String> = row.get(3)?;
    Ok(Held {
        message: MessageId(row.get(0)?),
        deliveries: row.get(1)?,
        failures: row.get(2)?,
        req: req.and_then(|req| req.parse().ok()),
        confirmed: row.get(4)?,
    })
}
