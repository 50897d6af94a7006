//! Making foreign text fit to be shown: shortened, and without control characters.

use serde::{Serialize, Serializer, ser::Error};
use serde_json::value::RawValue;

/// The first `max` characters of `text`, with an ellipsis where something was cut.
pub fn shorten(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    // Counting characters takes longer than seeing that each is a byte.
    let cut = if text.as_bytes()[..max].is_ascii() {
        Some(max)
    } else {
        text.char_indices().nth(max).map(|(at, _)| at)
    };
    match cut {
        None => text.to_owned(),
        Some(at) => [&text[..at], "…"].concat(),
    }
}

/// The first and the last `max / 2` characters of `text`, with an ellipsis where something was cut:
/// for messages that quote foreign text in their middle.
pub fn shorten_middle(text: &str, max: usize) -> String {
    let half = max / 2;
    let head = text.char_indices().nth(half);
    let tail = text.char_indices().rev().nth(half.saturating_sub(1));
    match (head, tail) {
        (Some((head, _)), Some((tail, _))) if head < tail => {
            format!("{}…{}", &text[..head], &text[tail..])
        }
        _ => text.to_owned(),
    }
}

/// `text` with every control character but newline and tab replaced by a visible escape, so that
/// an agent's words cannot move a cursor, set a title or fill a clipboard.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(c),
            c if c.is_control() || is_invisible(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Characters that reorder or hide what stands around them.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The candidate nearest to `wanted`, when it is near enough to be what was meant.
pub fn did_you_mean<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let limit = wanted.chars().count().div_ceil(3).min(3);
    candidates
        .into_iter()
        .map(|candidate| (distance(wanted, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Levenshtein distance, on texts that the caller has already bounded.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// How long the text is inside JSON, without its quotes.
pub fn encoded_length(text: &str) -> usize {
    if has_nothing_to_escape(text) {
        return text.len();
    }
    text.bytes().map(encoded_byte).sum()
}

/// Whether the text stands inside JSON as it is; asked of many bytes at a time.
fn has_nothing_to_escape(text: &str) -> bool {
    let smallest = text.bytes().fold(u8::MAX, u8::min);
    smallest >= 0x20 && memchr::memchr2(b'"', b'\\', text.as_bytes()).is_none()
}

/// Serializes a text that may be long. Where there is nothing to escape, which is known sooner than
/// JSON is written character by character, it is copied as it is.
///
/// # Errors
/// Those of the serializer.
pub fn serialize_long<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    if text.len() < LONG || !has_nothing_to_escape(text) {
        return serializer.serialize_str(text);
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    quoted.push_str(text);
    quoted.push('"');
    let quoted = RawValue::from_string(quoted).map_err(S::Error::custom)?;
    quoted.serialize(serializer)
}

/// From here on it is worth to ask whether there is anything to escape.
const LONG: usize = 512;

fn encoded_byte(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0x00..=0x1f => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_reach_nobody_as_escapes() {
        assert_eq!(printable("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(printable("x\u{9b}y\u{202e}z"), "x\\u{9b}y\\u{202e}z");
        assert_eq!(printable("line\n\ttab é"), "line\n\ttab é");
    }

    #[test]
    fn shortening_keeps_whole_characters() {
        assert_eq!(shorten("äöü", 2), "äö…");
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("abä", 2), "ab…");
        assert_eq!(shorten("abc", 0), "…");
        assert_eq!(shorten("ab", 2), "ab");
    }

    #[test]
    fn shortening_in_the_middle_keeps_both_ends() {
        assert_eq!(shorten_middle("äöü1234xyz", 6), "äöü…xyz");
        assert_eq!(shorten_middle("abcdef", 6), "abcdef");
        assert_eq!(shorten_middle("", 6), "");
    }

    #[test]
    fn near_misses_are_found_and_far_ones_are_not() {
        assert_eq!(did_you_mean("snd", ["send", "recv"]), Some("send"));
        assert_eq!(did_you_mean("xyz", ["send", "recv"]), None);
    }

    #[test]
    fn the_encoded_length_is_what_json_makes_of_it() {
        let text: String = (0..=0x2ff)
            .filter_map(char::from_u32)
            .chain("\u{2028}🐝".chars())
            .collect();
        let encoded = serde_json::to_string(&text).unwrap();
        assert_eq!(encoded_length(&text), encoded.len() - 2);
    }

    #[test]
    fn a_long_text_is_serialized_as_any_other() {
        #[derive(serde::Serialize)]
        struct Long<'a>(#[serde(serialize_with = "serialize_long")] &'a str);
        let plain = "ä🐝 ".repeat(LONG);
        for text in [
            plain.clone(),
            format!("{plain}\"{plain}"),
            format!("{plain}\\"),
            format!("{plain}\n"),
            format!("\u{7f}{plain}\u{1}"),
            "short".to_owned(),
            String::new(),
        ] {
            let expected = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::to_string(&Long(&text)).unwrap(), expected);
            assert_eq!(serde_json::to_value(Long(&text)).unwrap(), text);
        }
    }
}
