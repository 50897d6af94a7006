//! `deny ID`: says no; the one who asked is told why.

use clap::Args;
use hive_wire::{ApprovalId, approval::Deny, client::Client};

use super::{approve, failure::Failure, out::Out};

/// Arguments of `deny`.
#[derive(Debug, Args)]
pub struct DenyArgs {
    /// The approval.
    id: ApprovalId,
    /// Why not: the one who asked is told.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    note: String,
}

impl DenyArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let deny = Deny {
            approval_id: self.id,
            note: self.note,
        };
        let decided = host.call(&deny).await?;
        approve::finish(&decided, out)
    }
}
