//! What the script sees of a request, whichever API it came by.
//!
//! Parsing is tolerant: the real clients send more than is listed here, and a field that is not
//! needed is not looked at. Whether a request is one that the real API would refuse is decided in
//! [`crate::api`], not here.

mod anthropic;
mod openai;
pub mod wake;

use serde_json::Value;

use self::wake::Wake;

/// The shape of a request and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Api {
    /// `POST /v1/messages`.
    Anthropic,
    /// `POST /v1/chat/completions`.
    OpenAi,
}

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A step of the conversation.
    Turn,
    /// The summary that a compaction asks for.
    Summary,
    /// What a client asks beside the conversation: a title, a probe of the key.
    Side,
}

/// The result of a tool call, as the client reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// Its text; of several text blocks, all.
    pub text: String,
    /// Whether the tool failed.
    pub is_error: bool,
}

/// How large a request is, in bytes, for the estimate of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// The whole body.
    pub total: u64,
    /// What came after the last answer of the model.
    pub tail: u64,
    /// Whether the client marked something for the prompt cache.
    pub is_cached: bool,
    /// Whether the model has spoken before, so that a cache would hold the rest.
    pub is_continued: bool,
}

/// One request for an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The API it came by.
    pub api: Api,
    /// What it is for.
    pub purpose: Purpose,
    /// Whether the answer is to be streamed.
    pub is_streamed: bool,
    /// Whether a streamed answer ends with a chunk of usage (OpenAI only).
    pub wants_usage: bool,
    /// Whether the answer must be JSON by a schema.
    pub wants_json: bool,
    /// Whether the client asked to see the model think.
    pub wants_thinking: bool,
    /// The model asked for.
    pub model: String,
    /// The system prompt, its parts joined by newlines.
    pub system: String,
    /// The last text that a user wrote; reminders that a client adds are passed over.
    pub last_user: String,
    /// The same text read as a wake prompt of the harness.
    pub wake: Wake,
    /// The results of the tool calls in the last answer.
    pub tool_results: Vec<ToolResult>,
    /// The names of the tools that are offered.
    pub tools: Vec<String>,
    /// How often the model has answered since that last text.
    pub step: u64,
    /// The working directory, when the client names it.
    pub cwd: Option<String>,
    /// How large the request is.
    pub size: Size,
    /// A number made from the body: ids that are made from it differ between requests, also across
    /// a restart of the server in the middle of a conversation.
    pub seed: u64,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    User,
    Assistant,
    System,
}

/// A message in neither API's shape.
#[derive(Debug)]
struct Message {
    role: Role,
    texts: Vec<String>,
    results: Vec<ToolResult>,
}

/// What an API's own file reads from a body.
#[derive(Debug)]
struct Parts {
    system: Vec<String>,
    messages: Vec<Message>,
    tools: Vec<String>,
    wants_usage: bool,
    wants_json: bool,
    wants_thinking: bool,
    max_tokens: Option<u64>,
}

impl Ask {
    /// Reads a body of `length` bytes.
    pub fn read(api: Api, body: &Value, length: usize) -> Self {
        let parts = match api {
            Api::Anthropic => anthropic::read(body),
            Api::OpenAi => openai::read(body),
        };
        let (last_user, step) = last_user(&parts.messages);
        let system = parts.system.join("\n");
        Self {
            api,
            purpose: purpose(&parts, &system, &last_user),
            is_streamed: body["stream"].as_bool().unwrap_or(false),
            wants_usage: parts.wants_usage,
            wants_json: parts.wants_json,
            wants_thinking: parts.wants_thinking,
            model: body["model"].as_str().unwrap_or_default().to_owned(),
            cwd: cwd(&system, &parts.messages),
            wake: Wake::parse(&last_user),
            tool_results: newest_results(&parts.messages),
            size: Size {
                total: length as u64,
                tail: tail(body),
                is_cached: marks_cache(body),
                is_continued: parts
                    .messages
                    .iter()
                    .any(|message| message.role == Role::Assistant),
            },
            seed: seed(body),
            tools: parts.tools,
            system,
            last_user,
            step,
        }
    }

