//! The parts that something shown is made of.

use schemars::JsonSchema;
use serde::Serialize;

/// A piece of text, or a part with others inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Node {
    /// Text, to be shown as it is.
    Text(String),
    /// A part.
    Part(Part),
}

/// A part with others inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Part {
    /// What it is.
    pub(crate) tag: Tag,
    /// How it looks: words of ours, never of an agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<String>,
    /// Where a link leads; `http`, `https` or `mailto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) href: Option<String>,
    /// What is inside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) inside: Vec<Node>,
}

/// Everything that something shown can be made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Tag {
    A,
    Blockquote,
    Br,
    Code,
    Del,
    Em,
    H4,
    H5,
    Hr,
    Li,
    Ol,
    P,
    Pre,
    Span,
    Strong,
    Table,
    Td,
    Th,
    Thead,
    Tr,
    Ul,
}

impl Part {
    /// A part with nothing inside yet.
    pub(crate) fn new(tag: Tag) -> Self {
        Self {
            tag,
            class: None,
            href: None,
            inside: Vec::new(),
        }
    }

    /// Adds text, to the last text where there is one.
    pub(crate) fn push_text(&mut self, text: &str) {
        match self.inside.last_mut() {
            Some(Node::Text(last)) => last.push_str(text),
            _ => self.inside.push(Node::Text(text.to_owned())),
        }
    }
}

/// A span of this class.
pub(crate) fn span(class: impl Into<String>, text: impl Into<String>) -> Node {
    Node::Part(Part {
        class: Some(class.into()),
        inside: vec![Node::Text(text.into())],
        ..Part::new(Tag::Span)
    })
}
