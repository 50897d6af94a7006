//! What the model reads: pure functions from facts to text.
//!
//! Every text that can hold an agent's or a person's words keeps them apart from the hive's own:
//! message bodies stand verbatim between lines with a [`Nonce`] that their author cannot know. No
//! prompt begins with `/`, which an engine would take for a command, except [`COMPACT`].

pub mod brief;
pub mod checkpoint;
pub mod notes;
pub mod template;
pub mod wake;

/// The engine's own command to compact a conversation.
pub const COMPACT: &str = "/compact";

/// A number that nobody outside of this turn knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nonce(String);

impl Nonce {
    /// A new random one.
    ///
    /// # Errors
    /// When the system has no randomness to give.
    pub fn fresh() -> Result<Self, getrandom::Error> {
        Ok(Self(crate::ident::random_hex(12)?))
    }

    /// A given one, for tests.
    #[cfg(test)]
    pub(crate) fn of(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The number as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
