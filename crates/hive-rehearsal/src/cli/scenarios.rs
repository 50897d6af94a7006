//! `scenarios`: what is built in.

use clap::Args;

use super::say;
use crate::{Scenario, scenario::builtin};

/// Arguments of `scenarios`.
#[derive(Debug, Args)]
pub struct ScenariosArgs {}

impl ScenariosArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        for builtin in builtin::ALL {
            let scenario = Scenario::parse(builtin.name, builtin.text)?;
            say(&format!("{:<10} {}\n", builtin.name, scenario.description))?;
        }
        Ok(())
    }
}
