//! Agents that talk to each other while everything is killed, and the proof afterwards.
//!
//! Each agent sends, replies within threads, asks, answers or leaves questions to expire, takes some
//! back, and sets reminders. It dies in the middle of turns and begins anew, and the daemon is killed
//! again and again. Everything that changes something carries a key, so that what is repeated has
//! one effect. In the end nobody waits for anything: every question has ended and its asker was told
//! once, every reminder fired once, every message was read once and has a receipt that says so. And
//! what was heard is what was said, word for word: a message with the one it replies to, a question,
//! its answer by the one who was asked, `[expired]` where nobody was in time, `[cancelled by …]` with
//! the name of who took it back, and a reminder.

mod ledger;
mod phrase;
mod talker;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use hive_wire::host::{Info, List, Questions};
use tokio::task::JoinSet;

use crate::{
    hive::{Options, TestHive},
    rng::Rng,
};
use ledger::Ledger;
pub use ledger::Tally;
use talker::Talker;

/// How long the agents get to finish what they began.
const PATIENCE: Duration = Duration::from_secs(240);
/// How often to look whether they have.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What a conversation is.
#[derive(Debug, Clone)]
pub struct Conversation {
    /// What all decisions follow from.
    pub seed: u64,
    /// How many agents talk: 2 to 50.
    pub agents: u32,
    /// How much each begins: messages, questions and reminders together.
    pub topics: u32,
    /// How often the daemon dies meanwhile.
    pub kills: u32,
}

/// A conversation that is over.
#[derive(Debug)]
pub struct Finished {
    /// What was said and heard.
    pub tally: Tally,
    /// What should not be; empty when every promise was kept.
    pub violations: Vec<String>,
    /// The hive it took place in.
    pub hive: TestHive,
}

impl Conversation {
    /// Runs the conversation to its end; `progress` hears the number of every death.
    ///
    /// # Errors
    /// When the daemon does not come back, refuses what it should not, or something never ends.
    pub async fn run(&self, mut progress: impl FnMut(u32)) -> anyhow::Result<Finished> {
        // Turns are abandoned all the time, which is not the messages' fault.
        let config = "[hive]\nroot_agent = \"\"\n[limits]\ndeliveries_before_dead = 100000\n\
                      sends_per_minute = 0\n";
        let options = Options {
            config: config.to_owned(),
            ..Options::default()
        };
        let mut hive = TestHive::start_with(options).await?;
        let names: Vec<String> = (0..self.agents.clamp(2, 50))
            .map(|number| format!("a{number}"))
            .collect();
        for name in &names {
            hive.spawn_agent(name).await?;
        }
        let ledger = Arc::new(Ledger::default());
        let stop = Arc::new(AtomicBool::new(false));
        let rng = Rng::new(self.seed);
        let mut talkers = JoinSet::new();
        for (number, name) in (0..).zip(&names) {
            let talker = Talker {
                name: name.clone(),
                peers: names.iter().filter(|peer| *peer != name).cloned().collect(),
                socket: hive.agent_socket(name),
                rng: rng.fork(number),
                topics: self.topics,
                ledger: Arc::clone(&ledger),
                stop: Arc::clone(&stop),
            };
            talkers.spawn(talker.run());
        }
        let mut nemesis = rng.fork(u64::MAX);
        for death in 1..=self.kills {
            let reprieve = Duration::from_millis(nemesis.within(200..2_500));
            tokio::time::sleep(reprieve).await;
            fail_early(&mut talkers).await?;
            hive.restart().await?;
            progress(death);
        }
        let settled = settle(&hive, &ledger, &mut talkers).await;
        stop.store(true, Ordering::Relaxed);
        while let Some(ended) = talkers.join_next().await {
            ended??;
        }
        settled?;
        // What is on disk counts, not what a daemon remembers.
        hive.restart().await?;
        let violations = ledger.check(&hive).await?;
        Ok(Finished {
            tally: ledger.tally(),
            violations,
            hive,
        })
    }
}

/// An agent that gave up says why at once, and not when all time is up.
async fn fail_early(talkers: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    match talkers.try_join_next() {
        None => Ok(()),
        Some(ended) => {
            ended??;
            bail!("an agent ended before it was told to");
        }
    }
}

/// Waits until nobody waits for anything.
async fn settle(
    hive: &TestHive,
    ledger: &Ledger,
    talkers: &mut JoinSet<anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let host = hive.host_client();
    let deadline = Instant::now() + PATIENCE;
    loop {
        fail_early(talkers).await?;
        let agents = host.call(&List {}).await?.agents;
        let unread: u32 = agents
            .iter()
            .map(|agent| agent.unread + agent.inflight)
            .sum();
        let questions = host.call(&Questions::default()).await?.questions;
        let open = ledger.open();
        if unread == 0 && questions.is_empty() && open.is_empty() {
            return Ok(());
        }
        if Instant::now() > deadline {
            let info = host.call(&Info {}).await.context("the daemon is gone")?;
            bail!(
                "after {PATIENCE:?}: {unread} messages unread, questions {questions:?}, {open:?}, \
                 {info:?}\n{}",
                hive.log_tail()
            );
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}
