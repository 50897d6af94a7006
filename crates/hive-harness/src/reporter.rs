//! Brings what was said on the [`Bus`] to the host: in order, across reconnects, without loss
//! within the bus's bounds, and without ever holding up the loop.

use std::time::Duration;

use hive_wire::report::{PostEvents, PostTurnCounts};
use tokio_util::sync::CancellationToken;

use crate::{
    bus::{Bus, Work},
    surface::{HostChannel, Surface, SurfaceError},
};

/// The pause before the first repetition; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two repetitions.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long the last reports may take once the harness stops.
const LAST_REPORTS: Duration = Duration::from_secs(2);

/// Reports until `done` is cancelled and what was said by then is with the host, or the host is
/// away for too long.
pub async fn run(bus: &Bus, host: &(impl HostChannel + Surface), done: &CancellationToken) {
    let reporting = async {
        loop {
            // Work goes first, so that everything said before the end is reported. Nothing is
            // taken by an arm that loses.
            tokio::select! {
                biased;
                work = bus.next_work() => bring(bus, host, work).await,
                () = done.cancelled() => return,
            }
        }
    };
    let limit = async {
        done.cancelled().await;
        tokio::time::sleep(LAST_REPORTS).await;
    };
    tokio::select! {
        () = reporting => {}
        () = limit => tracing::warn!("the host is away: the last events are not reported"),
    }
}

async fn bring(bus: &Bus, host: &(impl HostChannel + Surface), work: Work) {
    if work.state.is_some() {
        // What is current when the host is back counts, not what was current when it left.
        let outcome = insist(bus, async || host.post_state(&bus.state()).await).await;
        report_refusal("state", outcome);
    }
    if !work.events.is_empty() {
        let events = PostEvents {
            epoch: bus.epoch().clone(),
            events: work.events,
        };
        let outcome = insist(bus, async || host.post_events(&events).await.map(drop)).await;
        report_refusal("events", outcome);
    }
    if let Some(row) = &work.row {
        bring_row(bus, host, row).await;
    }
}

async fn bring_row(bus: &Bus, host: &impl Surface, row: &PostTurnCounts) {
    let outcome = insist(bus, async || host.post_turn_counts(row).await).await;
    report_refusal("turn counts", outcome);
    bus.row_done(row);
}

/// Repeats until the host has answered. A host that was away may be a new one: it is told the state
/// again.
async fn insist(
    bus: &Bus,
    attempt: impl AsyncFn() -> Result<(), SurfaceError>,
) -> Result<(), SurfaceError> {
    let mut pause = FIRST_PAUSE;
    let mut was_away = false;
    loop {
        match attempt().await {
            Err(SurfaceError::Away) => was_away = true,
            outcome => {
                if was_away {
                    bus.repeat_state();
                }
                return outcome;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What the host refuses it would refuse again: it is left out.
fn report_refusal(what: &str, outcome: Result<(), SurfaceError>) {
    if let Err(error) = outcome {
        tracing::warn!(%error, "the host does not take the {what}");
    }
}
