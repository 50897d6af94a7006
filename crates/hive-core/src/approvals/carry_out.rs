//! Carrying out what was approved, at most once, whatever ends in between.
//!
//! Each step can be repeated: the applied repository's newest commit says which approval it belongs
//! to, so that a start after a crash sees how far the last one came.

use std::{sync::Arc, time::Duration};

use hive_store::sqlite::Approval;
use hive_wire::{
    AgentName, ApprovalId, ErrorCode, WireError,
    approval::ApprovalKind,
    host::{AgentState, Spawn},
};
use tokio::time::Instant;

use super::{
    content::{self, Content, Subject},
    kind, news, storage,
};
use crate::{
    host_commands::{Host, spawn},
    repos::{Applied, Tree},
    supervisor::{Phase, Standing},
};

/// What a request comes to now, from what is applied now.
pub(super) async fn content_now(
    host: &Arc<Host>,
    approval: &Approval,
) -> Result<Content, WireError> {
    let request = approval.request.clone();
    let root = host.paths.root.clone();
    host.approvals
        .on_disk(move |repos| {
            let tree = repos.requested(&request.hash);
            let tree = tree.map_err(|error| storage(&error))?;
            let (kind, agent) = subject(&request)?;
            let base = match kind {
                ApprovalKind::Spawn => Tree::default(),
                ApprovalKind::Apply => {
                    let applied = repos.applied(&agent).map_err(|error| storage(&error))?;
                    applied.map(|applied| applied.tree).unwrap_or_default()
                }
            };
            let subject = Subject {
                kind,
                agent: &agent,
                parent: request.parent.as_deref(),
                base: &base,
            };
            content::of(subject, tree, &root)
        })
        .await
}

fn subject(
    request: &hive_store::sqlite::NewApproval,
) -> Result<(ApprovalKind, AgentName), WireError> {
    let kind = kind(&request.kind);
    let agent = request.agent.parse().ok();
    kind.zip(agent).ok_or_else(|| {
        WireError::new(
            ErrorCode::Unsupported,
            format!(
                "this build does not know requests of kind `{}`",
                request.kind
            ),
        )
    })
}

/// Does what was approved, and settles it: how it stands then.
///
/// # Errors
/// When the host's own store or disk fails; the next start tries again.
pub(super) async fn carry_out(host: &Arc<Host>, approval: Approval) -> Result<Approval, WireError> {
    let (what, agent) = subject(&approval.request)?;
    let done = match what {
        ApprovalKind::Spawn => make_agent(host, &approval, &agent).await,
        ApprovalKind::Apply => apply(host, &approval, &agent).await,
    };
    let done = match done {
        Ok(done) => done,
        Err(error) if is_ours(&error) => return Err(error),
        // Trying again would not help: its agent was destroyed meanwhile, say.
        Err(error) => Err(error.to_string()),
    };
    hive_store::failpoint!("approvals::before_settled");
    let id = approval.id;
    let settle = host.broker.run(move |desk| {
        let settled = desk.store(|tx| tx.carry_out(id, done.err().as_deref()))?;
        news::resolved(desk, &settled);
        Ok(settled)
    });
    let settled = settle.await?;
    host.approvals.drop_unneeded().await;
    Ok(settled)
}

/// Whether it was done, or why not.
type Done = Result<(), String>;

