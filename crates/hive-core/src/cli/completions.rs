//! `completions SHELL`: prints completions, to be put where the shell looks for them.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::{BINARY, Cli, failure::Failure, out::Out};

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Which shell.
    shell: Shell,
}

impl CompletionsArgs {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), BINARY, &mut script);
        out.raw(&script)
    }
}
