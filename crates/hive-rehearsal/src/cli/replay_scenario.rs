//! `replay-scenario`: a scenario that answers as a recorded model did.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::say;
use crate::replay;

/// Arguments of `replay-scenario`.
#[derive(Debug, Args)]
pub struct ReplayScenarioArgs {
    /// A recording of `hive-rehearsal record`.
    file: PathBuf,
}

impl ReplayScenarioArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let file = std::fs::File::open(&self.file)
            .with_context(|| format!("cannot open {}", self.file.display()))?;
        let text = replay::scenario(std::io::BufReader::new(file))
            .with_context(|| format!("in {}", self.file.display()))?;
        say(&text)
    }
}
