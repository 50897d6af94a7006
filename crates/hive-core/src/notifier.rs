//! Tells somebody that something waits for the operator: a webhook, or a topic of an ntfy server.
//!
//! It follows the event log, looks at what waits whenever something could be new, and posts how
//! many things of which kind there are, once for each thing. What agents wrote leaves the machine
//! only when the operator wants that. What cannot be posted is tried with the next thing: the
//! dashboard has it all, so that nothing is kept for later here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use hive_providers::{Endpoint, Fetch};
use hive_wire::{
    ErrorCode, WireError,
    approval::Pending,
    host::{AgentState, EventRow, Inbox},
    text,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use crate::{
    config::{Notify, NotifyKind},
    host_commands::{Host, inbox, list, pending},
};

/// How long a post may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long news gather before they are told.
const GATHER: Duration = Duration::from_secs(2);
/// How much of what an agent wrote is told.
const MAX_CONTENT: usize = 200;
/// How often a quiet log is looked at again.
const HEARTBEAT: Duration = Duration::from_secs(60);
const PAGE: usize = 500;

/// How the notifier does, for the settings page.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
#[schemars(rename = "NotifierState")]
pub(crate) struct Standing {
    is_on: bool,
    kind: &'static str,
    host: String,
    content: bool,
    min_interval_secs: u32,
    quiet_hours: Option<String>,
    last_error: Option<String>,
    sent: u64,
}

/// Posts news.
#[derive(Debug)]
pub(crate) struct Notifier {
    config: Notify,
    dashboard: String,
    fetch: Fetch,
    standing: Mutex<Standing>,
}

impl Notifier {
    pub(crate) fn new(config: &Notify, dashboard: &str) -> Self {
        let url = config.url.expose();
        let host = Endpoint::parse(url).map(|endpoint| endpoint.authority());
        Self {
            standing: Mutex::new(Standing {
                is_on: !url.is_empty(),
                kind: config.kind.as_str(),
                host: host.unwrap_or_default(),
                content: config.content,
                min_interval_secs: config.min_interval_secs,
                quiet_hours: config.quiet_hours.map(|hours| hours.to_string()),
                ..Standing::default()
            }),
            config: config.clone(),
            dashboard: dashboard.to_owned(),
            fetch: Fetch::new(None, |name| std::env::var(name).ok()),
        }
    }

    /// How it does.
    pub(crate) fn standing(&self) -> Standing {
        self.lock().clone()
    }

    /// Posts a word that nothing has happened, to see whether it arrives.
    pub(crate) async fn test(&self) -> Result<(), WireError> {
        if !self.standing().is_on {
            return Err(
                WireError::new(ErrorCode::Conflict, "there is nobody to tell")
                    .hint("set notify.url in hive.toml and restart the daemon"),
            );
        }
        let note = Note {
            text: "This is a test. Nothing waits for you because of it.".to_owned(),
            items: BTreeMap::new(),
        };
        self.post(&note).await.map_err(|error| {
            WireError::new(ErrorCode::Conflict, format!("it did not arrive: {error}"))
        })
    }

    /// Posts, and notes how that went.
    async fn post(&self, note: &Note) -> Result<(), String> {
        let outcome = match timeout(PATIENCE, self.send(note)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("no answer within {} s", PATIENCE.as_secs())),
        };
        let mut standing = self.lock();
        standing.last_error = outcome.as_ref().err().cloned();
        standing.sent += u64::from(outcome.is_ok());
        outcome
    }

    async fn send(&self, note: &Note) -> Result<(), String> {
        let mut headers = Vec::new();
        let token = self.config.token.expose();
        if !token.is_empty() {
            headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        let body = match self.config.kind {
            NotifyKind::Ntfy => {
                headers.push(("title".to_owned(), "hyperhive".to_owned()));
                headers.push(("click".to_owned(), self.dashboard.clone()));
                note.text.clone().into_bytes()
            }
            NotifyKind::Webhook => {
                headers.push(("content-type".to_owned(), "application/json".to_owned()));
                let body = json!({
                    "source": "hyperhive", "text": note.text, "items": note.items,
                    // The page still asks for a token, and for a click: a link does nothing.
                    "link": self.dashboard,
                });
                body.to_string().into_bytes()
            }
        };
        let url = self.config.url.expose();
        let answer = self
            .fetch
            .send("POST", url, &headers, Bytes::from(body))
            .await;
        match answer.map_err(|error| error.to_string())?.status {
            200..=299 => Ok(()),
            status => Err(format!("it answered {status}")),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is posted.
struct Note {
    text: String,
    /// How many things of which kind are new.
    items: BTreeMap<&'static str, u32>,
}

/// Something that waits.
struct Item {
    kind: &'static str,
    words: String,
}

/// Follows the log until the daemon stops.
pub(crate) async fn run(host: Arc<Host>) {
    if !host.notifier.standing().is_on {
        return;
    }
    // What waits already was there before us: the operator has been told, or has seen it.
    let mut known = waiting(&host).await.unwrap_or_default();
    let mut after = host.events.position();
    let mut last: Option<Instant> = None;
    loop {
        // Cancel-safe: both only wait.
        let is_news = tokio::select! {
            () = host.stop.cancelled() => return,
            is_news = host.events.wait_after(after, HEARTBEAT) => is_news,
        };
        if is_news && !skim(&host, &mut after).await {
            continue;
        }
        let pause =
            quiet_for(&host.notifier.config).max(rest(last, host.notifier.config.min_interval()));
        // Cancel-safe: both only wait.
        tokio::select! {
            () = host.stop.cancelled() => return,
            () = sleep(pause.max(GATHER)) => {}
        }
        let Ok(now) = waiting(&host).await else {
            continue;
        };
        let fresh: Vec<&Item> = now
            .iter()
            .filter(|(id, _)| !known.contains_key(*id))
            .map(|(_, item)| item)
            .collect();
        if !fresh.is_empty() {
            last = Some(Instant::now());
            let note = words(&fresh, host.notifier.config.content);
            if let Err(error) = host.notifier.post(&note).await {
                tracing::warn!(%error, "cannot tell the operator");
            }
        }
        known = now;
    }
}

/// Reads on, and tells whether something could wait now that did not before.
async fn skim(host: &Arc<Host>, after: &mut hive_wire::host::EventPosition) -> bool {
    let (log, from) = (Arc::clone(&host.events), *after);
    let page = host
        .tasks
        .spawn_blocking(move || log.read(Some(from), PAGE, None))
        .await;
    let Ok(Ok(page)) = page else {
        *after = host.events.position();
        return true;
    };
    *after = page.next;
    page.gap || page.events.iter().any(could_wait)
}

fn could_wait(event: &EventRow) -> bool {
    match event.kind.as_str() {
        "message_stored" | "question_asked" => event.about == "operator",
        "stream" | "note" | "login" | "turn_start" | "messages_delivered" => false,
        _ => true,
    }
}

/// How long to wait because of the message before.
fn rest(last: Option<Instant>, interval: Duration) -> Duration {
    last.map_or(Duration::ZERO, |last| {
        interval.saturating_sub(last.elapsed())
    })
}

/// How long to wait because of the hour.
fn quiet_for(config: &Notify) -> Duration {
    let now = jiff::Zoned::now().time();
    let minute =
        u16::try_from(now.hour()).unwrap_or(0) * 60 + u16::try_from(now.minute()).unwrap_or(0);
    let left = config.quiet_hours.and_then(|hours| hours.left(minute));
    Duration::from_secs(u64::from(left.unwrap_or(0)) * 60)
}

/// Everything that waits for the operator now, by what it is.
async fn waiting(host: &Arc<Host>) -> Result<BTreeMap<String, Item>, WireError> {
    let mut found = BTreeMap::new();
    let of_operator = |readers: &hive_store::Readers| readers.questions(false, Some("operator"));
    for question in host.read(of_operator).await? {
        let words = format!("{} asks: {}", question.asker, question.question);
        found.insert(
            format!("q{}", question.question_id),
            Item {
                kind: "question",
                words,
            },
        );
    }
    for mail in inbox::run(Arc::clone(host), Inbox::default())
        .await?
        .messages
    {
        let words = format!("{} writes: {}", mail.from, mail.body);
        found.insert(
            format!("m{}", mail.id),
            Item {
                kind: "message",
                words,
            },
        );
    }
    let approvals = pending::run(Arc::clone(host), Pending::default()).await?;
    for approval in approvals.approvals {
        let words = format!(
            "{} wants to change {}",
            approval.requested_by, approval.agent
        );
        let kind = "approval";
        found.insert(format!("p{}", approval.approval_id), Item { kind, words });
    }
    let counts = host.read(hive_store::Readers::counts).await?;
    if counts.dead > 0 {
        let words = format!("{} dead letters", counts.dead);
        found.insert(
            format!("d{}", counts.dead),
            Item {
                kind: "dead letter",
                words,
            },
        );
    }
    for (agent, inbox) in list::everybody(host).await? {
        let row = list::row(host, agent, &inbox);
        let kind = match row.state {
            AgentState::Failed => "failed agent",
            AgentState::NeedsLogin => "agent without login",
            _ => continue,
        };
        let words = format!("{}: {kind}", row.name);
        found.insert(format!("a-{}-{kind}", row.name), Item { kind, words });
    }
    Ok(found)
}

/// What is said about new things.
fn words(fresh: &[&Item], content: bool) -> Note {
    let mut items: BTreeMap<&'static str, u32> = BTreeMap::new();
    for item in fresh {
        *items.entry(item.kind).or_default() += 1;
    }
    let counts: Vec<String> = items
        .iter()
        .map(|(kind, count)| format!("{count} {kind}{}", if *count == 1 { "" } else { "s" }))
        .collect();
    let mut said = format!("New in the hive: {}", counts.join(", "));
    if content {
        for item in fresh.iter().take(5) {
            said.push('\n');
            said.push_str(&text::printable(&text::shorten(&item.words, MAX_CONTENT)));
        }
    }
    Note { text: said, items }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_agents_wrote_stays_here_unless_wanted() {
        let items = [
            Item {
                kind: "question",
                words: "ada asks: the secret?\u{1b}[2J".to_owned(),
            },
            Item {
                kind: "question",
                words: "bob asks: x".to_owned(),
            },
            Item {
                kind: "message",
                words: "ada writes: y".to_owned(),
            },
        ];
        let fresh: Vec<&Item> = items.iter().collect();
        let quiet = words(&fresh, false);
        assert_eq!(quiet.text, "New in the hive: 1 message, 2 questions");
        let loud = words(&fresh, true).text;
        assert!(
            loud.contains("the secret?") && !loud.contains('\u{1b}'),
            "{loud}"
        );
    }
}
