//! `approve ID`: says yes, and waits until it is carried out.
//!
//! At a terminal, without `--hash`, it shows what would change and asks; the answer then holds for
//! exactly what was shown. Elsewhere it holds for what waits.

use clap::Args;
use hive_wire::{
    ApprovalId,
    approval::{ApprovalState, Approve, Decided, Pending},
    client::Client,
    text::printable,
};

use super::{
    confirm::confirm,
    failure::{Exit, Failure},
    json, lifecycle,
    out::Out,
    pending,
};

/// Arguments of `approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// The approval.
    id: ApprovalId,
    /// The hash of what you looked at: it fails when that has changed.
    #[arg(long, value_name = "HASH")]
    hash: Option<String>,
    /// What to tell the one who asked.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    note: String,
    /// Do not ask.
    #[arg(long)]
    yes: bool,
}

impl ApproveArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let approval_id = self.id;
        let hash = match self.hash {
            None if !self.yes && out.can_ask() && !out.is_json() => {
                let list = host.call(&Pending { all: false }).await?;
                let mut rows = list.approvals.into_iter();
                // One that is settled says so when it is decided again.
                match rows.find(|row| row.approval_id == approval_id) {
                    None => None,
                    Some(row) => {
                        pending::show(&row, out)?;
                        out.flush()?;
                        confirm("carry this out?", false, out)?;
                        Some(row.hash)
                    }
                }
            }
            hash => hash,
        };
        let approve = Approve {
            approval_id,
            hash,
            note: self.note,
        };
        let decided = lifecycle::ask(host, &approve).await?;
        finish(&decided, out)
    }
}

/// Says how an approval stands. One that could not be carried out is a failure.
pub(super) fn finish(decided: &Decided, out: &mut Out) -> Result<(), Failure> {
    if out.is_json() {
        out.json(json::Decided::from(decided))?;
    } else {
        let note = match decided.note.as_str() {
            "" => String::new(),
            note => format!(": {}", printable(note)),
        };
        let (id, state) = (decided.approval_id, decided.state.as_str());
        out.line(format_args!("approval {id} is {state}{note}"))?;
    }
    if decided.state == ApprovalState::Failed {
        return Err(Failure::new(
            Exit::Failure,
            "approval_failed",
            format!(
                "approval {} could not be carried out: {}",
                decided.approval_id, decided.note
            ),
        )
        .hint(format!("see `hive-c0re logs {}`", decided.agent)));
    }
    Ok(())
}
