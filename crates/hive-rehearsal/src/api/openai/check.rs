//! What the real chat completions refuse, as far as a client could get it wrong.

use std::collections::HashSet;

use hyper::HeaderMap;
use serde_json::Value;

use crate::{api::error::ApiError, scenario::fault::ErrorKind};

pub(crate) fn credentials(headers: &HeaderMap) -> Result<(), ApiError> {
    if headers.contains_key("authorization") {
        return Ok(());
    }
    let message = "You didn't provide an API key. You need to provide your API key in an \
                   Authorization header using Bearer auth.";
    let message = Some(message.to_owned());
    Err(ApiError::plain(ErrorKind::Unauthorized, message))
}

pub(crate) fn request(body: &Value) -> Result<(), ApiError> {
    if !body["model"].is_string() {
        return Err(ApiError::bad_request("you must provide a model parameter"));
    }
    let Some(messages) = body["messages"].as_array().filter(|all| !all.is_empty()) else {
        let text = "Missing required parameter: 'messages'.";
        return Err(ApiError::bad_request(text));
    };
    let mut open = HashSet::new();
    for (at, message) in messages.iter().enumerate() {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                if !open.remove(id) {
                    return Err(ApiError::bad_request(format!(
                        "Invalid parameter: messages.[{at}] with role 'tool' must be a response \
                         to a preceding message with 'tool_calls'."
                    )));
                }
            }
            Some("system" | "developer" | "user" | "assistant") => {
                all_answered(&open)?;
                let calls = message["tool_calls"].as_array().into_iter().flatten();
                open.extend(calls.filter_map(|call| call["id"].as_str()));
            }
            _ => {
                let text = format!("Invalid value for messages[{at}].role.");
                return Err(ApiError::bad_request(text));
            }
        }
    }
    all_answered(&open)
}

fn all_answered(open: &HashSet<&str>) -> Result<(), ApiError> {
    if open.is_empty() {
        return Ok(());
    }
    let mut ids: Vec<&str> = open.iter().copied().collect();
    ids.sort_unstable();
    Err(ApiError::bad_request(format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        ids.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_real_api_refuses_is_refused() {
        let user = json!({"role":"user","content":"hi"});
        let call = json!({"role":"assistant","tool_calls":[{"id":"c1"},{"id":"c2"}]});
        let result = |id: &str| json!({"role":"tool","tool_call_id":id,"content":"x"});
        let table = [
            (json!([user]), true),
            (json!([user, call, result("c1"), result("c2")]), true),
            (json!([user, call, result("c1")]), false),
            (json!([user, call, result("c1"), user]), false),
            (json!([user, result("c1")]), false),
            (json!([]), false),
            (json!([{"role":"robot"}]), false),
        ];
        for (messages, is_fine) in table {
            let body = json!({"model":"m","messages":messages});
            assert_eq!(request(&body).is_ok(), is_fine, "{messages}");
        }
        assert!(request(&json!({"messages":[user]})).is_err());
    }
}
