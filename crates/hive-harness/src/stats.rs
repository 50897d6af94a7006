//! The row of statistics of one engine run (T12), made from what the engine said.

use hive_wire::{
    MessageId, TurnId,
    report::{MAX_TURN_MESSAGES, MAX_TURN_TOOLS, PostTurnCounts, ToolCount, TurnKind},
};

use crate::engine::{Ended, Purpose};

/// What a run was for, as the statistics name it.
pub fn kind_of(purpose: Purpose) -> TurnKind {
    match purpose {
        Purpose::Mail => TurnKind::Mail,
        Purpose::Continue => TurnKind::Continue,
        Purpose::Checkpoint => TurnKind::Checkpoint,
        Purpose::Compact => TurnKind::Compact,
    }
}

/// What the harness knows of a run besides what the engine said.
#[derive(Debug, Clone, Copy)]
pub struct RunFacts<'a> {
    /// The turn it belongs to.
    pub turn: &'a TurnId,
    /// The messages of that turn.
    pub messages: &'a [MessageId],
    /// The model it was started with.
    pub model: &'a str,
    /// How large that model's context is.
    pub window: u64,
    /// How it ended, in a word.
    pub outcome: &'a str,
    /// What happened, when it did not end well.
    pub note: Option<&'a str>,
}

/// The row.
pub fn row(run: &RunFacts<'_>, ended: &Ended) -> PostTurnCounts {
    let facts = &ended.facts;
    let millis = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let timeline = &ended.timeline;
    let tools = facts.tools_used.iter().take(MAX_TURN_TOOLS);
    PostTurnCounts {
        turn: run.turn.clone(),
        kind: kind_of(ended.purpose),
        started_at: timeline.started_at,
        duration_ms: millis(timeline.ended),
        engine_ms: millis(timeline.ended.saturating_sub(timeline.spawned)),
        model: run.model.to_owned(),
        input_tokens: facts.tokens.input,
        output_tokens: facts.tokens.output,
        cache_read_tokens: facts.tokens.cache_read,
        cache_creation_tokens: facts.tokens.cache_creation,
        cost_micro_usd: micro(facts.cost_usd.unwrap_or(0.0)),
        context_tokens: facts.context_tokens.unwrap_or(0),
        window: run.window,
        outcome: run.outcome.to_owned(),
        note: run.note.map(|note| hive_wire::text::shorten(note, 500)),
        session_id: facts.session_id.clone(),
        messages: run
            .messages
            .iter()
            .take(MAX_TURN_MESSAGES)
            .copied()
            .collect(),
        tools: tools
            .map(|(name, count)| ToolCount {
                name: name.clone(),
                count: *count,
            })
            .collect(),
    }
}

/// Dollars as millionths, and nothing that is no amount.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked before"
)]
fn micro(usd: f64) -> u64 {
    let micro = (usd * 1e6).round();
    if micro.is_finite() && (0.0..1e15).contains(&micro) {
        micro as u64
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t12_costs_are_whole_millionths() {
        let cases = [
            (0.0, 0),
            (0.000_001_4, 1),
            (1.25, 1_250_000),
            (-1.0, 0),
            (f64::NAN, 0),
            (f64::INFINITY, 0),
            (1e300, 0),
        ];
        for (usd, wanted) in cases {
            assert_eq!(micro(usd), wanted, "{usd}");
        }
    }
}
