//! `dead`: messages that were given up on and wait for the operator.

use clap::Args;
use hive_wire::{client::Client, host::Dead};

use super::{failure::Failure, history, json, out::Out};

/// Arguments of `dead`.
#[derive(Debug, Args)]
pub struct DeadArgs {}

impl DeadArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let dead = host.call(&Dead {}).await?;
        if out.is_json() {
            return out.json(json::MessageList::whole(&dead.messages));
        }
        if dead.messages.is_empty() {
            out.note("no dead letters: nothing to do");
            return Ok(());
        }
        out.table(&history::table(&dead.messages))?;
        out.note("deliver again: `hive-c0re redeliver ID`; throw away: `hive-c0re discard ID`");
        Ok(())
    }
}
