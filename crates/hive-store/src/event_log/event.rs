//! One event, its weight in the queue, and its form on disk.
//!
//! A record is a JSON array `[seq, at, about, kind, data]`; records follow each other in a chunk's
//! body. Encoding happens on the writer thread; the publisher only weighs.

use std::{borrow::Cow, fmt, io};

use hive_wire::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

/// The kind of the marker that stands for an event above the size limit. Its data holds the `kind`
/// and the encoded `bytes` of the event it replaces.
pub const TOO_LARGE: &str = "event_too_large";

/// The longest `about` or `kind`; what is longer is cut, so that a marker is always small.
pub const MAX_LABEL: usize = 64;

/// About what one JSON node costs in memory.
const NODE: usize = size_of::<Value>();

/// Something that happened and that a live view shows.
#[derive(Debug)]
pub struct Event {
    /// When it happened.
    pub at: Timestamp,
    /// The agent (or `operator`) it is about; at most [`MAX_LABEL`] bytes.
    pub about: String,
    /// What happened, such as `message_stored`; at most [`MAX_LABEL`] bytes.
    pub kind: Cow<'static, str>,
    /// The particulars.
    pub data: EventData,
}

/// The particulars of an event. What is not text yet is encoded by the log's own thread.
#[derive(Debug)]
pub enum EventData {
    /// Any JSON.
    Value(Value),
    /// JSON text that is passed on unread.
    Raw(Box<RawValue>),
    /// What [`Self::plain`] was given.
    Plain(Plain),
}

/// A value that encodes, and how many bytes it takes, about.
#[derive(Debug)]
pub struct Plain(Box<dyn Particulars>, usize);

trait Particulars: fmt::Debug + Send + Sync {
    fn write(&self, body: &mut Vec<u8>);
    fn encoded_len(&self) -> usize;
}

impl<T: Serialize + fmt::Debug + Send + Sync> Particulars for T {
    fn write(&self, body: &mut Vec<u8>) {
        serde_json::to_writer(body, self).expect("plain fields encode into memory");
    }

    fn encoded_len(&self) -> usize {
        encoded_len(self)
    }
}

impl EventData {
    /// A value of about so many bytes. It must be one that JSON can express: the log's thread ends
    /// at any other.
    pub fn plain(
        value: impl Serialize + fmt::Debug + Send + Sync + 'static,
        about_bytes: usize,
    ) -> Self {
        Self::Plain(Plain(Box::new(value), about_bytes))
    }

    /// It as JSON.
    pub fn text(&self) -> String {
        let mut text = Vec::new();
        self.write(&mut text);
        String::from_utf8(text).expect("JSON is text")
    }

    fn write(&self, body: &mut Vec<u8>) {
        match self {
            Self::Value(value) => {
                serde_json::to_writer(body, value).expect("JSON values encode into memory");
            }
            Self::Raw(raw) => body.extend_from_slice(raw.get().as_bytes()),
            Self::Plain(Plain(value, _)) => value.write(body),
        }
    }

    /// How many bytes it has as JSON.
    fn encoded_len(&self) -> usize {
        match self {
            Self::Value(value) => encoded_len(value),
            Self::Raw(raw) => raw.get().len(),
            Self::Plain(Plain(value, _)) => value.encoded_len(),
        }
    }
}

impl From<Value> for EventData {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

impl From<Box<RawValue>> for EventData {
    fn from(raw: Box<RawValue>) -> Self {
        Self::Raw(raw)
    }
}

impl Event {
    /// Makes the event fit: labels are cut and data above `max_bytes` gives way to a marker.
    /// Returns the event's weight in memory.
    ///
    /// Only an event that weighs more than the limit is measured exactly, because measuring is
    /// serialising and this runs on the publisher's thread.
    pub(super) fn fit(&mut self, max_bytes: usize) -> usize {
        if self.about.len() > MAX_LABEL {
            self.about
                .truncate(self.about.floor_char_boundary(MAX_LABEL));
        }
        if self.kind.len() > MAX_LABEL {
            let end = self.kind.floor_char_boundary(MAX_LABEL);
            self.kind = Cow::Owned(self.kind[..end].to_owned());
        }
        let labels = size_of::<Self>() + self.about.len() + self.kind.len();
        let mut data = weight(&self.data);
        if labels + data > max_bytes {
            let bytes = self.data.encoded_len();
            if bytes > max_bytes {
                self.replace(bytes);
                data = weight(&self.data);
            }
        }
        labels + data
    }

