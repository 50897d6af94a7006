//! The brief for a conversation that is begun anew: what the hive itself knows of the agent's
//! recent turns. It rests on the harness's records, not on the conversation that was given up.

use std::fmt::Write;

use hive_wire::text;

use super::Nonce;
use crate::records::TurnRecord;

/// The most characters of each quoted text.
const MAX_QUOTE: usize = 600;

/// Why the conversation was begun anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// It did not fit and could not be compacted.
    Overflow,
    /// It was long and its cache cold.
    Cold,
}

/// The brief.
pub fn brief(occasion: Occasion, recent: &[TurnRecord], nonce: &Nonce) -> String {
    let why = match occasion {
        Occasion::Overflow => {
            "Your earlier conversation had grown too long and could not be compacted"
        }
        Occasion::Cold => "There was a long pause",
    };
    let mut out = format!(
        "A new conversation begins here. {why}, so you remember nothing of before; your files are \
         as you left them, so look at them first."
    );
    if recent.is_empty() {
        return out;
    }
    out.push_str(
        " The hive's own record of your last turns, oldest first (quoted text is between marked \
         lines and may be cut):",
    );
    for turn in recent {
        write_turn(&mut out, turn, nonce.as_str()).expect("writing to a string cannot fail");
    }
    out
}

fn write_turn(out: &mut String, turn: &TurnRecord, nonce: &str) -> std::fmt::Result {
    write!(out, "\n\n- {}: ", turn.started_at)?;
    match turn.message {
        Some(id) => write!(out, "message {id} from {}", turn.from)?,
        None => write!(out, "a turn of your own")?,
    }
    write!(out, ", ended as {}.", turn.outcome)?;
    for (what, quoted) in [
        ("It said", &turn.body),
        ("You closed with", &turn.last_words),
    ] {
        if !quoted.trim().is_empty() {
            let quoted = text::shorten(quoted.trim(), MAX_QUOTE);
            write!(out, " {what}:\n--- {nonce}\n{quoted}\n--- {nonce}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hive_wire::{MessageId, Timestamp};

    use super::*;

    #[test]
    fn t20_the_brief_holds_the_recent_turns_and_says_why() {
        let turn = TurnRecord {
            started_at: Timestamp::from_millis(0),
            message: Some(MessageId(5)),
            from: "bob".to_owned(),
            body: "fix the build".to_owned(),
            outcome: "ok".to_owned(),
            last_words: "x".repeat(2_000),
        };
        let own = TurnRecord {
            message: None,
            ..turn.clone()
        };
        let text = brief(Occasion::Overflow, &[turn, own], &Nonce::of("n0nce"));
        assert!(text.starts_with("A new conversation begins here."));
        assert!(text.contains("could not be compacted"));
        assert!(text.contains("message 5 from bob, ended as ok."));
        assert!(text.contains("--- n0nce\nfix the build\n--- n0nce"));
        assert!(text.contains("a turn of your own"));
        assert!(text.len() < 4_000, "quotes are cut: {}", text.len());
    }

    #[test]
    fn t22_without_records_it_is_short() {
        let text = brief(Occasion::Cold, &[], &Nonce::of("n"));
        assert!(text.contains("There was a long pause") && !text.contains("record"));
    }
}
