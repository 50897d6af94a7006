//! `link [NAME]`: a one-time link to the dashboard, or to an agent's page.

use clap::Args;
use hive_wire::{AgentName, Timestamp, client::Client, host::Link};

use super::{age::age, failure::Failure, json, out::Out};

/// Arguments of `link`.
#[derive(Debug, Args)]
pub struct LinkArgs {
    /// The agent whose page is meant; the dashboard unless given.
    name: Option<AgentName>,
    /// Also end every session on that page.
    #[arg(long)]
    rotate: bool,
}

impl LinkArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let link = Link {
            name: self.name,
            rotate: self.rotate,
        };
        let link = host.call(&link).await?;
        if out.is_json() {
            return out.json(json::OneTimeLink::from(&link));
        }
        out.line(&link.url)?;
        let life = age(Timestamp::now(), link.expires_at);
        out.note(format_args!("it works once, within {life}"));
        Ok(())
    }
}
