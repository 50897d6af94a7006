//! The Anthropic Messages API.

use std::{collections::VecDeque, time::Duration};

use hyper::HeaderMap;
use serde_json::{Value, json};

use crate::{
    ApiError, Dialect, ErrorKind, HttpCall, RateLimit, Request, Role, Secret, SseEvent,
    StreamEvent, Thinking, Window, client::Decoder,
};

/// The version of the API that the types here describe.
const VERSION: &str = "2023-06-01";
/// How many of the last user messages end a cached prefix. With the tools and the system prompt
/// that makes four, the most the API takes.
const CACHED_MESSAGES: usize = 2;

/// How the key is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// `x-api-key`.
    ApiKey(Secret),
    /// `Authorization: Bearer`, for gateways.
    Bearer(Secret),
    /// `Authorization: Bearer` with a subscription's token.
    OAuth(Secret),
}

/// What a request with a subscription's token must say in `anthropic-beta`.
pub const OAUTH_BETA: &str = "oauth-2025-04-20";

/// The dialect.
#[derive(Debug, Clone)]
pub struct Anthropic {
    /// The key; without one requests go out bare, which a gateway on the host may want.
    pub credential: Option<Credential>,
    /// Further header fields from the configuration.
    pub headers: Vec<(String, Secret)>,
}

impl Dialect for Anthropic {
    fn call(&self, request: &Request) -> HttpCall {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "text/event-stream".to_owned()),
            ("anthropic-version".to_owned(), VERSION.to_owned()),
            (
                "user-agent".to_owned(),
                concat!("hive-engine/", env!("CARGO_PKG_VERSION")).to_owned(),
            ),
        ];
        let bearer = |secret: &Secret| {
            let value = Secret::new(&format!("Bearer {}", secret.expose()));
            ("authorization".to_owned(), value)
        };
        let authorization = match &self.credential {
            None => None,
            Some(Credential::ApiKey(secret)) => Some(("x-api-key".to_owned(), secret.clone())),
            Some(Credential::Bearer(secret)) => Some(bearer(secret)),
            Some(Credential::OAuth(secret)) => {
                headers.push(("anthropic-beta".into(), OAUTH_BETA.into()));
                Some(bearer(secret))
            }
        };
        let own = self.headers.iter().cloned();
        HttpCall {
            path: "/v1/messages",
            headers,
            secrets: authorization.into_iter().chain(own).collect(),
            body: body(request).to_string().into_bytes(),
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Reader)
    }

    fn whole(&self, body: &[u8]) -> Result<Vec<StreamEvent>, ApiError> {
        let message: Value = serde_json::from_slice(body).map_err(malformed)?;
        if message["type"] == "error" || !message["error"].is_null() {
            return Err(fault(&message["error"]));
        }
        if !message["content"].is_array() {
            let text = "API returned an empty or malformed response (a message without content)";
            return Err(ApiError::local(ErrorKind::Malformed, text));
        }
        let mut events = vec![event(json!({"type": "message_start", "message": message}))?];
        let blocks = message["content"].as_array().cloned().unwrap_or_default();
        for (index, block) in blocks.into_iter().enumerate() {
            events.push(event(
                json!({"type": "content_block_start", "index": index, "content_block": block}),
            )?);
            events.push(event(
                json!({"type": "content_block_stop", "index": index}),
            )?);
        }
        events.push(event(json!({
            "type": "message_delta",
            "delta": {"stop_reason": message["stop_reason"]},
            "usage": message["usage"],
        }))?);
        events.push(StreamEvent::MessageStop);
        Ok(events)
    }

    fn failure(&self, status: u16, headers: &HeaderMap, body: &[u8]) -> ApiError {
        let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
        let message = parsed["error"]["message"].as_str().map_or_else(
            || {
                let text = String::from_utf8_lossy(body);
                text.trim().chars().take(500).collect()
            },
            str::to_owned,
        );
        let limit = self.rate_limit(headers);
        let kind = kind_of(status, &message, limit.as_ref());
        ApiError {
            kind,
            status: Some(status),
            api_type: parsed["error"]["type"].as_str().map(str::to_owned),
            message,
            retry_after: retry_after(headers),
            should_retry: should_retry(headers),
            limit: limit.map(Box::new),
            request_id: None,
        }
    }

    fn rate_limit(&self, headers: &HeaderMap) -> Option<RateLimit> {
        let get = |name: &str| {
            let name = format!("anthropic-ratelimit-unified-{name}");
            headers.get(name)?.to_str().ok().map(str::to_owned)
        };
        let status = get("status")?;
        let windows = [("5h", "five_hour"), ("7d", "seven_day")]
            .into_iter()
            .filter_map(|(short, long)| {
                let window = Window {
                    name: long.to_owned(),
                    utilization: get(&format!("{short}-utilization")).and_then(|s| s.parse().ok()),
                    resets_at: get(&format!("{short}-reset")).and_then(|s| s.parse().ok()),
                    status: get(&format!("{short}-status")),
                };
                (window.utilization.is_some() || window.resets_at.is_some()).then_some(window)
            })
            .collect::<Vec<_>>();
        let limit_type = get("representative-claim");
        Some(RateLimit {
            status,
            resets_at: get("reset").and_then(|reset| reset.parse().ok()),
            utilization: windows
                .iter()
                .find(|window| Some(&window.name) == limit_type.as_ref())
                .and_then(|window| window.utilization),
            limit_type,
            overage_status: get("overage-status"),
            overage_disabled_reason: get("overage-disabled-reason"),
            windows,
        })
    }
}

