//! How large the context of a model is (T18).

/// The window of each model: by a part of its name, else one for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextWindows {
    /// Parts of names in lower case, longest first.
    by_key: Vec<(String, u64)>,
    otherwise: u64,
}

impl ContextWindows {
    /// The same window for every model.
    pub fn new(otherwise: u64) -> Self {
        Self {
            by_key: Vec::new(),
            otherwise,
        }
    }

    /// Sets the window of models whose name holds `key`.
    pub fn insert(&mut self, key: &str, tokens: u64) {
        self.by_key.push((key.to_lowercase(), tokens));
        // The longest key says most about a model; of equal ones the alphabet decides, so that
        // the order of the environment does not.
        self.by_key
            .sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    }

    /// The window of a model.
    pub fn tokens(&self, model: &str) -> u64 {
        let model = model.to_lowercase();
        let found = self.by_key.iter().find(|(key, _)| model.contains(key));
        found.map_or(self.otherwise, |(_, tokens)| *tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t18_the_longest_key_in_the_name_decides() {
        let mut windows = ContextWindows::new(200_000);
        windows.insert("OPUS", 1_000_000);
        windows.insert("opus-mini", 300_000);
        let cases = [
            ("claude-opus-4", 1_000_000),
            ("Claude-OPUS-mini-2", 300_000),
            ("haiku", 200_000),
            ("", 200_000),
        ];
        for (model, tokens) in cases {
            assert_eq!(windows.tokens(model), tokens, "{model}");
        }
    }
}
