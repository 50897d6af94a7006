//! Thousands of turns through real harnesses with a fake engine, while engines, harnesses and the
//! daemon are killed, and the proof afterwards.
//!
//! A campaign goes in waves. In a wave every agent gets mail whose bodies say what its engine does
//! with it ([`plan`]); the wave is over when every message is acked or dead. Then nothing is to be
//! done, and what runs, what it has open and what memory it holds is looked at. Agents with one
//! process per turn and with a warm engine take part, and of each kind one whose harness is never
//! killed, so that what grows has time to.
//!
//! A seed repeats what is tried; which moment a kill hits is up to the machine.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use hive_wire::host::LookUpReceipt;
use tokio_util::sync::CancellationToken;

use crate::{
    engine::fake_engine,
    harness::Harness,
    hive::{Options, TestHive},
    rng::Rng,
};
use check::{Report, check};
use log::{Engines, Log};
pub use nemesis::Deaths;
use nemesis::Nemesis;
use sender::Sender;

pub mod check;
pub mod log;
mod nemesis;
mod plan;
mod processes;
mod record;
mod sender;

/// The agents: a name, how long its engine stays, and whether its harness is spared.
const CREW: [(&str, &str, bool); 4] = [
    ("cold", "0", false),
    ("warm", "1", false),
    ("oldcold", "0", true),
    ("oldwarm", "1", true),
];
/// How long it may take until nothing runs that should not.
const QUIET: Duration = Duration::from_secs(30);
/// How often that is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// What a campaign does.
#[derive(Debug, Clone, Copy)]
pub struct TurnCampaign {
    /// What all decisions follow from.
    pub seed: u64,
    /// How many messages are sent; each takes at least one turn.
    pub turns: u64,
    /// How many of them make a wave.
    pub wave: u64,
}

/// A campaign that is over.
#[derive(Debug)]
pub struct Finished {
    /// What was seen.
    pub log: Log,
    /// What the checker says.
    pub report: Report,
    /// What was killed.
    pub deaths: Deaths,
    /// The hive it was tried on; it runs no more.
    pub hive: TestHive,
}

/// An agent of the campaign.
#[derive(Debug)]
struct Member {
    harness: Harness,
    /// Its harness is never killed.
    is_elder: bool,
    /// How often its engine or harness was killed.
    kills: u32,
    logins: u32,
}

impl TurnCampaign {
    /// Runs the whole campaign; `progress` hears after every wave how many messages are settled.
    ///
    /// # Errors
    /// When something ends by itself, does not come back, or gets stuck.
    pub async fn run(&self, mut progress: impl FnMut(u64, Deaths)) -> anyhow::Result<Finished> {
        let mut hive = TestHive::start_with(Options::default()).await?;
        match self.run_on(&mut hive, &mut progress).await {
            Ok((log, deaths)) => Ok(Finished {
                report: check(&log),
                log,
                deaths,
                hive,
            }),
            Err(error) => {
                let root = hive.keep().await?;
                Err(error.context(format!("the hive is kept in {}", root.display())))
            }
        }
    }

    async fn run_on(
        &self,
        hive: &mut TestHive,
        progress: &mut impl FnMut(u64, Deaths),
    ) -> anyhow::Result<(Log, Deaths)> {
        let mut crew = crew(hive).await?;
        for member in &mut crew {
            member.harness.start()?;
        }
        let rng = Rng::new(self.seed);
        let mut senders = senders(hive, &rng);
        let mut nemesis = Nemesis::new(rng.fork(u64::MAX));
        let settled = AtomicU64::new(0);
        let mut log = Log {
            dead_after: 5,
            ..Log::default()
        };
        while settled.load(Ordering::Relaxed) < self.turns {
            let done = settled.load(Ordering::Relaxed);
            let share = self.wave.min(self.turns - done).div_ceil(CREW.len() as u64);
            // Later on the daemon lives, so that what grows in it has time to.
            let may_kill_host = done < self.turns / 2;
            let over = CancellationToken::new();
            let sending = async {
                let [a, b, c, d] = &mut senders;
                let outcome = tokio::try_join!(
                    a.wave(share, &settled),
                    b.wave(share, &settled),
                    c.wave(share, &settled),
                    d.wave(share, &settled),
                );
                over.cancel();
                outcome
            };
            let killing = nemesis.run(hive, &mut crew, may_kill_host, &settled, &over);
            tokio::try_join!(sending, killing)?;
            quiet(hive, &mut crew, &mut log).await?;
            progress(settled.load(Ordering::Relaxed), nemesis.deaths);
        }
        log.sends = senders.into_iter().flat_map(|sender| sender.sent).collect();
        read_receipts(hive, &mut log).await?;
        for member in &mut crew {
            member.harness.terminate().await?;
            let (runs, lives) = record::read(&member.harness.path("record"))?;
            let engines = Engines {
                runs,
                lives,
                kills: member.kills,
            };
            log.agents.insert(member.harness.name().to_owned(), engines);
        }
        hive.terminate().await?;
        let left = processes::naming(hive.root());
        log.strays.extend(left.into_iter().map(processes::describe));
        Ok((log, nemesis.deaths))
    }
}

