//! What the output of a turn said, gathered line by line in bounded memory.
//!
//! Facts are numbers and short texts. They hold no conversation: the only texts kept are those that
//! the engine wrote about its own errors.

use std::collections::BTreeMap;

use hive_wire::Timestamp;

use super::{
    Progress,
    stream::{
        ApiRetry, Assistant, CompactBoundary, ErrorEvent, Init, ModelUsage, RateLimit, ResultEvent,
        SYNTHETIC, Status, StreamEvent, Usage, User,
    },
};

/// The longest text that is kept of an error.
const MAX_TEXT: usize = 1024;
/// The longest name of a tool, a server or a session.
const MAX_NAME: usize = 128;
/// How many different tools are counted, servers listed and calls followed.
const MAX_NAMES: usize = 128;

/// Tokens by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Input that came from no cache.
    pub input: u64,
    /// What the model wrote.
    pub output: u64,
    /// Input read from the cache.
    pub cache_read: u64,
    /// Input written to the cache.
    pub cache_creation: u64,
}

/// An error as the engine's fields describe it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status; none when there was no answer, or no request.
    pub status: Option<u16>,
    /// The engine's class of it: `rate_limit`, `authentication_failed`, `server_error` …
    pub class: Option<String>,
    /// The API's class of it: `overloaded_error`, `invalid_request_error` …
    pub kind: Option<String>,
    /// What the engine adds: `connection_failed`, `usage_limit_reached` …
    pub detail: Option<String>,
    /// What the engine wrote about it.
    pub text: String,
}

/// The last `result` of a turn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResultFacts {
    /// `success` even for most errors; `error_…` for a few.
    pub subtype: String,
    /// Whether it is one; a result that does not say so is none.
    pub is_error: bool,
    /// `completed`, `prompt_too_long`, `aborted_streaming` …
    pub terminal_reason: Option<String>,
    /// What went wrong, when it is an error.
    pub error: Option<ApiError>,
}

/// What was said about a compaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CompactFacts {
    /// The conversation was compacted.
    pub done: bool,
    /// Why it was not, in the engine's words.
    pub error: Option<String>,
}

/// What the output of a turn said.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The conversation's id.
    pub session_id: Option<String>,
    /// The engine's own version.
    pub engine_version: Option<String>,
    /// MCP servers and their status (`connected`, `failed` …).
    pub mcp_servers: Vec<(String, String)>,
    /// The tools that the engine has, built in and by MCP.
    pub tools_offered: Vec<String>,
    /// How often each tool was called.
    pub tools_used: BTreeMap<String, u32>,
    /// How many calls were denied.
    pub denials: u32,
    /// Tokens of this turn, over all its inferences.
    pub tokens: Tokens,
    /// Cost of this turn in dollars, as far as the engine says.
    pub cost_usd: Option<f64>,
    /// Cost of the whole session so far, as the engine counts it.
    pub total_cost_usd: Option<f64>,
    /// The size of the context at the last inference, or after a compaction.
    pub context_tokens: Option<u64>,
    /// The model's context window, when the engine says.
    pub context_window: Option<u64>,
    /// How many results there were. More than one when background tasks end after the first.
    pub results: u32,
    /// The last of them.
    pub result: Option<ResultFacts>,
    /// An error that no result has come for yet.
    pub error: Option<ApiError>,
    /// How often the engine asked the API again.
    pub retries: u32,
    /// Why it last did, unless the model has answered since.
    pub retry: Option<ApiError>,
    /// A limit was hit, not only near.
    pub limit_hit: bool,
    /// When the limit ends.
    pub resets_at: Option<Timestamp>,
    /// Compaction.
    pub compact: CompactFacts,
    /// Calls that have no result yet: id and name of the tool.
    calls: Vec<(String, String)>,
    /// The session and its total before this turn.
    before: Option<Total>,
}

/// The cost of a session so far.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Total {
    pub(super) session_id: String,
    pub(super) usd: f64,
}

impl Facts {
    /// Facts of a turn that has printed nothing. `before` is what the session before it had cost.
    pub(super) fn new(before: Option<Total>) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// What the session has cost after this turn, to be passed to the next one.
    pub(super) fn total(&self) -> Option<Total> {
        let session_id = self.session_id.clone()?;
        let usd = self.total_cost_usd?;
        Some(Total { session_id, usd })
    }

    /// What can be shown while the turn runs.
    pub(super) fn progress(&self) -> Progress {
        Progress {
            context_tokens: self.context_tokens,
            current_tool: self.calls.first().map(|(_, name)| name.clone()),
            session_id: self.session_id.clone(),
            engine_version: self.engine_version.clone(),
        }
    }

