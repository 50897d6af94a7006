//! Who is who: agent names, recipients and sender labels.
//!
//! An agent's name is short because a container is called after it (`h-<name>`, at most eleven
//! characters on NixOS). A sender label is wider: besides agents it can be `operator`, `system` or
//! the label of a wake such as `bash-task-12`.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// The longest agent name, in characters.
pub const MAX_AGENT_NAME: usize = 9;
/// The longest sender label, in characters.
pub const MAX_SENDER_LABEL: usize = 64;
/// The operator's name in `to` and `from`.
pub const OPERATOR: &str = "operator";
/// The name under which the host itself writes to agents.
pub const SYSTEM: &str = "system";
/// The name of a turn that an agent asked for itself.
pub const SELF: &str = "self";
/// The label of a reminder that fired.
pub const REMINDER: &str = "reminder";
/// The recipient that stands for the sender's parent in the tree.
pub const PARENT: &str = "<parent>";

/// Names that no agent may have, because they mean something else on the wire.
pub const RESERVED: &[&str] = &[OPERATOR, SYSTEM, SELF, REMINDER, "parent", "all", "none"];

/// Why a name or label was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// The text is empty or longer than allowed.
    #[error("`{text}` has {len} characters; a {what} has 1 to {max}")]
    Length {
        /// What was to be named.
        what: &'static str,
        /// The offending text, shortened.
        text: String,
        /// Its length in characters.
        len: usize,
        /// The longest that is allowed.
        max: usize,
    },
    /// The text holds a character outside the grammar.
    #[error("`{text}` is not a {what}: {rule}")]
    Grammar {
        /// What was to be named.
        what: &'static str,
        /// The offending text.
        text: String,
        /// The grammar, in words.
        rule: &'static str,
    },
    /// The name already means something else.
    #[error("`{0}` is a reserved name")]
    Reserved(String),
}

/// The name of an agent: `[a-z][a-z0-9-]*`, at most nine characters, not reserved.
///
/// Cheap to clone: the broker keys its tables with it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct AgentName(Arc<str>);

impl AgentName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        const WHAT: &str = "agent name";
        check_length(WHAT, text, MAX_AGENT_NAME)?;
        let legal = text.starts_with(|c: char| c.is_ascii_lowercase())
            && text
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && !text.ends_with('-');
        if !legal {
            return Err(NameError::Grammar {
                what: WHAT,
                text: text.to_owned(),
                rule: "it starts with a-z, goes on with a-z, 0-9 and `-`, and does not end in `-`",
            });
        }
        if RESERVED.contains(&text) {
            return Err(NameError::Reserved(text.to_owned()));
        }
        Ok(Self(text.into()))
    }
}

impl Borrow<str> for AgentName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Where a message goes once it is routed: an agent's inbox or the operator's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub enum Recipient {
    /// An agent of this hive.
    Agent(AgentName),
    /// The person in charge.
    Operator,
}

impl Recipient {
    /// The recipient as it stands on the wire and on disk.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Agent(name) => name.as_str(),
            Self::Operator => OPERATOR,
        }
    }
}

impl FromStr for Recipient {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        if text == OPERATOR {
            Ok(Self::Operator)
        } else {
            text.parse().map(Self::Agent)
        }
    }
}

impl From<AgentName> for Recipient {
    fn from(name: AgentName) -> Self {
        Self::Agent(name)
    }
}

/// Who a message says it is from, as stamped by the host.
///
/// A label is not a name: `bash-task-12` is nobody one could write to.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(with = "String")]
pub struct SenderLabel(Arc<str>);

impl SenderLabel {
    /// The label of the operator's own messages.
    pub fn operator() -> Self {
        Self(OPERATOR.into())
    }

    /// The label of the host's own messages.
    pub fn system() -> Self {
        Self(SYSTEM.into())
    }

    /// The label as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&AgentName> for SenderLabel {
    fn from(name: &AgentName) -> Self {
        Self(Arc::clone(&name.0))
    }
}

impl FromStr for SenderLabel {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        const WHAT: &str = "sender label";
        check_length(WHAT, text, MAX_SENDER_LABEL)?;
        let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.@".contains(c);
        if !text.starts_with(|c: char| c.is_ascii_lowercase()) || !text.chars().all(inner) {
            return Err(NameError::Grammar {
                what: WHAT,
                text: text.to_owned(),
                rule: "it starts with a-z and goes on with a-z, 0-9, `-`, `_`, `.` and `@`",
            });
        }
        Ok(Self(text.into()))
    }
}

fn check_length(what: &'static str, text: &str, max: usize) -> Result<(), NameError> {
    let len = text.chars().count();
    if (1..=max).contains(&len) {
        return Ok(());
    }
    Err(NameError::Length {
        what,
        text: crate::text::shorten(text, 40),
        len,
        max,
    })
}

/// The text forms that every name type shares: display, debug and checked (de)serialisation.
macro_rules! textual {
    ($($name:ident),+) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    )+};
}
textual!(AgentName, Recipient, SenderLabel);

impl fmt::Debug for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Debug for SenderLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c4_agent_names_are_short_lower_case_and_not_reserved() {
        let cases = [
            ("ruth", true),
            ("a", true),
            ("a-1", true),
            ("abcdefghi", true),
            ("abcdefghij", false),
            ("", false),
            ("1a", false),
            ("-a", false),
            ("a-", false),
            ("A", false),
            ("a_b", false),
            ("a b", false),
            ("ä", false),
            ("a/b", false),
            ("operator", false),
            ("system", false),
            ("self", false),
            ("parent", false),
        ];
        for (text, legal) in cases {
            assert_eq!(text.parse::<AgentName>().is_ok(), legal, "{text:?}");
        }
    }

    #[test]
    fn a_recipient_is_the_operator_or_an_agent() {
        assert_eq!("operator".parse(), Ok(Recipient::Operator));
        assert!(matches!("ada".parse(), Ok(Recipient::Agent(_))));
        assert!("<parent>".parse::<Recipient>().is_err());
    }

    #[test]
    fn labels_are_wider_than_names() {
        for legal in ["bash-task-12", "matrix", "ada@pr1ma", "operator"] {
            assert!(legal.parse::<SenderLabel>().is_ok(), "{legal}");
        }
        for illegal in ["", "a\nb", "-x", "A", &"x".repeat(65)] {
            assert!(illegal.parse::<SenderLabel>().is_err(), "{illegal:?}");
        }
    }
}
