//! What a turn costs on a session file of 100 MB that was compacted at its end.

use std::{
    fs::{self, File},
    io::{BufWriter, Write as _},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde::Serialize;
use serde_json::Value;

use super::contender::Contender;
use crate::stats::{median, median_ratio};

const BYTES: u64 = 100 << 20;

#[derive(Debug, Serialize)]
pub(super) struct LongSession {
    pub(super) megabytes: f64,
    pub(super) short_ms: f64,
    pub(super) long_ms: f64,
    pub(super) ratio: f64,
    pub(super) peak_mb: f64,
}

/// Turns on both, one after the other.
pub(super) async fn measure(native: &Contender, rounds: usize) -> Result<LongSession> {
    let (short, long) = (native.again()?, native.again()?);
    for contender in [&short, &long] {
        contender.first_turn().await?;
        contender.say("/compact").await?;
    }
    let file = session_file(&long.home())?.context("the engine left no session")?;
    lengthen(&file)?;
    let (mut short_ms, mut long_ms, mut peak) = (Vec::new(), Vec::new(), 0);
    for _ in 0..rounds {
        short_ms.push(short.turn().await?.wall.as_secs_f64() * 1e3);
        let run = long.turn().await?;
        long_ms.push(run.wall.as_secs_f64() * 1e3);
        peak = peak.max(run.peak_bytes);
    }
    Ok(LongSession {
        megabytes: fs::metadata(&file)?.len() as f64 / 1e6,
        short_ms: median(short_ms.iter().copied()),
        long_ms: median(long_ms.iter().copied()),
        ratio: median_ratio(&long_ms, &short_ms).context("nothing was measured")?,
        peak_mb: peak as f64 / 1e6,
    })
}

fn session_file(dir: &Path) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = session_file(&path)? {
                return Ok(Some(found));
            }
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Repeats the messages before the compaction until the file is long.
fn lengthen(file: &Path) -> Result<()> {
    let text = fs::read_to_string(file)?;
    let lines: Vec<&str> = text.lines().collect();
    let kind = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_default();
        line["kind"].as_str().unwrap_or_default().to_owned()
    };
    let is_message = |line: &&&str| kind(line) == "message";
    let at = lines.iter().position(|line| kind(line) == "compaction");
    let (before, after) = lines.split_at(at.context("there is no compaction")?);
    let message = before.iter().find(is_message).context("no message")?;
    let mut out = BufWriter::new(File::create(file)?);
    for line in before {
        writeln!(out, "{line}")?;
    }
    let mut written = 0;
    while written < BYTES {
        writeln!(out, "{message}")?;
        written += message.len() as u64 + 1;
    }
    for line in after {
        writeln!(out, "{line}")?;
    }
    Ok(out.into_inner()?.sync_all()?)
}
