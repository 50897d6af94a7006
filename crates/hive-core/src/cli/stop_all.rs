//! `stop-all`: stops every agent that the hive runs and leaves them stopped.

use clap::Args;
use hive_wire::{client::Client, host::StopAll};
use serde::Serialize;

use super::{
    confirm::confirm,
    failure::{Exit, Failure},
    lifecycle,
    out::Out,
};

/// Arguments of `stop-all`.
#[derive(Debug, Args)]
pub struct StopAllArgs {
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

#[derive(Serialize)]
struct Stopped<'a> {
    stopped: Vec<&'a str>,
    failed: Vec<&'a str>,
}

impl StopAllArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        confirm(
            "stop every agent? Their mail waits until you start them.",
            self.yes,
            out,
        )?;
        let outcome = lifecycle::ask(host, &StopAll {}).await?;
        let stopped: Vec<_> = outcome.stopped.iter().map(|name| name.as_str()).collect();
        let failed: Vec<_> = outcome.failed.iter().map(|one| one.name.as_str()).collect();
        if out.is_json() {
            out.json(Stopped {
                stopped,
                failed: failed.clone(),
            })?;
        } else if stopped.is_empty() && failed.is_empty() {
            out.note("no agent was running");
        } else {
            for name in stopped {
                out.line(format_args!("stopped {name}"))?;
            }
        }
        match outcome.failed.first() {
            None => Ok(()),
            Some(first) => Err(Failure::new(
                Exit::Failure,
                "not_stopped",
                format!(
                    "{} could not be stopped: {}",
                    failed.join(", "),
                    first.reason
                ),
            )),
        }
    }
}
