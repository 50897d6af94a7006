//! `print`: the file of a built-in scenario.

use anyhow::Context;
use clap::Args;

use super::say;
use crate::scenario::builtin;

/// Arguments of `print`.
#[derive(Debug, Args)]
pub struct PrintArgs {
    /// Its name, as `hive-rehearsal scenarios` lists it.
    name: String,
}

impl PrintArgs {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let builtin = builtin::named(&self.name).with_context(|| {
            format!(
                "there is no built-in scenario `{}`: see `hive-rehearsal scenarios`",
                self.name
            )
        })?;
        say(builtin.text)
    }
}
