//! Making a request: pinned, checked and kept before it is written down.

use std::{sync::Arc, time::Duration};

use hive_store::{
    Refusal,
    sqlite::{AgentRecord, NewApproval},
};
use hive_wire::{
    AgentName, ErrorCode, WireError,
    approval::{
        ApprovalKind, ApprovalRequested, MAX_AGENT_CONFIG, MAX_COMMIT_REF, RequestApplyCommit,
        RequestSpawn,
    },
    host::Runtime,
    name::OPERATOR,
    text,
};
use serde_json::json;

use super::{
    Approvals, check_note,
    content::{self, Content, Subject},
    storage,
};
use crate::{
    agent_commands::Once,
    agent_config::{self, AGENT_TOML},
    broker::Desk,
    repos::{NotImported, Tree},
};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Requester {
    /// An agent, known by its socket.
    Agent(AgentName),
    /// The operator, for somebody else to decide.
    Operator,
}

impl Requester {
    fn label(&self) -> &str {
        match self {
            Self::Agent(name) => name.as_str(),
            Self::Operator => OPERATOR,
        }
    }
}

impl Approvals {
    /// Asks for a new agent.
    ///
    /// # Errors
    /// With what is wrong with the request.
    pub(crate) async fn request_spawn(
        self: Arc<Self>,
        who: Requester,
        command: RequestSpawn,
    ) -> Result<ApprovalRequested, WireError> {
        let once = Once::of(&command, command.key.as_ref());
        if let Some(earlier) = self.earlier(&who, &once).await? {
            return Ok(earlier);
        }
        check_note("reason", &command.reason)?;
        let name = agent_name(&command.name)?;
        let text = spawn_config(&name, &command)?;
        let (asker, wanted, parent) = (who.clone(), name.clone(), command.parent.clone());
        let parent = self
            .broker
            .run(move |desk| {
                let parent = may_spawn(desk, &asker, parent)?;
                desk.roster.check_new(&wanted, parent.as_ref())?;
                Ok(parent)
            })
            .await?;
        let (root, agent, place) = (self.root.clone(), name.clone(), parent.clone());
        let content = self
            .on_disk(move |_| {
                let subject = Subject {
                    kind: ApprovalKind::Spawn,
                    agent: &agent,
                    parent: place.as_ref().map(AgentName::as_str),
                    base: &Tree::default(),
                };
                content::of(subject, Tree::of(AGENT_TOML, text), &root)
            })
            .await?;
        let request = Request {
            kind: ApprovalKind::Spawn,
            agent: name,
            parent,
            commit: None,
            reason: command.reason,
        };
        self.write_down(who, once, request, content).await
    }

    /// Asks for a commit to be applied.
    ///
    /// # Errors
    /// With what is wrong with the request.
    pub(crate) async fn request_apply(
        self: Arc<Self>,
        caller: AgentName,
        command: RequestApplyCommit,
    ) -> Result<ApprovalRequested, WireError> {
        let (who, once) = (
            Requester::Agent(caller.clone()),
            Once::of(&command, command.key.as_ref()),
        );
        if let Some(earlier) = self.earlier(&who, &once).await? {
            return Ok(earlier);
        }
        check_note("reason", &command.reason)?;
        if command.commit_ref.len() > MAX_COMMIT_REF {
            return Err(WireError::new(
                ErrorCode::BadRequest,
                format!("`commit_ref` has more than {MAX_COMMIT_REF} bytes"),
            ));
        }
        let name = agent_name(&command.agent)?;
        let (asker, wanted) = (caller.clone(), name.clone());
        let agent = self
            .broker
            .run(move |desk| may_change(desk, &asker, &wanted))
            .await?;
        // Cancel-safe: whoever waits here holds nothing.
        let turn = self
            .importing
            .acquire()
            .await
            .map_err(|_| WireError::new(ErrorCode::ShuttingDown, "the daemon is stopping"))?;
        let (root, commit_ref) = (self.root.clone(), command.commit_ref);
        let (commit, content) = self
            .on_disk(move |repos| {
                let imported = repos
                    .import(&agent.name, &commit_ref)
                    .map_err(|error| not_imported(&error))?;
                let base = repos
                    .applied(&agent.name)
                    .map_err(|error| storage(&error))?;
                let base = base.map(|base| base.tree).unwrap_or_default();
                let subject = Subject {
                    kind: ApprovalKind::Apply,
                    agent: &agent.name,
                    parent: None,
                    base: &base,
                };
                if imported.tree == base {
                    return Err(WireError::new(
                        ErrorCode::Conflict,
                        format!("{} changes nothing: it is what is applied", imported.commit),
                    )
                    .hint("commit a change first"));
                }
                let content = content::of(subject, imported.tree, &root)?;
                same_runtime(&agent, &content)?;
                Ok((imported.commit, content))
            })
            .await?;
        drop(turn);
        let request = Request {
            kind: ApprovalKind::Apply,
            agent: name,
            parent: None,
            commit: Some(commit),
            reason: command.reason,
        };
        self.write_down(who, once, request, content).await
    }

