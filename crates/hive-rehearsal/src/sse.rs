//! The framing of server-sent events.

use bytes::Bytes;
use serde_json::Value;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Event {
    /// The name on its `event:` line; chat completions have none.
    pub(crate) name: Option<&'static str>,
    /// Its data.
    pub(crate) data: Data,
    /// Whether it carries a piece of the answer, which is what pauses and breaks are counted by.
    pub(crate) is_content: bool,
}

/// The data of an event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Data {
    /// JSON, which never holds a newline.
    Json(Value),
    /// A word such as `[DONE]`, or something broken.
    Raw(&'static str),
}

impl Event {
    /// The bytes on the wire.
    pub(crate) fn encode(&self) -> Bytes {
        let mut text = String::new();
        if let Some(name) = self.name {
            text.push_str("event: ");
            text.push_str(name);
            text.push('\n');
        }
        text.push_str("data: ");
        match &self.data {
            Data::Json(value) => text.push_str(&value.to_string()),
            Data::Raw(raw) => text.push_str(raw),
        }
        text.push_str("\n\n");
        text.into()
    }
}

/// Cuts a text into pieces of so many characters.
pub(crate) fn pieces(text: &str, chars: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .char_indices()
            .nth(chars)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, tail) = rest.split_at(end);
        pieces.push(piece);
        rest = tail;
    }
    pieces
}

/// The data of every event in a stream, as a client reads it: the reverse of [`Event::encode`], for
/// recordings.
pub(crate) fn data_of(text: &str) -> impl Iterator<Item = String> + '_ {
    let normalised = text.split("\n\n").flat_map(|part| part.split("\r\n\r\n"));
    normalised.filter_map(|event| {
        let lines: Vec<&str> = event
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_a_name_a_line_and_a_blank_line() {
        let event = |name, data| Event {
            name,
            data,
            is_content: false,
        };
        let table = [
            (
                event(Some("ping"), Data::Json(json!({"type":"ping"}))),
                "event: ping\ndata: {\"type\":\"ping\"}\n\n",
            ),
            (event(None, Data::Raw("[DONE]")), "data: [DONE]\n\n"),
            (
                event(None, Data::Json(json!({"t":"a\nb\r\n\u{2028}"}))),
                "data: {\"t\":\"a\\nb\\r\\n\u{2028}\"}\n\n",
            ),
        ];
        for (event, expected) in table {
            assert_eq!(event.encode(), expected);
        }
    }

    #[test]
    fn pieces_join_to_the_whole_and_cut_no_character() {
        assert_eq!(pieces("añb😀c", 2), ["añ", "b😀", "c"]);
        assert_eq!(pieces("ab", 5), ["ab"]);
        assert!(pieces("", 5).is_empty());
    }

    #[test]
    fn data_is_read_back() {
        let text = "event: a\ndata: 1\n\n: comment\n\ndata: 2\r\n\r\ndata:3\ndata: 4\n\n";
        assert_eq!(data_of(text).collect::<Vec<_>>(), ["1", "2", "3\n4"]);
    }
}
