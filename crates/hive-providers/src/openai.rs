//! OpenAI-compatible chat completions: OpenAI, OpenRouter, Ollama, vLLM, llama.cpp and others.
//!
//! The servers differ in what they leave out: ids and indexes of tool calls, the usage, the name of
//! the event that ends a stream. Whatever is missing is filled in here.

use std::collections::VecDeque;

use hyper::HeaderMap;
use serde_json::{Value, json};

use crate::{
    ApiError, Block, BlockDelta, Dialect, ErrorKind, HttpCall, Message, MessageDelta, MessageHead,
    RateLimit, Request, ResultContent, Role, Secret, Source, SseEvent, StreamEvent, Usage,
    anthropic::retry_after, client::Decoder,
};

/// The dialect.
#[derive(Debug, Clone)]
pub struct OpenAi {
    /// The key; local servers need none.
    pub key: Option<Secret>,
    /// Further header fields from the configuration.
    pub headers: Vec<(String, String)>,
    /// Whether it is OpenAI itself, which names the answer's limit in its own way.
    pub is_openai: bool,
}

impl Dialect for OpenAi {
    fn call(&self, request: &Request) -> HttpCall {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "text/event-stream".to_owned()),
            (
                "user-agent".to_owned(),
                concat!("hive-engine/", env!("CARGO_PKG_VERSION")).to_owned(),
            ),
        ];
        headers.extend(self.headers.iter().cloned());
        let authorization = self.key.as_ref().map(|key| {
            let value = Secret::new(&format!("Bearer {}", key.expose()));
            ("authorization".to_owned(), value)
        });
        HttpCall {
            path: "/chat/completions",
            headers,
            authorization,
            body: body(request, self.is_openai).to_string().into_bytes(),
        }
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(Reader::default())
    }

    fn whole(&self, body: &[u8]) -> Result<Vec<StreamEvent>, ApiError> {
        let mut chunk: Value = serde_json::from_slice(body).map_err(malformed)?;
        // A whole answer is one chunk whose delta is called message.
        if let Some(message) = chunk["choices"][0].get_mut("message").map(Value::take) {
            chunk["choices"][0]["delta"] = message;
        }
        let mut reader = Reader::default();
        let mut events = VecDeque::new();
        reader.chunk(&chunk, &mut events)?;
        reader.finish(&mut events);
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
            kind: kind_of(status, &word("code"), &word("type"), &message),
            status: Some(status),
            api_type: Some(word("type")).filter(|word| !word.is_empty()),
            message,
            retry_after: retry_after(headers).or_else(|| reset_after(headers)),
            limit: None,
            request_id: None,
        }
    }

    fn rate_limit(&self, _: &HeaderMap) -> Option<RateLimit> {
        None
    }
}

fn kind_of(status: u16, code: &str, kind: &str, message: &str) -> ErrorKind {
    let message = message.to_lowercase();
    let is_too_long = code == "context_length_exceeded"
        || kind == "exceed_context_size_error"
        || message.contains("maximum context length")
        || message.contains("context window")
        || message.contains("exceeds the available context size");
    match status {
        400 | 413 | 422 if is_too_long => ErrorKind::PromptTooLong,
        401 => ErrorKind::Unauthorized,
        402 => ErrorKind::Billing,
        403 => ErrorKind::Forbidden,
        404 => ErrorKind::ModelNotFound,
        408 => ErrorKind::TimedOut,
        413 => ErrorKind::TooLarge,
        429 if code == "insufficient_quota" || kind == "insufficient_quota" => ErrorKind::Billing,
        429 => ErrorKind::RateLimited,
        503 | 529 => ErrorKind::Overloaded,
        500.. => ErrorKind::Server,
        _ => ErrorKind::BadRequest,
    }
}

