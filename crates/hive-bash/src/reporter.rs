//! Telling the agent that a task has ended, until it is known to have heard it.
//!
//! The news are transient wakes: the host keeps them in memory and hands each over at most once.
//! So a wake that was accepted is not the end of it. The reporter asks for its receipt until the
//! turn that carried it has ended well; when the turn failed, or the host lost it in a restart, it
//! wakes again. A task that the agent looks at meanwhile is no news any more.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use hive_wire::{
    ErrorCode, MessageId,
    agent::{GetReceipt, MessageState, Wake},
    client::{Client, ClientError},
};
use tokio_util::sync::CancellationToken;

use crate::{
    table::Table,
    task::{Record, TaskId},
};

/// How long somebody who was given the end of a task has to say that it reached the agent.
const OFFER: Duration = Duration::from_secs(10);
/// The pause before something is tried or asked again; it doubles with each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often one task wakes the agent at most; after that it stays a loose end.
const MAX_WAKES: u32 = 5;
/// How much of each stream's end a wake shows, in characters.
const SHOWN: usize = 1_500;

/// How far telling about one task has come.
struct News {
    due: Instant,
    pause: Duration,
    wakes: u32,
    message: Option<MessageId>,
}

/// Tells the agent about ended tasks until it is stopped.
pub(crate) async fn run(table: Arc<Table>, hive: Client, stop: CancellationToken) {
    let mut open: BTreeMap<TaskId, News> = BTreeMap::new();
    loop {
        look(&table, &mut open);
        let next = open.iter().min_by_key(|(_, news)| news.due);
        let Some((&id, news)) = next else {
            tokio::select! {
                () = stop.cancelled() => return,
                () = table.news.notified() => continue,
            }
        };
        let due = news.due;
        tokio::select! {
            () = stop.cancelled() => return,
            () = table.news.notified() => continue,
            () = tokio::time::sleep_until(due.into()) => {}
        }
        let step = async {
            if let Some(news) = open.get_mut(&id) {
                tell(&table, &hive, id, news).await;
            }
        };
        // A call that is dropped half-way is made again by the next daemon.
        tokio::select! {
            () = stop.cancelled() => return,
            () = step => {}
        }
    }
}

/// Takes up new ends, and drops what was seen.
fn look(table: &Table, open: &mut BTreeMap<TaskId, News>) {
    let unseen = table.unseen();
    open.retain(|id, _| unseen.iter().any(|unseen| unseen.record.id == *id));
    for unseen in unseen {
        open.entry(unseen.record.id).or_insert_with(|| News {
            due: Instant::now(),
            pause: FIRST_PAUSE,
            wakes: 0,
            message: None,
        });
    }
}

async fn tell(table: &Table, hive: &Client, id: TaskId, news: &mut News) {
    let Some(unseen) = table
        .unseen()
        .into_iter()
        .find(|unseen| unseen.record.id == id)
    else {
        return;
    };
    if let Some(offered) = unseen.offered.filter(|_| news.message.is_none())
        && offered.elapsed() < OFFER
    {
        news.due = offered + OFFER;
        return;
    }
    let outcome = match news.message {
        None if news.wakes >= MAX_WAKES => {
            // It stays a loose end; another daemon will try again.
            news.due = Instant::now() + Duration::from_secs(24 * 60 * 60);
            return;
        }
        None => wake(table, hive, &unseen.record).await.map(|message| {
            (news.message, news.wakes) = (Some(message), news.wakes + 1);
            news.pause = FIRST_PAUSE;
        }),
        Some(message) => carried(hive, message).await.map(|carried| match carried {
            Carried::OnItsWay => {}
            Carried::Heard => {
                if let Err(error) = table.seen(id) {
                    tracing::debug!(%id, %error, "a task was forgotten while it was reported");
                }
            }
            Carried::Lost => news.message = None,
        }),
    };
    if let Err(error) = outcome {
        tracing::warn!(%id, %error, "cannot tell the agent that a task has ended; will try again");
    }
    news.due = Instant::now() + news.pause;
    news.pause = (news.pause * 2).min(LONGEST_PAUSE);
}

async fn wake(table: &Table, hive: &Client, record: &Record) -> Result<MessageId, ClientError> {
    let wake = Wake {
        from: record.label(),
        body: body(table, record),
        transient: true,
        key: None,
    };
    Ok(hive.call(&wake).await?.message_id)
}

enum Carried {
    OnItsWay,
    Heard,
    Lost,
}

async fn carried(hive: &Client, message_id: MessageId) -> Result<Carried, ClientError> {
    match hive.call(&GetReceipt { message_id }).await {
        Ok(receipt) => Ok(match receipt.state {
            MessageState::Stored | MessageState::Leased => Carried::OnItsWay,
            MessageState::Acked => Carried::Heard,
            MessageState::Dead | MessageState::Discarded => Carried::Lost,
        }),
        Err(ClientError::Refused(error)) if error.code == ErrorCode::NotFound => Ok(Carried::Lost),
        Err(error) => Err(error),
    }
}

/// What the agent reads.
fn body(table: &Table, record: &Record) -> String {
    let mut body = format!(
        "Task {} {}.\n$ {}\n",
        record.id,
        record.headline(),
        record.short_cmd()
    );
    for (name, extension) in [("stdout", "out"), ("stderr", "err")] {
        let stream = table.stream(record.id, extension);
        if stream.bytes == 0 {
            continue;
        }
        let lines = last_lines(&stream.tail);
        body.push_str(&format!(
            "\nlast lines of {name} (all {} bytes: {})\n{lines}\n",
            stream.bytes, stream.file
        ));
    }
    body
}

/// The last lines of a text that have at most [`SHOWN`] characters together, or the end of the
/// last one.
fn last_lines(text: &str) -> &str {
    let text = text.trim_end();
    let Some((from, _)) = text.char_indices().rev().nth(SHOWN - 1) else {
        return text;
    };
    let end = &text[from..];
    match end.split_once('\n') {
        Some((_, lines)) => lines,
        None => end,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole_lines_where_there_are_any() {
        assert_eq!(last_lines("a\nb\n"), "a\nb");
        assert_eq!(last_lines(""), "");
        let long = "ä".repeat(SHOWN * 2);
        assert_eq!(last_lines(&long).chars().count(), SHOWN);
        let lines = format!("{long}\nshort\nend\n");
        assert_eq!(last_lines(&lines), "short\nend");
    }
}
