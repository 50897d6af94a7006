//! Requests that fall out: agents that are gone, content that nobody needs, and what a crash left
//! between a decision and its effect.

use std::sync::Arc;

use hive_store::sqlite::{Approval, ApprovalState};
use hive_wire::{AgentName, ErrorCode, WireError, approval::ApprovalKind};

use super::{carry_out, kind, news};
use crate::host_commands::Host;

/// What is said of a request whose agent is gone.
const ORPHAN: &str = "agent state dir missing";

/// Takes up what was decided before the daemon ended, and drops content that no request needs. Runs
/// once, at the start.
pub(crate) async fn take_up(host: &Arc<Host>) {
    let _alone = host.approvals.deciding.lock().await;
    let due = host
        .broker
        .run(|desk| desk.store(|tx| tx.approvals_to_carry_out()));
    match due.await {
        Ok(due) => {
            for approval in due {
                let id = approval.id;
                tracing::info!(approval = %id, "carrying out what was decided before");
                if let Err(error) = carry_out::carry_out(host, approval).await {
                    tracing::error!(approval = %id, %error, "cannot carry it out");
                }
            }
        }
        Err(error) => tracing::error!(%error, "cannot tell what was decided before"),
    }
    drop_unneeded(host).await;
}

/// Fails requests whose agent is gone, so that they fall out of the list and stay for audit.
///
/// # Errors
/// The store's refusal.
pub(crate) async fn fail_orphans(host: &Arc<Host>) -> Result<(), WireError> {
    let waiting = host
        .broker
        .run(|desk| desk.store(|tx| tx.pending_approvals()))
        .await?;
    for approval in waiting {
        match check_orphan(host, &approval).await {
            Err(error) if error.code != ErrorCode::Conflict => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Refuses a request whose agent is gone, and settles it as failed.
pub(super) async fn check_orphan(host: &Arc<Host>, approval: &Approval) -> Result<(), WireError> {
    if !is_orphan(host, approval).await? {
        return Ok(());
    }
    let id = approval.id;
    let settle = host.broker.run(move |desk| {
        let failed = desk.store(|tx| tx.decide(id, None, ApprovalState::Failed, ORPHAN))?;
        desk.agenda_changed();
        news::resolved(desk, &failed);
        Ok(failed)
    });
    let failed = settle.await?;
    forget(host, &failed).await;
    Err(WireError::new(
        ErrorCode::Conflict,
        format!("approval {id} has failed: {ORPHAN}"),
    ))
}

async fn is_orphan(host: &Arc<Host>, approval: &Approval) -> Result<bool, WireError> {
    if kind(&approval.request.kind) != Some(ApprovalKind::Apply) {
        return Ok(false);
    }
    let Ok(name) = approval.request.agent.parse::<AgentName>() else {
        return Ok(true);
    };
    let wanted = name.clone();
    let lives = host
        .broker
        .run(move |desk| Ok(desk.roster.find(wanted.as_str()).is_ok()));
    if !lives.await? {
        return Ok(true);
    }
    let state = host.paths.agent_dirs(&name).state;
    host.approvals
        .on_disk(move |repos| Ok(!state.is_dir() || !repos.has_proposal(&name)))
        .await
}

/// Drops what a settled request asked for, unless another one asks for the same.
pub(super) async fn forget(host: &Arc<Host>, approval: &Approval) {
    let hash = approval.request.hash.clone();
    let needed = host.broker.run(needed).await;
    if needed.is_ok_and(|needed| !needed.contains(&hash)) {
        let dropped = host.approvals.on_disk(move |repos| {
            repos.drop_request(&hash);
            Ok(())
        });
        if let Err(error) = dropped.await {
            tracing::warn!(%error, "cannot drop what a request asked for");
        }
    }
}

async fn drop_unneeded(host: &Arc<Host>) {
    let Ok(needed) = host.broker.run(needed).await else {
        return;
    };
    let dropped = host.approvals.on_disk(move |repos| {
        let kept = repos.kept_requests().into_iter();
        kept.filter(|hash| !needed.contains(hash))
            .for_each(|hash| repos.drop_request(&hash));
        Ok(())
    });
    if let Err(error) = dropped.await {
        tracing::warn!(%error, "cannot drop what requests asked for");
    }
}

/// The hashes that requests still need.
fn needed(desk: &mut crate::broker::Desk<'_>) -> Result<Vec<String>, WireError> {
    desk.store(|tx| {
        let mut open = tx.pending_approvals()?;
        open.extend(tx.approvals_to_carry_out()?);
        Ok(open.into_iter().map(|one| one.request.hash).collect())
    })
}