    fn replace(&mut self, bytes: usize) {
        self.data = json!({"kind": self.kind, "bytes": bytes}).into();
        self.kind = TOO_LARGE.into();
    }

    /// Appends the record of this event to `body`.
    pub(super) fn encode(&mut self, seq: i64, max_bytes: usize, body: &mut Vec<u8>) {
        let start = body.len();
        self.write(seq, body);
        // Escapes can make text six times as long as it weighed in the queue.
        let bytes = body.len() - start;
        if bytes > max_bytes && self.kind != TOO_LARGE {
            body.truncate(start);
            self.replace(bytes);
            self.write(seq, body);
        }
    }

    fn write(&self, seq: i64, body: &mut Vec<u8>) {
        let labels = (seq, self.at.millis(), &self.about, &self.kind);
        serde_json::to_writer(&mut *body, &labels).expect("JSON values encode into memory");
        // In place of the bracket that ends the array.
        body.pop();
        body.push(b',');
        self.data.write(body);
        body.extend_from_slice(b"]\n");
    }
}

/// An event as it is read back, its data still text.
#[derive(Debug, Deserialize)]
pub(super) struct Record<'a>(
    pub(super) i64,
    pub(super) i64,
    #[serde(borrow)] pub(super) Cow<'a, str>,
    #[serde(borrow)] pub(super) Cow<'a, str>,
    #[serde(borrow)] pub(super) &'a RawValue,
);

/// How many bytes a value has as JSON.
pub(super) fn encoded_len(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, value).expect("JSON values encode, and counting never fails");
    count.0
}

fn weight(data: &EventData) -> usize {
    fn node(value: &Value) -> usize {
        NODE + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(node).sum(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| NODE + key.len() + node(value))
                .sum(),
        }
    }
    match data {
        EventData::Value(value) => node(value),
        EventData::Raw(raw) => raw.get().len(),
        EventData::Plain(Plain(_, about_bytes)) => *about_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: impl Into<EventData>) -> Event {
        Event {
            at: Timestamp::from_millis(7),
            about: "ada".into(),
            kind: "note".into(),
            data: data.into(),
        }
    }

    fn record(mut event: Event, max: usize) -> String {
        event.fit(max);
        let mut body = Vec::new();
        event.encode(3, max, &mut body);
        String::from_utf8(body).unwrap()
    }

    #[test]
    fn a_record_is_one_json_array() {
        assert_eq!(
            record(event(json!({"a": 1})), 1000),
            "[3,7,\"ada\",\"note\",{\"a\":1}]\n"
        );
        assert_eq!(
            record(event(EventData::plain(json!({"a": 1}), 0)), 1000),
            "[3,7,\"ada\",\"note\",{\"a\":1}]\n"
        );
        let raw = RawValue::from_string("{ \"a\":\n1 }".into()).unwrap();
        assert_eq!(
            record(event(raw), 1000),
            "[3,7,\"ada\",\"note\",{ \"a\":\n1 }]\n"
        );
    }

    #[test]
    fn what_is_too_large_leaves_its_kind_and_size() {
        let expected = "[3,7,\"ada\",\"event_too_large\",{\"bytes\":1002,\"kind\":\"note\"}]\n";
        assert_eq!(record(event(json!("x".repeat(1000))), 500), expected);
        let raw = RawValue::from_string(format!("{:?}", "x".repeat(1000))).unwrap();
        assert_eq!(record(event(raw), 500), expected);
        let plain = EventData::plain("x".repeat(1000), 1000);
        assert_eq!(record(event(plain), 500), expected);
    }

    #[test]
    fn escapes_are_found_when_the_event_is_encoded() {
        let escapes = "\u{1}".repeat(200);
        for event in [
            event(json!(escapes)),
            event(EventData::plain(escapes.clone(), escapes.len())),
        ] {
            let text = record(event, 500);
            assert!(text.contains(TOO_LARGE), "{text}");
        }
    }

    #[test]
    fn long_labels_are_cut_between_characters() {
        let mut long = event(json!(null));
        long.about = "é".repeat(MAX_LABEL);
        long.kind = "k".repeat(MAX_LABEL + 1).into();
        long.fit(1000);
        assert_eq!(long.about, "é".repeat(MAX_LABEL / 2));
        assert_eq!(long.kind, "k".repeat(MAX_LABEL));
    }
}
