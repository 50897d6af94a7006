//! What is known about models: how much they read, how much they write, what they cost.
//!
//! The table is a default. Settings may override any entry, and an unknown model gets a cautious
//! window and no price rather than a guess.

use serde::{Deserialize, Serialize};

use crate::Usage;

/// US dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Price {
    /// Read at the full price.
    pub input: f64,
    /// Produced.
    pub output: f64,
    /// Written to the cache for five minutes.
    pub cache_write: f64,
    /// Read from the cache.
    pub cache_read: f64,
}

/// One model.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// Tokens in and out together.
    pub context_window: u64,
    /// The longest answer to ask for.
    pub max_output_tokens: u32,
    /// What it costs, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
}

impl ModelInfo {
    /// What an answer cost; nothing when there is no price.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let Some(price) = self.price else { return 0.0 };
        let hour = usage.cache_creation.ephemeral_1h_input_tokens;
        let minutes = usage.cache_creation_input_tokens.saturating_sub(hour);
        let million = |tokens: u64, price: f64| tokens as f64 * price / 1_000_000.0;
        million(usage.input_tokens, price.input)
            + million(usage.output_tokens, price.output)
            + million(minutes, price.cache_write)
            + million(hour, price.input * 2.0)
            + million(usage.cache_read_input_tokens, price.cache_read)
    }
}

/// What an unknown model gets.
const UNKNOWN: ModelInfo = ModelInfo {
    context_window: 200_000,
    max_output_tokens: 8_192,
    price: None,
};

const fn claude(window: u64, output: u32, input_price: f64, output_price: f64) -> ModelInfo {
    ModelInfo {
        context_window: window,
        max_output_tokens: output,
        price: Some(Price {
            input: input_price,
            output: output_price,
            cache_write: input_price * 1.25,
            cache_read: input_price * 0.1,
        }),
    }
}

/// A model is described by the first entry whose text is part of its name.
const BUILT_IN: &[(&str, ModelInfo)] = &[
    ("opus-4-1", claude(200_000, 32_000, 15.0, 75.0)),
    ("opus-4-0", claude(200_000, 32_000, 15.0, 75.0)),
    ("opus-4-2025", claude(200_000, 32_000, 15.0, 75.0)),
    ("opus", claude(200_000, 32_000, 5.0, 25.0)),
    ("3-5-haiku", claude(200_000, 8_192, 0.8, 4.0)),
    ("haiku", claude(200_000, 32_000, 1.0, 5.0)),
    ("sonnet", claude(200_000, 32_000, 3.0, 15.0)),
];

/// The short names that people use.
const ALIASES: &[(&str, &str, &str)] = &[
    ("haiku", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "claude-haiku-4-5"),
    (
        "sonnet",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "claude-sonnet-4-5",
    ),
    ("opus", "ANTHROPIC_DEFAULT_OPUS_MODEL", "claude-opus-4-5"),
];

/// The table with its overrides.
#[derive(Debug, Clone, Default)]
pub struct Models {
    overrides: Vec<(String, ModelInfo)>,
}

impl Models {
    /// Adds an entry that wins over the built-in ones; the last one added wins.
    pub fn set(&mut self, name_part: &str, info: ModelInfo) {
        self.overrides.push((name_part.to_lowercase(), info));
    }

    /// What is known about a model, and whether it is known at all.
    pub fn find(&self, model: &str) -> (ModelInfo, bool) {
        let model = model.to_lowercase();
        let own = self
            .overrides
            .iter()
            .rev()
            .map(|(part, info)| (part.as_str(), info));
        let built_in = BUILT_IN.iter().map(|(part, info)| (*part, info));
        own.chain(built_in)
            .find(|(part, _)| model.contains(part))
            .map_or((UNKNOWN, false), |(_, info)| (*info, true))
    }

    /// The full name behind a short one, which `env` may set; other names are their own.
    pub fn resolve(name: &str, env: impl Fn(&str) -> Option<String>) -> String {
        ALIASES
            .iter()
            .find(|(alias, ..)| *alias == name)
            .map_or_else(
                || name.to_owned(),
                |(_, variable, full)| {
                    env(variable)
                        .filter(|value| !value.is_empty())
                        .unwrap_or_else(|| (*full).to_owned())
                },
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_match_the_list() {
        let usage = Usage {
            input_tokens: 17_635,
            output_tokens: 85,
            ..Usage::default()
        };
        let models = Models::default();
        let (sonnet, known) = models.find("claude-sonnet-4-5");
        assert!(known);
        assert!((sonnet.cost(&usage) - 0.05418).abs() < 1e-9);
        let cached = Usage {
            cache_read_input_tokens: 1_000_000,
            cache_creation_input_tokens: 1_000_000,
            ..Usage::default()
        };
        assert!((sonnet.cost(&cached) - 4.05).abs() < 1e-9);
    }

    #[test]
    fn overrides_win_and_unknown_models_cost_nothing() {
        let mut models = Models::default();
        let (info, known) = models.find("qwen3:8b");
        assert!(!known);
        assert_eq!(
            info.cost(&Usage {
                input_tokens: 5,
                ..Usage::default()
            }),
            0.0
        );
        models.set(
            "Qwen3",
            ModelInfo {
                context_window: 40_960,
                ..UNKNOWN
            },
        );
        assert_eq!(models.find("qwen3:8b").0.context_window, 40_960);
    }

    #[test]
    fn short_names_resolve() {
        assert_eq!(Models::resolve("haiku", |_| None), "claude-haiku-4-5");
        assert_eq!(Models::resolve("opus", |_| Some("o9".into())), "o9");
        assert_eq!(Models::resolve("my-model", |_| None), "my-model");
    }
}
