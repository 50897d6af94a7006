//! How long a message takes to wake its receiver on an otherwise idle peer: from just before the
//! send is written until the parked receiver has the message, client and server on different cores.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use super::body;
use crate::{
    peer::{Peer, Receiver, Sender},
    pin::Pinned,
    stats::{Latencies, Percentiles},
};

/// Long enough for a receive to be parked and the peer to fall asleep.
pub(crate) const PAUSE: Duration = Duration::from_millis(2);
const BODY_BYTES: usize = 200;
const WARM_UP: u32 = 10;

pub(crate) async fn run<P: Peer>(peer: &P, samples: u32) -> Result<Percentiles> {
    // On a machine with one core there is nothing to keep apart.
    let _pinned = Pinned::apart(&[peer.pid()]).ok();
    let mut pairs = peer.pairs(1, &body(BODY_BYTES)).await?;
    let (sender, receiver) = pairs.first_mut().context("the peer made no client")?;
    let mut latencies = Latencies::default();
    for sample in 0..WARM_UP + samples {
        receiver.park().await?;
        tokio::time::sleep(PAUSE).await;
        let start = Instant::now();
        let ((), woken) = tokio::try_join!(
            biased;
            sender.send(),
            async { anyhow::Ok(receiver.take().await.map(|()| start.elapsed())?) }
        )?;
        receiver.ack().await?;
        if sample >= WARM_UP {
            latencies.push(woken);
        }
    }
    Ok(latencies.summary())
}