async fn make_agent(
    host: &Arc<Host>,
    approval: &Approval,
    agent: &AgentName,
) -> Result<Done, WireError> {
    let content = content_now(host, approval).await?;
    if content.hash != approval.request.hash {
        return Ok(Err("what was asked for is not what was shown".to_owned()));
    }
    let message = message(approval);
    let name = agent.clone();
    let before = host
        .approvals
        .on_disk(move |repos| repos.applied(&name).map_err(|error| storage(&error)))
        .await?;
    let wanted = agent.clone();
    let lives = host
        .broker
        .run(move |desk| Ok(desk.roster.find(wanted.as_str()).is_ok()))
        .await?;
    let is_made = lives && before.is_some_and(|applied| applied.message == message);
    if !is_made {
        let config = content.declared.config();
        let command = Spawn {
            name: agent.clone(),
            parent: approval
                .request
                .parent
                .as_deref()
                .and_then(|name| name.parse().ok()),
            runtime: config.runtime,
            engine: config.engine.as_ref().map(ToString::to_string),
            model: config.model.as_ref().map(|model| model.as_str().to_owned()),
        };
        hive_store::failpoint!("approvals::before_effect");
        let row = spawn::create(Arc::clone(host), command, content.tree, &message).await?;
        if row.state == AgentState::Failed {
            return Ok(Err(format!(
                "`{agent}` is made, but does not run: {}",
                row.note
            )));
        }
    }
    Ok(trial(host, agent).await.map_err(|problem| {
        format!("`{agent}` is made, but does not come up: {problem}; apply another configuration, or destroy it")
    }))
}

/// Whether an error is the host's own, so that trying again later may help.
fn is_ours(error: &WireError) -> bool {
    matches!(
        error.code,
        ErrorCode::Storage | ErrorCode::DiskFull | ErrorCode::ShuttingDown
    )
}

async fn apply(
    host: &Arc<Host>,
    approval: &Approval,
    agent: &AgentName,
) -> Result<Done, WireError> {
    let (message, undone) = (message(approval), rollback_message(approval.id));
    let name = agent.clone();
    let applied = host
        .approvals
        .on_disk(move |repos| repos.applied(&name).map_err(|error| storage(&error)))
        .await?;
    let stands = applied.as_ref().map(|applied| applied.message.as_str());
    if stands.is_some_and(|stands| stands.starts_with(&undone)) {
        // A crash came after it was rolled back.
        let mut note = stands.unwrap_or_default().to_owned();
        if let Err(problem) = settle_into(host, agent).await? {
            note.push_str(&format!(
                "; it does not come up with what was before either: {problem}"
            ));
        }
        return Ok(Err(note));
    }
    if stands != Some(message.as_str()) {
        let content = content_now(host, approval).await?;
        if content.hash != approval.request.hash {
            return Ok(Err("what is applied changed in between".to_owned()));
        }
        hive_store::failpoint!("approvals::before_effect");
        write(host, agent, content.tree, message).await?;
        hive_store::failpoint!("approvals::applied");
    }
    match settle_into(host, agent).await? {
        Ok(()) => Ok(Ok(())),
        Err(problem) => roll_back(host, agent, &undone, &problem).await.map(Err),
    }
}

/// Goes back to what was applied before; what to tell of it.
async fn roll_back(
    host: &Arc<Host>,
    agent: &AgentName,
    undone: &str,
    problem: &str,
) -> Result<String, WireError> {
    let name = agent.clone();
    let before = host
        .approvals
        .on_disk(move |repos| repos.before(&name).map_err(|error| storage(&error)))
        .await?;
    let Some(Applied { commit, tree, .. }) = before else {
        return Ok(format!("{problem}; there is nothing to go back to"));
    };
    let problem = hive_wire::text::shorten(problem, 1_000);
    let message = format!("{undone} it does not come up: {problem}");
    write(host, agent, tree, message).await?;
    let again = settle_into(host, agent).await?;
    let ending = match again {
        Ok(()) => "it runs on it".to_owned(),
        Err(problem) => format!("but it does not come up with that either: {problem}"),
    };
    Ok(format!(
        "`{agent}` does not come up with it: {problem}; rolled back to {}, and {ending}",
        &commit[..12.min(commit.len())]
    ))
}

async fn write(
    host: &Arc<Host>,
    agent: &AgentName,
    tree: Tree,
    message: String,
) -> Result<(), WireError> {
    let name = agent.clone();
    host.approvals
        .on_disk(move |repos| {
            let applied = repos.apply(&name, &tree, &message);
            applied.map(drop).map_err(|error| storage(&error))
        })
        .await
}

