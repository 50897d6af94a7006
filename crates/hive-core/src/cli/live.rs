//! What an agent does, for people: the events of its harness as lines (D5).
//!
//! Everything shown here came from an agent and its engine: each line is made printable and cut
//! where it is printed, and nothing is assumed of a value's shape.

use anstyle::Style;
use hive_wire::host::EventRow;
use serde_json::Value;

use super::out::style;

/// A line and how it looks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) style: Style,
    pub(super) text: String,
}

/// Arguments of tools that say best what a call is about, the best first.
const TELLING: [&str; 10] = [
    "file_path",
    "path",
    "command",
    "cmd",
    "pattern",
    "url",
    "query",
    "to",
    "name",
    "text",
];

/// The lines of an event of a harness; none for an event of somebody else. An event that is not
/// worth a line has none.
pub(super) fn lines(event: &EventRow) -> Option<Vec<Line>> {
    let data = &event.data;
    let lines = match event.kind.as_str() {
        "turn_start" => turn_start(data),
        "stream" => stream(&data["value"]),
        "note" => vec![line(style::FAINT, format!("· {}", text(&data["text"])))],
        "turn_end" => vec![turn_end(data)],
        "state" => state(data),
        "gap" => vec![line(
            style::WARN,
            format!("… {} events are missing here …", data["dropped"]),
        )],
        "login" => vec![line(style::BUSY, format!("login: {}", text(&data["text"])))],
        _ => return None,
    };
    Some(lines)
}

fn turn_start(data: &Value) -> Vec<Line> {
    let from = text(&data["from"]);
    let unread = data["unread"].as_u64().unwrap_or(0);
    let again = match data["delivery"].as_u64() {
        Some(delivery) if delivery > 1 => format!(" · delivery {delivery}"),
        _ => String::new(),
    };
    let head = format!("◆ TURN ← {from} · {unread} unread{again}");
    let mut lines = vec![line(style::HEAD, head)];
    let body = text(&data["body"]);
    if !body.trim().is_empty() {
        lines.push(line(style::PLAIN, format!("  {}", headline(body))));
    }
    lines
}

fn turn_end(data: &Value) -> Line {
    let note = text(&data["note"]);
    if data["ok"].as_bool() == Some(true) {
        let outcome = text(&data["outcome"]);
        let outcome = match outcome {
            "" | "ok" => String::new(),
            other => format!(" · {other}"),
        };
        return line(style::GOOD, format!("✓ turn ok{outcome}"));
    }
    let note = if note.is_empty() {
        text(&data["outcome"])
    } else {
        note
    };
    line(style::BAD, format!("✗ turn fail — {note}"))
}

/// Only what keeps an agent from working is worth a line.
fn state(data: &Value) -> Vec<Line> {
    let word = match text(&data["status"]) {
        "rate_limited" => "rate limited",
        "needs_login_idle" => "needs a login",
        "unavailable" => "the model is not to be had",
        "stopping" => "stopping",
        _ => return Vec::new(),
    };
    vec![line(style::WARN, format!("⊘ {word}"))]
}

/// What the engine says. Its first and last words, and limits, are told otherwise.
fn stream(value: &Value) -> Vec<Line> {
    if value["cut"].as_bool() == Some(true) {
        return vec![line(style::FAINT, format!("… {} bytes …", value["bytes"]))];
    }
    match text(&value["type"]) {
        "assistant" | "user" => contents(&value["message"]["content"]),
        _ => Vec::new(),
    }
}

fn contents(content: &Value) -> Vec<Line> {
    match content {
        Value::String(words) => words
            .lines()
            .map(|words| line(style::PLAIN, words.into()))
            .collect(),
        Value::Array(blocks) => blocks.iter().flat_map(block).collect(),
        _ => Vec::new(),
    }
}

fn block(block: &Value) -> Vec<Line> {
    match text(&block["type"]) {
        "text" => text(&block["text"])
            .lines()
            .map(|words| line(style::PLAIN, words.into()))
            .collect(),
        "thinking" => vec![line(
            style::FAINT,
            format!("∴ {}", headline(text(&block["thinking"]))),
        )],
        "tool_use" => vec![tool_use(block)],
        "tool_result" => vec![tool_result(block)],
        _ => Vec::new(),
    }
}

fn tool_use(block: &Value) -> Line {
    let name = text(&block["name"]);
    // `mcp__server__tool` is known by its tool.
    let name = name.rsplit("__").next().unwrap_or(name);
    let input = &block["input"];
    let telling = TELLING.iter().find_map(|key| input[*key].as_str());
    let about = telling
        .map(|words| headline(words).to_owned())
        .unwrap_or_default();
    line(
        style::BUSY,
        format!("→ {name} {about}").trim_end().to_owned(),
    )
}

