//! `check`: whether a file is a scenario.

use clap::Args;

use super::say;
use crate::Scenario;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// A scenario file, or the name of a built-in one.
    #[arg(value_name = "FILE")]
    scenario: String,
}

impl CheckArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let scenario = Scenario::find(&self.scenario)?;
        let rules = scenario.rules.len();
        say(&format!("{}: ok, {rules} rules\n", scenario.name))
    }
}