/// `x-ratelimit-reset-requests: 1s`, `6m0s`, `120ms`: when the emptied allowance fills again.
fn reset_after(headers: &HeaderMap) -> Option<std::time::Duration> {
    ["requests", "tokens"]
        .into_iter()
        .filter(|kind| {
            let left = headers.get(format!("x-ratelimit-remaining-{kind}"));
            left.is_some_and(|left| left == "0")
        })
        .filter_map(|kind| {
            let reset = headers.get(format!("x-ratelimit-reset-{kind}"))?;
            duration(reset.to_str().ok()?)
        })
        .max()
}

fn duration(text: &str) -> Option<std::time::Duration> {
    let mut total = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..]
            .find(|c: char| c.is_ascii_digit())
            .map_or(rest.len(), |end| digits + end);
        total += number
            * match &rest[digits..unit_end] {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                "d" => 86_400.0,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    std::time::Duration::try_from_secs_f64(total).ok()
}

fn body(request: &Request, is_openai: bool) -> Value {
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        messages.push(json!({"role": "system", "content": request.system}));
    }
    for message in &request.messages {
        match message.role {
            Role::User => push_user(message, &mut messages),
            Role::Assistant => messages.push(assistant(message)),
        }
    }
    let limit = if is_openai {
        "max_completion_tokens"
    } else {
        "max_tokens"
    };
    let mut body = json!({
        "model": request.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    body[limit] = json!(request.max_tokens);
    if !request.tools.is_empty() {
        body["tools"] = request
            .tools
            .iter()
            .map(|tool| {
                json!({"type": "function", "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                }})
            })
            .collect();
    }
    body
}

/// Results become messages of their own; pictures inside them follow as the user's, since a result
/// can only be text.
fn push_user(message: &Message, messages: &mut Vec<Value>) {
    let mut parts = Vec::new();
    for block in &message.content {
        match block {
            Block::ToolResult {
                tool_use_id,
                content,
                ..
            } => {
                let mut text = content.text();
                if let ResultContent::Blocks(blocks) = content {
                    let pictures: Vec<_> = blocks.iter().filter_map(picture).collect();
                    if !pictures.is_empty() {
                        text.push_str("\n(the picture follows)");
                        parts.extend(pictures);
                    }
                }
                messages
                    .push(json!({"role": "tool", "tool_call_id": tool_use_id, "content": text}));
            }
            Block::Text { text, .. } => parts.push(json!({"type": "text", "text": text})),
            other => parts.extend(picture(other)),
        }
    }
    let is_plain = parts.iter().all(|part| part["type"] == "text");
    if is_plain && !parts.is_empty() {
        let text: Vec<_> = parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect();
        messages.push(json!({"role": "user", "content": text.join("\n\n")}));
    } else if !parts.is_empty() {
        messages.push(json!({"role": "user", "content": parts}));
    }
}

fn picture(block: &Block) -> Option<Value> {
    match block {
        Block::Image {
            source: Source::Base64 { media_type, data },
        } => Some(json!({
            "type": "image_url",
            "image_url": {"url": format!("data:{media_type};base64,{data}")},
        })),
        Block::Document {
            source: Source::Base64 { media_type, data },
        } => Some(json!({
            "type": "file",
            "file": {"filename": "document.pdf", "file_data": format!("data:{media_type};base64,{data}")},
        })),
        _ => None,
    }
}

fn assistant(message: &Message) -> Value {
    let calls: Vec<Value> = message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse {
                id, name, input, ..
            } => Some(json!({
                "id": id,
                "type": "function",
                "function": {"name": name, "arguments": input.to_string()},
            })),
            _ => None,
        })
        .collect();
    let mut value = json!({"role": "assistant", "content": message.text()});
    if !calls.is_empty() {
        value["tool_calls"] = Value::Array(calls);
    }
    value
}

/// What the open block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
    /// The server's index of the call.
    Call(u64),
}

#[derive(Debug, Default)]
struct Reader {
    has_started: bool,
    has_stopped: bool,
    open: Option<Open>,
    next_index: u32,
    calls: u32,
    usage: Usage,
    stop_reason: Option<String>,
}

