//! The engine by itself, called as the loop calls it: same arguments, environment, directory and
//! prompt.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use tokio::{io::AsyncWriteExt as _, process::Command};

use super::stage::{Engine, Stage, rehearsed};

#[derive(Debug)]
pub(super) struct Bare {
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    cwd: String,
    prompt: String,
}

impl Bare {
    /// Learns from the fake engine's record how this stage's harness calls its engine. For another
    /// engine the fake one takes its place for a turn, elsewhere.
    pub(super) async fn like(stage: &Stage, engine: &Engine) -> Result<Self> {
        if engine.is_fake {
            return Self::recorded(stage, engine.program.clone());
        }
        let mut other = rehearsed(engine).await?;
        other.turn().await?;
        let bare = Self::recorded(&other, engine.program.clone())?;
        let bare = bare.moved(other.root(), stage.root())?;
        other.stop().await?;
        Ok(bare)
    }

    fn recorded(stage: &Stage, program: PathBuf) -> Result<Self> {
        let record = fs::read_to_string(stage.harness.path("record"))?;
        let lines: Vec<Value> = record
            .lines()
            .map(serde_json::from_str)
            .collect::<Result<_, _>>()?;
        let start = lines.iter().find(|line| line["argv"].is_array());
        let start = start.context("the record holds no start")?;
        let prompt = lines.iter().find_map(|line| line["prompt"].as_str());
        let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let env = start["env"].as_object().context("no environment")?;
        Ok(Self {
            program,
            args: start["argv"]
                .as_array()
                .context("no arguments")?
                .iter()
                .map(words)
                .collect(),
            env: env
                .iter()
                .map(|(name, value)| (name.clone(), words(value)))
                .collect(),
            cwd: words(&start["cwd"]),
            prompt: prompt.context("the record holds no prompt")?.to_owned(),
        })
    }

    /// The same in another hive's directory.
    fn moved(self, from: &Path, to: &Path) -> Result<Self> {
        let from = from.to_str().context("no UTF-8")?;
        let to = to.to_str().context("no UTF-8")?;
        let moved = |text: String| text.replace(from, to);
        Ok(Self {
            args: self.args.into_iter().map(moved).collect(),
            env: self
                .env
                .into_iter()
                .map(|(name, value)| (name, moved(value)))
                .collect(),
            cwd: moved(self.cwd),
            ..self
        })
    }

    /// Runs it once: how long from its start until it has ended.
    pub(super) async fn run(&self) -> Result<Duration> {
        let started = Instant::now();
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let mut stdin = child.stdin.take().context("stdin is a pipe")?;
        stdin.write_all(self.prompt.as_bytes()).await?;
        drop(stdin);
        let status = child.wait().await?;
        ensure!(status.success(), "the bare engine ended with {status}");
        Ok(started.elapsed())
    }
}