fn kind_of(status: u16, message: &str, limit: Option<&RateLimit>) -> ErrorKind {
    let says = |text: &str| message.to_lowercase().contains(text);
    match status {
        400 if says("prompt is too long") || says("exceed context limit") => {
            ErrorKind::PromptTooLong
        }
        400 if says("credit balance is too low") => ErrorKind::Billing,
        401 => ErrorKind::Unauthorized,
        402 => ErrorKind::Billing,
        403 => ErrorKind::Forbidden,
        404 => ErrorKind::ModelNotFound,
        408 => ErrorKind::TimedOut,
        413 => ErrorKind::TooLarge,
        429 if limit.is_some_and(RateLimit::is_rejected) => ErrorKind::LimitReached,
        429 => ErrorKind::RateLimited,
        529 => ErrorKind::Overloaded,
        500.. => ErrorKind::Server,
        _ => ErrorKind::BadRequest,
    }
}

/// How long an answer asks to wait: `retry-after`, in seconds or as a date. A wait without end is
/// the longest there is, and not none.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| Some(headers.get(name)?.to_str().ok()?.trim());
    let number = |name| text(name)?.parse::<f64>().ok().filter(|n| *n >= 0.0);
    let in_seconds = || number("retry-after");
    if let Some(seconds) = number("retry-after-ms").map_or_else(in_seconds, |ms| Some(ms / 1e3)) {
        return Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX));
    }
    let at = jiff::fmt::rfc2822::parse(text("retry-after")?).ok()?;
    let at = at.timestamp();
    let wait = at.as_second() - jiff::Timestamp::now().as_second();
    u64::try_from(wait).ok().map(Duration::from_secs)
}

/// What an answer says in `x-should-retry`.
pub fn should_retry(headers: &HeaderMap) -> Option<bool> {
    match headers.get("x-should-retry")?.as_bytes() {
        b"true" => Some(true),
        b"false" => Some(false),
        _ => None,
    }
}

fn body(request: &Request) -> Value {
    let mut messages = request.messages.clone();
    messages
        .iter_mut()
        .rev()
        .filter(|message| message.role == Role::User)
        .take(CACHED_MESSAGES)
        .filter_map(|message| message.content.last_mut())
        .for_each(|block| {
            block.mark_cached();
        });
    let mut body = json!({
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": messages,
        "stream": true,
    });
    if !request.system.is_empty() {
        body["system"] = json!([{
            "type": "text", "text": request.system, "cache_control": {"type": "ephemeral"},
        }]);
    }
    if !request.tools.is_empty() {
        let mut tools = json!(request.tools);
        if let Some(last) = tools.as_array_mut().and_then(|tools| tools.last_mut()) {
            last["cache_control"] = json!({"type": "ephemeral"});
        }
        body["tools"] = tools;
    }
    if let Thinking::Budget(tokens) = request.thinking {
        // The API wants room for an answer beside the thought.
        let tokens = tokens
            .min(request.max_tokens.saturating_sub(1024))
            .max(1024);
        body["thinking"] = json!({"type": "enabled", "budget_tokens": tokens});
    }
    body
}

