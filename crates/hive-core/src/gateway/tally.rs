//! What an answer cost, read from it as it passes: a stream of events, or one piece of JSON.
//!
//! The figures are the service's own. An answer that is cut short counts with what it had said by
//! then, since the service has counted that too. One without figures counts by its length: a stream
//! of chat completions has them only when the engine asks, and an agent may not.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use hive_providers::{CacheCreation, Models, SseEvent, SseParser, Usage};
use hyper::{
    HeaderMap,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use serde::Deserialize;

use super::body::Listener;

/// The longest answer in one piece that is read; longer ones pass uncounted, and that is said.
const MAX_JSON: usize = 8 * 1024 * 1024;

/// How many bytes make a token, where nobody says how many there were.
const BYTES_PER_TOKEN: u64 = 4;

/// What one answer cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spent {
    /// The model that answered.
    pub(crate) model: String,
    /// Read at the full price.
    pub(crate) input_tokens: u64,
    /// Produced.
    pub(crate) output_tokens: u64,
    /// Read from the cache.
    pub(crate) cache_read_tokens: u64,
    /// Written to the cache.
    pub(crate) cache_creation_tokens: u64,
    /// Millionths of a US dollar, by the price list.
    pub(crate) cost_micro_usd: u64,
}

/// Counts an answer and says so when it is over.
pub(super) struct Tally<F: FnMut(Spent)> {
    reader: Reader,
    model: String,
    usage: Usage,
    is_counted: bool,
    /// How long the question was; `None` for an answer that costs nothing.
    asked: Option<Arc<AtomicU64>>,
    /// How much was answered, as far as its length tells: a token for each event, or for so many
    /// bytes.
    heard: u64,
    told: F,
}

enum Reader {
    Events(SseParser),
    Json(Vec<u8>),
    /// Nothing in it can be counted.
    Deaf,
}

impl<F: FnMut(Spent)> Tally<F> {
    /// Listens to an answer with this head; `told` learns what it cost. `asked` is how many bytes
    /// were asked, for an answer that costs something even if it does not say so.
    pub(super) fn new(headers: &HeaderMap, asked: Option<Arc<AtomicU64>>, told: F) -> Self {
        let kind = headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default();
        let reader = if headers.contains_key(CONTENT_ENCODING) {
            tracing::warn!("a model answers compressed although it was not asked to: guessed");
            Reader::Deaf
        } else if kind.starts_with("text/event-stream") {
            Reader::Events(SseParser::default())
        } else if kind.starts_with("application/json") {
            Reader::Json(Vec::new())
        } else {
            Reader::Deaf
        };
        Self {
            reader,
            model: String::new(),
            usage: Usage::default(),
            is_counted: false,
            asked,
            heard: 0,
            told,
        }
    }

    fn read(&mut self, json: &[u8]) {
        let Ok(piece) = serde_json::from_slice::<Piece>(json) else {
            return;
        };
        for part in [
            Some(&piece),
            piece.message.as_deref(),
            piece.response.as_deref(),
        ] {
            let Some(part) = part else { continue };
            if let Some(model) = &part.model {
                model.clone_into(&mut self.model);
            }
            if let Some(usage) = &part.usage {
                self.usage.update(&usage.read());
                self.is_counted = true;
            }
        }
    }
}

impl<F: FnMut(Spent) + Send + Unpin + 'static> Listener for Tally<F> {
    fn hear(&mut self, bytes: &[u8]) {
        let length = bytes.len() as u64;
        match &mut self.reader {
            Reader::Deaf => self.heard += length.div_ceil(BYTES_PER_TOKEN),
            Reader::Json(whole) => {
                self.heard += length.div_ceil(BYTES_PER_TOKEN);
                if whole.len() + bytes.len() > MAX_JSON {
                    tracing::warn!("an answer is longer than {MAX_JSON} bytes: guessed");
                    self.reader = Reader::Deaf;
                    return;
                }
                whole.extend_from_slice(bytes);
            }
            Reader::Events(parser) => {
                let mut events: Vec<SseEvent> = Vec::new();
                if let Err(error) = parser.push(bytes, &mut events) {
                    tracing::warn!(%error, "an answer cannot be read to its end: counted in part");
                    self.reader = Reader::Deaf;
                }
                // Nearly all events carry text and nothing to count; the first names the model.
                for event in events {
                    self.heard += 1;
                    if self.model.is_empty() || event.data.contains("\"usage\"") {
                        self.read(event.data.as_bytes());
                    }
                }
            }
        }
    }
}

