//! Colours for lines of code in no particular language, and marks for characters that hide.

use super::node::{Node, span};

/// Text without control characters but for line ends and tabs.
pub(super) fn without_controls(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

/// A line with comments, strings, numbers and keys in colours, and hidden characters named.
pub(super) fn paint(line: &str) -> Vec<Node> {
    let mut painter = Painter::default();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let (length, class) = token(rest, first, &painter);
        let (piece, after) = rest.split_at(length);
        painter.add(class, piece);
        rest = after;
    }
    painter.finish()
}

#[derive(Default)]
struct Painter {
    nodes: Vec<Node>,
    plain: String,
}

impl Painter {
    fn add(&mut self, class: &'static str, text: &str) {
        match class {
            "" => self.plain.push_str(text),
            "unseen" => {
                let names = text.chars().map(|c| format!("U+{:04X}", u32::from(c)));
                self.styled(class, names.collect());
            }
            _ => self.styled(class, text.to_owned()),
        }
    }

    fn styled(&mut self, class: &'static str, text: String) {
        self.flush();
        self.nodes.push(span(class, text));
    }

    fn flush(&mut self) {
        if !self.plain.is_empty() {
            self.nodes.push(Node::Text(std::mem::take(&mut self.plain)));
        }
    }

    fn finish(mut self) -> Vec<Node> {
        self.flush();
        self.nodes
    }

    /// Whether this stands at the beginning, or after a blank: an address is no comment.
    fn after_blank(&self) -> bool {
        match self.plain.chars().next_back() {
            Some(before) => before.is_whitespace(),
            None => self.nodes.is_empty(),
        }
    }

    /// Whether a word begins here.
    fn at_edge(&self) -> bool {
        let before = self.plain.chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
    }
}

/// The next token's length and class.
fn token(rest: &str, first: char, painter: &Painter) -> (usize, &'static str) {
    if is_unseen(first) {
        return (first.len_utf8(), "unseen");
    }
    if first == '#' || rest.starts_with("//") && painter.after_blank() {
        // What hides in a comment is named too.
        let end = rest.find(is_unseen).unwrap_or(rest.len());
        return (end, "comment");
    }
    if matches!(first, '"' | '\'') {
        let end = rest[1..].find([first, '\\']).map(|end| end + 2);
        if let Some(end) =
            end.filter(|end| !rest[..*end].contains(is_unseen) && rest[..*end].ends_with(first))
        {
            return (end, "string");
        }
    }
    if first.is_ascii_digit() && painter.at_edge() {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_');
        return (end.unwrap_or(rest.len()), "number");
    }
    if first == '['
        && painter.nodes.is_empty()
        && painter.plain.trim().is_empty()
        && rest.trim_end().ends_with(']')
        && !rest.contains(is_unseen)
    {
        return (rest.len(), "key");
    }
    (first.len_utf8(), "")
}

/// Characters that change what a reader sees without being seen.
fn is_unseen(c: char) -> bool {
    (c.is_control() && c != '\t')
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(line: &str) -> String {
        serde_json::to_string(&paint(line)).unwrap()
    }

    #[test]
    fn tokens_have_colours() {
        for (line, classes) in [
            ("plain words", &[][..]),
            ("model = \"haiku\" # why", &["string", "comment"]),
            ("limit = 12", &["number"]),
            ("a1 b", &[]),
            ("[agents.limits]", &["key"]),
            ("http://x", &[]),
            ("it's", &[]),
            ("\"open", &[]),
        ] {
            let shown = json(line);
            let found: Vec<&str> = shown
                .split("\"class\":\"")
                .skip(1)
                .filter_map(|rest| rest.split('"').next())
                .collect();
            assert_eq!(found, classes, "{line}: {shown}");
        }
    }

    #[test]
    fn hidden_characters_are_named_wherever_they_stand() {
        for line in [
            "a\u{202e}b",
            "# c\u{2066}d",
            "\"s\u{200b}\"",
            "[k\u{feff}]",
            "\u{1b}[2J",
        ] {
            assert!(
                json(line).contains(r#""class":"unseen""#),
                "{line:?}: {}",
                json(line)
            );
        }
    }
}
