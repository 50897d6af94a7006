//! Shortening a JSON line while it streams by.
//!
//! A line can be 50 MB long (an image, a tool's output), and the field that matters can lie anywhere
//! in it: `claude` fixes no order of keys. So a line that is too long to be held whole is walked byte
//! by byte. Long strings are cut, whole members of the outermost object are left out when they are
//! large even so, and what remains is a valid, small JSON object with the same small members.
//!
//! Memory is bounded whatever comes. Input that is no JSON gives output that is none either.

/// What a string is cut to, in bytes as written.
const MAX_STRING: usize = 2 * 1024;
/// What one member of the outermost object may take after its strings were cut.
const MAX_MEMBER: usize = 64 * 1024;
/// What is kept in all. Members after that are left out.
const MAX_KEPT: usize = 512 * 1024;

/// Walks one line.
#[derive(Debug, Default)]
pub(super) struct Skim {
    kept: Vec<u8>,
    depth: u32,
    text: Option<Text>,
    /// Where the current member of the outermost object begins in `kept`.
    member: usize,
    /// The rest of the current member is left out.
    skipping: bool,
}

/// Inside a string.
#[derive(Debug, Default)]
struct Text {
    length: usize,
    /// Bytes of an escape that are still to come.
    escape: u8,
    /// The last four hex digits of a `\u` escape, while they come in.
    unit: u32,
    /// The last character was the first half of a pair: a cut must not part them.
    half: bool,
    /// The rest of the string is left out.
    cut: bool,
}

impl Skim {
    /// Walks on through the line.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) {
        while let Some((&byte, rest)) = bytes.split_first() {
            // Most of a long line is one long string: the part to leave out is jumped over.
            if self.text.as_ref().is_some_and(|t| t.cut && t.escape == 0) {
                let Some(end) = memchr::memchr2(b'"', b'\\', bytes) else {
                    return;
                };
                self.in_string(bytes[end]);
                bytes = &bytes[end + 1..];
                continue;
            }
            if self.text.is_some() {
                self.in_string(byte);
            } else {
                self.outside(byte);
            }
            bytes = rest;
        }
    }

    /// What was kept of the line.
    pub(super) fn finish(self) -> Vec<u8> {
        self.kept
    }

    fn outside(&mut self, byte: u8) {
        match byte {
            b' ' | b'\t' | b'\r' => return,
            b'"' => self.text = Some(Text::default()),
            b'{' | b'[' => {
                self.depth = self.depth.saturating_add(1);
                if self.depth == 1 {
                    self.keep(byte);
                    self.member = self.kept.len();
                    return;
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    if std::mem::take(&mut self.skipping) && self.kept.last() == Some(&b',') {
                        self.kept.pop();
                    }
                    self.put(byte);
                    return;
                }
            }
            b',' if self.depth == 1 => {
                if !std::mem::take(&mut self.skipping) {
                    self.put(byte);
                }
                self.member = self.kept.len();
                return;
            }
            _ => {}
        }
        self.keep(byte);
    }

    fn in_string(&mut self, byte: u8) {
        let Some(text) = &mut self.text else { return };
        let begins = text.escape == 0 && byte & 0xC0 != 0x80;
        if begins && byte != b'"' && !text.half && text.length >= MAX_STRING {
            text.cut = true;
        }
        let ends = text.escape == 0 && byte == b'"';
        text.advance(byte);
        let cut = text.cut;
        if ends {
            self.text = None;
        }
        if ends || !cut {
            self.keep(byte);
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.skipping {
            return;
        }
        self.put(byte);
        let too_large = self.kept.len() - self.member > MAX_MEMBER || self.kept.len() >= MAX_KEPT;
        if too_large && self.depth > 0 {
            self.kept.truncate(self.member);
            self.skipping = true;
        }
    }

    /// The last word on what is kept, for input that is no JSON.
    fn put(&mut self, byte: u8) {
        // A comma and the end of the object fit even so.
        if self.kept.len() < MAX_KEPT + 2 {
            self.kept.push(byte);
        }
    }
}