impl<F: FnMut(Spent)> Drop for Tally<F> {
    fn drop(&mut self) {
        if let Reader::Json(whole) = std::mem::replace(&mut self.reader, Reader::Deaf) {
            self.read(&whole);
        }
        if !self.is_counted
            && self.heard > 0
            && let Some(asked) = &self.asked
        {
            self.usage.input_tokens = asked.load(Ordering::Relaxed) / BYTES_PER_TOKEN;
            self.usage.output_tokens = self.heard;
            self.is_counted = true;
        }
        if self.is_counted {
            let spent = Spent::new(std::mem::take(&mut self.model), &self.usage);
            (self.told)(spent);
        }
    }
}

impl Spent {
    fn new(model: String, usage: &Usage) -> Self {
        let cost = Models::default().find(&model).0.cost(usage) * 1_000_000.0;
        Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_input_tokens,
            cache_creation_tokens: usage.cache_creation_input_tokens,
            // A cast from a float saturates, and no number is zero.
            cost_micro_usd: cost.round() as u64,
            model: hive_wire::text::shorten(&model, 100),
        }
    }
}

/// What is read of an answer or of an event, whichever service it is.
#[derive(Debug, Default, Deserialize)]
struct Piece {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<Counts>,
    #[serde(default)]
    message: Option<Box<Piece>>,
    #[serde(default)]
    response: Option<Box<Piece>>,
}

