//! Texts with placeholders: `Hello {{from}}`, `{{match.1}}`, `{{body | line}}`.
//!
//! A placeholder that does not exist is found while reading, not while playing. `{{"{{"}}` writes
//! two braces.

use std::{borrow::Cow, fmt};

use hive_wire::text::{did_you_mean, shorten};
use serde::{Deserialize, Deserializer, de};
use serde_json::Value;

use super::when::Captured;
use crate::ask::Ask;

/// What a template can speak of.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The request.
    pub ask: &'a Ask,
    /// Its number over all calls.
    pub call: u64,
    /// Its number among the matches of the rule.
    pub nth: u64,
    /// What the rule's regexes captured.
    pub captured: &'a Captured,
}

/// A text with placeholders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Slot(Slot, Option<Filter>),
}

/// What a placeholder stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Slot {
    LastUser,
    From,
    Body,
    MessageId,
    Model,
    ToolResult,
    Tools,
    Cwd,
    Call,
    Nth,
    Step,
    Group(usize),
    NamedGroup(String),
}

const SLOTS: [(&str, Slot); 11] = [
    ("last_user", Slot::LastUser),
    ("from", Slot::From),
    ("body", Slot::Body),
    ("message_id", Slot::MessageId),
    ("model", Slot::Model),
    ("tool_result", Slot::ToolResult),
    ("tools", Slot::Tools),
    ("cwd", Slot::Cwd),
    ("call", Slot::Call),
    ("nth", Slot::Nth),
    ("step", Slot::Step),
];

/// What is done to the text of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    /// Its first line, cut at 80 characters.
    Line,
    /// A whole number; in the input of a tool a JSON number, and nothing at all when it is none.
    Int,
    /// `5 minutes` as a number of seconds, likewise.
    Seconds,
}

const FILTERS: [(&str, Filter); 3] = [
    ("line", Filter::Line),
    ("int", Filter::Int),
    ("seconds", Filter::Seconds),
];

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// What is wrong with a placeholder.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            let (piece, after) = placeholder(after)?;
            pieces.push(piece);
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self(pieces))
    }

    /// A template that says exactly `text`.
    pub fn escape(text: &str) -> String {
        text.replace("{{", "{{\"{{\"}}")
    }

    /// The text for one call.
    pub fn render(&self, scene: &Scene<'_>) -> String {
        self.0.iter().map(|piece| piece.text(scene)).collect()
    }

    /// The text as a value of JSON. A placeholder that stands alone with a filter for numbers is a
    /// number, or nothing when it is none.
    pub(super) fn value(&self, scene: &Scene<'_>) -> Option<Value> {
        match self.0.as_slice() {
            [Piece::Slot(slot, Some(filter @ (Filter::Int | Filter::Seconds)))] => {
                number(&slot.text(scene), *filter).map(Value::from)
            }
            _ => Some(Value::String(self.render(scene))),
        }
    }

    /// The first placeholder that `has_group` does not know.
    pub(super) fn missing_group(
        &self,
        has_group: &dyn Fn(&GroupName<'_>) -> bool,
    ) -> Option<String> {
        self.0.iter().find_map(|piece| {
            let Piece::Slot(slot, _) = piece else {
                return None;
            };
            let name = match slot {
                Slot::Group(number) => GroupName::Number(*number),
                Slot::NamedGroup(name) => GroupName::Name(name),
                _ => return None,
            };
            (!has_group(&name)).then(|| name.to_string())
        })
    }
}

/// A group of a regex, as a placeholder names it.
#[derive(Debug)]
pub enum GroupName<'a> {
    /// `{{match.1}}`.
    Number(usize),
    /// `{{match.name}}`.
    Name(&'a str),
}

impl fmt::Display for GroupName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "match.{number}"),
            Self::Name(name) => write!(f, "match.{name}"),
        }
    }
}