impl Decoder for Reader {
    fn decode(&mut self, sse: &SseEvent, out: &mut VecDeque<StreamEvent>) -> Result<(), ApiError> {
        let data = sse.data.trim();
        if data == "[DONE]" {
            self.finish(out);
            return Ok(());
        }
        let chunk: Value = serde_json::from_str(data).map_err(malformed)?;
        self.chunk(&chunk, out)
    }

    fn finish(&mut self, out: &mut VecDeque<StreamEvent>) {
        // A stream that broke off before its finish reason is not whole.
        if self.has_stopped || self.stop_reason.is_none() {
            return;
        }
        self.has_stopped = true;
        self.close(out);
        let mut stop_reason = self.stop_reason.take();
        if self.calls > 0 && stop_reason.as_deref() == Some("end_turn") {
            stop_reason = Some("tool_use".into());
        }
        out.push_back(StreamEvent::MessageDelta {
            delta: MessageDelta {
                stop_reason,
                stop_sequence: None,
            },
            usage: self.usage.clone(),
        });
        out.push_back(StreamEvent::MessageStop);
    }
}

impl Reader {
    fn chunk(&mut self, chunk: &Value, out: &mut VecDeque<StreamEvent>) -> Result<(), ApiError> {
        if let Some(fault) = chunk.get("error").filter(|fault| !fault.is_null()) {
            let status = fault["code"]
                .as_u64()
                .and_then(|code| u16::try_from(code).ok());
            let message = fault["message"]
                .as_str()
                .unwrap_or("the server failed")
                .to_owned();
            let word = |name: &str| fault[name].as_str().unwrap_or_default().to_owned();
            let kind = kind_of(
                status.unwrap_or(500),
                &word("code"),
                &word("type"),
                &message,
            );
            return Err(ApiError {
                status,
                ..ApiError::local(kind, message)
            });
        }
        if !self.has_started {
            self.has_started = true;
            let text = |name: &str| chunk[name].as_str().unwrap_or_default().to_owned();
            let extra = json!({"type": "message", "role": "assistant", "content": []});
            out.push_back(StreamEvent::MessageStart {
                message: MessageHead {
                    id: text("id"),
                    model: text("model"),
                    usage: Usage::default(),
                    extra: extra.as_object().cloned().unwrap_or_default(),
                },
            });
        }
        if chunk["usage"].is_object() {
            self.usage = usage(&chunk["usage"]);
        }
        let choice = &chunk["choices"][0];
        self.delta(&choice["delta"], out);
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.stop_reason = Some(
                match reason {
                    "length" => "max_tokens",
                    "tool_calls" | "function_call" => "tool_use",
                    "content_filter" => "refusal",
                    _ => "end_turn",
                }
                .to_owned(),
            );
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Value, out: &mut VecDeque<StreamEvent>) {
        let text = |names: [&str; 2]| {
            names
                .iter()
                .find_map(|name| delta[*name].as_str())
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        if let Some(thinking) = text(["reasoning_content", "reasoning"]) {
            let index = self.switch(Open::Thinking, out);
            let delta = BlockDelta::ThinkingDelta { thinking };
            out.push_back(StreamEvent::ContentBlockDelta { index, delta });
        }
        if let Some(text) = text(["content", "refusal"]) {
            let index = self.switch(Open::Text, out);
            let delta = BlockDelta::TextDelta { text };
            out.push_back(StreamEvent::ContentBlockDelta { index, delta });
        }
        let calls = delta["tool_calls"].as_array();
        for (place, call) in calls.into_iter().flatten().enumerate() {
            self.call(place, call, out);
        }
    }

    fn call(&mut self, place: usize, call: &Value, out: &mut VecDeque<StreamEvent>) {
        let name = call["function"]["name"].as_str().unwrap_or_default();
        // Without an index, a name begins a call and anything else continues the last one.
        let number = call["index"].as_u64().unwrap_or_else(|| match self.open {
            Some(Open::Call(number)) if name.is_empty() => number,
            _ => u64::from(self.calls) + place as u64,
        });
        let index = if self.open == Some(Open::Call(number)) {
            self.next_index - 1
        } else {
            self.close(out);
            let id = call["id"].as_str().filter(|id| !id.is_empty()).map_or_else(
                || format!("call_{}_{}", self.next_index, self.calls),
                str::to_owned,
            );
            self.calls += 1;
            self.open_block(
                Open::Call(number),
                Block::tool_use(id, name, json!({})),
                out,
            )
        };
        let arguments = match &call["function"]["arguments"] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            object => object.to_string(),
        };
        if !arguments.is_empty() {
            let delta = BlockDelta::InputJsonDelta {
                partial_json: arguments,
            };
            out.push_back(StreamEvent::ContentBlockDelta { index, delta });
        }
    }

