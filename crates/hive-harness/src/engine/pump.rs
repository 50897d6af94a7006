//! Reading an engine's streams, whatever comes on them.
//!
//! A line may be 50 MB long, no UTF-8, no JSON, no object, or without its newline at the end. The
//! pumps hold at most [`MAX_WHOLE`] bytes of a line; a longer one is skimmed as it goes by
//! ([`Skim`]), so that its fields are still read, and shown by its head alone. They end when the
//! stream does, not at the first `result`.

use std::borrow::Cow;

use serde_json::value::RawValue;
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::mpsc,
};

use super::{EngineEvent, facts::cut, skim::Skim, stream::StreamEvent};

/// The longest line that is held whole.
const MAX_WHOLE: usize = 1024 * 1024;
/// The longest line that is shown whole.
const MAX_SHOWN: usize = 256 * 1024;
/// How much is shown of a longer one, and of a line that is no event.
const HEAD: usize = 4 * 1024;
/// How much is read at once.
const CHUNK: usize = 64 * 1024;

/// What comes out of the pumps.
#[derive(Debug)]
pub(super) enum Output {
    /// A line on stdout: what it means, if it is an event, and what to show of it.
    Line(Option<StreamEvent>, EngineEvent),
    /// A line on stderr.
    Stderr(String),
    /// One of the two streams has ended.
    End,
}

/// Reads stdout to its end. Stops early only when nobody listens any more.
pub(super) async fn stdout(stream: impl AsyncRead + Unpin, out: mpsc::Sender<Output>) {
    pump(stream, out, |line| match line {
        Line::Whole(bytes) => understand(bytes),
        Line::Long {
            bytes,
            head,
            skimmed,
        } => {
            let skimmed = String::from_utf8_lossy(&skimmed);
            let head = cut(&String::from_utf8_lossy(&head), HEAD);
            Output::Line(
                StreamEvent::parse(&skimmed),
                EngineEvent::Oversize { bytes, head },
            )
        }
    })
    .await;
}

/// Reads stderr to its end.
pub(super) async fn stderr(stream: impl AsyncRead + Unpin, out: mpsc::Sender<Output>) {
    pump(stream, out, |line| {
        let (Line::Whole(bytes) | Line::Long { head: bytes, .. }) = line;
        Output::Stderr(cut(&String::from_utf8_lossy(&bytes), HEAD))
    })
    .await;
}

async fn pump(
    mut stream: impl AsyncRead + Unpin,
    out: mpsc::Sender<Output>,
    mut read: impl FnMut(Line) -> Output,
) {
    let mut buffer = vec![0; CHUNK];
    let mut cutter = Cutter::default();
    loop {
        // A stream that cannot be read any more has ended as far as a turn is concerned.
        let count = stream.read(&mut buffer).await.unwrap_or(0);
        let mut chunk = &buffer[..count];
        let mut lines = std::iter::from_fn(|| cutter.next(&mut chunk)).collect::<Vec<_>>();
        if count == 0 {
            lines.extend(cutter.last());
        }
        for line in lines {
            if out.send(read(line)).await.is_err() {
                return;
            }
        }
        if count == 0 {
            break;
        }
    }
    if out.send(Output::End).await.is_err() {
        tracing::debug!("the end of a stream that nobody waits for");
    }
}

/// One line of stdout as an event, as far as it is one.
fn understand(bytes: Vec<u8>) -> Output {
    let length = bytes.len();
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    };
    let Some(event) = StreamEvent::parse(&text) else {
        return Output::Line(None, EngineEvent::Stray(cut(&text, HEAD)));
    };
    if length > MAX_SHOWN {
        let head = cut(&text, HEAD);
        let bytes = u64::try_from(length).unwrap_or(u64::MAX);
        return Output::Line(Some(event), EngineEvent::Oversize { bytes, head });
    }
    let shown = match RawValue::from_string(whole_pairs(&text).into_owned()) {
        Ok(value) => EngineEvent::Line(value),
        Err(_) => EngineEvent::Stray(cut(&text, HEAD)),
    };
    Output::Line(Some(event), shown)
}

