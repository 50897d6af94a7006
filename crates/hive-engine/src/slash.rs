//! Commands in prompts: a prompt whose first character is a slash and that names one of these.

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slash {
    /// Replace the history by a summary, with further instructions.
    Compact(String),
    /// Forget the history.
    Clear,
    /// Show or change the model.
    Model(String),
    /// Show how full the context is.
    Context,
}

impl Slash {
    /// The command in a prompt; anything else is for the model.
    pub fn parse(prompt: &str) -> Option<Self> {
        let rest = prompt.strip_prefix('/')?;
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let arguments = arguments.trim().to_owned();
        match name {
            "compact" => Some(Self::Compact(arguments)),
            "clear" | "reset" | "new" => Some(Self::Clear),
            "model" => Some(Self::Model(arguments)),
            "context" => Some(Self::Context),
            _ => None,
        }
    }

    /// Its name in results.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Compact(_) => "compact",
            Self::Clear => "clear",
            Self::Model(_) => "model",
            Self::Context => "context",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_leading_slash_and_a_known_name() {
        for (prompt, expected) in [
            ("/compact", Some(Slash::Compact(String::new()))),
            (
                "/compact keep names\n",
                Some(Slash::Compact("keep names".into())),
            ),
            ("/clear", Some(Slash::Clear)),
            ("/model opus", Some(Slash::Model("opus".into()))),
            (" /compact", None),
            ("please /compact", None),
            ("/unknown", None),
            ("/compactly", None),
            ("/", None),
        ] {
            assert_eq!(Slash::parse(prompt), expected, "{prompt}");
        }
    }
}
