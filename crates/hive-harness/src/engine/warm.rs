//! The language of a warm engine: `--input-format stream-json`.
//!
//! Every prompt carries the UUID of its attempt, and a result is matched by the UUIDs that it names,
//! never by counting: the engine merges prompts that come close together, ignores one whose UUID it
//! has seen, and prints results of its own accord.

use serde_json::json;

use super::{AttemptId, stream::ResultEvent};

/// What a result is the answer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// This attempt.
    This,
    /// Something else.
    Another,
    /// It does not say.
    Unknown,
}

/// What a result answers.
pub(super) fn answers(result: &ResultEvent, attempt: &AttemptId) -> Answer {
    match result.user_message_uuids.as_deref() {
        Some(uuids) if uuids.iter().any(|uuid| uuid == attempt.as_str()) => Answer::This,
        Some([]) | None => Answer::Unknown,
        Some(_) => Answer::Another,
    }
}

/// A prompt as a line for the engine's stdin.
pub(super) fn prompt_line(attempt: &AttemptId, prompt: &str) -> Vec<u8> {
    line(&json!({
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": prompt}]},
        "uuid": attempt.as_str(),
    }))
}

/// Asks the engine to break off what it does.
pub(super) fn interrupt_line() -> Vec<u8> {
    line(&json!({
        "type": "control_request",
        "request_id": AttemptId::fresh().as_str(),
        "request": {"subtype": "interrupt"},
    }))
}

fn line(value: &serde_json::Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}
