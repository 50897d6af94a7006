//! Names that the harness makes up: random, so that no two lives of it share one.

use std::fmt::Write;

/// `bytes` random bytes as hexadecimal text.
///
/// # Errors
/// When the system has no randomness to give.
pub(crate) fn random_hex(bytes: usize) -> Result<String, getrandom::Error> {
    let mut raw = vec![0; bytes];
    getrandom::fill(&mut raw)?;
    Ok(raw.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    }))
}
