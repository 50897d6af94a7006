//! The words for states, in JSON and in tables. A new state of the wire gets its word here.

use hive_wire::{agent::MessageState, host::AgentState};

/// The word for where an agent stands.
pub(in crate::cli) fn agent_state(state: AgentState) -> &'static str {
    match state {
        AgentState::Idle => "idle",
        AgentState::Thinking => "thinking",
        AgentState::Compacting => "compacting",
        AgentState::RateLimited => "rate_limited",
        AgentState::NeedsLogin => "needs_login",
        AgentState::Starting => "starting",
        AgentState::Stopped => "stopped",
        AgentState::Paused => "paused",
        AgentState::Failed => "failed",
        AgentState::External => "external",
    }
}

/// The word for where a message stands.
pub(in crate::cli) fn message_state(state: MessageState) -> &'static str {
    match state {
        MessageState::Stored => "stored",
        MessageState::Leased => "leased",
        MessageState::Acked => "acked",
        MessageState::Dead => "dead",
        MessageState::Discarded => "discarded",
    }
}
