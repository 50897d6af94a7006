//! `update-all`: makes every agent anew that was made with another revision of the hive.

use clap::Args;
use hive_wire::{client::Client, host::UpdateAll};
use serde::Serialize;

use super::{
    failure::{Exit, Failure},
    lifecycle,
    out::Out,
};

/// Arguments of `update-all`.
#[derive(Debug, Args)]
pub struct UpdateAllArgs {}

#[derive(Serialize)]
struct Updated<'a> {
    updated: Vec<&'a str>,
    failed: Option<&'a str>,
    left: Vec<&'a str>,
}

impl UpdateAllArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let outcome = lifecycle::ask(host, &UpdateAll {}).await?;
        let updated: Vec<_> = outcome.updated.iter().map(|name| name.as_str()).collect();
        let failed = outcome.failed.as_ref().map(|one| one.name.as_str());
        if out.is_json() {
            out.json(Updated {
                updated,
                failed,
                left: outcome.left.iter().map(|name| name.as_str()).collect(),
            })?;
        } else if updated.is_empty() && failed.is_none() {
            out.note("every agent is up to date");
        } else {
            for name in updated {
                out.line(format_args!("updated {name}"))?;
            }
        }
        match outcome.failed {
            None => Ok(()),
            Some(failed) => Err(Failure::new(
                Exit::Failure,
                "not_updated",
                format!(
                    "{} does not come up with this revision: {}",
                    failed.name, failed.reason
                ),
            )
            .hint(format!(
                "{} more were left as they are; see `hive-c0re logs {} --output`",
                outcome.left.len(),
                failed.name
            ))),
        }
    }
}
