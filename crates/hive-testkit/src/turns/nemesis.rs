//! Kills engines, their guards, harnesses and the daemon, and logs in again where credentials failed.

use std::{
    fmt, fs,
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use anyhow::bail;
use tokio_util::sync::CancellationToken;

use super::{Member, processes};
use crate::{hive::TestHive, rng::Rng};

/// How often it looks around.
const TICK: Duration = Duration::from_millis(10);
/// How long a campaign may bring nothing to an end before it counts as stuck.
const STUCK: Duration = Duration::from_secs(90);
/// A kill falls due after this many messages on average.
const MESSAGES_PER_KILL: u64 = 5;

/// What it does, wave by wave.
#[derive(Debug)]
pub(super) struct Nemesis {
    rng: Rng,
    /// How many messages are settled when the next kill falls due.
    next_kill: u64,
    /// How often each target was hit.
    pub(super) deaths: Deaths,
}

/// How often something was killed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deaths {
    /// Engines, their guards and their children.
    pub engines: u32,
    /// Harnesses, by SIGKILL.
    pub harnesses: u32,
    /// Harnesses that were told to stop.
    pub stops: u32,
    /// The daemon.
    pub hosts: u32,
}

impl fmt::Display for Deaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            engines,
            harnesses,
            stops,
            hosts,
        } = self;
        write!(
            f,
            "killed {engines} engines, {harnesses} harnesses and {hosts} hosts, stopped {stops} harnesses"
        )
    }
}

impl Nemesis {
    pub(super) fn new(rng: Rng) -> Self {
        Self {
            rng,
            next_kill: 3,
            deaths: Deaths::default(),
        }
    }

    /// Kills until the wave is over. Everything runs again when it returns.
    ///
    /// # Errors
    /// When something ends by itself, does not come back, or nothing goes on.
    pub(super) async fn run(
        &mut self,
        hive: &mut TestHive,
        crew: &mut [Member],
        may_kill_host: bool,
        settled: &AtomicU64,
        over: &CancellationToken,
    ) -> anyhow::Result<()> {
        let mut progress = (settled.load(Ordering::Relaxed), Instant::now());
        while !over.is_cancelled() {
            tokio::time::sleep(TICK).await;
            for member in crew.iter_mut() {
                look_after(member)?;
            }
            let now = settled.load(Ordering::Relaxed);
            if now != progress.0 {
                progress = (now, Instant::now());
            } else if progress.1.elapsed() > STUCK {
                let logs: Vec<_> = crew.iter().map(|m| m.harness.log_tail()).collect();
                bail!("nothing ends any more ({now} did)\n{}", logs.join("\n"));
            }
            if now >= self.next_kill {
                self.next_kill = now + self.rng.within(1..2 * MESSAGES_PER_KILL);
                // Any moment of a turn, and not the one after an ack.
                let pause = Duration::from_micros(self.rng.within(0..40_000));
                tokio::time::sleep(pause).await;
                self.strike(hive, crew, may_kill_host).await?;
            }
        }
        Ok(())
    }

    async fn strike(
        &mut self,
        hive: &mut TestHive,
        crew: &mut [Member],
        may_kill_host: bool,
    ) -> anyhow::Result<()> {
        let draw = self.rng.within(0..100);
        if draw < 15 {
            if may_kill_host {
                self.deaths.hosts += 1;
                hive.restart().await?;
            }
            return Ok(());
        }
        let index = self.rng.index(crew.len());
        let member = &mut crew[index];
        let engines = processes::naming(&member.harness.path("state"));
        let harness = member.harness.pid();
        let engines: Vec<_> = engines
            .into_iter()
            .filter(|pid| Some(*pid) != harness)
            .collect();
        if draw < 55 || member.is_elder {
            // The guard, the engine, or what a tool left.
            if !engines.is_empty() {
                processes::kill(*self.rng.pick(&engines));
                self.deaths.engines += 1;
                member.kills += 1;
            }
            return Ok(());
        }
        member.kills += 1;
        if draw < 90 {
            self.deaths.harnesses += 1;
            member.harness.kill().await?;
            if self.rng.percent(30) {
                // Its guards die with it, and what is below them has nobody left.
                for pid in engines {
                    if processes::describe(pid).contains("engine-guard") {
                        processes::kill(pid);
                    }
                }
            }
        } else {
            self.deaths.stops += 1;
            member.harness.terminate().await?;
        }
        member.harness.start()
    }
}

/// A harness that ends by itself is a defect; one that waits for a login gets one.
fn look_after(member: &mut Member) -> anyhow::Result<()> {
    if let Some(status) = member.harness.ended()? {
        let log = member.harness.log_tail();
        bail!("a harness ended by itself: {status}\n{log}");
    }
    if member.harness.path("state/hyperhive-needs-login").exists() {
        member.logins += 1;
        let login = member.logins.to_string();
        fs::write(member.harness.path("claude/.credentials.json"), login)?;
    }
    Ok(())
}
