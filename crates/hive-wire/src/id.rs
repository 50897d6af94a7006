//! Identifiers: rows are integers given by the store, turns and keys are texts chosen by callers.

use std::{fmt, str::FromStr, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// The longest identifier that a caller may choose, in bytes.
pub const MAX_CHOSEN_ID: usize = 128;

macro_rules! row_id {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    )+};
}

row_id!(
    /// A message. Durable messages count up from 1; transient ones are negative and never on disk.
    MessageId,
    /// A question that somebody asked.
    QuestionId,
    /// A reminder that an agent set itself.
    ReminderId,
    /// A scheduled prompt.
    ScheduleId,
    /// Something that waits for the operator's decision.
    ApprovalId,
    /// A request of the host to a harness.
    ControlId,
    /// A row of the turn statistics.
    TurnRowId,
);

impl MessageId {
    /// Whether this message lives in memory only.
    pub fn is_transient(self) -> bool {
        self.0 < 0
    }
}

/// Why a chosen identifier was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a {what} has 1 to {MAX_CHOSEN_ID} bytes and no control characters")]
pub struct ChosenIdError {
    what: &'static str,
}

macro_rules! chosen_id {
    ($($(#[$doc:meta])* $name:ident = $what:literal),+ $(,)?) => {$(
        $(#[$doc])*
        // Cheap to clone: the broker hands them on all the time.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
        #[schemars(transparent)]
        pub struct $name(#[schemars(with = "Box<str>")] Arc<str>);

        impl $name {
            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ChosenIdError;

            fn from_str(text: &str) -> Result<Self, ChosenIdError> {
                let legal = (1..=MAX_CHOSEN_ID).contains(&text.len())
                    && !text.chars().any(char::is_control);
                if legal { Ok(Self(text.into())) } else { Err(ChosenIdError { what: $what }) }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
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

chosen_id!(
    /// A turn, named by the harness that runs it.
    TurnId = "turn id",
    /// One receive within a turn, named by the caller so that it can be repeated.
    ReqId = "req",
    /// A caller's own name for a command that changes something, so that repeating it changes
    /// nothing more.
    SendKey = "key",
    /// One life of a harness, named by itself at its start; its events are numbered within it.
    HarnessEpoch = "epoch",
);

/// The word that stands for "the turn that is open now" wherever a turn id is expected.
pub const CURRENT: &str = "current";

impl TurnId {
    /// Whether this is the word `current` instead of a turn's own id.
    pub fn is_current(&self) -> bool {
        self.as_str() == CURRENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chosen_ids_are_bounded_and_printable() {
        assert!("t-1".parse::<TurnId>().is_ok());
        assert!("".parse::<TurnId>().is_err());
        assert!("a\nb".parse::<ReqId>().is_err());
        assert!("x".repeat(129).parse::<SendKey>().is_err());
        assert!("current".parse::<TurnId>().is_ok_and(|t| t.is_current()));
    }
}
