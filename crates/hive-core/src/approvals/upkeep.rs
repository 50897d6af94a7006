//! Requests that fall out because their agent is gone, and what a crash left between a decision and
//! its effect.

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
    host.approvals.drop_unneeded().await;
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
        Ok(())
    });
    settle.await?;
    host.approvals.drop_unneeded().await;
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
