//! The changes that a journal can carry: the statements of mail, by number, with their values.

use std::ops::Deref;

use rusqlite::{
    Connection, ToSql,
    types::{ToSqlOutput, ValueRef},
};

/// A statement that changes mail.
///
/// Its number stands in journals, and a journal is brought in before the database is migrated. So a
/// statement that was released is never changed: another one gets another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::sqlite) enum Statement {
    /// A new message.
    Store = 1,
    /// Its place in an inbox.
    Enqueue = 2,
    /// Its place in the turn that waited for it.
    EnqueueLeased = 3,
    /// What its sender calls it.
    Remember = 4,
    /// From an inbox to a turn.
    Lease = 5,
    /// The batch of a receive has reached the model.
    Confirm = 6,
    /// From one open state to another.
    Move = 7,
    /// Out of the open ones …
    Leave = 8,
    /// … and its receipt.
    Receipt = 9,
    /// A turn that is open and holds nothing.
    OpenTurn = 10,
    /// It is not open any more.
    CloseTurn = 11,
    /// A turn that ended.
    EndTurn = 12,
}

impl Statement {
    const ALL: [Self; 12] = [
        Self::Store,
        Self::Enqueue,
        Self::EnqueueLeased,
        Self::Remember,
        Self::Lease,
        Self::Confirm,
        Self::Move,
        Self::Leave,
        Self::Receipt,
        Self::OpenTurn,
        Self::CloseTurn,
        Self::EndTurn,
    ];

    fn numbered(number: u8) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|statement| *statement as u8 == number)
    }

    /// What it changes, so that statements on the same can follow one another.
    pub(super) fn table(self) -> Table {
        match self {
            Self::Store => Table::Messages,
            Self::Receipt => Table::Receipts,
            Self::EndTurn => Table::Turns,
            Self::Remember => Table::SendKeys,
            Self::OpenTurn | Self::CloseTurn => Table::OpenTurns,
            Self::Enqueue
            | Self::EnqueueLeased
            | Self::Lease
            | Self::Confirm
            | Self::Move
            | Self::Leave => Table::Mail,
        }
    }

    pub(super) fn sql(self) -> &'static str {
        match self {
            Self::Store => "INSERT INTO messages VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)",
            Self::Enqueue => "INSERT INTO mail VALUES (?1, 0, ?2, 0, 0, NULL, NULL, NULL, NULL, 0)",
            Self::EnqueueLeased => "INSERT INTO mail VALUES (?1, 1, ?2, 1, 0, NULL, ?3, ?4, ?5, 0)",
            Self::Remember => "INSERT OR REPLACE INTO send_keys VALUES (?1, ?2, ?3, ?4)",
            Self::Lease => {
                "UPDATE mail SET state = 1, deliveries = ?3, held_by = ?4, held_since = ?5, \
                 req = ?6 WHERE recipient = ?1 AND state = 0 AND message = ?2"
            }
            Self::Confirm => {
                "UPDATE mail SET confirmed = 1 WHERE recipient = ?1 AND state = 1 AND req = ?2"
            }
            Self::Move => {
                "UPDATE mail SET state = ?4, failures = ?5, turn = ?6, held_by = NULL, \
                 held_since = NULL, req = NULL, confirmed = 0 \
                 WHERE recipient = ?1 AND state = ?2 AND message = ?3"
            }
            Self::Leave => "DELETE FROM mail WHERE recipient = ?1 AND state = ?2 AND message = ?3",
            Self::Receipt => "INSERT INTO receipts VALUES (?1, ?2, ?3, ?4, ?5)",
            Self::OpenTurn => "INSERT INTO open_turns VALUES (?1, ?2, ?3)",
            Self::CloseTurn => "DELETE FROM open_turns WHERE agent = ?1",
            Self::EndTurn => "INSERT INTO turns VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        }
    }

    /// Runs it; how many rows it changed.
    pub(in crate::sqlite) fn run(
        self,
        conn: &Connection,
        values: &[Value<'_>],
    ) -> rusqlite::Result<usize> {
        let mut statement = conn.prepare_cached(self.sql())?;
        statement.execute(rusqlite::params_from_iter(values))
    }

    /// Adds it to what a journal's record holds.
    pub(super) fn encode(self, values: &[Value<'_>], into: &mut Vec<u8>) {
        into.push(self as u8);
        into.push(u8::try_from(values.len()).expect("a handful of values"));
        for value in values {
            match value {
                Value::Null => into.push(0),
                Value::Integer(number) => {
                    into.push(1);
                    into.extend_from_slice(&number.to_le_bytes());
                }
                Value::Text(text) => {
                    into.push(2);
                    let length = u32::try_from(text.len()).expect("a line has an end");
                    into.extend_from_slice(&length.to_le_bytes());
                    into.extend_from_slice(text.as_bytes());
                }
            }
        }
    }

    /// Takes the next one off `bytes`; none when they make no sense.
    pub(super) fn decode<'a>(bytes: &mut &'a [u8]) -> Option<(Self, Values<'a>)> {
        let statement = Self::numbered(take(bytes, 1)?[0])?;
        let count = take(bytes, 1)?[0].into();
        let mut values = Values {
            all: [Value::Null; MAX_VALUES],
            count,
        };
        for value in values.all.get_mut(..count)? {
            *value = match take(bytes, 1)?[0] {
                0 => Value::Null,
                1 => Value::Integer(i64::from_le_bytes(take(bytes, 8)?.try_into().ok()?)),
                2 => {
                    let length = u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?);
                    let text = take(bytes, usize::try_from(length).ok()?)?;
                    Value::Text(str::from_utf8(text).ok()?)
                }
                _ => return None,
            };
        }
        Some((statement, values))
    }
}