struct Reader;

impl Decoder for Reader {
    fn decode(&mut self, sse: &SseEvent, out: &mut VecDeque<StreamEvent>) -> Result<(), ApiError> {
        let value: Value = serde_json::from_str(&sse.data).map_err(malformed)?;
        if value["type"] == "error" {
            return Err(fault(&value["error"]));
        }
        // Events of a kind that is not known here are skipped, as the API's rules ask.
        if let Ok(event) = serde_json::from_value(value) {
            out.push_back(event);
        }
        Ok(())
    }

    fn finish(&mut self, _: &mut VecDeque<StreamEvent>) {}
}

/// A failure that came in an answer that began well: it means what it means with its status.
fn fault(fault: &Value) -> ApiError {
    let api_type = fault["type"].as_str().unwrap_or_default();
    let message = fault["message"].as_str().unwrap_or("the provider failed");
    let status = match api_type {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => 500,
    };
    ApiError {
        status: Some(status),
        api_type: Some(api_type.to_owned()).filter(|word| !word.is_empty()),
        ..ApiError::local(kind_of(status, message, None), message)
    }
}

fn event(value: Value) -> Result<StreamEvent, ApiError> {
    serde_json::from_value(value).map_err(malformed)
}

fn malformed(error: serde_json::Error) -> ApiError {
    ApiError::local(
        ErrorKind::Malformed,
        format!("API returned an empty or malformed response ({error})"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Message, ResultContent, ToolSpec};

    fn dialect() -> Anthropic {
        Anthropic {
            credential: Some(Credential::ApiKey(Secret::new("sk-test-12345"))),
            headers: vec![("x-team".into(), Secret::new("hive-secret"))],
        }
    }

    fn request() -> Request {
        Request {
            model: "m".into(),
            system: "be brief".into(),
            messages: vec![
                Message::user("one"),
                Message::assistant("two"),
                Message::user("three"),
                Message::assistant("four"),
                Message {
                    role: Role::User,
                    content: vec![Block::tool_result(
                        "t",
                        ResultContent::Text("r".into()),
                        false,
                    )],
                },
            ],
            tools: vec![ToolSpec {
                name: "Read".into(),
                description: "reads".into(),
                input_schema: json!({"type":"object"}),
            }],
            max_tokens: 5000,
            thinking: Thinking::Budget(9000),
        }
    }

    #[test]
    fn four_breakpoints_and_no_more() {
        let body = body(&request());
        let text = body.to_string();
        assert_eq!(text.matches("cache_control").count(), 4);
        assert!(body["messages"][0]["content"][0]["cache_control"].is_null());
        assert!(body["messages"][4]["content"][0]["cache_control"].is_object());
        assert_eq!(body["thinking"]["budget_tokens"], 3976);
    }

    #[test]
    fn the_key_is_in_one_place() {
        let call = dialect().call(&request());
        let shown = format!("{:?} {call:?}", dialect());
        assert!(!shown.contains("sk-test") && !shown.contains("hive-secret"));
        let sent: Vec<_> = call
            .secrets
            .iter()
            .map(|(n, v)| (&**n, v.expose()))
            .collect();
        assert_eq!(
            sent,
            [("x-api-key", "sk-test-12345"), ("x-team", "hive-secret")]
        );
    }

    #[test]
    fn failures_are_told_apart() {
        use ErrorKind::*;
        let plain = HeaderMap::new();
        let mut rejected = HeaderMap::new();
        rejected.insert(
            "anthropic-ratelimit-unified-status",
            "rejected".parse().unwrap(),
        );
        rejected.insert(
            "anthropic-ratelimit-unified-reset",
            "1794772607".parse().unwrap(),
        );
        for (status, headers, message, kind) in [
            (
                400,
                &plain,
                "prompt is too long: 210000 tokens > 200000 maximum",
                PromptTooLong,
            ),
            (
                400,
                &plain,
                "Your credit balance is too low to access",
                Billing,
            ),
            (400, &plain, "messages: something is wrong", BadRequest),
            (401, &plain, "invalid x-api-key", Unauthorized),
            (403, &plain, "no", Forbidden),
            (404, &plain, "model: x", ModelNotFound),
            (413, &plain, "too large", TooLarge),
            (429, &plain, "slow down", RateLimited),
            (429, &rejected, "limit", LimitReached),
            (500, &plain, "x", Server),
            (503, &plain, "x", Server),
            (529, &plain, "Overloaded", Overloaded),
        ] {
            let body = json!({"type":"error","error":{"type":"t","message":message}}).to_string();
            let error = dialect().failure(status, headers, body.as_bytes());
            assert_eq!(
                (error.kind, error.message.as_str()),
                (kind, message),
                "{status}"
            );
        }
        let error = dialect().failure(502, &plain, b"<html>bad gateway</html>");
        assert_eq!(error.message, "<html>bad gateway</html>");
    }

    #[test]
    fn whether_to_ask_again_is_read() {
        for (value, expected) in [
            ("true", Some(true)),
            ("false", Some(false)),
            ("maybe", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("x-should-retry", value.parse().unwrap());
            let error = dialect().failure(529, &headers, b"{}");
            assert_eq!(error.should_retry, expected, "{value}");
        }
        let silent = dialect().failure(529, &HeaderMap::new(), b"{}");
        assert_eq!(silent.should_retry, None);
    }

    #[test]
    fn waits_are_read() {
        let with = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            retry_after(&headers)
        };
        assert_eq!(with("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(with("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(
            with("retry-after-ms", "30"),
            Some(Duration::from_millis(30))
        );
        for nonsense in ["soon", "-3", "NaN", "", "Fri, 01 Jan 1999 00:00:00 GMT"] {
            assert_eq!(with("retry-after", nonsense), None, "{nonsense}");
        }
        for endless in ["99999999999999999999999", "1e300", "inf"] {
            assert_eq!(with("retry-after", endless), Some(Duration::MAX));
        }
        let in_an_hour = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
        let in_an_hour = in_an_hour.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let wait = with("retry-after", &in_an_hour).unwrap().as_secs();
        assert!((3_500..=3_600).contains(&wait), "{wait}");
        let mut both = HeaderMap::new();
        both.insert("retry-after-ms", "odd".parse().unwrap());
        both.insert("retry-after", "7".parse().unwrap());
        assert_eq!(retry_after(&both), Some(Duration::from_secs(7)));
    }

    #[test]
    fn failures_after_a_good_beginning_are_told_apart_too() {
        use ErrorKind::*;
        for (api_type, message, kind) in [
            ("overloaded_error", "Overloaded", Overloaded),
            ("api_error", "Internal server error", Server),
            ("rate_limit_error", "slow down", RateLimited),
            (
                "invalid_request_error",
                "prompt is too long: 9 > 8",
                PromptTooLong,
            ),
            ("invalid_request_error", "messages: odd", BadRequest),
            ("authentication_error", "invalid x-api-key", Unauthorized),
            ("permission_error", "no", Forbidden),
            ("not_found_error", "model: x", ModelNotFound),
            ("request_too_large", "too large", TooLarge),
            ("something_new", "?", Server),
        ] {
            let body = json!({"type":"error","error":{"type":api_type,"message":message}});
            let sse = SseEvent {
                event: "error".into(),
                data: body.to_string(),
            };
            let streamed = Reader.decode(&sse, &mut VecDeque::new()).unwrap_err();
            assert_eq!((streamed.kind, streamed.message.as_str()), (kind, message));
            let whole = dialect().whole(body.to_string().as_bytes()).unwrap_err();
            assert_eq!(whole, streamed, "with a status of 200");
        }
        for odd in ["{}", "null", "[]", "\"hi\"", "{\"ok\":true}", ""] {
            let error = dialect().whole(odd.as_bytes()).unwrap_err();
            assert_eq!(error.kind, Malformed, "{odd} is no empty answer");
        }
    }

    #[test]
    fn an_answer_in_one_piece_gives_the_same_events() {
        let body = json!({"id":"m1","type":"message","role":"assistant","model":"m",
            "content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"t","name":"Read","input":{"a":1}}],
            "stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}});
        let events = dialect().whole(body.to_string().as_bytes()).unwrap();
        let mut assembler = crate::Assembler::default();
        for event in &events {
            assembler.push(event);
        }
        assert!(assembler.finished);
        assert_eq!(assembler.done[0].block, Block::text("hi"));
        assert_eq!(
            assembler.done[1].block,
            Block::tool_use("t", "Read", json!({"a":1}))
        );
        assert_eq!(assembler.usage.output_tokens, 4);
    }
}