/// Has the agent run on what is applied, if it should run at all; whether it comes up.
async fn settle_into(host: &Arc<Host>, agent: &AgentName) -> Result<Done, WireError> {
    let configs = Arc::clone(&host.approvals.configs);
    let name = agent.clone();
    let config = host
        .approvals
        .on_disk(move |_| Ok(configs.reload(&name)))
        .await?;
    let (found, _) = host.find(agent.clone()).await?;
    if let Err(error) = host.open_gateway(&found) {
        tracing::error!(%agent, %error, "cannot open its way to the model");
    }
    let text = |value: Option<String>| value.unwrap_or_default();
    host.supervisor
        .reconfigure(
            agent,
            text(config.engine.as_ref().map(ToString::to_string)),
            text(config.model.as_ref().map(ToString::to_string)),
        )
        .await?;
    let came_up = trial(host, agent).await;
    let (name, told) = (agent.clone(), news::Outcome::Rebuilt(came_up.clone()));
    host.broker
        .run(move |desk| {
            news::happened(desk, &name, &told);
            Ok(())
        })
        .await?;
    Ok(came_up)
}

/// Waits until an agent that should run has come up: its harness is there and has asked for work.
pub(crate) async fn trial(host: &Arc<Host>, agent: &AgentName) -> Result<(), String> {
    let name = agent.clone();
    let found = host
        .broker
        .run(move |desk| desk.roster.find(name.as_str()).cloned());
    let run = match found.await {
        Ok(agent) => agent.run,
        Err(error) => return Err(error.to_string()),
    };
    if run.wanted != hive_store::sqlite::Wanted::Running {
        return Ok(());
    }
    let generation = run.generation;
    let patience = Duration::from_secs(host.config.agents.trial_secs.into());
    let until = Instant::now() + host.config.agents.stop_grace() + patience;
    let is_over = |standing: &Standing| {
        standing.generation == generation
            && match standing.phase {
                Phase::Running | Phase::Failed => true,
                // It ended by itself, and is about to be started again.
                Phase::Starting => !standing.problem.is_empty(),
                Phase::Unknown | Phase::Stopping | Phase::Stopped => false,
            }
    };
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let standing = host.supervisor.wait_until(agent, left, is_over).await;
        let Some(standing) = standing.filter(is_over) else {
            return Err(format!("it did not start within {} s", patience.as_secs()));
        };
        if standing.phase != Phase::Running {
            return Err(standing.problem);
        }
        let left = until.saturating_duration_since(Instant::now());
        let ended = host.supervisor.wait_until(agent, left, |standing| {
            standing.generation != generation || standing.phase != Phase::Running
        });
        // Cancel-safe: both only wait.
        tokio::select! {
            () = host.harnesses.connected(agent) => return Ok(()),
            _ = ended => {}
        }
        if Instant::now() >= until {
            return Err(format!(
                "it runs, but its harness did not ask for work within {} s",
                patience.as_secs()
            ));
        }
    }
}

/// What the applied repository says of a change.
fn message(approval: &Approval) -> String {
    let request = &approval.request;
    let commit = match &request.commit_ref {
        Some(commit) => format!("commit {commit} of the proposed repository"),
        None => "a new agent".to_owned(),
    };
    format!(
        "approval {}: {commit}\n\nRequested by {}; content {}",
        approval.id, request.requested_by, request.hash
    )
}

/// The beginning of what it says when the change was undone.
fn rollback_message(id: ApprovalId) -> String {
    // With its end: approval 1 is not approval 12.
    format!("rolled back approval {id}:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c5_a_rollback_of_one_approval_is_not_that_of_another() {
        let said = |id| format!("{} it does not come up", rollback_message(ApprovalId(id)));
        for (id, other) in [(1, 12), (12, 1), (2, 21), (10, 100)] {
            assert!(said(id).starts_with(&rollback_message(ApprovalId(id))));
            let of_other = said(other).starts_with(&rollback_message(ApprovalId(id)));
            assert!(!of_other, "{id} {other}");
        }
    }
}