/// The most values that a statement has.
const MAX_VALUES: usize = 9;

/// The values of a statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values<'a> {
    all: [Value<'a>; MAX_VALUES],
    count: usize,
}

impl<'a> Deref for Values<'a> {
    type Target = [Value<'a>];

    fn deref(&self) -> &[Value<'a>] {
        &self.all[..self.count]
    }
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// A table that statements change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Table {
    Messages,
    Mail,
    Receipts,
    OpenTurns,
    Turns,
    SendKeys,
}

/// A value of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sqlite) enum Value<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Value<'_> {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<T: Into<Self>> From<Option<T>> for Value<'_> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        let first = [Value::Integer(-7), Value::Null, Value::Text("zwölf\0")];
        let mut bytes = Vec::new();
        Statement::Move.encode(&first, &mut bytes);
        Statement::CloseTurn.encode(&[Value::Text("")], &mut bytes);
        let mut rest = &bytes[..];
        let (statement, values) = Statement::decode(&mut rest).unwrap();
        assert_eq!((statement, &*values), (Statement::Move, &first[..]));
        let (statement, values) = Statement::decode(&mut rest).unwrap();
        assert_eq!(
            (statement, &*values),
            (Statement::CloseTurn, &[Value::Text("")][..])
        );
        assert!(rest.is_empty());
        for cut in 1..bytes.len() {
            let mut rest = &bytes[..cut];
            let mut whole = 0;
            while Statement::decode(&mut rest).is_some() {
                whole += 1;
            }
            assert!(whole < 2, "{cut} bytes of {}", bytes.len());
        }
    }

    #[test]
    fn what_makes_no_sense_is_none() {
        for bytes in [
            &[0, 0][..],
            &[13, 0],
            &[1, 1, 3],
            &[1, 1, 2, 255, 255, 255, 255, 1],
            &[1, 1, 2, 1, 0, 0, 0, 0xff],
            &[1, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        ] {
            assert!(Statement::decode(&mut &*bytes).is_none(), "{bytes:?}");
        }
        for statement in Statement::ALL {
            assert_eq!(Statement::numbered(statement as u8), Some(statement));
        }
    }
}
