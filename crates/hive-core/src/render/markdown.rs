//! Markdown as parts. Raw HTML stays text, images become links that nobody follows by himself, and
//! only links that lead to a web page or a mailbox are links.

use pulldown_cmark::{Alignment, CodeBlockKind, Event, Options, Parser, Tag as Mark, TagEnd};

use super::{
    node::{Node, Part, Tag},
    paint,
};

/// How deep parts may lie in each other; what is deeper is shown flat.
const MAX_DEPTH: usize = 24;

/// What a Markdown text shows.
pub(crate) fn render(text: &str) -> Vec<Node> {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut builder = Builder {
        open: vec![Part::new(Tag::Span)],
        flat: 0,
        in_head: false,
    };
    for event in Parser::new_ext(text, options) {
        builder.take(event);
    }
    builder.finish()
}

/// Where a link of an agent's may lead: no script, no data, no file.
pub(crate) fn safe_link(target: &str) -> Option<String> {
    let lower = target.trim_start().to_ascii_lowercase();
    let is_known = ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| lower.starts_with(scheme));
    let is_plain = !target.chars().any(|c| c.is_control() || c.is_whitespace());
    (is_known && is_plain && target.len() <= 2048).then(|| target.to_owned())
}

struct Builder {
    open: Vec<Part>,
    /// How many marks were opened without a part of their own.
    flat: usize,
    in_head: bool,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(mark) => self.start(mark),
            Event::End(mark) => self.end(mark),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.leaf(Tag::Code, &text),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.leaf(Tag::Code, &text),
            Event::FootnoteReference(text) => self.text(&format!("[^{text}]")),
            Event::SoftBreak => self.text("\n"),
            Event::HardBreak => self.push(Part::new(Tag::Br)),
            Event::Rule => self.push(Part::new(Tag::Hr)),
            Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }),
        }
    }

    fn start(&mut self, mark: Mark<'_>) {
        let part = match mark {
            Mark::Paragraph => Part::new(Tag::P),
            Mark::Heading { level, .. } => Part::new(if level as usize <= 2 {
                Tag::H4
            } else {
                Tag::H5
            }),
            Mark::BlockQuote(_) => Part::new(Tag::Blockquote),
            Mark::CodeBlock(kind) => {
                let mut part = Part::new(Tag::Pre);
                if let CodeBlockKind::Fenced(language) = kind
                    && language.starts_with("diff")
                {
                    part.class = Some("patch".to_owned());
                }
                part
            }
            Mark::List(Some(_)) => Part::new(Tag::Ol),
            Mark::List(None) => Part::new(Tag::Ul),
            Mark::Item => Part::new(Tag::Li),
            Mark::Table(columns) => {
                let mut part = Part::new(Tag::Table);
                if columns.contains(&Alignment::Right) {
                    part.class = Some("numbers".to_owned());
                }
                part
            }
            Mark::TableHead => {
                self.in_head = true;
                self.open(Part::new(Tag::Thead));
                Part::new(Tag::Tr)
            }
            Mark::TableRow => Part::new(Tag::Tr),
            Mark::TableCell if self.in_head => Part::new(Tag::Th),
            Mark::TableCell => Part::new(Tag::Td),
            Mark::Emphasis => Part::new(Tag::Em),
            Mark::Strong => Part::new(Tag::Strong),
            Mark::Strikethrough => Part::new(Tag::Del),
            Mark::Link { dest_url, .. } => link(&dest_url),
            Mark::Image { dest_url, .. } => {
                let mut part = link(&dest_url);
                part.push_text("image: ");
                part
            }
            Mark::HtmlBlock => Part::new(Tag::P),
            Mark::FootnoteDefinition(_)
            | Mark::DefinitionList
            | Mark::DefinitionListTitle
            | Mark::DefinitionListDefinition
            | Mark::Superscript
            | Mark::Subscript
            | Mark::MetadataBlock(_) => Part::new(Tag::Span),
        };
        self.open(part);
    }

    fn end(&mut self, mark: TagEnd) {
        self.close();
        if mark == TagEnd::TableHead {
            self.in_head = false;
            self.close();
        }
    }

    fn open(&mut self, part: Part) {
        if self.open.len() >= MAX_DEPTH {
            self.flat += 1;
        } else {
            self.open.push(part);
        }
    }

    fn close(&mut self) {
        if self.flat > 0 {
            self.flat -= 1;
        } else if self.open.len() > 1
            && let Some(part) = self.open.pop()
        {
            self.push(part);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(part) = self.open.last_mut() {
            part.push_text(&paint::without_controls(text));
        }
    }

    fn leaf(&mut self, tag: Tag, text: &str) {
        let mut part = Part::new(tag);
        part.push_text(&paint::without_controls(text));
        self.push(part);
    }

    fn push(&mut self, part: Part) {
        if let Some(last) = self.open.last_mut() {
            last.inside.push(Node::Part(part));
        }
    }

    fn finish(mut self) -> Vec<Node> {
        self.flat = 0;
        while self.open.len() > 1 {
            self.close();
        }
        self.open.pop().map(|part| part.inside).unwrap_or_default()
    }
}