/// Somebody who writes to each agent.
fn senders(hive: &TestHive, rng: &Rng) -> [Sender; CREW.len()] {
    std::array::from_fn(|number| {
        let (to, ..) = CREW[number];
        let others = CREW.iter().filter(|(name, ..)| *name != to);
        Sender {
            to: to.to_owned(),
            host: hive.host_client(),
            peers: others
                .map(|(name, ..)| ((*name).to_owned(), hive.agent_client(name)))
                .collect(),
            rng: rng.fork(number as u64),
            sent: Vec::new(),
        }
    })
}

async fn crew(hive: &TestHive) -> anyhow::Result<Vec<Member>> {
    let engine = fake_engine()?;
    let mut crew = Vec::new();
    for (name, linger, is_elder) in CREW {
        let harness = Harness::new(hive, name, &engine).await?;
        let record = harness.path("record").display().to_string();
        let harness = harness
            .with("HIVE_ENGINE_ENV_FAKE_ENGINE_RECORD", record)
            .with("HIVE_ENGINE_LINGER_SECS", linger)
            .with("HIVE_ENGINE_SILENCE_SECS", "2")
            .with("HIVE_ENGINE_EXIT_SECS", "1")
            .with("HIVE_ENGINE_KILL_SECS", "1")
            .with("HIVE_POLL_MS", "1")
            .with("HIVE_RATE_LIMIT_SLEEP_SECS", "0")
            .with("HIVE_UNAVAILABLE_FIRST_MS", "5")
            .with("HIVE_UNAVAILABLE_LONGEST_SECS", "1")
            .with("HIVE_LOGIN_LOOK_MS", "20")
            .with("HIVE_STOP_GRACE_SECS", "1")
            .with("HIVE_LOG", "warn");
        crew.push(Member {
            harness,
            is_elder,
            kills: 0,
            logins: 0,
        });
    }
    Ok(crew)
}

/// Waits until only daemon and harnesses are left, and notes what they use.
async fn quiet(hive: &TestHive, crew: &mut [Member], log: &mut Log) -> anyhow::Result<()> {
    let daemon = hive.pid().context("the daemon runs")?;
    let mut expected = vec![("daemon".to_owned(), daemon)];
    for member in crew.iter() {
        let pid = member.harness.pid().context("the harness runs")?;
        expected.push((member.harness.name().to_owned(), pid));
    }
    let deadline = Instant::now() + QUIET;
    loop {
        let mut others = processes::naming(hive.root());
        others.extend(
            expected
                .iter()
                .flat_map(|(_, pid)| processes::children(*pid)),
        );
        others.retain(|pid| expected.iter().all(|(_, known)| known != pid));
        if others.is_empty() {
            break;
        }
        if Instant::now() > deadline {
            log.strays
                .extend(others.into_iter().map(processes::describe));
            break;
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    for (name, pid) in expected {
        log.usage.push(processes::usage(&name, pid)?);
    }
    for member in crew {
        let ended = member.harness.ended()?;
        ensure!(ended.is_none(), "a harness ended by itself: {ended:?}");
    }
    Ok(())
}

async fn read_receipts(hive: &TestHive, log: &mut Log) -> anyhow::Result<()> {
    let host = hive.host_client();
    for sent in &log.sends {
        let look = LookUpReceipt {
            message_id: sent.id,
        };
        // A message without a receipt is what the checker looks for.
        match host.call(&look).await {
            Ok(receipt) => log.receipts.push(receipt),
            Err(hive_wire::client::ClientError::Refused(_)) => {}
            Err(error) => return Err(error).context("cannot read the receipts"),
        }
    }
    Ok(())
}
