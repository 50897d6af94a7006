//! `tail [NAME]`: follows events as they happen, until it is interrupted.
//!
//! It remembers its place in the log. When the daemon goes away it waits for it to come back and
//! goes on from there; what the log no longer holds is shown as a gap, never skipped silently.

use std::time::Duration;

use clap::Args;
use hive_wire::{
    ErrorCode,
    client::{Client, ClientError},
    host::{EventPage, EventPosition, Events},
};

use super::{
    failure::Failure,
    json, logs,
    out::{Out, style},
};

/// How long the daemon holds a request open when nothing happens.
const WAIT_SECONDS: u32 = 30;
/// How long an answer may take: the wait, and some slack for a busy machine.
const PATIENCE: Duration = Duration::from_secs(WAIT_SECONDS as u64 + 15);
/// The first pause before the daemon is looked for again; it doubles up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(2);

/// Arguments of `tail`.
#[derive(Debug, Args)]
pub struct TailArgs {
    /// Only events about this agent (or `operator`).
    name: Option<String>,
    /// How many past events to begin with.
    #[arg(long, value_name = "N", default_value_t = 10)]
    limit: u32,
}

impl TailArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let newest = Events {
            limit: Some(self.limit),
            about: self.name.clone(),
            ..Events::default()
        };
        let page = host.call_within(&newest, PATIENCE).await?;
        let mut place = show(&page, None, out)?;
        loop {
            let page = self.next_page(place, host, out).await?;
            place = show(&page, Some(place), out)?;
        }
    }

    /// The next page after `place`, however often the daemon has to come back for it.
    async fn next_page(
        &self,
        place: EventPosition,
        host: &Client,
        out: &mut Out,
    ) -> Result<EventPage, Failure> {
        let request = Events {
            after: Some(place),
            wait_seconds: WAIT_SECONDS,
            about: self.name.clone(),
            ..Events::default()
        };
        let mut pause = FIRST_PAUSE;
        loop {
            let error = match host.call_within(&request, PATIENCE).await {
                Ok(page) => {
                    if pause > FIRST_PAUSE {
                        out.note("the daemon is back");
                    }
                    return Ok(page);
                }
                Err(error) if passes(&error) => error,
                Err(error) => return Err(error.into()),
            };
            if pause == FIRST_PAUSE {
                out.note(format_args!("waiting for the daemon: {}", reason(error)));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }
}

/// Whether waiting may help: the daemon is away, restarting or slow.
fn passes(error: &ClientError) -> bool {
    match error {
        ClientError::Unreachable { .. } | ClientError::Lost | ClientError::TimedOut { .. } => true,
        ClientError::Refused(error) => error.code == ErrorCode::ShuttingDown,
        ClientError::Protocol(_) => false,
    }
}

fn reason(error: ClientError) -> String {
    let failure = Failure::from(error);
    let report = failure.report();
    report.map_or_else(String::new, |report| report.message.clone())
}

/// Prints a page and returns the place to go on from. Another epoch is another log: whatever
/// happened between the two is not in either.
fn show(
    page: &EventPage,
    after: Option<EventPosition>,
    out: &mut Out,
) -> Result<EventPosition, Failure> {
    if let Some(after) = after
        && (page.gap || page.next.epoch != after.epoch)
    {
        if out.is_json() {
            out.json(json::Gap::from(after))?;
        } else {
            let gap = "… events are missing here: the log no longer holds them …";
            out.line(out.paint(style::WARN, gap))?;
        }
    }
    for event in &page.events {
        if out.is_json() {
            out.json(json::TailedEvent::from(event))?;
        } else {
            logs::show(event, out)?;
        }
    }
    out.flush()?;
    Ok(page.next)
}
