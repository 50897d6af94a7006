//! Many sessions at once.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use tokio::{io::AsyncWriteExt as _, task::JoinSet, time::timeout};

use super::{contender::Contender, model::ANSWER};

/// The longest that all of them together may take.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Debug, Serialize)]
pub(super) struct Crowd {
    pub(super) sessions: usize,
    pub(super) seconds: f64,
    pub(super) turns_per_second: f64,
}

/// Starts a turn in each of so many sessions and waits for all of them.
pub(super) async fn measure(native: &Contender, sessions: usize) -> Result<Crowd> {
    let contenders: Vec<Contender> = (0..sessions)
        .map(|_| native.again())
        .collect::<Result<_>>()?;
    let began = Instant::now();
    let mut turns = JoinSet::new();
    for contender in &contenders {
        let job = contender.task(false);
        turns.spawn(async move {
            let mut command = job.command;
            let mut child = command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .kill_on_drop(true)
                .spawn()?;
            let mut input = child.stdin.take().context("no input")?;
            input.write_all(job.stdin.as_bytes()).await?;
            drop(input);
            let output = child.wait_with_output().await?;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            ensure!(
                said.contains(ANSWER),
                "a session of the crowd failed: {said}"
            );
            anyhow::Ok(())
        });
    }
    while let Some(turn) = timeout(PATIENCE, turns.join_next()).await? {
        turn??;
    }
    let seconds = began.elapsed().as_secs_f64();
    Ok(Crowd {
        sessions,
        seconds,
        turns_per_second: sessions as f64 / seconds,
    })
}
