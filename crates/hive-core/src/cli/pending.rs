//! `pending [ID]`: what waits for the operator's decision, with what it would change.

use anstyle::Style;
use clap::Args;
use hive_wire::{
    ApprovalId, Timestamp,
    approval::{ApprovalKind, ApprovalRow, ApprovalState, Pending},
    client::Client,
    text::printable,
};

use super::{
    age::age,
    failure::{Exit, Failure},
    json,
    out::{Out, style},
};

/// Arguments of `pending`.
#[derive(Debug, Args)]
pub struct PendingArgs {
    /// Only this one.
    id: Option<ApprovalId>,
    /// Also what is settled, newest first.
    #[arg(long)]
    all: bool,
}

impl PendingArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let all = self.all || self.id.is_some();
        let mut list = host.call(&Pending { all }).await?;
        if let Some(id) = self.id {
            list.approvals.retain(|row| row.approval_id == id);
            if list.approvals.is_empty() {
                return Err(missing(id));
            }
        }
        if out.is_json() {
            return out.json(json::ApprovalList::from(&list));
        }
        if list.approvals.is_empty() {
            out.note("nothing waits for you: see what is settled with `hive-c0re pending --all`");
            return Ok(());
        }
        for row in &list.approvals {
            show(row, out)?;
        }
        if list.more {
            out.note(if self.all {
                "there are older ones, which are not shown"
            } else {
                "there are more; they show when some of these are settled"
            });
        }
        if list
            .approvals
            .iter()
            .any(|row| row.state == ApprovalState::Pending)
        {
            out.note("decide with `hive-c0re approve ID` or `hive-c0re deny ID --note WHY`");
        }
        Ok(())
    }
}

/// There is no such approval.
pub(super) fn missing(id: ApprovalId) -> Failure {
    Failure::new(
        Exit::NotFound,
        "not_found",
        format!("there is no approval {id}"),
    )
    .hint("`hive-c0re pending --all` lists them")
}

/// Shows one request: who wants what, why in their own words, and what would change.
pub(super) fn show(row: &ApprovalRow, out: &mut Out) -> Result<(), Failure> {
    let now = Timestamp::now();
    let what = match row.kind {
        ApprovalKind::Spawn => format!("a new agent `{}`", row.agent),
        ApprovalKind::Apply => format!("a new configuration of `{}`", row.agent),
    };
    let head = format!(
        "approval {} · {what} · asked for by {} {} ago · {}",
        row.approval_id,
        row.requested_by,
        age(row.requested_at, now),
        row.state.as_str()
    );
    let head = out.paint(style::HEAD, &head);
    out.line(head)?;
    let mut fields = Vec::new();
    fields.extend(row.commit.clone().map(|commit| ("commit", commit)));
    fields.push(("hash", row.hash.clone()));
    if row.state == ApprovalState::Pending {
        let left = row.expires_at.map(|at| age(now, at));
        fields.extend(left.map(|left| ("falls out in", left)));
    }
    if !row.note.is_empty() {
        fields.push(("note", printable(&row.note)));
    }
    out.fields(&fields)?;
    if !row.reason.is_empty() {
        let by = format!("written by {}:", row.requested_by);
        let by = out.paint(style::FAINT, &by);
        out.line(by)?;
        for line in printable(&row.reason).lines() {
            out.line(format_args!("  │ {line}"))?;
        }
    }
    for line in printable(&row.diff).lines() {
        let line = out.paint(colour(line), line);
        out.line(line)?;
    }
    out.line("")
}

fn colour(line: &str) -> Style {
    match line.as_bytes() {
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => style::HEAD,
        [b'+', ..] => style::GOOD,
        [b'-', ..] => style::BAD,
        [b'@', b'@', ..] => style::BUSY,
        [b' ', ..] | [] => style::PLAIN,
        _ => style::WARN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_diff_have_their_colours() {
        for (line, expected) in [
            ("+++ b/agent.toml", style::HEAD),
            ("--- a/agent.toml", style::HEAD),
            ("+model", style::GOOD),
            ("-model", style::BAD),
            ("@@ -1 +1 @@", style::BUSY),
            (" same", style::PLAIN),
            ("", style::PLAIN),
            ("not shown: x", style::WARN),
        ] {
            assert_eq!(colour(line), expected, "{line}");
        }
    }
}
