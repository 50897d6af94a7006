//! The operator's decision: about what was looked at, once.

use std::sync::Arc;

use hive_store::sqlite::{Approval, ApprovalState};
use hive_wire::{
    ApprovalId, ErrorCode, WireError,
    approval::{Approve, Decided, Deny},
};

use super::{carry_out, check_note, content, news, state, upkeep};
use crate::host_commands::Host;

/// Says yes, and carries it out.
///
/// # Errors
/// `not_found`; `conflict` when it was decided before, has expired, or is not what was looked at.
pub(crate) async fn approve(host: Arc<Host>, command: Approve) -> Result<Decided, WireError> {
    check_note("note", &command.note)?;
    let _alone = host.approvals.deciding.lock().await;
    let id = command.approval_id;
    let waiting = find(&host, id).await?;
    if waiting.state == ApprovalState::Pending {
        upkeep::check_orphan(&host, &waiting).await?;
        renew_when_stale(&host, &waiting).await?;
    }
    // Nothing is renewed in between: `deciding` is held.
    let approval = decide(
        &host,
        id,
        command.hash,
        ApprovalState::Approved,
        command.note,
    )
    .await?;
    hive_store::failpoint!("approvals::decided");
    let settled = carry_out::carry_out(&host, approval).await?;
    Ok(decided(settled))
}

/// Says no.
///
/// # Errors
/// `not_found`; `conflict` when it was decided before or has expired.
pub(crate) async fn deny(host: Arc<Host>, command: Deny) -> Result<Decided, WireError> {
    check_note("note", &command.note)?;
    let _alone = host.approvals.deciding.lock().await;
    let id = command.approval_id;
    let approval = decide(&host, id, None, ApprovalState::Denied, command.note).await?;
    host.approvals.drop_unneeded().await;
    Ok(decided(approval))
}

async fn find(host: &Host, id: ApprovalId) -> Result<Approval, WireError> {
    host.broker
        .run(move |desk| desk.store(|tx| tx.approval(id)))
        .await
}

async fn decide(
    host: &Host,
    id: ApprovalId,
    hash: Option<String>,
    state: ApprovalState,
    note: String,
) -> Result<Approval, WireError> {
    host.broker
        .run(move |desk| {
            let decided = desk.store(|tx| tx.decide(id, hash.as_deref(), state, &note))?;
            desk.agenda_changed();
            // A yes is told of when it is carried out.
            if state != ApprovalState::Approved {
                news::resolved(desk, &decided);
            }
            Ok(decided)
        })
        .await
}

/// What is applied may have changed since the diff was made: then there is a new diff, and the
/// operator looks at that one first.
async fn renew_when_stale(host: &Arc<Host>, approval: &Approval) -> Result<(), WireError> {
    let now = carry_out::content_now(host, approval).await?;
    if now.hash == approval.request.hash {
        return Ok(());
    }
    let id = approval.id;
    let content::Content {
        tree, diff, hash, ..
    } = now;
    let new = hash.clone();
    host.approvals
        .keep(&hash, tree, move |desk| {
            desk.store(|tx| tx.renew_approval(id, &diff, &new))
        })
        .await?;
    Err(WireError::new(
        ErrorCode::Conflict,
        format!("approval {id} has changed since it was looked at: its hash is {hash}"),
    )
    .hint("look at it again with `hive-c0re pending`"))
}

fn decided(approval: Approval) -> Decided {
    Decided {
        approval_id: approval.id,
        agent: approval
            .request
            .agent
            .parse()
            .expect("a request names an agent"),
        state: state(approval.state),
        note: approval.note,
    }
}
