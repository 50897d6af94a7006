//! The answer: chunks in, the events of one kind of stream out.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::{
    failure::{kind_of, status_of},
    malformed,
};
use crate::{
    ApiError, Block, BlockDelta, MessageDelta, MessageHead, SseEvent, StreamEvent, Usage,
    client::Decoder,
};

/// What the open block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
    /// The server's index of the call.
    Call(u64),
}

/// Reads a stream.
#[derive(Debug, Default)]
pub(super) struct Reader {
    has_started: bool,
    has_stopped: bool,
    open: Option<Open>,
    next_index: u32,
    calls: u32,
    /// The id of the last call.
    call_id: String,
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
    /// Takes one chunk.
    pub(super) fn chunk(
        &mut self,
        chunk: &Value,
        out: &mut VecDeque<StreamEvent>,
    ) -> Result<(), ApiError> {
        if let Some(fault) = chunk.get("error").filter(|fault| !fault.is_null()) {
            return Err(failure(fault));
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
        for call in calls.into_iter().flatten() {
            self.call(call, out);
        }
    }

    fn call(&mut self, call: &Value, out: &mut VecDeque<StreamEvent>) {
        let name = call["function"]["name"].as_str().unwrap_or_default();
        let id = call["id"].as_str().filter(|id| !id.is_empty());
        // Without an index, a name begins a call and anything else continues the last one.
        let number = call["index"].as_u64().unwrap_or_else(|| match self.open {
            Some(Open::Call(number)) if name.is_empty() => number,
            _ => u64::from(self.calls),
        });
        // Some servers number every call 0 and tell them apart by their ids alone.
        let is_another = !name.is_empty() && id.is_some_and(|id| id != self.call_id);
        let index = if self.open == Some(Open::Call(number)) && !is_another {
            self.next_index - 1
        } else {
            self.close(out);
            let id = id.map_or_else(
                || format!("call_{}_{}", self.next_index, self.calls),
                str::to_owned,
            );
            self.calls += 1;
            self.call_id.clone_from(&id);
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

/// A failure inside an answer that began well; some servers send the words alone.
fn failure(fault: &Value) -> ApiError {
    let word = |name: &str| fault[name].as_str().unwrap_or_default();
    let said = fault.as_str().or_else(|| fault["message"].as_str());
    let message = said.unwrap_or("the server failed");
    let (code, kind) = (word("code"), word("type"));
    let given = fault["code"].as_u64();
    let given = given.and_then(|code| u16::try_from(code).ok());
    let status = given.unwrap_or_else(|| status_of(code, kind, message));
    ApiError {
        status: given,
        ..ApiError::local(kind_of(status, code, kind, message), message)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Assembler, ErrorKind};

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
    fn calls_are_told_apart_however_they_are_numbered() {
        let call = |name: &str| json!({"function":{"name":name,"arguments":"{}"}});
        let numbered = |id: &str, name: &str| json!({"index":0,"id":id,"function":{"name":name,"arguments":"{}"}});
        let repeated = |arguments: &str| json!({"index":0,"id":"a","function":{"name":"A","arguments":arguments}});
        for (what, chunks) in [
            (
                "none has a number",
                vec![vec![call("A"), call("B")], vec![call("A")]],
            ),
            (
                "all have the same",
                vec![
                    vec![numbered("a", "A")],
                    vec![numbered("b", "B")],
                    vec![numbered("c", "A")],
                ],
            ),
            (
                "name and id come again",
                vec![vec![
                    repeated("{"),
                    repeated("}"),
                    numbered("b", "B"),
                    numbered("c", "A"),
                ]],
            ),
        ] {
            let mut chunks: Vec<_> = chunks
                .into_iter()
                .map(|calls| json!({"choices":[{"delta":{"tool_calls":calls}}]}))
                .collect();
            chunks.push(json!({"choices":[{"delta":{},"finish_reason":"tool_calls"}]}));
            let done = read(&chunks).done;
            let names: Vec<_> = done
                .iter()
                .map(|done| match &done.block {
                    Block::ToolUse { name, .. } => name.as_str(),
                    other => panic!("{other:?}"),
                })
                .collect();
            assert_eq!(names, ["A", "B", "A"], "{what}");
            assert!(done.iter().all(|done| done.bad_input.is_none()), "{what}");
        }
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
        use ErrorKind::*;
        for (fault, kind, status, message) in [
            (
                json!({"code":502,"message":"upstream"}),
                Server,
                Some(502),
                "upstream",
            ),
            (
                json!({"message":"?","type":"server_error"}),
                Server,
                None,
                "?",
            ),
            (json!("out of memory"), Server, None, "out of memory"),
            (json!({}), Server, None, "the server failed"),
            (
                json!({"code":"rate_limit_exceeded","message":"slow"}),
                RateLimited,
                None,
                "slow",
            ),
            (
                json!({"code":"insufficient_quota","message":"pay"}),
                Billing,
                None,
                "pay",
            ),
            (
                json!({"code":"context_length_exceeded","message":"long"}),
                PromptTooLong,
                None,
                "long",
            ),
            (
                json!({"type":"invalid_request_error","message":"odd"}),
                BadRequest,
                None,
                "odd",
            ),
        ] {
            let sse = SseEvent {
                event: String::new(),
                data: json!({"error":fault,"choices":[]}).to_string(),
            };
            let error = Reader::default()
                .decode(&sse, &mut VecDeque::new())
                .unwrap_err();
            assert_eq!((error.kind, error.status), (kind, status), "{fault}");
            assert_eq!(error.message, message);
        }
    }
}
