//! A message's row and its checksum.

use hive_wire::{AgentName, MessageId, Timestamp, agent::Message};
use rusqlite::Row;

use crate::Refusal;

/// A message row as its recipient sees it, `more` deliveries later than stored, after everything
/// in it was compared with its checksum.
pub(super) fn message_from(
    row: &Row<'_>,
    agent: &AgentName,
    more: u32,
) -> Result<Message, Refusal> {
    let id = MessageId(row.get(0)?);
    // A row that is gone, bytes that are no text, a number out of range: the disk changed it.
    let damaged = |_: rusqlite::Error| Refusal::Damaged(id);
    let sender: String = row.get(1).map_err(damaged)?;
    let message = Message {
        id,
        from: sender.parse().map_err(|_| Refusal::Damaged(id))?,
        to: row.get(2).map_err(damaged)?,
        body: row.get(3).map_err(damaged)?,
        in_reply_to: row
            .get::<_, Option<i64>>(4)
            .map_err(damaged)?
            .map(MessageId),
        sent_at: Timestamp::from_millis(row.get(5).map_err(damaged)?),
        delivery: row.get::<_, u32>(8).map_err(damaged)?.saturating_add(more),
    };
    let stored: u32 = row.get(7).map_err(damaged)?;
    let intact = checksum(
        id,
        &sender,
        &message.to,
        &message.body,
        message.in_reply_to,
        message.sent_at,
    ) == stored;
    if !intact || message.to != agent.as_str() {
        return Err(Refusal::Damaged(id));
    }
    Ok(message)
}

/// Guards against a disk that changes what was written; SQLite checks its log but not its pages.
pub(in crate::sqlite) fn checksum(
    id: MessageId,
    from: &str,
    to: &str,
    body: &str,
    in_reply_to: Option<MessageId>,
    sent_at: Timestamp,
) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for number in [id.0, in_reply_to.map_or(0, |id| id.0), sent_at.millis()] {
        hasher.update(&number.to_le_bytes());
    }
    for part in [from, to, body] {
        hasher.update(part.as_bytes());
        hasher.update(&[0xff]);
    }
    hasher.finalize()
}
