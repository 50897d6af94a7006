//! What the writer keeps in mind between groups, so that the common path asks SQLite little.
//!
//! Everything but transient messages and turns that nothing was answered about is a copy of rows.
//! It is undone with the operation or group that changed it, so that it never says more or less
//! than the database; only the counters run on, because gaps are fine and reuse is not.

use std::collections::HashMap;

use hive_wire::{MessageId, Timestamp, TurnId};
use rusqlite::{Connection, OptionalExtension};

use super::{transient::Transients, turns::TurnIndex};

/// The writer's memory.
#[derive(Debug)]
pub(super) struct Books {
    /// The id of the next durable message. Gaps are fine, reuse is not.
    next_message: i64,
    /// The number of the next turn.
    next_turn: i64,
    inboxes: HashMap<Box<str>, Inbox>,
    /// How inboxes stood before this group changed them or had them read, in that order.
    undo: Vec<(Box<str>, Option<Inbox>)>,
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
    pub(super) open: Option<OpenTurn>,
}

/// The open turn of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenTurn {
    pub(super) name: TurnId,
    /// Its row; none while nothing about the turn was answered yet.
    pub(super) seq: Option<i64>,
    pub(super) opened_at: Timestamp,
}

impl Books {
    /// Reads the counters and the index of turns. The rest is read when it is needed.
    pub(super) fn load(conn: &Connection) -> rusqlite::Result<Self> {
        let last = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
        Ok(Self {
            next_message: last("SELECT max(id) FROM messages")?.unwrap_or(0) + 1,
            next_turn: last(
                "SELECT max((SELECT ifnull(max(seq), 0) FROM turns), \
                 (SELECT ifnull(max(seq), 0) FROM open_turns))",
            )?
            .unwrap_or(0)
                + 1,
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
    pub(super) fn inbox(&mut self, conn: &Connection, recipient: &str) -> rusqlite::Result<&Inbox> {
        // Two look-ups instead of the entry API: a hit must not allocate the key.
        if !self.inboxes.contains_key(recipient) {
            let inbox = read_inbox(conn, recipient)?;
            self.inboxes.insert(recipient.into(), inbox);
            // It may have been read after the group changed its rows.
            self.undo.push((recipient.into(), None));
        }
        Ok(&self.inboxes[recipient])
    }

    /// The recipient's inbox, to be changed. Call it before the rows are changed that it mirrors:
    /// it may have to be read first.
    pub(super) fn inbox_mut(
        &mut self,
        conn: &Connection,
        recipient: &str,
    ) -> rusqlite::Result<&mut Inbox> {
        self.inbox(conn, recipient)?;
        let inbox = self.inboxes.get_mut(recipient).expect("read above");
        let of_operation = &self.undo[self.operation..];
        if !of_operation
            .iter()
            .any(|(changed, _)| **changed == *recipient)
        {
            self.undo.push((recipient.into(), Some(inbox.clone())));
        }
        Ok(inbox)
    }
}

fn read_inbox(conn: &Connection, recipient: &str) -> rusqlite::Result<Inbox> {
    let depth = conn
        .prepare_cached("SELECT count(*) FROM mail WHERE recipient = ?1 AND state = 0")?
        .query_row([recipient], |row| row.get(0))?;
    let open = conn
        .prepare_cached("SELECT name, seq, opened_at FROM open_turns WHERE agent = ?1")?
        .query_row([recipient], |row| {
            let seq = row.get(1)?;
            // A name that the disk changed still has to give back what it holds.
            let name = row
                .get::<_, String>(0)
                .ok()
                .and_then(|name| name.parse().ok());
            Ok(OpenTurn {
                name: name.unwrap_or_else(|| damaged_name(seq)),
                seq: Some(seq),
                opened_at: Timestamp::from_millis(row.get(2)?),
            })
        })
        .optional()?;
    Ok(Inbox { depth, open })
}

fn damaged_name(seq: i64) -> TurnId {
    format!("damaged-{seq}").parse().expect("a legal name")
}