/// The JSON text with every half of a surrogate pair replaced. JavaScript writes such halves where a
/// text was cut inside a character, and no other language reads them.
fn whole_pairs(json: &str) -> Cow<'_, str> {
    let unit = |at: usize| {
        let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut fixed = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(step) = memchr::memchr(b'\\', &json.as_bytes()[at..]) {
        at += step;
        match unit(at) {
            Some(0xD800..0xDC00) if matches!(unit(at + 6), Some(0xDC00..0xE000)) => at += 12,
            Some(0xD800..0xE000) => {
                fixed.push_str(&json[copied..at]);
                fixed.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // Two bytes at least, and whole characters: an escaped backslash escapes nothing.
            _ => at = json.ceil_char_boundary(at + 2),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    fixed.push_str(&json[copied..]);
    Cow::Owned(fixed)
}

/// A line without its newline.
#[derive(Debug, PartialEq, Eq)]
enum Line {
    Whole(Vec<u8>),
    Long {
        bytes: u64,
        head: Vec<u8>,
        skimmed: Vec<u8>,
    },
}

/// Cuts a stream into lines. Blank ones are left out.
#[derive(Debug, Default)]
struct Cutter {
    held: Vec<u8>,
    long: Option<Long>,
}

/// A line that has become too long to be held.
#[derive(Debug)]
struct Long {
    bytes: u64,
    head: Vec<u8>,
    skim: Skim,
}

impl Cutter {
    /// Takes from the chunk up to the next newline. None when the chunk is used up.
    fn next(&mut self, chunk: &mut &[u8]) -> Option<Line> {
        while !chunk.is_empty() {
            let Some(end) = memchr::memchr(b'\n', chunk) else {
                self.take(std::mem::take(chunk));
                return None;
            };
            self.take(&chunk[..end]);
            *chunk = &chunk[end + 1..];
            if let Some(line) = self.last() {
                return Some(line);
            }
        }
        None
    }

    /// What is left when the line or the stream has ended.
    fn last(&mut self) -> Option<Line> {
        let held = std::mem::take(&mut self.held);
        if let Some(Long { bytes, head, skim }) = self.long.take() {
            let skimmed = skim.finish();
            return Some(Line::Long {
                bytes,
                head,
                skimmed,
            });
        }
        let blank = held.iter().all(u8::is_ascii_whitespace);
        (!blank).then_some(Line::Whole(held))
    }

    fn take(&mut self, part: &[u8]) {
        if self.long.is_none() && self.held.len() + part.len() > MAX_WHOLE {
            let held = std::mem::take(&mut self.held);
            let mut skim = Skim::default();
            skim.feed(&held);
            self.long = Some(Long {
                bytes: held.len() as u64,
                head: held.iter().chain(part).copied().take(HEAD).collect(),
                skim,
            });
        }
        match &mut self.long {
            Some(long) => {
                long.bytes += part.len() as u64;
                long.skim.feed(part);
            }
            None => self.held.extend_from_slice(part),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    async fn pumped(bytes: &[u8]) -> Vec<Output> {
        let (send, mut receive) = mpsc::channel(4);
        let mut all = Vec::new();
        let collect = async {
            while let Some(output) = receive.recv().await {
                all.push(output);
            }
        };
        tokio::join!(stdout(bytes, send), collect);
        all
    }

    #[tokio::test]
    async fn t5_everything_on_stdout_becomes_something() {
        let mut bytes = b"{\"type\":\"result\"}\r\n\n  \n[1]\nplain\n\xff\xfe{\n".to_vec();
        bytes.extend(b"{\"type\":\"x\",\"t\":\"\xff\"}\n{\"type\":\"result\",\"is_error\":true}");
        let all = pumped(&bytes).await;
        let kinds: Vec<_> = all
            .iter()
            .map(|output| match output {
                Output::Line(Some(StreamEvent::Result(_)), EngineEvent::Line(_)) => "result",
                Output::Line(Some(_), EngineEvent::Line(_)) => "event",
                Output::Line(None, EngineEvent::Stray(_)) => "stray",
                Output::End => "end",
                _ => "odd",
            })
            .collect();
        assert_eq!(
            kinds,
            [
                "result", "stray", "stray", "stray", "event", "result", "end"
            ]
        );
    }

    #[tokio::test]
    async fn a_result_of_50_mb_is_read_and_shown_by_its_head() {
        let text = "x".repeat(50 * 1024 * 1024);
        let line = format!("{{\"result\":\"{text}\",\"is_error\":true,\"type\":\"result\"}}\n");
        let all = pumped(line.as_bytes()).await;
        let [
            Output::Line(Some(StreamEvent::Result(result)), shown),
            Output::End,
        ] = &all[..]
        else {
            panic!("one line, read as a result");
        };
        assert_eq!(result.is_error, Some(true));
        let EngineEvent::Oversize { bytes, head } = shown else {
            panic!("shown by its head");
        };
        assert_eq!(*bytes, line.len() as u64 - 1);
        assert!(head.len() <= HEAD + 4 && head.starts_with("{\"result\":\"xxx"));
    }

    #[tokio::test]
    async fn a_line_between_the_two_limits_is_read_whole_and_shown_by_its_head() {
        let text = "x".repeat(MAX_SHOWN);
        let line = format!("{{\"type\":\"result\",\"result\":\"{text}\"}}");
        let all = pumped(line.as_bytes()).await;
        let Output::Line(Some(StreamEvent::Result(result)), EngineEvent::Oversize { .. }) = &all[0]
        else {
            panic!("a result");
        };
        assert_eq!(result.result.as_deref(), Some(&*text));
    }

    #[test]
    fn halves_of_pairs_are_replaced_and_nothing_else() {
        for (json, fixed) in [
            (r#"{"a":"\ud83d\ude00"}"#, r#"{"a":"\ud83d\ude00"}"#),
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (
                r#"{"a":"\ude00\ud83d\ud83d\ude00"}"#,
                r#"{"a":"\ufffd\ufffd\ud83d\ude00"}"#,
            ),
            (r#"{"a":"\\ud83d"}"#, r#"{"a":"\\ud83d"}"#),
            (r#"{"a":"\\\ud83dé"}"#, r#"{"a":"\\\ufffdé"}"#),
            (r#"{"a":"\n\"é\\"}"#, r#"{"a":"\n\"é\\"}"#),
        ] {
            assert_eq!(whole_pairs(json), fixed);
        }
    }

    proptest! {
        #[test]
        fn prop_lines_are_the_same_however_the_stream_is_cut(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300),
            step in 1usize..20,
        ) {
            let cut_by = |step: usize| {
                let mut cutter = Cutter::default();
                let mut lines = Vec::new();
                for mut part in bytes.chunks(step) {
                    lines.extend(std::iter::from_fn(|| cutter.next(&mut part)));
                }
                lines.extend(cutter.last());
                lines
            };
            prop_assert_eq!(cut_by(step), cut_by(bytes.len().max(1)));
        }

        #[test]
        fn fuzz_whole_pairs_always_reads(text in ".{0,60}", unit in 0u32..0x10000) {
            let json = format!("{{\"a\":{}}}", serde_json::to_string(&text).unwrap());
            let json = json.replacen("\":\"", &format!("\":\"\\u{unit:04x}"), 1);
            let fixed = whole_pairs(&json);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&fixed).is_ok(), "{}", fixed);
        }
    }
}
