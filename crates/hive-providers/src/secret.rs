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

    /// `text` without this secret: some gateways quote the key in their error messages.
    pub fn mask(&self, text: &str) -> String {
        if self.0.len() < 8 {
            return text.to_owned();
        }
        text.replace(&self.0, "***")
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
    fn a_short_dummy_does_not_garble_messages() {
        assert_eq!(Secret::new("x").mask("x is xeric"), "x is xeric");
    }
}
