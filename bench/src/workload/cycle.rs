//! The whole life of a message, in a closed loop: the receiver parks, a durable send, the receiver
//! has it, a durable ack. All clients run on this one thread, as they do for every peer.

use std::{
    str::FromStr,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use tokio::task::{JoinSet, LocalSet};

use super::body;
use crate::{
    peer::{Peer, Receiver, Sender},
    process::cpu_of_family,
    stats::{Latencies, Percentiles},
};

/// One configuration of the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub(crate) struct Load {
    pub(crate) clients: usize,
    pub(crate) body_bytes: usize,
}

impl Load {
    pub(crate) const fn new(clients: usize, body_bytes: usize) -> Self {
        Self {
            clients,
            body_bytes,
        }
    }
}

impl FromStr for Load {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (clients, body_bytes) = text
            .split_once('x')
            .context("a load is CLIENTSxBYTES, such as 64x200")?;
        Ok(Self::new(clients.parse()?, body_bytes.parse()?))
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) cycles_per_s: f64,
    pub(crate) send: Percentiles,
    /// What the server's process spent on one cycle, user and system.
    pub(crate) cpu_us: f64,
    /// All cycles, with those before the measured time.
    pub(crate) cycles_in_all: u64,
}

/// Runs `load` for `time` after a short warm-up that is not counted.
pub(crate) async fn run<P: Peer>(peer: &P, load: Load, time: Duration) -> Result<Sample> {
    let pairs = peer.pairs(load.clients, &body(load.body_bytes)).await?;
    let start = Instant::now() + (time / 5).min(Duration::from_millis(300));
    let window = Window {
        start,
        end: start + time,
    };
    let before = cpu_of_family(peer.pid());
    let tallies = LocalSet::new()
        .run_until(async {
            let mut clients = JoinSet::new();
            for (sender, receiver) in pairs {
                clients.spawn_local(client(sender, receiver, window));
            }
            let mut all = Tally::default();
            while let Some(tally) = clients.join_next().await {
                all.absorb(tally.context("a client panicked")??);
            }
            anyhow::Ok(all)
        })
        .await?;
    let spent = cpu_of_family(peer.pid()).saturating_sub(before);
    Ok(Sample {
        cycles_per_s: tallies.cycles as f64 / time.as_secs_f64(),
        send: tallies.sends.summary(),
        cpu_us: spent.as_secs_f64() * 1e6 / tallies.cycles_in_all.max(1) as f64,
        cycles_in_all: tallies.cycles_in_all,
    })
}

/// The time in which a cycle must end to count.
#[derive(Debug, Clone, Copy)]
struct Window {
    start: Instant,
    end: Instant,
}

#[derive(Debug, Default)]
struct Tally {
    cycles: u64,
    cycles_in_all: u64,
    sends: Latencies,
}

impl Tally {
    fn absorb(&mut self, other: Self) {
        self.cycles += other.cycles;
        self.cycles_in_all += other.cycles_in_all;
        self.sends.absorb(other.sends);
    }
}

async fn client(
    mut sender: impl Sender,
    mut receiver: impl Receiver,
    window: Window,
) -> Result<Tally> {
    let mut tally = Tally::default();
    while Instant::now() < window.end {
        receiver.park().await?;
        let start = Instant::now();
        // Biased: the send is on its way before the receiver is looked at.
        let (sent, ()) = tokio::try_join!(
            biased;
            async { anyhow::Ok(sender.send().await.map(|()| start.elapsed())?) },
            async {
                receiver.take().await?;
                receiver.ack().await
            }
        )?;
        let end = Instant::now();
        tally.cycles_in_all += 1;
        if window.start <= end && end < window.end {
            tally.cycles += 1;
            tally.sends.push(sent);
        }
    }
    Ok(tally)
}
