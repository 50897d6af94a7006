//! How a rule matches a text.

use std::fmt;

use regex::{Captures, Regex};
use serde::{Deserialize, Deserializer, de};

/// What a text must be like. A plain string is what it must contain.
#[derive(Debug, Clone, Default)]
pub struct TextMatch {
    contains: Option<String>,
    equals: Option<String>,
    not: Option<String>,
    regex: Option<Regex>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Table {
    contains: Option<String>,
    equals: Option<String>,
    not: Option<String>,
    regex: Option<Pattern>,
}

/// A pattern that compiles, within the size that the `regex` crate allows by itself.
struct Pattern(Regex);

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match Regex::new(&text) {
            Ok(regex) => Ok(Self(regex)),
            Err(error) => {
                let error = error.to_string();
                let reason = error.lines().last().unwrap_or_default();
                Err(de::Error::custom(format!("this is no regex: {reason}")))
            }
        }
    }
}

impl TextMatch {
    /// Whether all that is asked holds for `text`; where there is a regex, with what it captured.
    pub fn matches<'t>(&self, text: &'t str) -> Option<Option<Captures<'t>>> {
        let holds = self
            .contains
            .as_deref()
            .is_none_or(|part| text.contains(part))
            && self.equals.as_deref().is_none_or(|whole| text == whole)
            && self.not.as_deref().is_none_or(|part| !text.contains(part));
        if !holds {
            return None;
        }
        match &self.regex {
            Some(regex) => regex.captures(text).map(Some),
            None => Some(None),
        }
    }

    /// The regex, when there is one.
    pub fn regex(&self) -> Option<&Regex> {
        self.regex.as_ref()
    }
}

impl<'de> Deserialize<'de> for TextMatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = TextMatch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a table of contains, equals, not and regex")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TextMatch, E> {
                Ok(TextMatch {
                    contains: Some(text.to_owned()),
                    ..TextMatch::default()
                })
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<TextMatch, A::Error> {
                let table = Table::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(TextMatch {
                    contains: table.contains,
                    equals: table.equals,
                    not: table.not,
                    regex: table.regex.map(|pattern| pattern.0),
                })
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}