impl Text {
    /// Takes note of one more byte of the string.
    fn advance(&mut self, byte: u8) {
        self.length += 1;
        match (self.escape, byte) {
            (0, b'\\') => self.escape = 5,
            (0, _) => self.half = false,
            (5, b'u') => {
                self.escape = 4;
                self.unit = 0;
            }
            (5, _) => {
                self.escape = 0;
                self.half = false;
            }
            (left, digit) => {
                let digit = char::from(digit).to_digit(16).unwrap_or(0);
                self.unit = self.unit << 4 | digit;
                self.escape = left - 1;
                if self.escape == 0 {
                    self.half = (0xD800..0xDC00).contains(&self.unit);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn skim(line: &[u8], chunk: usize) -> Vec<u8> {
        let mut skim = Skim::default();
        for part in line.chunks(chunk.max(1)) {
            skim.feed(part);
        }
        skim.finish()
    }

    fn parsed(line: &str, chunk: usize) -> Value {
        let kept = skim(line.as_bytes(), chunk);
        serde_json::from_slice(&kept).expect("valid JSON stays valid")
    }

    #[test]
    fn a_result_survives_with_its_fields_wherever_they_lie() {
        let line = json!({
            "a_long_one": "x".repeat(300_000),
            "is_error": false,
            "result": "y".repeat(300_000),
            "type": "result",
            "usage": {"input_tokens": 5},
            "many": vec![7; 40_000],
        });
        for chunk in [1, 7, 65_536] {
            let kept = parsed(&line.to_string(), chunk);
            assert_eq!(kept["type"], "result");
            assert_eq!(kept["is_error"], false);
            assert_eq!(kept["usage"]["input_tokens"], 5);
            assert_eq!(kept["result"].as_str().map(str::len), Some(MAX_STRING));
            assert_eq!(kept.get("many"), None);
        }
    }

    #[test]
    fn cuts_never_part_a_character() {
        for pad in 0..16 {
            for unit in ["é", "😀", "\\ud83d\\ude00", "\\n", "\\\\", "\\u00e9"] {
                let text = "a".repeat(pad) + &unit.repeat(MAX_STRING);
                let kept = parsed(&format!("{{\"t\":\"{text}\",\"u\":1}}"), 3);
                assert_eq!(kept["u"], 1, "{unit} after {pad}");
            }
        }
    }

    #[test]
    fn a_left_out_member_leaves_no_comma_behind() {
        let large = format!("[{}0]", "0,".repeat(MAX_MEMBER));
        for line in [
            format!("{{\"x\":{large}}}"),
            format!("{{\"x\":{large},\"a\":1}}"),
            format!("{{\"a\":1,\"x\":{large}}}"),
            format!("{{\"a\":1,\"x\":{large},\"b\":2}}"),
            format!("{{\"a\":1,\"x\":{large},\"y\":{large}}}"),
        ] {
            assert!(parsed(&line, 1000).get("x").is_none());
        }
    }

    #[test]
    fn memory_is_bounded_whatever_comes() {
        for line in [
            "[".repeat(1_000_000),
            "1".repeat(1_000_000),
            "}".repeat(1_000_000),
            "{\"a\":1,".repeat(150_000),
            format!("{{{}}}", "\"k\":1,".repeat(150_000)),
            "\"".to_owned() + &"\\".repeat(1_000_000),
        ] {
            let kept = skim(line.as_bytes(), 4096);
            assert!(kept.len() <= MAX_KEPT + 2, "{} bytes", kept.len());
        }
    }

    proptest! {
        #[test]
        fn prop_small_members_are_kept_as_they_are(
            keys in proptest::collection::btree_map("[a-z]{1,6}", any::<(i32, String, bool)>(), 0..6),
            chunk in 1usize..50,
        ) {
            let value = json!(keys);
            prop_assert_eq!(parsed(&value.to_string(), chunk), value.clone());
            let spaced = serde_json::to_string_pretty(&value).unwrap().replace('\n', " ");
            prop_assert_eq!(parsed(&spaced, chunk), value);
        }

        #[test]
        fn fuzz_any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            prop_assert!(skim(&bytes, 3).len() <= bytes.len());
        }
    }
}
