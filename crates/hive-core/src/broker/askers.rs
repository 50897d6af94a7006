//! Askers that wait for the answer on the connection they asked on.
//!
//! They live in memory alone: whoever waited when the daemon ended is gone with its connection, and
//! its question is an ordinary one from then on.

use std::{collections::BTreeMap, sync::Arc};

use hive_wire::{AgentName, QuestionId, WireError, agent::Asked};

use super::lobby::Presence;

/// Somebody who waits for an answer.
pub(super) struct Asker {
    pub(super) agent: AgentName,
    pub(super) presence: Arc<dyn Presence>,
    pub(super) done: Box<dyn FnOnce(Result<Asked, WireError>) + Send>,
}

/// Everybody who waits for an answer.
#[derive(Default)]
pub(super) struct Askers {
    by_question: BTreeMap<QuestionId, Asker>,
    /// Questions of the group that is open.
    fresh: Vec<QuestionId>,
}

impl Askers {
    /// Lets one wait for the answer to a question of the open group.
    pub(super) fn park(&mut self, question: QuestionId, asker: Asker) {
        self.fresh.push(question);
        self.by_question.insert(question, asker);
    }

    /// Takes out the one who waits for this answer.
    pub(super) fn take(&mut self, question: QuestionId) -> Option<Asker> {
        self.by_question.remove(&question)
    }

    /// The questions that a peer, or an agent through whatever peer, waits on.
    pub(super) fn questions_of(
        &self,
        agent: &AgentName,
        peer: Option<&Arc<dyn Presence>>,
    ) -> Vec<QuestionId> {
        let is_it = |asker: &Asker| {
            let is_peer = |peer| std::ptr::addr_eq(Arc::as_ptr(&asker.presence), Arc::as_ptr(peer));
            asker.agent == *agent && peer.is_none_or(is_peer)
        };
        let found = self.by_question.iter().filter(|(_, asker)| is_it(asker));
        found.map(|(question, _)| *question).collect()
    }

    /// The group is durable.
    pub(super) fn keep(&mut self) {
        self.fresh.clear();
    }

    /// The group was undone: takes out who asked in it.
    pub(super) fn undo(&mut self) -> Vec<Asker> {
        let fresh = std::mem::take(&mut self.fresh);
        fresh.into_iter().filter_map(|id| self.take(id)).collect()
    }

    /// Takes everybody out.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Asker> {
        self.fresh.clear();
        std::mem::take(&mut self.by_question).into_values()
    }
}