    /// What a request under the same key was answered.
    async fn earlier(
        &self,
        who: &Requester,
        once: &Once,
    ) -> Result<Option<ApprovalRequested>, WireError> {
        let Requester::Agent(name) = who.clone() else {
            return Ok(None);
        };
        let once = once.clone();
        self.broker.run(move |desk| once.earlier(desk, &name)).await
    }

    async fn write_down(
        &self,
        who: Requester,
        once: Once,
        request: Request,
        content: Content,
    ) -> Result<ApprovalRequested, WireError> {
        let Content {
            tree, diff, hash, ..
        } = content;
        let shown = (diff, hash.clone());
        self.keep(&hash, tree, move |desk| match &who {
            Requester::Agent(name) => {
                once.run(desk, name, |desk| write_down(desk, &who, &request, shown))
            }
            Requester::Operator => write_down(desk, &who, &request, shown),
        })
        .await
    }
}

/// What is asked for, besides its content.
struct Request {
    kind: ApprovalKind,
    agent: AgentName,
    parent: Option<AgentName>,
    commit: Option<String>,
    reason: String,
}

fn write_down(
    desk: &mut Desk<'_>,
    who: &Requester,
    request: &Request,
    (diff, hash): (String, String),
) -> Result<ApprovalRequested, WireError> {
    let limits = &desk.config.limits;
    let limit = limits.approvals_per_agent;
    let patience = Duration::from_secs(limits.approval_seconds.into());
    let expires_at = desk.now().plus(patience);
    let new = NewApproval {
        kind: request.kind.as_str().to_owned(),
        agent: request.agent.to_string(),
        requested_by: who.label().to_owned(),
        commit_ref: request.commit.clone(),
        diff,
        hash,
        reason: request.reason.clone(),
        parent: request.parent.as_ref().map(AgentName::to_string),
        expires_at: Some(expires_at),
    };
    let (id, expires_at) = desk.store(|tx| {
        let waiting = tx.pending_approvals()?;
        let is_same = |one: &&hive_store::sqlite::Approval| {
            one.request.hash == new.hash && one.request.requested_by == new.requested_by
        };
        // Asked for twice is asked for once.
        if let Some(same) = waiting.iter().find(is_same) {
            return Ok((same.id, same.request.expires_at.unwrap_or(expires_at)));
        }
        let own = waiting
            .iter()
            .filter(|one| one.request.requested_by == new.requested_by);
        if own.count() >= limit as usize {
            return Err(Refusal::TooMany {
                what: "requests that wait for the operator",
                limit,
            });
        }
        Ok((tx.request_approval(&new)?, expires_at))
    })?;
    desk.agenda_changed();
    let data = json!({
        "approval_id": id,
        "kind": request.kind,
        "requested_by": new.requested_by,
        "commit": new.commit_ref,
        "hash": new.hash,
    });
    desk.report_agent(&request.agent, "approval_requested", &data);
    Ok(ApprovalRequested {
        approval_id: id,
        commit: new.commit_ref,
        hash: new.hash,
        expires_at,
    })
}