/// Something that holds templates, whose groups a rule can check.
pub trait HasGroups {
    /// The first placeholder of a group that `has_group` does not know.
    fn missing_group(&self, has_group: &dyn Fn(&GroupName<'_>) -> bool) -> Option<String>;
}

impl HasGroups for Option<Template> {
    fn missing_group(&self, has_group: &dyn Fn(&GroupName<'_>) -> bool) -> Option<String> {
        self.as_ref()?.missing_group(has_group)
    }
}

/// Reads a placeholder after its opening braces, and gives what follows it.
fn placeholder(text: &str) -> Result<(Piece, &str), String> {
    if let Some(literal) = text.trim_start().strip_prefix('"') {
        let (literal, rest) = literal
            .split_once('"')
            .ok_or("a `{{\"` is never closed by `\"}}`")?;
        let rest = rest.trim_start().strip_prefix("}}");
        let rest = rest.ok_or("a literal placeholder ends with `\"}}`")?;
        return Ok((Piece::Text(literal.to_owned()), rest));
    }
    let (inside, rest) = text
        .split_once("}}")
        .ok_or("a `{{` is never closed; write {{\"{{\"}} for two braces")?;
    let (name, filter) = match inside.split_once('|') {
        Some((name, filter)) => (name.trim(), Some(filter_named(filter.trim())?)),
        None => (inside.trim(), None),
    };
    Ok((Piece::Slot(slot_named(name)?, filter), rest))
}

fn slot_named(name: &str) -> Result<Slot, String> {
    if let Some(group) = name.strip_prefix("match.") {
        return Ok(match group.parse() {
            Ok(number) => Slot::Group(number),
            Err(_) => Slot::NamedGroup(group.to_owned()),
        });
    }
    find(&SLOTS, name, "placeholder")
}

fn filter_named(name: &str) -> Result<Filter, String> {
    find(&FILTERS, name, "filter")
}

fn find<T: Clone>(table: &[(&str, T)], name: &str, what: &str) -> Result<T, String> {
    let known = || table.iter().map(|(name, _)| *name);
    if let Some((_, found)) = table.iter().find(|(known, _)| *known == name) {
        return Ok(found.clone());
    }
    let name = shorten(name, 40);
    Err(match did_you_mean(&name, known()) {
        Some(near) => format!("there is no {what} `{name}`; did you mean `{near}`?"),
        None => format!(
            "there is no {what} `{name}`; there are {}",
            known().collect::<Vec<_>>().join(", ")
        ),
    })
}

impl Piece {
    fn text<'a>(&'a self, scene: &Scene<'a>) -> Cow<'a, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Slot(slot, None) => slot.text(scene),
            Self::Slot(slot, Some(Filter::Line)) => {
                let text = slot.text(scene);
                let line = text.trim().lines().next().unwrap_or_default();
                Cow::Owned(shorten(line, 80))
            }
            Self::Slot(slot, Some(filter @ (Filter::Int | Filter::Seconds))) => {
                let number = number(&slot.text(scene), *filter);
                Cow::Owned(number.map_or_else(String::new, |number| number.to_string()))
            }
        }
    }
}

impl Slot {
    fn text<'a>(&self, scene: &Scene<'a>) -> Cow<'a, str> {
        let ask = scene.ask;
        let text = match self {
            Self::LastUser => &ask.last_user,
            Self::Body => &ask.wake.body,
            Self::Model => &ask.model,
            Self::From => ask.wake.from.as_deref().unwrap_or_default(),
            Self::MessageId => ask.wake.message_id.as_deref().unwrap_or_default(),
            Self::Cwd => ask.cwd.as_deref().unwrap_or("."),
            Self::Group(number) => scene
                .captured
                .numbered
                .get(*number)
                .map_or("", String::as_str),
            Self::NamedGroup(name) => scene.captured.named.get(name).map_or("", String::as_str),
            Self::Call => return Cow::Owned(scene.call.to_string()),
            Self::Nth => return Cow::Owned(scene.nth.to_string()),
            Self::Step => return Cow::Owned(ask.step.to_string()),
            Self::Tools => return Cow::Owned(ask.tools.join(", ")),
            Self::ToolResult => {
                let texts: Vec<&str> = ask
                    .tool_results
                    .iter()
                    .map(|result| result.text.as_str())
                    .collect();
                return Cow::Owned(texts.join("\n"));
            }
        };
        Cow::Borrowed(text)
    }
}

/// The number in a text: whole, or a time such as `90`, `5 minutes`, `2h`.
fn number(text: &str, filter: Filter) -> Option<i64> {
    let text = text.trim();
    if filter == Filter::Int {
        return text.parse().ok();
    }
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: i64 = match number {
        "" if text.starts_with('a') => 1,
        number => number.parse().ok()?,
    };
    let unit = unit
        .trim()
        .trim_start_matches("an ")
        .trim_start_matches("a ");
    let seconds = match unit.chars().next() {
        None | Some('s') => 1,
        Some('m') => 60,
        Some('h') => 60 * 60,
        Some('d') => 24 * 60 * 60,
        Some(_) => return None,
    };
    number.checked_mul(seconds)
}

impl<'de> Deserialize<'de> for Template {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