    /// Takes note of an event.
    pub(super) fn note(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::Init(init) => self.init(init),
            StreamEvent::Assistant(assistant) => self.assistant(assistant),
            StreamEvent::User(user) => self.user(user),
            StreamEvent::Result(result) => self.result(result),
            StreamEvent::ApiRetry(retry) => self.retry(retry),
            StreamEvent::RateLimit(limit) => self.rate_limit(limit),
            StreamEvent::CompactBoundary(boundary) => self.boundary(boundary),
            StreamEvent::Status(status) => self.status(status),
            StreamEvent::PermissionDenied => self.denials = self.denials.saturating_add(1),
            StreamEvent::Error(error) => self.error(error),
            StreamEvent::Other => {}
        }
    }

    /// Takes note of a result that answers something else: what it cost counts, and nothing else.
    pub(super) fn note_another(&mut self, result: &ResultEvent) {
        self.results = self.results.saturating_add(1);
        keep(&mut self.session_id, result.session_id.as_deref(), MAX_NAME);
        self.spent(result);
    }

    fn init(&mut self, init: &Init) {
        keep(&mut self.session_id, init.session_id.as_deref(), MAX_NAME);
        let version = init.claude_code_version.as_deref();
        keep(&mut self.engine_version, version, MAX_NAME);
        let word = |text: &Option<String>| cut(text.as_deref().unwrap_or("?"), MAX_NAME);
        if let Some(servers) = &init.mcp_servers {
            let servers = servers.iter().take(MAX_NAMES);
            self.mcp_servers = servers.map(|s| (word(&s.name), word(&s.status))).collect();
        }
        if let Some(tools) = &init.tools {
            let tools = tools.iter().take(4 * MAX_NAMES);
            self.tools_offered = tools.map(|name| cut(name, MAX_NAME)).collect();
        }
    }

    fn assistant(&mut self, assistant: &Assistant) {
        let empty = Default::default();
        let message = assistant.message.as_ref().unwrap_or(&empty);
        let blocks = message.content.as_deref().unwrap_or_default();
        let synthetic = message.model.as_deref() == Some(SYNTHETIC);
        if synthetic {
            let text = blocks.iter().find_map(|block| block.text.as_deref());
            self.synthetic(assistant, text.unwrap_or_default());
            return;
        }
        self.retry = None;
        self.error = None;
        if assistant.parent_tool_use_id.is_none() {
            let context = message.usage.as_ref().map(context_of);
            self.context_tokens = context.filter(|&n| n > 0).or(self.context_tokens);
        }
        for block in blocks
            .iter()
            .filter(|b| b.kind.as_deref() == Some("tool_use"))
        {
            let name = cut(block.name.as_deref().unwrap_or("?"), MAX_NAME);
            if self.calls.len() < MAX_NAMES {
                let id = block.id.as_deref().unwrap_or_default();
                self.calls.push((cut(id, MAX_NAME), name.clone()));
            }
            if self.tools_used.len() < MAX_NAMES || self.tools_used.contains_key(&name) {
                let count = self.tools_used.entry(name).or_default();
                *count = count.saturating_add(1);
            }
        }
    }

    /// A message that the engine wrote itself: an API error, or the answer of a local command.
    fn synthetic(&mut self, assistant: &Assistant, text: &str) {
        let outcome = assistant.local_command_outcome.as_ref();
        if outcome.and_then(|outcome| outcome.kind.as_deref()) == Some("failed") {
            self.compact.error = Some(cut(text, MAX_TEXT));
        }
        if assistant.error.is_some() {
            self.error = Some(ApiError {
                status: status_of(assistant.api_error_status),
                class: name_of(assistant.error.as_ref()),
                kind: name_of(assistant.api_error_type.as_ref()),
                detail: name_of(assistant.api_error.as_ref()),
                text: cut(text, MAX_TEXT),
            });
        }
    }

    fn user(&mut self, user: &User) {
        let content = user.message.as_ref().and_then(|m| m.content.as_deref());
        for block in content.unwrap_or_default() {
            if let Some(id) = &block.tool_use_id {
                self.calls.retain(|(call, _)| call != id);
            }
        }
    }

    fn result(&mut self, result: &ResultEvent) {
        self.results = self.results.saturating_add(1);
        self.calls.clear();
        keep(&mut self.session_id, result.session_id.as_deref(), MAX_NAME);
        self.spent(result);
        let error = self.error.take();
        let is_error = result.is_error.unwrap_or(false);
        let said = result.result.as_deref();
        let first = result.errors.as_deref().and_then(<[_]>::first);
        let text = said.or(first.map(String::as_str)).unwrap_or_default();
        self.result = Some(ResultFacts {
            subtype: cut(result.subtype.as_deref().unwrap_or_default(), MAX_NAME),
            is_error,
            terminal_reason: name_of(result.terminal_reason.as_ref()),
            error: is_error.then(|| {
                let earlier = error.unwrap_or_default();
                ApiError {
                    status: status_of(result.api_error_status).or(earlier.status),
                    class: earlier.class,
                    kind: name_of(result.api_error_type.as_ref()).or(earlier.kind),
                    detail: name_of(result.api_error.as_ref()).or(earlier.detail),
                    text: cut(text, MAX_TEXT),
                }
            }),
        });
    }

    /// Adds what was spent since the last result. `total_cost_usd` is the session's, not the turn's;
    /// an engine that gives no figures per turn has them taken from the difference.
    fn spent(&mut self, result: &ResultEvent) {
        let models = result.model_usage_since_last_result.iter().flatten();
        let models: Vec<&ModelUsage> = models.map(|(_, usage)| usage).take(MAX_NAMES).collect();
        let tokens = if models.is_empty() {
            tokens_of(&result.usage.unwrap_or_default())
        } else {
            models
                .iter()
                .fold(Tokens::default(), |sum, m| sum.plus(model_tokens(m)))
        };
        self.tokens = self.tokens.plus(tokens);

        let since = models
            .iter()
            .filter_map(|usage| usage.cost_usd)
            .reduce(|a, b| a + b);
        let total = result.total_cost_usd;
        let known = self.total().or_else(|| self.before.clone());
        let known = known.filter(|known| Some(&known.session_id) == self.session_id.as_ref());
        let difference = total.map(|total| match known {
            Some(known) if total >= known.usd => total - known.usd,
            _ => total,
        });
        if let Some(cost) = since.or(difference) {
            self.cost_usd = Some(self.cost_usd.unwrap_or(0.0) + cost);
        }
        self.total_cost_usd = total.or(self.total_cost_usd);

        let all = result.model_usage.iter().flatten().map(|(_, usage)| usage);
        let window = all
            .filter_map(|usage| usage.context_window)
            .reduce(f64::max);
        self.context_window = window.map(whole).or(self.context_window);
    }

    fn retry(&mut self, retry: &ApiRetry) {
        self.retries = self.retries.saturating_add(1);
        self.retry = Some(ApiError {
            status: status_of(retry.error_status),
            class: name_of(retry.error.as_ref()),
            ..ApiError::default()
        });
    }

    fn rate_limit(&mut self, limit: &RateLimit) {
        let Some(info) = &limit.rate_limit_info else {
            return;
        };
        self.limit_hit = info.status.as_deref() == Some("rejected");
        let millis = info.resets_at.map(|seconds| seconds * 1000.0);
        let millis = millis.filter(|ms| ms.is_finite() && *ms > 0.0 && *ms < 1e15);
        #[expect(clippy::cast_possible_truncation, reason = "the range was checked")]
        let resets_at = millis.map(|ms| Timestamp::from_millis(ms as i64));
        self.resets_at = resets_at.filter(|_| self.limit_hit);
    }

    fn boundary(&mut self, boundary: &CompactBoundary) {
        self.compact = CompactFacts {
            done: true,
            error: None,
        };
        let meta = boundary.compact_metadata.as_ref();
        self.context_tokens = meta.and_then(|meta| meta.post_tokens).map(whole);
    }

    fn status(&mut self, status: &Status) {
        if status.compact_result.as_deref() == Some("failed") {
            let why = status.compact_error.as_deref().unwrap_or("no reason given");
            self.compact.error = Some(cut(why, MAX_TEXT));
        }
    }

    fn error(&mut self, event: &ErrorEvent) {
        let Some(error) = &event.error else { return };
        self.error = Some(ApiError {
            kind: name_of(error.kind.as_ref()),
            text: cut(error.message.as_deref().unwrap_or_default(), MAX_TEXT),
            ..ApiError::default()
        });
    }
}

