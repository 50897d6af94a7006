//! Cutting what agents report down to size before it is kept or shown.

use hive_wire::{
    ErrorCode, Timestamp, WireError,
    report::{MAX_STATUS, MAX_TURN_MESSAGES, MAX_TURN_TOOLS, PostState, PostTurnCounts},
    text,
};

/// The longest name of a model, an engine, a tool or a session.
const MAX_WORD: usize = 100;
/// The longest note of a turn.
const MAX_NOTE: usize = 2_000;
/// The largest count: sums of many of them still fit.
const MAX_COUNT: u64 = 1_000_000_000_000;

/// A status line, or why it is none.
pub(crate) fn status_line(line: &str) -> Result<&str, WireError> {
    let line = line.trim();
    let refuse = |why: String| {
        Err(WireError::new(ErrorCode::BadRequest, why)
            .hint("a status is one short line about what you do right now"))
    };
    if line.chars().any(char::is_control) {
        return refuse("`text` has control characters; it is one plain line".into());
    }
    let length = line.chars().count();
    if length > MAX_STATUS {
        return refuse(format!(
            "`text` has {length} characters, and {MAX_STATUS} is the most"
        ));
    }
    Ok(line)
}

/// The counts of a turn, cut to size.
pub(crate) fn turn_counts(mut counts: PostTurnCounts) -> PostTurnCounts {
    for number in [
        &mut counts.duration_ms,
        &mut counts.engine_ms,
        &mut counts.input_tokens,
        &mut counts.output_tokens,
        &mut counts.cache_read_tokens,
        &mut counts.cache_creation_tokens,
        &mut counts.cost_micro_usd,
        &mut counts.context_tokens,
        &mut counts.window,
    ] {
        *number = (*number).min(MAX_COUNT);
    }
    for word in [&mut counts.model, &mut counts.outcome] {
        *word = shorten(word, MAX_WORD);
    }
    counts.note = counts.note.map(|note| shorten(&note, MAX_NOTE));
    counts.session_id = counts.session_id.map(|id| shorten(&id, MAX_WORD));
    counts.messages.truncate(MAX_TURN_MESSAGES);
    counts.tools.truncate(MAX_TURN_TOOLS);
    for tool in &mut counts.tools {
        tool.name = shorten(&tool.name, MAX_WORD);
    }
    counts
}

/// A state, cut to size; it began at the latest now.
pub(super) fn state(mut state: PostState, now: Timestamp) -> PostState {
    state.since = state.since.min(now);
    state.context_tokens = state.context_tokens.min(MAX_COUNT);
    state.window = state.window.min(MAX_COUNT);
    state.model = shorten(&state.model, MAX_WORD);
    for word in [
        &mut state.current_tool,
        &mut state.engine,
        &mut state.engine_version,
    ] {
        *word = word.take().map(|word| shorten(&word, MAX_WORD));
    }
    state.credential = None;
    state
}

fn shorten(text: &str, max: usize) -> String {
    text::shorten(text, max)
}

#[cfg(test)]
mod tests {
    use hive_wire::report::{ToolCount, TurnKind};

    use super::*;

    #[test]
    fn m10_a_status_is_one_line() {
        for (text, expected) in [
            ("reading", Some("reading")),
            ("  spaced  ", Some("spaced")),
            ("", Some("")),
            ("two\nlines", None),
            ("esc\x1b[2J", None),
        ] {
            assert_eq!(status_line(text).ok(), expected, "{text:?}");
        }
        assert!(status_line(&"ä".repeat(MAX_STATUS)).is_ok());
        assert!(status_line(&"ä".repeat(MAX_STATUS + 1)).is_err());
    }

    #[test]
    fn t12_counts_are_cut_to_size() {
        let long = "x".repeat(1_000_000);
        let counts = turn_counts(PostTurnCounts {
            turn: "t".parse().unwrap(),
            kind: TurnKind::Mail,
            started_at: Timestamp::from_millis(i64::MAX),
            duration_ms: u64::MAX,
            engine_ms: u64::MAX,
            model: long.clone(),
            input_tokens: u64::MAX,
            output_tokens: 7,
            cache_read_tokens: u64::MAX,
            cache_creation_tokens: u64::MAX,
            cost_micro_usd: u64::MAX,
            context_tokens: u64::MAX,
            window: u64::MAX,
            outcome: long.clone(),
            note: Some(long.clone()),
            session_id: Some(long.clone()),
            messages: vec![hive_wire::MessageId(1); 10_000],
            tools: vec![
                ToolCount {
                    name: long,
                    count: 1
                };
                1_000
            ],
        });
        assert_eq!((counts.input_tokens, counts.output_tokens), (MAX_COUNT, 7));
        let encoded = serde_json::to_string(&counts).unwrap();
        assert!(encoded.len() < 16 * 1024, "{} bytes", encoded.len());
    }
}
