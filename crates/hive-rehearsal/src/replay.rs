//! From a recording to a scenario that answers as the recorded model did.
//!
//! Every exchange becomes a rule that matches the same words at the same step, once; so a fleet
//! can be replayed although its agents come in another order.

mod anthropic;
mod openai;

use std::io::{BufRead, Read};

use anyhow::{Context, ensure};
use serde_json::{Map, Value};
use toml::Table;

use crate::{
    ask::{Api, Ask, Purpose},
    recording::{Entry, Response},
    scenario::template::Template,
};

/// The longest line of a recording: a request, an answer, and their quoting.
const MAX_LINE_BYTES: u64 = 256 * 1024 * 1024;

/// Headers of an answer that clients act on.
const KEPT_HEADERS: [&str; 2] = ["retry-after", "anthropic-ratelimit-"];

/// What a model answered, in neither API's shape.
#[derive(Debug, Default, PartialEq)]
struct Said {
    thinking: String,
    text: String,
    tools: Vec<(String, Value)>,
    stop_reason: Option<String>,
    /// Keys of the scenario's `usage`.
    usage: Vec<(&'static str, u64)>,
    /// An error in the middle of a stream: its type and message.
    error: Option<(String, String)>,
}

/// The scenario of a recording, as the text of a file.
pub(crate) fn scenario(mut recording: impl BufRead) -> anyhow::Result<String> {
    let mut rules = Vec::new();
    for number in 1_u64.. {
        let mut line = Vec::new();
        recording
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)?;
        if line.is_empty() {
            break;
        }
        ensure!(
            (line.len() as u64) < MAX_LINE_BYTES,
            "line {number} is too long"
        );
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let entry: Entry = serde_json::from_slice(&line)
            .with_context(|| format!("line {number} is no line of a recording"))?;
        rules.extend(rule(&entry).map(toml::Value::Table));
    }
    ensure!(
        !rules.is_empty(),
        "it holds no answers of a model: record one with `hive-rehearsal record --upstream URL`"
    );
    let mut scenario = Table::new();
    let count = rules.len();
    scenario.insert("schema".into(), 1.into());
    let description = format!("{count} answers of a recorded model");
    scenario.insert("description".into(), description.into());
    scenario.insert("rule".into(), rules.into());
    Ok(toml::to_string(&scenario)?)
}

/// The rule of one exchange; `None` when it asked for no answer.
fn rule(entry: &Entry) -> Option<Table> {
    let response = entry.response.as_ref()?;
    let api = match entry.path.split('?').next()? {
        "/v1/messages" => Api::Anthropic,
        "/v1/chat/completions" => Api::OpenAi,
        _ => return None,
    };
    let ask = Ask::read(api, &entry.body, 0);
    let mut rule = Table::new();
    rule.insert("name".into(), format!("recorded {}", entry.number).into());
    rule.insert("times".into(), 1.into());
    rule.insert("when".into(), when(&ask).into());
    let said = match api {
        Api::Anthropic => anthropic::said(&response.body),
        Api::OpenAi => openai::said(&response.body),
    };
    if (200..300).contains(&response.status) {
        rule.insert("answer".into(), answer(&said).into());
    }
    if let Some(fault) = fault(response, &said) {
        rule.insert("fault".into(), fault.into());
    }
    Some(rule)
}

fn when(ask: &Ask) -> Table {
    let mut when = Table::new();
    let kind = match ask.purpose {
        Purpose::Turn => "turn",
        Purpose::Summary => "summary",
        Purpose::Side => "side",
    };
    when.insert("request".into(), kind.into());
    if ask.purpose == Purpose::Turn {
        when.insert("step".into(), i64::try_from(ask.step).unwrap_or(0).into());
        let mut equals = Table::new();
        // The body of a wake prompt: the rest of the prompt has ids that will differ.
        equals.insert("equals".into(), ask.wake.body.clone().into());
        when.insert("body".into(), equals.into());
    }
    when
}

fn answer(said: &Said) -> Table {
    let mut answer = Table::new();
    for (key, text) in [("thinking", &said.thinking), ("text", &said.text)] {
        if !text.is_empty() {
            answer.insert(key.into(), Template::escape(text).into());
        }
    }
    if let Some(stop) = &said.stop_reason {
        answer.insert("stop_reason".into(), stop.clone().into());
    }
    if !said.usage.is_empty() {
        let usage = said.usage.iter().map(|(key, tokens)| {
            let tokens = i64::try_from(*tokens).unwrap_or(i64::MAX);
            ((*key).to_owned(), tokens.into())
        });
        answer.insert("usage".into(), usage.collect::<Table>().into());
    }
    let tools: Vec<toml::Value> = said.tools.iter().map(tool).collect();
    if !tools.is_empty() {
        answer.insert("tools".into(), tools.into());
    }
    answer
}

fn tool((name, input): &(String, Value)) -> toml::Value {
    let mut call = Table::new();
    call.insert("name".into(), name.clone().into());
    if let Some(input) = toml_value(input) {
        call.insert("input".into(), input);
    }
    call.into()
}

/// The same value in TOML, its texts escaped. TOML has no null: such a key is left out.
fn toml_value(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(bool) => (*bool).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(float)) => float.into(),
            (None, None) => return None,
        },
        Value::String(text) => Template::escape(text).into(),
        Value::Array(items) => items
            .iter()
            .filter_map(toml_value)
            .collect::<Vec<_>>()
            .into(),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .filter_map(|(key, value)| Some((key.clone(), toml_value(value)?)));
            fields.collect::<Table>().into()
        }
    })
}

fn fault(response: &Response, said: &Said) -> Option<Table> {
    let mut fault = Table::new();
    let mut set = |key: &str, value: toml::Value| fault.insert(key.to_owned(), value);
    match response.status {
        200..300 => {
            if let Some((kind, message)) = &said.error {
                set("kind", "error_event".into());
                set("status", 500.into());
                set("error_type", kind.clone().into());
                set("message", Template::escape(message).into());
            } else if response.is_complete {
                return None;
            } else {
                set("kind", "cut".into());
            }
        }
        0 => {
            set("kind", "reset".into());
            set("after_events", 0.into());
        }
        status => {
            let error = &response.body["error"];
            let text = |key: &str| error[key].as_str().unwrap_or_default().to_owned();
            set("kind", "status".into());
            set("status", i64::from(status.max(400)).into());
            set("error_type", text("type").into());
            set("message", Template::escape(&text("message")).into());
            let headers = response
                .headers
                .iter()
                .filter(|(name, _)| KEPT_HEADERS.iter().any(|kept| name.starts_with(kept)));
            let headers: Table = headers
                .map(|(name, value)| (name.clone(), value.clone().into()))
                .collect();
            set("headers", headers.into());
        }
    }
    Some(fault)
}

/// The JSON object in the pieces of a tool's input.
fn input(pieces: &str) -> Value {
    let empty = || Value::Object(Map::new());
    if pieces.trim().is_empty() {
        return empty();
    }
    serde_json::from_str(pieces).unwrap_or_else(|_| empty())
}

#[cfg(test)]
mod tests;
