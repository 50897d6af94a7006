//! The one who kills: SIGKILL at random moments, SIGTERM now and then, and ordered crashes.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use anyhow::bail;
use rustix::process::Signal;

use super::{Campaign, exchange::Clock};
use crate::{
    history::Nanos,
    hive::{Start, TestHive},
    rng::Rng,
};

/// Where the daemon can be made to die by itself, between write, sync, reply and commit.
const FAILPOINTS: [&str; 7] = [
    "store::before_commit",
    "store::after_commit",
    "store::before_redo_sync",
    "store::after_redo_sync",
    "store::before_settle",
    "store::after_settle",
    "broker::before_reply",
];

/// The deaths of a campaign.
#[derive(Debug, Default)]
pub(super) struct Deaths {
    /// When the daemon was known to be dead.
    pub(super) times: Vec<Nanos>,
    /// How often it died at an ordered place.
    pub(super) ordered: u32,
}

/// Tells of every death.
pub(super) type Progress<'a> = &'a mut dyn FnMut(u32);

/// Kills and restarts the daemon as often as the campaign says.
///
/// # Errors
/// When the daemon ends without having been told to, or does not come back.
pub(super) async fn run(
    campaign: &Campaign,
    hive: &mut TestHive,
    clock: Clock,
    progress: Progress<'_>,
) -> anyhow::Result<Deaths> {
    let mut rng = Rng::new(campaign.seed).fork(u64::MAX);
    let mut deaths = Deaths::default();
    if campaign.failpoints {
        // Orders reach it with its environment, so it has to be started again.
        hive.kill().await?;
        deaths.times.push(clock.now());
        come_back(campaign, hive, clock, &mut rng, &mut deaths).await?;
    }
    while deaths.times.len() < campaign.kills as usize {
        let reprieve = Duration::from_micros(rng.within(campaign.reprieve_micros.clone()));
        tokio::select! {
            // Cancel-safe: a sleep is nothing but its time.
            () = tokio::time::sleep(reprieve) => end(hive, &mut rng).await?,
            // Cancel-safe: waiting for the end changes nothing before it comes.
            status = hive.died() => {
                let status = status?;
                if !was_ordered(campaign, status) {
                    bail!("the daemon ended by itself: {status}\n{}", hive.log_tail());
                }
                deaths.ordered += 1;
            }
        }
        deaths.times.push(clock.now());
        progress(u32::try_from(deaths.times.len())?);
        if rng.percent(20) {
            tokio::time::sleep(Duration::from_micros(rng.within(0..50_000))).await;
        }
        come_back(campaign, hive, clock, &mut rng, &mut deaths).await?;
    }
    Ok(deaths)
}

async fn end(hive: &mut TestHive, rng: &mut Rng) -> anyhow::Result<()> {
    if rng.percent(10) {
        hive.terminate().await
    } else {
        hive.kill().await
    }
}

/// Starts the daemon until it stays, killing it again while it comes up now and then.
async fn come_back(
    campaign: &Campaign,
    hive: &mut TestHive,
    clock: Clock,
    rng: &mut Rng,
    deaths: &mut Deaths,
) -> anyhow::Result<()> {
    loop {
        if campaign.failpoints {
            let point = rng.pick::<&str>(&FAILPOINTS);
            hive.set_env(vec![("FAILPOINTS".to_owned(), format!("{point}=1%"))]);
        }
        hive.launch()?;
        if rng.percent(10) {
            tokio::time::sleep(Duration::from_micros(rng.within(0..30_000))).await;
            hive.kill().await?;
            deaths.times.push(clock.now());
            continue;
        }
        match hive.ready().await? {
            Start::Ready => return Ok(()),
            Start::Died(status) if was_ordered(campaign, status) => {
                deaths.times.push(clock.now());
                deaths.ordered += 1;
            }
            Start::Died(status) => {
                bail!(
                    "the daemon did not come back: {status}\n{}",
                    hive.log_tail()
                );
            }
        }
    }
}

/// Whether the daemon died because it was told to at an ordered place.
fn was_ordered(campaign: &Campaign, status: ExitStatus) -> bool {
    campaign.failpoints && status.signal() == Some(Signal::ABORT.as_raw())
}
