//! OpenAI-compatible chat completions: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp and others.
//!
//! The servers differ in what they leave out: ids and indexes of tool calls, the usage, the name of
//! the event that ends a stream. Whatever is missing is filled in here.

mod answer;
mod failure;
mod request;

use std::collections::VecDeque;

use hyper::HeaderMap;
use serde_json::Value;

use self::{answer::Reader, failure::reset_after};
use crate::{
    ApiError, Dialect, ErrorKind, HttpCall, RateLimit, Request, Secret, StreamEvent,
    anthropic::{retry_after, should_retry},
    client::Decoder,
};

/// The dialect.
#[derive(Debug, Clone)]
pub struct OpenAi {
    /// The key; local servers need none.
    pub key: Option<Secret>,
    /// Further header fields from the configuration.
    pub headers: Vec<(String, Secret)>,
    /// Whether it is OpenAI itself, which names the answer's limit in its own way.
    pub is_openai: bool,
}

impl Dialect for OpenAi {
    fn call(&self, request: &Request) -> HttpCall {
        let headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "text/event-stream".to_owned()),
            (
                "user-agent".to_owned(),
                concat!("hive-engine/", env!("CARGO_PKG_VERSION")).to_owned(),
            ),
        ];
        let authorization = self.key.as_ref().map(|key| {
            let value = Secret::new(&format!("Bearer {}", key.expose()));
            ("authorization".to_owned(), value)
        });
        HttpCall {
            path: "/chat/completions",
            headers,
            secrets: authorization
                .into_iter()
                .chain(self.headers.iter().cloned())
                .collect(),
            body: request::body(request, self.is_openai)
                .to_string()
                .into_bytes(),
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Reader::default())
    }

    fn whole(&self, body: &[u8]) -> Result<Vec<StreamEvent>, ApiError> {
        let mut chunk: Value = serde_json::from_slice(body).map_err(malformed)?;
        // A whole answer is one chunk whose delta is called message.
        let choice = chunk
            .pointer_mut("/choices/0")
            .and_then(Value::as_object_mut);
        if let Some(choice) = choice
            && let Some(message) = choice.remove("message")
        {
            choice.insert("delta".to_owned(), message);
        }
        let mut reader = Reader::default();
        let mut events = VecDeque::new();
        reader.chunk(&chunk, &mut events)?;
        reader.finish(&mut events);
        if events.back() != Some(&StreamEvent::MessageStop) {
            let text = "API returned an empty or malformed response (no finished choice)";
            return Err(ApiError::local(ErrorKind::Malformed, text));
        }
        Ok(events.into())
    }

    fn failure(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> ApiError {
        let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
        let fault = if parsed["error"].is_null() {
            &parsed
        } else {
            &parsed["error"]
        };
        let message = fault
            .as_str()
            .or_else(|| fault["message"].as_str())
            .map_or_else(
                || {
                    String::from_utf8_lossy(body)
                        .trim()
                        .chars()
                        .take(500)
                        .collect()
                },
                str::to_owned,
            );
        let word = |name: &str| fault[name].as_str().unwrap_or_default().to_owned();
        ApiError {
            kind: failure::kind_of(status, &word("code"), &word("type"), &message),
            status: Some(status),
            api_type: Some(word("type")).filter(|word| !word.is_empty()),
            message,
            retry_after: retry_after(headers).or_else(|| reset_after(headers)),
            should_retry: should_retry(headers),
            limit: None,
            request_id: None,
        }
    }

    fn rate_limit(&self, _: &HeaderMap) -> Option<RateLimit> {
        None
    }
}

fn malformed(error: serde_json::Error) -> ApiError {
    ApiError::local(
        ErrorKind::Malformed,
        format!("API returned an empty or malformed response ({error})"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn dialect() -> OpenAi {
        OpenAi {
            key: None,
            headers: vec![],
            is_openai: true,
        }
    }

    #[test]
    fn an_answer_in_one_piece_is_read_and_one_that_is_none_is_refused() {
        use ErrorKind::*;
        let good = json!({"id":"c","model":"m","usage":{"completion_tokens":2},
            "choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]});
        let mut assembler = crate::Assembler::default();
        for event in dialect().whole(good.to_string().as_bytes()).unwrap() {
            assembler.push(&event);
        }
        assert!(assembler.finished);
        assert_eq!(assembler.done[0].block, crate::Block::text("hi"));
        for (body, kind) in [
            ("{}", Malformed),
            ("[]", Malformed),
            ("null", Malformed),
            ("\"hi\"", Malformed),
            ("{\"choices\":[]}", Malformed),
            ("{\"choices\":{}}", Malformed),
            ("{\"choices\":[7]}", Malformed),
            ("", Malformed),
            (
                r#"{"error":{"code":429,"message":"slow down"}}"#,
                RateLimited,
            ),
            (r#"{"error":"model is loading"}"#, Server),
        ] {
            let error = dialect().whole(body.as_bytes()).unwrap_err();
            assert_eq!(error.kind, kind, "{body}");
        }
    }

    #[test]
    fn failures_are_told_apart() {
        use ErrorKind::*;
        let dialect = dialect();
        for (status, body, kind) in [
            (
                400,
                json!({"error":{"message":"x","code":"context_length_exceeded"}}),
                PromptTooLong,
            ),
            (
                400,
                json!({"object":"error","message":"This model's maximum context length is 4096"}),
                PromptTooLong,
            ),
            (
                400,
                json!({"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}),
                PromptTooLong,
            ),
            (
                401,
                json!({"error":{"message":"Incorrect API key"}}),
                Unauthorized,
            ),
            (404, json!({"error":"model 'x' not found"}), ModelNotFound),
            (
                429,
                json!({"error":{"message":"x","code":"insufficient_quota"}}),
                Billing,
            ),
            (429, json!({"error":{"message":"x"}}), RateLimited),
            (
                503,
                json!({"error":{"message":"loading model"}}),
                Overloaded,
            ),
        ] {
            let error = dialect.failure(status, &HeaderMap::new(), body.to_string().as_bytes());
            assert_eq!(error.kind, kind, "{body}");
        }
    }
}
