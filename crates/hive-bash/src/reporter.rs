//! Telling the agent that a task has ended, until it is known to have heard it.
//!
//! The news are transient wakes: the host keeps them in memory and hands each over at most once.
//! So a wake that was accepted is not the end of it. The reporter asks for its receipt until the
//! turn that carried it has ended well; when the turn failed, or the host lost it in a restart, it
//! wakes again. That never ends, but becomes rare: an agent whose turns all fail has other troubles.
//! A task that the agent looks at meanwhile is no news any more.

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
/// How much of each stream's end a wake shows, in characters.
const SHOWN: usize = 1_500;

/// How long the reporter waits between what it does about one task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pauses {
    /// Before something is done a second time; it doubles with each time.
    first: Duration,
    /// The longest before the host is asked about a wake again, or called that was not there.
    longest_to_ask: Duration,
    /// The longest before the agent is woken again that did not hear the last wake.
    longest_to_wake: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self {
            first: Duration::from_millis(500),
            longest_to_ask: Duration::from_secs(30),
            longest_to_wake: Duration::from_secs(60 * 60),
        }
    }
}

/// How far telling about one task has come.
struct News {
    due: Instant,
    /// Before the host is asked again.
    to_ask: Duration,
    /// Before the agent is woken again; never starts anew.
    to_wake: Duration,
    message: Option<MessageId>,
}

impl News {
    fn new(pauses: Pauses) -> Self {
        Self {
            due: Instant::now(),
            to_ask: pauses.first,
            to_wake: pauses.first,
            message: None,
        }
    }

    /// The agent was woken.
    fn woken(&mut self, message: MessageId, pauses: Pauses) {
        (self.message, self.to_ask) = (Some(message), pauses.first);
    }

    /// The wake did not reach the agent: how long to wait before the next one.
    fn lost(&mut self, pauses: Pauses) -> Duration {
        self.message = None;
        let pause = self.to_wake;
        self.to_wake = (pause * 2).min(pauses.longest_to_wake);
        pause
    }

    /// How long to wait before asking or trying again.
    fn ask_later(&mut self, pauses: Pauses) -> Duration {
        let pause = self.to_ask;
        self.to_ask = (pause * 2).min(pauses.longest_to_ask);
        pause
    }
}

/// Tells the agent about ended tasks until it is stopped.
pub(crate) async fn run(table: Arc<Table>, hive: Client, pauses: Pauses, stop: CancellationToken) {
    let mut open: BTreeMap<TaskId, News> = BTreeMap::new();
    loop {
        look(&table, pauses, &mut open);
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
                tell(&table, &hive, pauses, id, news).await;
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
fn look(table: &Table, pauses: Pauses, open: &mut BTreeMap<TaskId, News>) {
    let unseen = table.unseen();
    open.retain(|id, _| unseen.iter().any(|unseen| unseen.record.id == *id));
    for unseen in unseen {
        open.entry(unseen.record.id)
            .or_insert_with(|| News::new(pauses));
    }
}

async fn tell(table: &Table, hive: &Client, pauses: Pauses, id: TaskId, news: &mut News) {
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
        None => wake(table, hive, &unseen.record).await.map(|message| {
            news.woken(message, pauses);
            news.ask_later(pauses)
        }),
        Some(message) => carried(hive, message).await.map(|carried| match carried {
            Carried::OnItsWay => news.ask_later(pauses),
            Carried::Heard => {
                if let Err(error) = table.seen(id) {
                    tracing::debug!(%id, %error, "a task was forgotten while it was reported");
                }
                news.ask_later(pauses)
            }
            Carried::Lost => news.lost(pauses),
        }),
    };
    let pause = outcome.unwrap_or_else(|error| {
        tracing::warn!(%id, %error, "cannot tell the agent that a task has ended; will try again");
        news.ask_later(pauses)
    });
    news.due = Instant::now() + pause;
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
    use hive_testkit::hive::TestHive;
    use hive_wire::agent::{Recv, RequeueInflight, RequeueReason};
    use tokio_util::task::TaskTracker;

    use super::*;
    use crate::{table::Ending, task::State, wire::Run};

    #[test]
    fn b4_the_pause_after_a_lost_wake_grows_to_an_hour_and_never_starts_anew() {
        let pauses = Pauses::default();
        let mut news = News::new(pauses);
        let mut waited = Vec::new();
        for _ in 0..20 {
            news.woken(MessageId(-1), pauses);
            // A turn that takes long, and is asked about ever more rarely.
            let asked: Vec<_> = (0..20).map(|_| news.ask_later(pauses)).collect();
            assert_eq!(asked.first(), Some(&pauses.first));
            assert_eq!(asked.last(), Some(&pauses.longest_to_ask));
            waited.push(news.lost(pauses));
        }
        assert_eq!(waited[0], Duration::from_millis(500));
        assert_eq!(waited[5], Duration::from_secs(16));
        assert!(waited.is_sorted());
        assert_eq!(waited.last(), Some(&Duration::from_secs(60 * 60)));
    }

    /// Gives back every wake, as turns do that fail.
    #[tokio::test]
    async fn b4_a_wake_is_repeated_however_often_its_turn_failed() {
        let hive = TestHive::start().await.unwrap();
        hive.spawn_agent("ada").await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let table = Table::open(dir.path(), &dir.path().join("bash-tasks"), 1).unwrap();
        let run_true = Run {
            script: "true".to_owned(),
            timeout_secs: None,
            wait_seconds: 0,
        };
        let record = table.create(&run_true).unwrap();
        table.ended(record.id, State::Done, Ending::default());

        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let short = Pauses {
            first: Duration::from_millis(1),
            longest_to_ask: Duration::from_millis(5),
            longest_to_wake: Duration::from_millis(5),
        };
        let client = hive.agent_client("ada");
        tasks.spawn(run(Arc::new(table), client.clone(), short, stop.clone()));
        for turn in 1..=8 {
            let turn: hive_wire::TurnId = format!("t{turn}").parse().unwrap();
            let recv = Recv {
                wait_seconds: 60,
                max: 1,
                turn: Some(turn.clone()),
                req: None,
            };
            let got = client.call_within(&recv, Duration::from_secs(120)).await;
            let got = got.unwrap().messages;
            assert_eq!(got.len(), 1, "no wake in turn {turn}");
            assert_eq!(got[0].from.as_str(), "bash-task-1");
            let reason = RequeueReason::Failed;
            let requeue = RequeueInflight { turn, reason };
            client.call(&requeue).await.unwrap();
        }
        stop.cancel();
        tasks.close();
        tasks.wait().await;
    }

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
