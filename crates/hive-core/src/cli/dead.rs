//! `dead`: messages that were given up on and wait for the operator.

use clap::Args;
use hive_wire::{client::Client, host::Dead};

use super::{failure::Failure, history, json, out::Out};

/// Arguments of `dead`.
#[derive(Debug, Args)]
pub struct DeadArgs {}

impl DeadArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let mut messages = Vec::new();
        let mut page = Dead::default();
        loop {
            let dead = host.call(&page).await?;
            messages.extend(dead.messages);
            page.after = dead.next;
            if page.after.is_none() {
                break;
            }
        }
        if out.is_json() {
            return out.json(json::MessageList::whole(&messages));
        }
        if messages.is_empty() {
            out.note("no dead letters: nothing to do");
            return Ok(());
        }
        out.table(&history::table(&messages))?;
        out.note("deliver again: `hive-c0re redeliver ID`; throw away: `hive-c0re discard ID`");
        Ok(())
    }
}
