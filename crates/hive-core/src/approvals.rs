//! Approvals: nothing of an agent changes that the operator has not seen (C5, C6).
//!
//! A request is pinned to its exact content when it is made: the commit is taken out of the hostile
//! repository once, kept under the hash of its content, and shown as a diff to what is applied. A
//! decision is written down first and carried out then; a start after a crash takes up what was
//! decided and not done. What is carried out is what hashes to what was shown, or nothing.
//!
//! One decision at a time is made and carried out ([`Approvals::deciding`]).

mod carry_out;
mod content;
mod decide;
mod kept;
mod news;
mod request;
mod upkeep;

use std::{path::PathBuf, sync::Arc};

use hive_store::sqlite::{self, Approval};
use hive_wire::{
    ErrorCode, WireError,
    approval::{ApprovalKind, ApprovalRow, ApprovalState, MAX_NOTE},
};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::task::TaskTracker;

use crate::{
    agent_config::Configs,
    broker::Broker,
    repos::{InTheWay, Repos},
};

pub(crate) use carry_out::trial as comes_up;
pub(crate) use decide::{approve, deny};
pub(crate) use news::{Outcome, happened, resolved};
pub(crate) use request::Requester;
pub(crate) use upkeep::{fail_orphans, take_up};

/// What is needed to make a request.
pub(crate) struct Approvals {
    pub(crate) repos: Repos,
    pub(crate) configs: Arc<Configs>,
    broker: Broker,
    /// The hive's own directory.
    root: PathBuf,
    tasks: TaskTracker,
    /// One commit is taken over at a time.
    importing: Semaphore,
    /// Held while a decision is made and carried out.
    deciding: Mutex<()>,
    /// Held while content is kept for a request or dropped; taken after `deciding`.
    keeping: Mutex<()>,
}

impl Approvals {
    /// Those of a hive.
    pub(crate) fn new(
        configs: &Arc<Configs>,
        repos: &Repos,
        broker: &Broker,
        root: PathBuf,
        tasks: &TaskTracker,
    ) -> Self {
        Self {
            repos: repos.clone(),
            configs: Arc::clone(configs),
            broker: broker.clone(),
            root,
            tasks: tasks.clone(),
            importing: Semaphore::new(1),
            deciding: Mutex::new(()),
            keeping: Mutex::new(()),
        }
    }

    /// Works on disk, away from the threads that serve sockets.
    pub(crate) async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Repos) -> Result<T, WireError> + Send + 'static,
    ) -> Result<T, WireError> {
        let repos = self.repos.clone();
        let work = self.tasks.spawn_blocking(move || work(&repos));
        work.await.unwrap_or_else(|error| {
            Err(WireError::new(
                ErrorCode::Storage,
                format!("the work on the repositories was cut short: {error}"),
            ))
        })
    }
}

/// The host's own disk fails, or the root agent has put something in its way.
pub(crate) fn storage(error: &anyhow::Error) -> WireError {
    if let Some(in_the_way) = error.downcast_ref::<InTheWay>() {
        return WireError::new(ErrorCode::Conflict, in_the_way.to_string())
            .hint("the root agent sees it below its `/agents`");
    }
    WireError::new(
        ErrorCode::Storage,
        format!("the repositories of configuration fail: {error:#}"),
    )
    .hint("see the daemon's log; `hive-c0re doctor` looks at the disk")
}

/// Refuses a reason or a note that is too long or would steer a terminal.
fn check_note(field: &str, note: &str) -> Result<(), WireError> {
    let is_plain = |c: char| c == '\n' || c == '\t' || !c.is_control();
    if note.len() <= MAX_NOTE && note.chars().all(is_plain) {
        return Ok(());
    }
    Err(WireError::new(
        ErrorCode::BadRequest,
        format!("`{field}` is a text of at most {MAX_NOTE} bytes"),
    ))
}

/// An approval as the operator sees it; `None` for a row that this build does not understand.
pub(crate) fn row(approval: Approval) -> Option<ApprovalRow> {
    Some(ApprovalRow {
        approval_id: approval.id,
        kind: kind(&approval.request.kind)?,
        agent: approval.request.agent.parse().ok()?,
        requested_by: approval.request.requested_by.parse().ok()?,
        commit: approval.request.commit_ref,
        hash: approval.request.hash,
        diff: approval.request.diff,
        reason: approval.request.reason,
        state: state(approval.state),
        requested_at: approval.created_at,
        expires_at: approval.request.expires_at,
        decided_at: approval.decided_at,
        carried_out_at: approval.carried_out_at,
        note: approval.note,
    })
}

fn kind(word: &str) -> Option<ApprovalKind> {
    [ApprovalKind::Spawn, ApprovalKind::Apply]
        .into_iter()
        .find(|kind| kind.as_str() == word)
}

/// Where an approval stands, in the wire's words.
pub(crate) fn state(state: sqlite::ApprovalState) -> ApprovalState {
    match state {
        sqlite::ApprovalState::Pending => ApprovalState::Pending,
        sqlite::ApprovalState::Approved => ApprovalState::Approved,
        sqlite::ApprovalState::Denied => ApprovalState::Denied,
        sqlite::ApprovalState::Failed => ApprovalState::Failed,
        sqlite::ApprovalState::Cancelled => ApprovalState::Cancelled,
        sqlite::ApprovalState::Expired => ApprovalState::Expired,
    }
}