impl Tokens {
    fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_creation: self.cache_creation.saturating_add(other.cache_creation),
        }
    }
}

fn tokens_of(usage: &Usage) -> Tokens {
    Tokens {
        input: whole(usage.input_tokens.unwrap_or(0.0)),
        output: whole(usage.output_tokens.unwrap_or(0.0)),
        cache_read: whole(usage.cache_read_input_tokens.unwrap_or(0.0)),
        cache_creation: whole(usage.cache_creation_input_tokens.unwrap_or(0.0)),
    }
}

fn model_tokens(usage: &ModelUsage) -> Tokens {
    Tokens {
        input: whole(usage.input_tokens.unwrap_or(0.0)),
        output: whole(usage.output_tokens.unwrap_or(0.0)),
        cache_read: whole(usage.cache_read_input_tokens.unwrap_or(0.0)),
        cache_creation: whole(usage.cache_creation_input_tokens.unwrap_or(0.0)),
    }
}

/// What the model was given in one inference.
fn context_of(usage: &Usage) -> u64 {
    let tokens = tokens_of(usage);
    tokens
        .input
        .saturating_add(tokens.cache_read)
        .saturating_add(tokens.cache_creation)
}

/// A count from a number of the stream.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and a negative count is none"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}

/// An HTTP status from a number of the stream.
fn status_of(number: Option<f64>) -> Option<u16> {
    u16::try_from(whole(number?)).ok()
}

fn name_of(name: Option<&String>) -> Option<String> {
    name.map(|name| cut(name, MAX_NAME))
}

fn keep(place: &mut Option<String>, text: Option<&str>, limit: usize) {
    if let Some(text) = text {
        *place = Some(cut(text, limit));
    }
}

/// At most `limit` bytes of the text, cut between characters.
pub(super) fn cut(text: &str, limit: usize) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(limit)])
}
