//! What the real Messages API refuses, as far as a client could get it wrong.

use std::collections::HashSet;

use hyper::HeaderMap;
use serde_json::Value;

use crate::{api::error::ApiError, scenario::fault::ErrorKind};

pub(crate) fn credentials(headers: &HeaderMap) -> Result<(), ApiError> {
    if !headers.contains_key("x-api-key") && !headers.contains_key("authorization") {
        let message = "x-api-key header is required".to_owned();
        return Err(ApiError::plain(ErrorKind::Unauthorized, Some(message)));
    }
    if !headers.contains_key("anthropic-version") {
        return Err(ApiError::bad_request(
            "anthropic-version: header is required",
        ));
    }
    Ok(())
}

pub(crate) fn request(body: &Value) -> Result<(), ApiError> {
    for field in ["model", "messages"] {
        if body[field].is_null() {
            return Err(ApiError::bad_request(format!("{field}: Field required")));
        }
    }
    let Some(messages) = body["messages"].as_array() else {
        return Err(ApiError::bad_request(
            "messages: Input should be a valid list",
        ));
    };
    if messages.is_empty() {
        return Err(ApiError::bad_request(
            "messages: at least one message is required",
        ));
    }
    for (at, message) in messages.iter().enumerate() {
        check_role(at, message)?;
        check_texts(at, message)?;
    }
    // System items may stand between a call and its result.
    let spoken: Vec<(usize, &Value)> = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| message["role"] != "system")
        .collect();
    for (place, (at, message)) in spoken.iter().enumerate() {
        let neighbour = |place: usize| spoken.get(place).map(|(_, message)| *message);
        check_results(*at, message, place.checked_sub(1).and_then(neighbour))?;
        check_calls(*at, message, neighbour(place + 1))?;
    }
    Ok(())
}

/// `count_tokens` takes the same messages and needs no `max_tokens`; the answer does.
pub(crate) fn max_tokens(body: &Value) -> Result<(), ApiError> {
    match body["max_tokens"].as_u64() {
        None => Err(ApiError::bad_request("max_tokens: Field required")),
        Some(0) => Err(ApiError::bad_request(
            "max_tokens: must be greater than or equal to 1",
        )),
        Some(_) => Ok(()),
    }
}

fn check_role(at: usize, message: &Value) -> Result<(), ApiError> {
    match message["role"].as_str() {
        Some("user" | "assistant" | "system") => Ok(()),
        _ => Err(ApiError::bad_request(format!(
            "messages.{at}.role: Input should be 'user' or 'assistant'"
        ))),
    }
}

fn check_texts(at: usize, message: &Value) -> Result<(), ApiError> {
    let has_empty = match &message["content"] {
        Value::String(text) => text.is_empty(),
        Value::Array(blocks) => blocks
            .iter()
            .any(|block| block["type"] == "text" && block["text"] == ""),
        _ => {
            let text = format!("messages.{at}.content: Field required");
            return Err(ApiError::bad_request(text));
        }
    };
    if has_empty {
        let text = "messages: text content blocks must be non-empty";
        return Err(ApiError::bad_request(text));
    }
    Ok(())
}

/// Every result answers a call of the message before it.
fn check_results(at: usize, message: &Value, before: Option<&Value>) -> Result<(), ApiError> {
    let calls = before.map(|before| ids(before, "tool_use", "id"));
    for id in ids(message, "tool_result", "tool_use_id") {
        if !calls.as_ref().is_some_and(|calls| calls.contains(id)) {
            return Err(ApiError::bad_request(format!(
                "messages.{at}.content: unexpected `tool_use_id` found in `tool_result` blocks: \
                 {id}. Each `tool_result` block must have a corresponding `tool_use` block in the \
                 previous message."
            )));
        }
    }
    Ok(())
}

/// Every call is answered in the message after it.
fn check_calls(at: usize, message: &Value, after: Option<&Value>) -> Result<(), ApiError> {
    let results = after.map(|after| ids(after, "tool_result", "tool_use_id"));
    for id in ids(message, "tool_use", "id") {
        if !results.as_ref().is_some_and(|results| results.contains(id)) {
            return Err(ApiError::bad_request(format!(
                "messages.{at}: `tool_use` ids were found without `tool_result` blocks immediately \
                 after: {id}. Each `tool_use` block must have a corresponding `tool_result` block \
                 in the next message."
            )));
        }
    }
    Ok(())
}

fn ids<'a>(message: &'a Value, kind: &str, key: &str) -> HashSet<&'a str> {
    let blocks = message["content"].as_array().into_iter().flatten();
    blocks
        .filter(|block| block["type"] == kind)
        .filter_map(|block| block[key].as_str())
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_real_api_refuses_is_refused() {
        let call = json!({"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"x","input":{}}]});
        let result = json!({"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"y"}]});
        let user = json!({"role":"user","content":"hi"});
        let note = json!({"role":"system","content":[]});
        let table = [
            (json!([user]), None),
            (json!([user, call, result]), None),
            (json!([user, call, note, result, note]), None),
            (json!([]), Some("at least one message")),
            (json!("hi"), Some("valid list")),
            (
                json!([user, call]),
                Some("`tool_use` ids were found without"),
            ),
            (
                json!([user, call, user]),
                Some("`tool_use` ids were found without"),
            ),
            (json!([user, result]), Some("unexpected `tool_use_id`")),
            (json!([result]), Some("unexpected `tool_use_id`")),
            (json!([{"role":"user","content":""}]), Some("non-empty")),
            (
                json!([{"role":"user","content":[{"type":"text","text":""}]}]),
                Some("non-empty"),
            ),
            (json!([{"role":"user"}]), Some("messages.0.content")),
            (
                json!([{"role":"tool","content":"x"}]),
                Some("messages.0.role"),
            ),
        ];
        for (messages, refusal) in table {
            let error = request(&json!({"model":"m","messages":messages})).err();
            let message = error.and_then(|error| error.message);
            match refusal {
                None => assert_eq!(message, None, "{messages}"),
                Some(text) => {
                    assert!(
                        message.as_ref().is_some_and(|m| m.contains(text)),
                        "{message:?}"
                    );
                }
            }
        }
        assert!(request(&json!({"messages":[user]})).is_err());
        assert!(max_tokens(&json!({})).is_err() && max_tokens(&json!({"max_tokens":1})).is_ok());
    }
}
