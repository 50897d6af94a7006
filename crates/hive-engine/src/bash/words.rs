//! What a word of the shell is known to be before it is expanded.

use brush_parser::{
    ParserOptions,
    word::{self, ParameterExpr, WordPiece},
};

use super::Doubt;

/// A word taken apart.
#[derive(Debug, Default)]
pub(super) struct Word {
    /// Its value, when that is certain.
    pub(super) value: Option<String>,
    /// Scripts that run to produce it.
    pub(super) scripts: Vec<String>,
    /// Why its value is not certain.
    pub(super) doubts: Vec<Doubt>,
}

/// The options of plain `bash`.
pub(super) fn options() -> ParserOptions {
    ParserOptions::default()
}

/// Takes a word apart. Globs stay as they are written: what they match is not known, and callers
/// that treat a word as a path see the pattern.
pub(super) fn read(raw: &str) -> Word {
    let mut out = Word::default();
    // Braces make one word into several; nothing that matters needs them.
    if has_unquoted_brace_list(raw) {
        out.doubts.push(Doubt::Dynamic(shorten(raw)));
    }
    match word::parse(raw, &options()) {
        Ok(pieces) => {
            let mut value = String::new();
            let mut is_known = out.doubts.is_empty();
            for piece in pieces {
                is_known &= add(&piece.piece, raw, &mut value, &mut out);
            }
            if is_known {
                out.value = Some(value);
            }
        }
        Err(error) => out
            .doubts
            .push(Doubt::Unparsable(shorten(&error.to_string()))),
    }
    out
}

/// Appends a piece to `value`; false when it is not known.
fn add(piece: &WordPiece, raw: &str, value: &mut String, out: &mut Word) -> bool {
    match piece {
        WordPiece::Text(text) | WordPiece::SingleQuotedText(text) => {
            value.push_str(text);
            true
        }
        WordPiece::EscapeSequence(text) => {
            // A backslash before a newline joins lines; before anything else it quotes it.
            let escaped = text.strip_prefix('\\').unwrap_or(text);
            if escaped != "\n" {
                value.push_str(escaped);
            }
            true
        }
        WordPiece::DoubleQuotedSequence(pieces) => {
            // Every piece is looked at, also after one that is not known.
            let unknown = pieces
                .iter()
                .filter(|piece| !add(&piece.piece, raw, value, out));
            unknown.count() == 0
        }
        WordPiece::TildeExpansion(word::TildeExpr::Home) => {
            value.push('~');
            true
        }
        WordPiece::AnsiCQuotedText(_)
        | WordPiece::GettextDoubleQuotedSequence(_)
        | WordPiece::TildeExpansion(_) => {
            out.doubts.push(Doubt::Dynamic(shorten(raw)));
            false
        }
        WordPiece::ParameterExpansion(expression) => {
            parameter(expression, raw, out);
            false
        }
        WordPiece::CommandSubstitution(script)
        | WordPiece::BackquotedCommandSubstitution(script) => {
            out.doubts.push(Doubt::Substitution(shorten(raw)));
            out.scripts.push(script.clone());
            false
        }
        WordPiece::ArithmeticExpression(expression) => {
            // An index of an array may itself hold a substitution.
            nested(&expression.value, out);
            out.doubts.push(Doubt::Dynamic(shorten(raw)));
            false
        }
    }
}

fn parameter(expression: &ParameterExpr, raw: &str, out: &mut Word) {
    if matches!(expression, ParameterExpr::Transform { .. }) {
        out.doubts.push(Doubt::Evaluation(shorten(raw)));
        return;
    }
    nested(raw, out);
    out.doubts.push(Doubt::Dynamic(shorten(raw)));
}

/// A substitution inside other text, wherever it is: found by its spelling, since the text of
/// defaults and indexes is not taken apart further.
fn nested(text: &str, out: &mut Word) {
    if text.contains("$(") || text.contains('`') || text.contains("<(") || text.contains(">(") {
        out.doubts.push(Doubt::Substitution(shorten(text)));
    }
}

/// Whether a value would run something if it was expanded once more.
pub(super) fn is_live(value: &str) -> bool {
    value.contains(['$', '`']) || value.contains("<(") || value.contains(">(")
}

/// `{a,b}` or `{1..3}` outside quotes.
fn has_unquoted_brace_list(raw: &str) -> bool {
    let (mut single, mut double, mut escaped) = (false, false, false);
    let mut previous = ' ';
    let mut is_open = false;
    for c in raw.chars() {
        if escaped {
            escaped = false;
            previous = ' ';
            continue;
        }
        match c {
            '\\' if !single => escaped = true,
            '\'' if !double => single = !single,
            '"' if !single => double = !double,
            '{' if !single && !double && previous != '$' => is_open = true,
            ',' if is_open && !single && !double => return true,
            '.' if is_open && previous == '.' && !single && !double => return true,
            _ => {}
        }
        previous = c;
    }
    false
}

/// Enough of a text to recognise it.
pub(super) fn shorten(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_escapes_are_undone() {
        for (raw, value) in [
            ("plain", "plain"),
            ("'single $x'", "single $x"),
            ("\"double\"", "double"),
            ("r'm'", "rm"),
            ("r\\m", "rm"),
            ("a\"b\"'c'", "abc"),
            ("~/x", "~/x"),
            ("*.rs", "*.rs"),
            ("''", ""),
        ] {
            assert_eq!(read(raw).value.as_deref(), Some(value), "{raw}");
        }
    }

    #[test]
    fn what_is_expanded_is_not_known() {
        for raw in [
            "$x",
            "${x}",
            "\"$x\"",
            "${x:-y}",
            "${x@P}",
            "$(id)",
            "`id`",
            "\"a$(id)b\"",
            "$((1+1))",
            "$'\\x72m'",
            "{a,b}",
            "x{1..3}",
            "~root/x",
            "${x:-$(id)}",
            "$((a[$(id)]))",
        ] {
            let word = read(raw);
            assert_eq!(word.value, None, "{raw}");
            assert!(!word.doubts.is_empty(), "{raw}");
        }
        assert_eq!(read("$(rm x)").scripts, ["rm x"]);
    }
}
