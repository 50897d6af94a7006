//! Where an agent stands, derived from facts when somebody asks.

use hive_store::sqlite::StatusLine;
use hive_wire::{
    Timestamp,
    host::{AgentState, Runtime},
    report::{HarnessStatus, PostState, TurnState},
};

/// What the host knows of an agent's harness at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// Whether it is connected.
    pub(crate) connected: bool,
    /// What it said last, also when it is gone.
    pub(crate) report: Option<PostState>,
    /// What the agent says of itself.
    pub(crate) line: StatusLine,
    /// The credential it is on.
    pub(crate) credential: String,
    /// Until when it must not begin a turn.
    pub(crate) held_until: Option<Timestamp>,
    /// When the limit of its credential ends.
    pub(crate) resets_at: Option<Timestamp>,
    /// Why it begins no turn, when it is paused.
    pub(crate) paused: Option<String>,
    /// Requests that it has not answered.
    pub(crate) pending: u32,
}

/// Where an agent stands whose harness is as `facts` say. Of one that has no harness connected
/// only its runtime can say more: here it is stopped, or runs elsewhere.
pub(crate) fn state_of(runtime: Runtime, facts: &Facts) -> AgentState {
    if !facts.connected {
        return match runtime {
            Runtime::None => AgentState::External,
            _ => AgentState::Stopped,
        };
    }
    let Some(report) = &facts.report else {
        return AgentState::Starting;
    };
    if facts.paused.is_some() && report.turn_state == TurnState::Idle {
        return AgentState::Paused;
    }
    match (report.status, report.turn_state) {
        (HarnessStatus::NeedsLoginIdle, _) => AgentState::NeedsLogin,
        (HarnessStatus::RateLimited, _) => AgentState::RateLimited,
        (_, TurnState::Thinking) => AgentState::Thinking,
        (_, TurnState::Compacting) => AgentState::Compacting,
        (_, TurnState::Idle) if facts.held_until.is_some() => AgentState::RateLimited,
        (_, TurnState::Idle) => AgentState::Idle,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t28_the_state_follows_from_the_facts() {
        use HarnessStatus::{NeedsLoginIdle, Online, RateLimited, Stopping, Unavailable};
        use TurnState::{Compacting, Idle, Thinking};
        let facts = |status, turn_state, held: bool| Facts {
            connected: true,
            report: Some(PostState {
                turn_state,
                since: Timestamp::from_millis(0),
                status,
                model: String::new(),
                context_tokens: 0,
                window: 0,
                current_tool: None,
                engine: None,
                engine_version: None,
                credential: None,
                resets_at: None,
                rehearsed: false,
            }),
            held_until: held.then(|| Timestamp::from_millis(1)),
            ..Facts::default()
        };
        for (status, turn_state, held, expected) in [
            (Online, Idle, false, AgentState::Idle),
            (Online, Thinking, false, AgentState::Thinking),
            (Online, Compacting, false, AgentState::Compacting),
            (Online, Idle, true, AgentState::RateLimited),
            (Online, Thinking, true, AgentState::Thinking),
            (RateLimited, Idle, false, AgentState::RateLimited),
            (RateLimited, Thinking, true, AgentState::RateLimited),
            (NeedsLoginIdle, Idle, true, AgentState::NeedsLogin),
            (Unavailable, Idle, false, AgentState::Idle),
            (Stopping, Thinking, false, AgentState::Thinking),
        ] {
            let facts = facts(status, turn_state, held);
            let state = state_of(Runtime::Process, &facts);
            assert_eq!(state, expected, "{status:?} {turn_state:?} {held}");
            let gone = Facts {
                connected: false,
                ..facts
            };
            assert_eq!(state_of(Runtime::Process, &gone), AgentState::Stopped);
            assert_eq!(state_of(Runtime::None, &gone), AgentState::External);
        }
        let silent = Facts {
            connected: true,
            ..Facts::default()
        };
        assert_eq!(state_of(Runtime::Process, &silent), AgentState::Starting);
    }
}
