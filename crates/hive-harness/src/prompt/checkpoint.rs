//! The prompts of checkpoint turns: the agent writes down what must not be lost (T21, T22).

/// Why the conversation is about to be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It is nearly full and will be compacted.
    Full,
    /// It is long and its cache is cold: the next turn begins a new one.
    Cold,
}

/// The prompt.
pub fn checkpoint_prompt(reason: Reason) -> String {
    let why = match reason {
        Reason::Full => {
            "Your context is filling up. Right after this turn the conversation is compacted to a \
             summary, and details that are not written down are lost."
        }
        Reason::Cold => {
            "There has been a long pause. Right after this turn a new conversation begins, and \
             nothing of this one but what is written down goes with you."
        }
    };
    format!(
        "Checkpoint, from the hive itself. {why}\n\n\
         Write what you will need into files in your own directory now: open tasks and their state, \
         whom you owe an answer (with message ids), decisions and their reasons, paths that matter. \
         Keep CLAUDE.md short and true. Do nothing else: start no work and send nothing. Mail is \
         closed in this turn; it comes afterwards."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t21_t22_each_says_what_happens_next_and_that_mail_is_closed() {
        let full = checkpoint_prompt(Reason::Full);
        let cold = checkpoint_prompt(Reason::Cold);
        assert!(full.contains("compacted"), "{full}");
        assert!(cold.contains("a new conversation begins"), "{cold}");
        for prompt in [full, cold] {
            assert!(!prompt.starts_with('/'));
            assert!(prompt.contains("Mail is closed"));
        }
    }
}
