//! What a request is about: the files that would be applied, how they differ from what is, and the
//! hash that stands for all of it.

use std::path::Path;

use hive_wire::{AgentName, ErrorCode, WireError, approval::ApprovalKind, host::Runtime};

use crate::{
    agent_config::{self, Declared},
    repos::{self, Tree},
};

/// What would be applied, and what the operator is shown of it.
#[derive(Debug, Clone)]
pub(super) struct Content {
    pub(super) tree: Tree,
    pub(super) declared: Declared,
    pub(super) diff: String,
    pub(super) hash: String,
}

/// What a request does to whom.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject<'s> {
    pub(super) kind: ApprovalKind,
    pub(super) agent: &'s AgentName,
    /// The place of a new agent.
    pub(super) parent: Option<&'s str>,
    /// What is applied now; nothing for a new agent.
    pub(super) base: &'s Tree,
}

/// Looks at files that somebody wants applied.
///
/// # Errors
/// With what is wrong with them.
pub(super) fn of(subject: Subject<'_>, tree: Tree, root: &Path) -> Result<Content, WireError> {
    let declared = agent_config::read(&tree, root).map_err(|error| {
        WireError::new(ErrorCode::BadRequest, format!("{error:#}"))
            .hint("docs/configuration.md lists every option")
    })?;
    let config = declared.config();
    if config.runtime == Runtime::None {
        return Err(WireError::new(
            ErrorCode::BadRequest,
            "an agent that runs elsewhere has no configuration here",
        )
        .hint("leave `runtime` out, or name one that runs agents"));
    }
    let mut diff = repos::diff(subject.base, &tree);
    for wish in config.wishes() {
        diff.push_str(&format!(
            "it also asks for {wish} (this approval does not grant them; `permissions` does)\n"
        ));
    }
    Ok(Content {
        hash: hash(subject, &tree),
        tree,
        declared,
        diff,
    })
}

/// The hash of a request: what it does, to whom, from what, to what.
pub(super) fn hash(subject: Subject<'_>, tree: &Tree) -> String {
    let base = subject.base.hash(&[]);
    tree.hash(&[
        subject.kind.as_str(),
        subject.agent.as_str(),
        subject.parent.unwrap_or_default(),
        &base,
    ])
}
