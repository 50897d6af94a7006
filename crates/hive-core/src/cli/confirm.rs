//! Asking before something is done that cannot be undone.

use std::io::{self, BufRead, Read, Write};

use super::{
    failure::{Exit, Failure},
    out::Out,
};

/// The longest answer that is read.
const MAX_ANSWER: u64 = 64;

/// Goes on when `yes` was given or the operator says so. Without a terminal there is nobody to
/// ask, and nothing is done.
///
/// It blocks the thread, which harms nobody: it comes before anything is connected.
pub(super) fn confirm(question: &str, yes: bool, out: &Out) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !out.can_ask() {
        return Err(Failure::new(
            Exit::Usage,
            "needs_yes",
            "this needs a confirmation, and there is no terminal to ask on",
        )
        .hint("say it with --yes"));
    }
    let answer = ask(question, &mut io::stderr(), &mut io::stdin().lock());
    match answer {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::new(Exit::Failure, "declined", "nothing was done")),
        Err(error) => Err(Failure::io("ask for a confirmation", &error)),
    }
}

fn ask(question: &str, to: &mut impl Write, from: &mut impl BufRead) -> io::Result<bool> {
    write!(to, "{question} [y/N] ")?;
    to.flush()?;
    let mut answer = String::new();
    from.take(MAX_ANSWER).read_line(&mut answer)?;
    let answer = answer.trim().to_ascii_lowercase();
    Ok(answer == "y" || answer == "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        for (answer, expected) in [
            ("y\n", true),
            ("YES\n", true),
            ("\n", false),
            ("", false),
            ("no\n", false),
            ("yesterday\n", false),
        ] {
            let mut prompt = Vec::new();
            let said = ask("sure?", &mut prompt, &mut answer.as_bytes()).unwrap();
            assert_eq!(said, expected, "{answer:?}");
            assert_eq!(prompt, b"sure? [y/N] ");
        }
    }
}
