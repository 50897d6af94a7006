//! What an answer cost in tokens.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Tokens of each kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Read at the full price.
    #[serde(default)]
    pub input_tokens: u64,
    /// Written to the cache.
    #[serde(default)]
    pub cache_creation_input_tokens: u64,
    /// Read from the cache.
    #[serde(default)]
    pub cache_read_input_tokens: u64,
    /// Written to the cache, by how long they stay.
    #[serde(default)]
    pub cache_creation: CacheCreation,
    /// Produced, thinking included.
    #[serde(default)]
    pub output_tokens: u64,
    /// Whatever else the provider counts.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Tokens written to the cache, by how long they stay there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CacheCreation {
    /// Five minutes.
    #[serde(default)]
    pub ephemeral_5m_input_tokens: u64,
    /// An hour.
    #[serde(default)]
    pub ephemeral_1h_input_tokens: u64,
}

impl Usage {
    /// The size of the context that was read.
    pub fn context_tokens(&self) -> u64 {
        self.input_tokens + self.cache_creation_input_tokens + self.cache_read_input_tokens
    }

    /// Adds another answer's tokens.
    pub fn add(&mut self, other: &Self) {
        self.input_tokens += other.input_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
        self.cache_creation.ephemeral_5m_input_tokens +=
            other.cache_creation.ephemeral_5m_input_tokens;
        self.cache_creation.ephemeral_1h_input_tokens +=
            other.cache_creation.ephemeral_1h_input_tokens;
        self.output_tokens += other.output_tokens;
    }

    /// Takes the final counts of a stream: a later figure replaces an earlier one, and a provider
    /// that leaves one out of its last message keeps the first.
    pub fn update(&mut self, later: &Self) {
        for (own, new) in [
            (&mut self.input_tokens, later.input_tokens),
            (
                &mut self.cache_creation_input_tokens,
                later.cache_creation_input_tokens,
            ),
            (
                &mut self.cache_read_input_tokens,
                later.cache_read_input_tokens,
            ),
            (&mut self.output_tokens, later.output_tokens),
        ] {
            if new > 0 {
                *own = new;
            }
        }
        if later.cache_creation != CacheCreation::default() {
            self.cache_creation = later.cache_creation.clone();
        }
        for (key, value) in &later.extra {
            self.extra.insert(key.clone(), value.clone());
        }
    }
}