fn agent_name(text: &str) -> Result<AgentName, WireError> {
    text.parse().map_err(|error| {
        let shown = text::shorten(&text.escape_default().to_string(), 60);
        WireError::new(
            ErrorCode::BadRequest,
            format!("`{shown}` is no name for an agent: {error}"),
        )
    })
}

/// The configuration that a new agent is asked for with.
fn spawn_config(name: &AgentName, command: &RequestSpawn) -> Result<String, WireError> {
    let wishes = [
        ("model", command.model.as_deref()),
        ("engine", command.engine.as_deref()),
        ("runtime", command.runtime.map(Runtime::as_str)),
    ];
    let wishes: Vec<(&str, &str)> = wishes
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect();
    match &command.config {
        None => Ok(agent_config::first(name.as_str(), &wishes)),
        Some(_) if !wishes.is_empty() => Err(WireError::new(
            ErrorCode::BadRequest,
            "`config` is whole: `model`, `engine` and `runtime` belong into it",
        )),
        Some(config) if config.len() > MAX_AGENT_CONFIG => Err(WireError::new(
            ErrorCode::BadRequest,
            format!("`config` has more than {MAX_AGENT_CONFIG} bytes"),
        )),
        Some(config) => Ok(config.clone()),
    }
}

/// The place of a new agent. The root agent and the operator choose any; others only beneath
/// themselves.
fn may_spawn(
    desk: &Desk<'_>,
    who: &Requester,
    parent: Option<AgentName>,
) -> Result<Option<AgentName>, WireError> {
    match who {
        Requester::Operator => Ok(parent),
        Requester::Agent(name) => {
            let parent = parent.unwrap_or_else(|| name.clone());
            let is_root = name.as_str() == desk.config.hive.root_agent;
            if !is_root && parent != *name {
                return Err(WireError::new(
                    ErrorCode::Denied,
                    "a new agent that you ask for is a child of yours",
                )
                .hint("leave `parent` out, or ask the root agent"));
            }
            Ok(Some(parent))
        }
    }
}

/// The agent whose configuration is to change. The root agent changes any; others themselves and
/// their children.
fn may_change(
    desk: &Desk<'_>,
    caller: &AgentName,
    name: &AgentName,
) -> Result<AgentRecord, WireError> {
    let agent = desk.roster.find(name.as_str())?.clone();
    if caller.as_str() != desk.config.hive.root_agent && caller != name {
        desk.roster.child(caller, name)?;
    }
    if agent.runtime == Runtime::None {
        return Err(WireError::new(
            ErrorCode::Unsupported,
            format!("`{name}` runs elsewhere: it has no configuration here"),
        ));
    }
    Ok(agent)
}

/// An agent moves to another runtime by being made anew.
fn same_runtime(agent: &AgentRecord, content: &Content) -> Result<(), WireError> {
    let wanted = content.declared.config().runtime;
    if wanted == Runtime::Auto || wanted == agent.runtime {
        return Ok(());
    }
    Err(WireError::new(
        ErrorCode::BadRequest,
        format!(
            "`{}` runs in `{}`, and a commit cannot move it to `{}`",
            agent.name,
            agent.runtime.as_str(),
            wanted.as_str()
        ),
    )
    .hint("leave `runtime` as it is; the operator moves an agent with `destroy` and `spawn`"))
}

fn not_imported(error: &NotImported) -> WireError {
    let code = match error {
        NotImported::Missing(_) => ErrorCode::NotFound,
        NotImported::Refused(_) => ErrorCode::BadRequest,
        NotImported::Host(_) => ErrorCode::Storage,
    };
    WireError::new(code, error.to_string())
}
