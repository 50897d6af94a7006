//! `pending`: what waits for the operator's decision (C5).

use std::sync::Arc;

use hive_wire::{
    WireError,
    approval::{ApprovalList, ApprovalRow, Pending},
    text,
};

use super::Host;
use crate::approvals;

/// How many bytes of texts a list has, so that it fits into one line.
const LIST_BYTES: usize = 768 * 1024;

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
    let mut bytes = 0;
    let fitting = rows.iter().take_while(|row| {
        bytes += size(row);
        bytes <= LIST_BYTES
    });
    let fitting = fitting.count().max(1);
    let more = fitting < rows.len();
    rows.truncate(fitting);
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
