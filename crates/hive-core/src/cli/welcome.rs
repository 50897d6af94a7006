//! What `up` says once the hive runs: where it is and what to try first; and how a daemon that
//! cannot start says why.

use std::{
    io::{self, Write},
    path::Path,
};

use super::BINARY;
use crate::daemon::Running;

/// Greets whoever ran `up`.
///
/// # Errors
/// When stdout cannot be written.
pub fn welcome(running: &Running, root: Option<&Path>) -> anyhow::Result<()> {
    // As it was called: the binary need not be on the PATH.
    let program = std::env::args().next().unwrap_or_else(|| BINARY.to_owned());
    let program = shell_word(&program);
    let command = match root {
        Some(root) => format!("{program} --root {}", shell_word(&root.to_string_lossy())),
        None => program,
    };
    let socket = running.agent_socket(&"ada".parse().expect("a legal name"));
    let socket = shell_word(&format!("UNIX-CONNECT:{}", socket.display()));
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "\nThe hive is up. Ctrl-C drains and stops it; nothing is lost.\n\n\
         Create two agents and let them talk:\n  \
         {command} spawn ada\n  \
         {command} spawn bob\n  \
         {command} send ada 'hello from the operator'\n\n\
         Be ada, by hand, on her socket:\n  \
         echo '{{\"cmd\":\"recv\",\"turn\":\"t1\"}}' | socat - {socket}\n  \
         echo '{{\"cmd\":\"ack_turn\",\"turn\":\"t1\",\"ids\":[1]}}' | socat - {socket}\n  \
         {command} receipt 1\n\n\
         Health: {}/healthz   Everything else: {command} --help\n",
        running.url()
    )?;
    out.flush()?;
    Ok(())
}

/// Says on stderr why the daemon could not start or had to stop, with each cause once.
pub fn report_fatal(error: &anyhow::Error) {
    let mut text = format!("error: {error}\n");
    for cause in error.chain().skip(1) {
        text.push_str(&format!("  because: {cause}\n"));
    }
    // Nobody is left to be told when stderr is gone.
    drop(io::stderr().lock().write_all(text.as_bytes()));
}

/// A path as a shell takes it.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_where_a_shell_would_trip() {
        for (text, word) in [
            ("/a/b", "/a/b"),
            ("/a b", "'/a b'"),
            ("it's", r"'it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
    }
}
