//! The disk alone: one block of 4 KiB written and synced, over and over. No queue that syncs
//! before it answers can be faster for a single client.
//!
//! Appending is what a log file does; overwriting blocks that are already allocated is what a log
//! extended beforehand does, and saves the file system its own journal commit.

use std::{
    fs::{File, OpenOptions},
    os::unix::fs::FileExt as _,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::{
    pin::Pinned,
    stats::{Latencies, Percentiles},
};

const BLOCK: [u8; 4096] = [0x5a; 4096];
const OVERWRITTEN_BLOCKS: u64 = 4096;

/// How a block reaches the disk.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Write {
    Append,
    Overwrite,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Floor {
    pub(crate) syncs_per_s: f64,
    #[serde(flatten)]
    pub(crate) latency: Percentiles,
}

/// Writes and syncs without a pause for `time`.
pub(crate) fn serial(dir: &Path, write: Write, time: Duration) -> Result<Floor> {
    let mut disk = Disk::open(dir, write)?;
    let mut latencies = Latencies::default();
    let (start, mut count) = (Instant::now(), 0_u32);
    while start.elapsed() < time {
        latencies.push(disk.sync_one()?);
        count += 1;
    }
    Ok(Floor {
        syncs_per_s: f64::from(count) / start.elapsed().as_secs_f64(),
        latency: latencies.summary(),
    })
}

/// Appends and syncs after a `pause` each time, as an otherwise idle queue does.
pub(crate) async fn idle(dir: &Path, samples: u32, pause: Duration) -> Result<Percentiles> {
    let _pinned = Pinned::apart(&[]).ok();
    let mut disk = Disk::open(dir, Write::Append)?;
    let mut latencies = Latencies::default();
    for _ in 0..samples {
        tokio::time::sleep(pause).await;
        latencies.push(disk.sync_one()?);
    }
    Ok(latencies.summary())
}

/// One file and the place of the next block in it.
struct Disk {
    file: File,
    next: u64,
    blocks: u64,
}

impl Disk {
    fn open(dir: &Path, write: Write) -> Result<Self> {
        let path = dir.join("floor");
        let file = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .open(path)
            .context("cannot create the floor's file")?;
        let blocks = match write {
            Write::Append => u64::MAX,
            Write::Overwrite => OVERWRITTEN_BLOCKS,
        };
        if let Write::Overwrite = write {
            for block in 0..blocks {
                file.write_all_at(&BLOCK, block * BLOCK.len() as u64)?;
            }
        }
        file.sync_all()?;
        Ok(Self {
            file,
            next: 0,
            blocks,
        })
    }

    fn sync_one(&mut self) -> Result<Duration> {
        let start = Instant::now();
        self.file
            .write_all_at(&BLOCK, (self.next % self.blocks) * BLOCK.len() as u64)?;
        self.file.sync_data()?;
        self.next += 1;
        Ok(start.elapsed())
    }
}