/// Tokens as the services name them; each may be left out or null.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<ByTime>,
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
    input_tokens_details: Option<Details>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ByTime {
    ephemeral_1h_input_tokens: Option<u64>,
    ephemeral_5m_input_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Counts {
    fn read(&self) -> Usage {
        // OpenAI's services count what came from the cache as input too.
        let details = [&self.prompt_tokens_details, &self.input_tokens_details];
        let cached = details
            .into_iter()
            .flatten()
            .find_map(|one| one.cached_tokens);
        let input = self.input_tokens.or(self.prompt_tokens).unwrap_or(0);
        let by_time = self.cache_creation.as_ref();
        Usage {
            input_tokens: input.saturating_sub(cached.unwrap_or(0)),
            output_tokens: self.output_tokens.or(self.completion_tokens).unwrap_or(0),
            cache_read_input_tokens: self.cache_read_input_tokens.or(cached).unwrap_or(0),
            cache_creation_input_tokens: self.cache_creation_input_tokens.unwrap_or(0),
            cache_creation: CacheCreation {
                ephemeral_1h_input_tokens: by_time
                    .and_then(|one| one.ephemeral_1h_input_tokens)
                    .unwrap_or(0),
                ephemeral_5m_input_tokens: by_time
                    .and_then(|one| one.ephemeral_5m_input_tokens)
                    .unwrap_or(0),
            },
            ..Usage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    const EVENTS: &str = "text/event-stream; charset=utf-8";
    const JSON: &str = "application/json";

    /// What an answer costs that comes in pieces of `size` bytes, to a question of `asked` bytes.
    fn cost(kind: &str, answer: &str, size: usize, asked: Option<u64>) -> Option<Spent> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, kind.parse().unwrap());
        let spent = Arc::new(Mutex::new(None));
        let asked = asked.map(|bytes| Arc::new(AtomicU64::new(bytes)));
        let mut tally = Tally::new(&headers, asked, {
            let spent = Arc::clone(&spent);
            move |cost| *spent.lock().unwrap() = Some(cost)
        });
        for piece in answer.as_bytes().chunks(size) {
            tally.hear(piece);
        }
        drop(tally);
        spent.lock().unwrap().take()
    }

    fn cost_of(kind: &str, answer: &str, size: usize) -> Option<Spent> {
        cost(kind, answer, size, None)
    }

    fn spent(model: &str, counts: [u64; 4], cost: u64) -> Option<Spent> {
        let [input, output, read, written] = counts;
        Some(Spent {
            model: model.into(),
            input_tokens: input,
            output_tokens: output,
            cache_read_tokens: read,
            cache_creation_tokens: written,
            cost_micro_usd: cost,
        })
    }

    #[test]
    fn t12_answers_of_every_kind_are_counted() {
        let stream = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\
            \"claude-haiku-4-5\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1,\
            \"cache_read_input_tokens\":1000,\"cache_creation_input_tokens\":null}}}\n\n\
            event: content_block_delta\ndata: {\"delta\":{\"text\":\"the \\\"usage\\\" of\"}}\n\n\
            event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":50}}\n\n";
        let cut = &stream[..stream.find("event: message_delta").unwrap()];
        let chat = "data: {\"model\":\"gpt-x\",\"choices\":[],\"usage\":null}\n\n\
            data: {\"model\":\"gpt-x\",\"usage\":{\"prompt_tokens\":90,\"completion_tokens\":7,\
            \"prompt_tokens_details\":{\"cached_tokens\":40}}}\n\ndata: [DONE]\n\n";
        let responses = "data: {\"type\":\"response.completed\",\"response\":{\"model\":\"gpt-x\",\
            \"usage\":{\"input_tokens\":90,\"output_tokens\":7,\
            \"input_tokens_details\":{\"cached_tokens\":40}}}}\n\n";
        let whole = r#"{"model":"claude-sonnet-4-5","content":[{"type":"text","text":"\"usage\""}],
            "usage":{"input_tokens":100,"output_tokens":10,"cache_creation_input_tokens":1000,
            "cache_creation":{"ephemeral_1h_input_tokens":1000}}}"#;
        let unknown = r#"{"model":"qwen","usage":{"input_tokens":5,"output_tokens":6}}"#;
        for (kind, answer, expected) in [
            (
                EVENTS,
                stream,
                spent("claude-haiku-4-5", [10, 50, 1_000, 0], 360),
            ),
            (
                EVENTS,
                cut,
                spent("claude-haiku-4-5", [10, 1, 1_000, 0], 115),
            ),
            (EVENTS, chat, spent("gpt-x", [50, 7, 40, 0], 0)),
            (EVENTS, responses, spent("gpt-x", [50, 7, 40, 0], 0)),
            (
                JSON,
                whole,
                spent("claude-sonnet-4-5", [100, 10, 0, 1_000], 6_450),
            ),
            (JSON, unknown, spent("qwen", [5, 6, 0, 0], 0)),
            (JSON, r#"{"input_tokens":5}"#, None),
            (JSON, "rubbish", None),
            (JSON, r#"{"usage":"x"}"#, None),
            ("text/html", unknown, None),
            (EVENTS, "", None),
        ] {
            for size in [1, 7, 100_000] {
                assert_eq!(cost_of(kind, answer, size), expected, "{size} of {answer}");
            }
        }
    }

    #[test]
    fn an_answer_without_figures_counts_by_its_length() {
        let chat = "data: {\"model\":\"claude-haiku-4-5\",\"choices\":[{}]}\n\n\
            data: {\"model\":\"claude-haiku-4-5\",\"choices\":[{}]}\n\ndata: [DONE]\n\n";
        let (json, packed) = (r#"{"model":"gpt-x"}   "#, "\u{1}".repeat(80));
        for (kind, answer, expected) in [
            (EVENTS, chat, spent("claude-haiku-4-5", [100, 3, 0, 0], 115)),
            (JSON, json, spent("gpt-x", [100, 5, 0, 0], 0)),
            (
                "application/octet-stream",
                packed.as_str(),
                spent("", [100, 20, 0, 0], 0),
            ),
            (EVENTS, "", None),
        ] {
            assert_eq!(cost(kind, answer, 1_000, Some(400)), expected, "{answer}");
            assert_eq!(cost(kind, answer, 1_000, None), None, "{answer}");
        }
        let said = r#"{"model":"gpt-x","usage":{"input_tokens":5,"output_tokens":6}}"#;
        assert_eq!(
            cost(JSON, said, 7, Some(400)),
            spent("gpt-x", [5, 6, 0, 0], 0)
        );
    }

    #[test]
    fn an_answer_that_never_ends_is_not_kept() {
        let long = format!(
            "{}{}",
            " ".repeat(MAX_JSON),
            r#"{"usage":{"input_tokens":5}}"#
        );
        assert_eq!(cost_of(JSON, &long, 1 << 20), None);
    }
}
