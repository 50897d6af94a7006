//! `pending`: what waits for the operator's decision (C5).

use std::sync::Arc;

use hive_wire::{
    WireError,
    approval::{ApprovalList, ApprovalRow, Pending},
    text,
};

use super::{Host, fitting};
use crate::approvals;

pub(crate) async fn run(host: Arc<Host>, command: Pending) -> Result<ApprovalList, WireError> {
    approvals::fail_orphans(&host).await?;
    let rows = host
        .read(move |readers| {
            if command.all {
                readers.approvals()
            } else {
                readers.pending_approvals()
            }
        })
        .await?;
    let mut rows: Vec<ApprovalRow> = rows.into_iter().filter_map(approvals::row).collect();
    let more = fitting::cut(&mut rows, size);
    Ok(ApprovalList {
        approvals: rows,
        more,
    })
}

fn size(row: &ApprovalRow) -> usize {
    let texts = [&row.diff, &row.reason, &row.note];
    1_024
        + texts
            .map(|one| text::encoded_length(one))
            .iter()
            .sum::<usize>()
}
