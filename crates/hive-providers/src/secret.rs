//! A value that must not be shown.

use std::fmt;

/// A key or token. It prints as `***`; only [`Secret::expose`] gives it away.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a key, without the white space that pasting leaves around it.
    pub fn new(value: &str) -> Self {
        Self(value.trim().to_owned())
    }

    /// The value itself, for the one header that carries it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `text` without this secret: some gateways quote the key in their error messages, with or
    /// without the word before it in its header.
    pub fn mask(&self, text: &str) -> String {
        let bare = self.0.split_once(' ').map_or("", |(_, key)| key);
        let shown = [self.0.as_str(), bare].into_iter();
        shown
            .filter(|secret| secret.len() >= 8)
            .fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_never_shown() {
        let secret = Secret::new(" sk-ant-0123456789 \n");
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
        assert_eq!(secret.mask("bad key sk-ant-0123456789!"), "bad key ***!");
        assert_eq!(secret.expose(), "sk-ant-0123456789");
    }

    #[test]
    fn the_key_in_a_header_of_two_words_is_masked_alone_too() {
        let secret = Secret::new("Bearer sk-or-0123456789");
        let said = "Incorrect API key provided: sk-or-0123456789 (Bearer sk-or-0123456789)";
        let masked = "Incorrect API key provided: *** (***)";
        assert_eq!(secret.mask(said), masked);
        let short = Secret::new("Bearer x");
        assert_eq!(short.mask("a Bearer of x"), "a Bearer of x");
    }

    #[test]
    fn a_short_dummy_does_not_garble_messages() {
        assert_eq!(Secret::new("x").mask("x is xeric"), "x is xeric");
    }
}