fn link(target: &str) -> Part {
    match safe_link(target) {
        Some(href) => Part {
            href: Some(href),
            ..Part::new(Tag::A)
        },
        None => Part::new(Tag::Span),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        serde_json::to_string(&render(text)).unwrap()
    }

    #[test]
    fn common_marks_become_parts() {
        for (text, expected) in [
            ("plain", r#"[{"tag":"p","inside":["plain"]}]"#),
            (
                "**b** `c`",
                r#"[{"tag":"p","inside":[{"tag":"strong","inside":["b"]}," ",{"tag":"code","inside":["c"]}]}]"#,
            ),
            ("# t", r#"[{"tag":"h4","inside":["t"]}]"#),
            (
                "- a\n- b",
                r#"[{"tag":"ul","inside":[{"tag":"li","inside":["a"]},{"tag":"li","inside":["b"]}]}]"#,
            ),
            ("```\nx\n```", r#"[{"tag":"pre","inside":["x\n"]}]"#),
            (
                "[t](https://a.test/)",
                r#"[{"tag":"p","inside":[{"tag":"a","href":"https://a.test/","inside":["t"]}]}]"#,
            ),
        ] {
            assert_eq!(json(text), expected, "{text}");
        }
        let table = json("|a|b|\n|-|-:|\n|1|2|");
        assert!(
            table.contains(r#""tag":"th""#) && table.contains(r#""tag":"td""#),
            "{table}"
        );
    }

    #[test]
    fn nothing_hostile_becomes_a_part() {
        for text in [
            "<script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "a <b onclick=x>b</b>",
            "[t](javascript:alert(1))",
            "[t](JaVaScRiPt:alert(1))",
            "[t](data:text/html;base64,AAAA)",
            "[t](vbscript:x)",
            "[t](file:///etc/passwd)",
            "<javascript:alert(1)>",
            "[t]( java\tscript:alert(1) )",
        ] {
            let shown = json(text);
            assert!(!shown.contains(r#""href""#), "{text}: {shown}");
            assert!(!shown.contains(r#""tag":"script""#) && !shown.contains(r#""tag":"img""#));
        }
        let image = json("![x](https://evil.test/a.png)");
        assert!(
            image.contains(r#""tag":"a""#) && image.contains("image: "),
            "{image}"
        );
    }

    #[test]
    fn depth_and_odd_ends_are_bounded() {
        let deep = json(&"> ".repeat(5_000));
        assert!(deep.len() < 10_000, "{}", deep.len());
        let lists = json(
            &(0..500)
                .map(|n| format!("{}- x\n", "  ".repeat(n)))
                .collect::<String>(),
        );
        assert!(lists.len() < 100_000, "{}", lists.len());
        assert_eq!(
            json("\u{1b}[31mred\u{7}"),
            r#"[{"tag":"p","inside":["[31mred"]}]"#
        );
    }
}
