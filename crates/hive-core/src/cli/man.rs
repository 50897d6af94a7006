//! `man`: prints the man page, or writes one page per command into a directory.

use std::path::PathBuf;

use clap::{Args, CommandFactory};

use super::{Cli, failure::Failure, out::Out};

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write one page per command into this directory.
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl ManArgs {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let Some(dir) = self.dir else {
            let mut page = Vec::new();
            clap_mangen::Man::new(Cli::command())
                .render(&mut page)
                .map_err(|error| Failure::io("write the man page", &error))?;
            return out.raw(&page);
        };
        let failed = |error| Failure::io(&format!("write man pages to {}", dir.display()), &error);
        std::fs::create_dir_all(&dir).map_err(failed)?;
        clap_mangen::generate_to(Cli::command(), &dir).map_err(failed)?;
        out.note(format_args!("man pages are in {}", dir.display()));
        Ok(())
    }
}