    /// Whether a tool is offered.
    pub fn offers(&self, tool: &str) -> bool {
        self.tools.iter().any(|offered| offered == tool)
    }
}

/// The last text that a user wrote and how many answers came after it. A client merges the prompt
/// after a failed turn into the message before it, so it is the last block that counts.
fn last_user(messages: &[Message]) -> (String, u64) {
    let mut step = 0;
    for message in messages.iter().rev() {
        match message.role {
            Role::Assistant => step += 1,
            Role::User => {
                let text = message.texts.iter().rev().find(|text| !is_reminder(text));
                if let Some(text) = text {
                    return (text.clone(), step);
                }
            }
            Role::System => {}
        }
    }
    (String::new(), step)
}

/// Whether a client put this text there by itself.
fn is_reminder(text: &str) -> bool {
    let text = text.trim();
    text.is_empty()
        || (text.starts_with("<system-reminder>") && text.ends_with("</system-reminder>"))
}

/// A text without the reminders that a client hangs on to the results of tools.
fn without_reminders(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("<system-reminder>") {
        let Some((_, after)) = after.split_once("</system-reminder>") else {
            break;
        };
        kept.push_str(before);
        rest = after;
    }
    kept.push_str(rest);
    kept.trim_end().to_owned()
}

fn newest_results(messages: &[Message]) -> Vec<ToolResult> {
    let after_answer = messages
        .iter()
        .rposition(|message| message.role == Role::Assistant)
        .map_or(0, |at| at + 1);
    messages[after_answer..]
        .iter()
        .flat_map(|message| message.results.iter().cloned())
        .collect()
}

/// Summaries and side requests are told by their own words, which no user is likely to write.
fn purpose(parts: &Parts, system: &str, last_user: &str) -> Purpose {
    let asks_summary = last_user.starts_with("CRITICAL: Respond with TEXT ONLY")
        || last_user.contains("Your task is to create a detailed summary of the conversation");
    if asks_summary {
        return Purpose::Summary;
    }
    let asks_title = parts.tools.is_empty() && {
        let system = system.to_ascii_lowercase();
        system.contains("generate a concise") && system.contains("title")
    };
    if asks_title || parts.max_tokens == Some(1) {
        return Purpose::Side;
    }
    Purpose::Turn
}

/// `Primary working directory: /state`, as `claude` tells it in a reminder or its system prompt.
fn cwd(system: &str, messages: &[Message]) -> Option<String> {
    let first = messages
        .iter()
        .filter(|message| message.role != Role::Assistant)
        .take(2)
        .flat_map(|message| message.texts.iter().map(String::as_str));
    std::iter::once(system).chain(first).find_map(|text| {
        let (_, rest) = text.split_once("orking directory: ")?;
        let path = rest.lines().next()?.trim();
        (!path.is_empty()).then(|| path.to_owned())
    })
}

fn tail(body: &Value) -> u64 {
    let messages = body["messages"].as_array().into_iter().flatten().rev();
    messages
        .take_while(|message| message["role"] != "assistant")
        .map(|message| message.to_string().len() as u64)
        .sum()
}

fn marks_cache(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key("cache_control") || map.values().any(marks_cache),
        Value::Array(items) => items.iter().any(marks_cache),
        _ => false,
    }
}

/// FNV-1a over the messages: the same conversation gives the same number.
fn seed(body: &Value) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in body["messages"].to_string().bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// The text of a content field: a string, or a list of blocks of which the text ones count.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        Value::Array(blocks) => blocks
            .iter()
            .filter(|block| block["type"] == "text")
            .filter_map(|block| block["text"].as_str())
            .map(str::to_owned)
            .collect(),
        _ => Vec::new(),
    }
}

fn names(tools: &Value, name: impl Fn(&Value) -> Option<&str>) -> Vec<String> {
    tools
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| name(tool).map(str::to_owned))
        .collect()
}

#[cfg(test)]
mod tests;