fn tool_result(block: &Value) -> Line {
    let content = &block["content"];
    let whole = match content {
        Value::String(words) => words.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    };
    let count = whole.lines().count();
    let is_error = block["is_error"].as_bool() == Some(true);
    let style = if is_error { style::BAD } else { style::FAINT };
    let words = headline(&whole);
    if count > 1 {
        return line(style, format!("▸ ← {count}l · {words}"));
    }
    line(style, format!("← {words}").trim_end().to_owned())
}

/// The first line that says something.
fn headline(words: &str) -> &str {
    let first = words.lines().find(|line| !line.trim().is_empty());
    first.unwrap_or_default().trim()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn line(style: Style, text: String) -> Line {
    Line { style, text }
}

#[cfg(test)]
mod tests {
    use hive_wire::Timestamp;
    use serde_json::json;

    use super::*;

    fn shown(kind: &str, data: Value) -> Option<Vec<String>> {
        let event = EventRow {
            seq: 1,
            at: Timestamp::from_millis(0),
            about: "ada".into(),
            kind: kind.into(),
            data,
        };
        lines(&event).map(|lines| lines.into_iter().map(|line| line.text).collect())
    }

    fn engine(value: Value) -> Vec<String> {
        shown("stream", json!({"value": value})).unwrap()
    }

    #[test]
    fn d5_a_turn_begins_and_ends_with_a_line() {
        let start = json!({"from": "bob", "body": "\n  do it\nnow", "unread": 3, "delivery": 1});
        assert_eq!(
            shown("turn_start", start).unwrap(),
            ["◆ TURN ← bob · 3 unread", "  do it"]
        );
        let again = json!({"from": "bob", "body": "", "unread": 0, "delivery": 2});
        assert_eq!(
            shown("turn_start", again).unwrap(),
            ["◆ TURN ← bob · 0 unread · delivery 2"]
        );
        for (data, expected) in [
            (json!({"ok": true, "outcome": "ok"}), "✓ turn ok"),
            (
                json!({"ok": true, "outcome": "compacted"}),
                "✓ turn ok · compacted",
            ),
            (
                json!({"ok": false, "outcome": "failed", "note": "exit 1"}),
                "✗ turn fail — exit 1",
            ),
            (
                json!({"ok": false, "outcome": "crash"}),
                "✗ turn fail — crash",
            ),
            (json!({}), "✗ turn fail — "),
        ] {
            assert_eq!(shown("turn_end", data).unwrap(), [expected]);
        }
    }

    #[test]
    fn d5_tools_and_their_results_have_a_line_each() {
        let calls = json!({"type": "assistant", "message": {"content": [
            {"type": "thinking", "thinking": "hm\nmore"},
            {"type": "text", "text": "Let me\nlook."},
            {"type": "tool_use", "name": "Read", "input": {"file_path": "/etc/hosts"}},
            {"type": "tool_use", "name": "mcp__hyperhive__send", "input": {"to": "bob", "body": "x"}},
            {"type": "tool_use", "name": "Odd", "input": [1]},
        ]}});
        assert_eq!(
            engine(calls),
            [
                "∴ hm",
                "Let me",
                "look.",
                "→ Read /etc/hosts",
                "→ send bob",
                "→ Odd"
            ]
        );
        let results = json!({"type": "user", "message": {"content": [
            {"type": "tool_result", "content": "one line"},
            {"type": "tool_result", "content": [{"type": "text", "text": "a\nb\nc"}]},
            {"type": "tool_result", "content": null},
        ]}});
        assert_eq!(engine(results), ["← one line", "▸ ← 3l · a", "←"]);
    }

    #[test]
    fn d5_what_says_nothing_new_has_no_line() {
        for kind in ["system", "result", "rate_limit_event", "stream_event", ""] {
            assert_eq!(engine(json!({"type": kind})), [""; 0], "{kind}");
        }
        assert_eq!(
            shown("state", json!({"status": "online"})).unwrap(),
            [""; 0]
        );
        assert_eq!(
            shown("state", json!({"status": "rate_limited"})).unwrap(),
            ["⊘ rate limited"]
        );
        assert_eq!(
            shown("gap", json!({"dropped": 7})).unwrap(),
            ["… 7 events are missing here …"]
        );
        assert_eq!(shown("message_stored", json!({})), None, "not of a harness");
    }

    #[test]
    fn values_of_any_shape_are_survived() {
        for value in [json!(null), json!(7), json!([]), json!({"type": {"a": 1}})] {
            for kind in [
                "turn_start",
                "stream",
                "note",
                "turn_end",
                "state",
                "gap",
                "login",
            ] {
                shown(kind, value.clone()).unwrap();
                shown(kind, json!({"value": value, "text": value})).unwrap();
            }
            engine(json!({"type": "assistant", "message": {"content": value}}));
            engine(
                json!({"type": "user", "message": {"content": [{"type": "tool_result", "content": value}]}}),
            );
        }
    }
}