    /// Makes sure that a block of this kind is open and gives its index.
    fn switch(&mut self, kind: Open, out: &mut VecDeque<StreamEvent>) -> u32 {
        if self.open == Some(kind) {
            return self.next_index - 1;
        }
        self.close(out);
        let block = match kind {
            Open::Thinking => Block::Thinking {
                thinking: String::new(),
                signature: String::new(),
            },
            Open::Text | Open::Call(_) => Block::text(""),
        };
        self.open_block(kind, block, out)
    }

    fn open_block(&mut self, kind: Open, block: Block, out: &mut VecDeque<StreamEvent>) -> u32 {
        let index = self.next_index;
        self.next_index += 1;
        self.open = Some(kind);
        out.push_back(StreamEvent::ContentBlockStart {
            index,
            content_block: block,
        });
        index
    }

    fn close(&mut self, out: &mut VecDeque<StreamEvent>) {
        if self.open.take().is_some() {
            let index = self.next_index - 1;
            out.push_back(StreamEvent::ContentBlockStop { index });
        }
    }
}

fn usage(value: &Value) -> Usage {
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let cached = number(&value["prompt_tokens_details"]["cached_tokens"]);
    Usage {
        input_tokens: number(&value["prompt_tokens"]).saturating_sub(cached),
        cache_read_input_tokens: cached,
        output_tokens: number(&value["completion_tokens"]),
        ..Usage::default()
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
    use super::*;
    use crate::{Assembler, Thinking};

    fn read(chunks: &[Value]) -> Assembler {
        let mut reader = Reader::default();
        let mut events = VecDeque::new();
        for chunk in chunks {
            let sse = SseEvent {
                event: String::new(),
                data: chunk.to_string(),
            };
            reader.decode(&sse, &mut events).unwrap();
        }
        let done = SseEvent {
            event: String::new(),
            data: "[DONE]".into(),
        };
        reader.decode(&done, &mut events).unwrap();
        let mut assembler = Assembler::default();
        for event in &events {
            assembler.push(event);
        }
        assembler
    }

    #[test]
    fn openai_streams_calls_in_pieces() {
        let assembler = read(&[
            json!({"id":"c1","model":"m","choices":[{"delta":{"role":"assistant","content":""}}]}),
            json!({"choices":[{"delta":{"content":"let me "}}]}),
            json!({"choices":[{"delta":{"content":"look"}}]}),
            json!({"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"Read","arguments":""}}]}}]}),
            json!({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}}]}),
            json!({"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}}]}),
            json!({"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"Glob","arguments":"{}"}}]}}]}),
            json!({"choices":[{"delta":{},"finish_reason":"tool_calls"}]}),
            json!({"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":6}}}),
        ]);
        assert!(assembler.finished);
        let blocks: Vec<_> = assembler.done.into_iter().map(|done| done.block).collect();
        assert_eq!(
            blocks,
            [
                Block::text("let me look"),
                Block::tool_use("a", "Read", json!({"x":1})),
                Block::tool_use("b", "Glob", json!({})),
            ]
        );
        assert_eq!(assembler.stop_reason.as_deref(), Some("tool_use"));
        assert_eq!(assembler.usage.input_tokens, 4);
        assert_eq!(assembler.usage.cache_read_input_tokens, 6);
    }

    #[test]
    fn ollama_sends_whole_calls_without_ids_and_says_stop() {
        let assembler = read(&[
            json!({"choices":[{"delta":{"tool_calls":[
                {"function":{"name":"A","arguments":{"k":1}}},
                {"function":{"name":"B","arguments":"{}"}}]}}]}),
            json!({"choices":[{"delta":{"content":""},"finish_reason":"stop"}]}),
        ]);
        let names: Vec<_> = assembler
            .done
            .iter()
            .map(|done| match &done.block {
                Block::ToolUse { name, id, .. } => (name.clone(), id.clone()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(names[0].0, "A");
        assert_eq!(names[1].0, "B");
        assert_ne!(names[0].1, names[1].1);
        assert_eq!(assembler.stop_reason.as_deref(), Some("tool_use"));
    }

    #[test]
    fn thinking_of_local_models_is_a_block_of_its_own() {
        let assembler = read(&[
            json!({"choices":[{"delta":{"reasoning_content":"hm"}}]}),
            json!({"choices":[{"delta":{"content":"yes"},"finish_reason":"stop"}]}),
        ]);
        assert!(matches!(assembler.done[0].block, Block::Thinking { .. }));
        assert_eq!(assembler.done[1].block, Block::text("yes"));
    }

    #[test]
    fn a_stream_that_breaks_off_is_not_whole() {
        let assembler = read(&[json!({"choices":[{"delta":{"content":"ye"}}]})]);
        assert!(!assembler.finished);
    }

    #[test]
    fn errors_inside_a_stream_count() {
        let mut reader = Reader::default();
        let sse = SseEvent {
            event: String::new(),
            data: json!({"error":{"code":502,"message":"upstream"},"choices":[]}).to_string(),
        };
        let error = reader.decode(&sse, &mut VecDeque::new()).unwrap_err();
        assert_eq!((error.kind, error.status), (ErrorKind::Server, Some(502)));
    }

    #[test]
    fn history_is_translated() {
        let request = Request {
            model: "m".into(),
            system: "s".into(),
            messages: vec![
                Message::user("q"),
                Message {
                    role: Role::Assistant,
                    content: vec![
                        Block::Thinking {
                            thinking: "t".into(),
                            signature: String::new(),
                        },
                        Block::text("a"),
                        Block::tool_use("c", "Read", json!({"p":1})),
                    ],
                },
                Message {
                    role: Role::User,
                    content: vec![
                        Block::tool_result(
                            "c",
                            ResultContent::Blocks(vec![
                                Block::text("seen"),
                                Block::Image {
                                    source: Source::Base64 {
                                        media_type: "image/png".into(),
                                        data: "AA".into(),
                                    },
                                },
                            ]),
                            false,
                        ),
                        Block::text("go on"),
                    ],
                },
            ],
            tools: vec![],
            max_tokens: 7,
            thinking: Thinking::Off,
        };
        let body = body(&request, false);
        let roles: Vec<_> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["role"].clone())
            .collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool", "user"]);
        assert_eq!(
            body["messages"][2]["tool_calls"][0]["function"]["arguments"],
            "{\"p\":1}"
        );
        assert_eq!(
            body["messages"][4]["content"][0]["image_url"]["url"],
            "data:image/png;base64,AA"
        );
        assert_eq!(body["max_tokens"], 7);
        assert_eq!(super::body(&request, true)["max_completion_tokens"], 7);
    }

    #[test]
    fn failures_are_told_apart() {
        use ErrorKind::*;
        let dialect = OpenAi {
            key: None,
            headers: vec![],
            is_openai: true,
        };
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

    #[test]
    fn resets_are_read() {
        let seconds = |text| duration(text).map(|d| d.as_secs_f64());
        assert_eq!(seconds("1s"), Some(1.0));
        assert_eq!(seconds("6m0s"), Some(360.0));
        assert_eq!(seconds("120ms"), Some(0.12));
        assert_eq!(seconds("soon"), None);
        assert_eq!(seconds(""), None);
    }
}
