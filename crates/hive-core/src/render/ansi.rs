//! What a terminal would show of some output, as lines with colours. Everything else that an
//! escape can do (titles, clipboards, links, cursors, screens) does nothing here.

use anstyle_parse::{DefaultCharAccumulator, Params, Parser, Perform};

use super::node::{Node, Part, Tag, span};

/// What some output shows.
pub(crate) fn render(text: &str) -> Vec<Node> {
    let mut screen = Screen::default();
    let mut parser = Parser::<DefaultCharAccumulator>::new();
    for byte in text.bytes() {
        parser.advance(&mut screen, byte);
    }
    screen.finish()
}

/// How text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Look {
    /// 0 to 15.
    ink: Option<u8>,
    paper: Option<u8>,
    bold: bool,
    dim: bool,
    italic: bool,
    underline: bool,
}

impl Look {
    fn class(self) -> String {
        let mut words = Vec::new();
        words.extend(self.ink.map(|ink| format!("ink-{ink}")));
        words.extend(self.paper.map(|paper| format!("paper-{paper}")));
        for (is_on, word) in [
            (self.bold, "bold"),
            (self.dim, "dim"),
            (self.italic, "italic"),
            (self.underline, "underline"),
        ] {
            if is_on {
                words.push(word.to_owned());
            }
        }
        words.join(" ")
    }
}

#[derive(Default)]
struct Screen {
    look: Look,
    /// The current line, with how each character looks.
    line: Vec<(char, Look)>,
    /// Where the next character goes.
    column: usize,
    shown: Vec<Node>,
}

impl Screen {
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        self.column = 0;
        let mut rest = line.as_slice();
        while let Some((_, look)) = rest.first() {
            let length = rest.iter().take_while(|(_, other)| other == look).count();
            let text: String = rest[..length].iter().map(|(c, _)| *c).collect();
            if *look == Look::default() {
                self.push_plain(&text);
            } else {
                self.shown.push(span(look.class(), text));
            }
            rest = &rest[length..];
        }
    }

    fn push_plain(&mut self, text: &str) {
        match self.shown.last_mut() {
            Some(Node::Text(last)) => last.push_str(text),
            _ => self.shown.push(Node::Text(text.to_owned())),
        }
    }

    fn finish(mut self) -> Vec<Node> {
        self.end_line();
        let pre = Part {
            inside: self.shown,
            ..Part::new(Tag::Pre)
        };
        vec![Node::Part(pre)]
    }

    fn style(&mut self, params: &Params) {
        let mut codes = params.iter().flatten().copied();
        while let Some(code) = codes.next() {
            let look = &mut self.look;
            match code {
                0 => *look = Look::default(),
                1 => look.bold = true,
                2 => look.dim = true,
                3 => look.italic = true,
                4 => look.underline = true,
                22 => (look.bold, look.dim) = (false, false),
                23 => look.italic = false,
                24 => look.underline = false,
                30..=37 => look.ink = Some(low(code - 30)),
                38 => look.ink = colour(&mut codes),
                39 => look.ink = None,
                40..=47 => look.paper = Some(low(code - 40)),
                48 => look.paper = colour(&mut codes),
                49 => look.paper = None,
                90..=97 => look.ink = Some(low(code - 90 + 8)),
                100..=107 => look.paper = Some(low(code - 100 + 8)),
                _ => {}
            }
        }
    }
}

impl Perform for Screen {
    fn print(&mut self, c: char) {
        // The second half of the control characters, and those that reorder text.
        if c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') {
            return;
        }
        let cell = (c, self.look);
        match self.line.get_mut(self.column) {
            Some(old) => *old = cell,
            None => self.line.push(cell),
        }
        self.column += 1;
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\n' => {
                self.end_line();
                self.push_plain("\n");
            }
            b'\r' => self.column = 0,
            b'\t' => self.print_tab(),
            0x08 => self.column = self.column.saturating_sub(1),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: u8) {
        match action {
            b'm' if intermediates.is_empty() => self.style(params),
            b'K' => self.line.truncate(self.column),
            _ => {}
        }
    }
}

impl Screen {
    fn print_tab(&mut self) {
        self.line.truncate(self.column);
        self.line.push(('\t', self.look));
        self.column += 1;
    }
}

/// One of the sixteen colours.
fn low(code: u16) -> u8 {
    u8::try_from(code & 15).unwrap_or(0)
}

/// The colour that follows 38 or 48; a finer one becomes the nearest of the sixteen.
fn colour(codes: &mut impl Iterator<Item = u16>) -> Option<u8> {
    match codes.next()? {
        5 => {
            let code = codes.next()?;
            Some(match code {
                0..=15 => low(code),
                16..=231 => {
                    let code = code - 16;
                    nearest(code / 36 * 51, code / 6 % 6 * 51, code % 6 * 51)
                }
                _ => nearest(
                    (code - 232) * 10 + 8,
                    (code - 232) * 10 + 8,
                    (code - 232) * 10 + 8,
                ),
            })
        }
        2 => Some(nearest(codes.next()?, codes.next()?, codes.next()?)),
        _ => None,
    }
}

fn nearest(red: u16, green: u16, blue: u16) -> u8 {
    let bit = |value: u16, place: u8| if value > 100 { 1 << place } else { 0 };
    let bright = if red.max(green).max(blue) > 200 { 8 } else { 0 };
    bit(red, 0) | bit(green, 1) | bit(blue, 2) | bright
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        let nodes = serde_json::to_string(&render(text)).unwrap();
        nodes
            .replace(r#"[{"tag":"pre","inside":["#, "")
            .trim_end_matches("]}]")
            .to_owned()
    }

    #[test]
    fn colours_are_spans() {
        let red = r#"{"tag":"span","class":"ink-1","inside":["red"]}"#;
        assert_eq!(
            json("a \x1b[31mred\x1b[0m b"),
            format!(r#""a ",{red}," b""#)
        );
        assert_eq!(json("\x1b[38;5;1mred"), red);
        assert_eq!(
            json("\x1b[1;92mx"),
            r#"{"tag":"span","class":"ink-10 bold","inside":["x"]}"#
        );
    }

    #[test]
    fn a_line_shows_what_was_written_last() {
        for (text, expected) in [
            ("10%\r20%\r100%\ndone", r#""100%\ndone""#),
            ("abc\rX", r#""Xbc""#),
            ("abc\x08\x08Z", r#""aZc""#),
            ("abc\r\x1b[Kx", r#""x""#),
            ("a\r\nb", r#""a\nb""#),
        ] {
            assert_eq!(json(text), expected, "{text:?}");
        }
    }

    #[test]
    fn everything_else_of_a_terminal_is_inert() {
        for text in [
            "\x1b]0;title\x07x",
            "\x1b]52;c;ZXZpbA==\x07x",
            "\x1b]8;;http://evil.test\x1b\\x\x1b]8;;\x1b\\",
            "\x1b[2J\x1b[Hx",
            "\x1bP1$r\x1b\\x",
            "\u{9b}31mx",
            "\x07\x05x",
            "\u{202e}x",
        ] {
            let shown = json(text);
            assert!(
                shown == r#""x""# || shown == r#""31mx""#,
                "{text:?}: {shown}"
            );
        }
    }
}
