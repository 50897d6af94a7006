//! Which model the next turn uses (T17): the operator's choice in its file, else the default.

use std::{io, path::Path};

use thiserror::Error;

use crate::files;

/// The longest name of a model, in bytes.
const MAX_MODEL_NAME: usize = 128;

/// Why a text is no model's name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "a model's name has 1 to 128 letters, digits and `-_.:/@[]`, and starts with a letter or digit"
)]
pub struct ModelNameError;

/// Checks a model's name. It becomes one argument of the engine, so it must not look like a flag.
///
/// # Errors
/// [`ModelNameError`].
pub fn check_model_name(name: &str) -> Result<(), ModelNameError> {
    let inner = |c: char| c.is_ascii_alphanumeric() || "-_.:/@[]".contains(c);
    let legal = name.len() <= MAX_MODEL_NAME
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(inner);
    if legal { Ok(()) } else { Err(ModelNameError) }
}

/// The model of the next turn: what the file says, when it says a model's name.
pub fn current_model(file: &Path, default: &str) -> String {
    let chosen = files::read_capped(file, 1024)
        .ok()
        .flatten()
        .map(|text| text.text.trim().to_owned())
        .filter(|name| check_model_name(name).is_ok());
    chosen.unwrap_or_else(|| default.to_owned())
}

/// Keeps the operator's choice.
///
/// # Errors
/// Those of the disk.
pub fn choose_model(file: &Path, name: &str) -> io::Result<()> {
    files::write_atomically(file, format!("{name}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t17_names_that_could_be_flags_or_lines_are_refused() {
        for good in [
            "haiku",
            "claude-sonnet-4-5",
            "us.anthropic/x:1@2",
            "opus[1m]",
        ] {
            assert_eq!(check_model_name(good), Ok(()), "{good}");
        }
        for bad in ["", "-x", "--model", "a b", "a\nb", "é", &"x".repeat(129)] {
            assert_eq!(check_model_name(bad), Err(ModelNameError), "{bad}");
        }
    }

    #[test]
    fn t17_the_choice_is_read_each_time_and_nonsense_in_the_file_is_no_choice() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("hyperhive-model");
        assert_eq!(current_model(&file, "haiku"), "haiku");
        choose_model(&file, "opus").unwrap();
        assert_eq!(current_model(&file, "haiku"), "opus");
        std::fs::write(&file, "--settings=/tmp/evil\n").unwrap();
        assert_eq!(current_model(&file, "haiku"), "haiku");
    }
}
