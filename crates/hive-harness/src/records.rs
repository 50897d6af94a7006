//! The harness's own record of its last turns, for the brief of a new conversation.
//!
//! A small file, replaced whole after each turn. It is a help, not a promise: a harness that cannot
//! read it begins an empty one.

use std::{collections::VecDeque, io, path::PathBuf};

use hive_wire::{MessageId, Timestamp, text};
use serde::{Deserialize, Serialize};

use crate::files;

/// How many turns are kept.
const KEPT: usize = 12;
/// The most characters of a text that are kept.
const MAX_TEXT: usize = 1_000;
/// The most bytes of the file that are read.
const MAX_FILE: u64 = 1 << 20;

/// What is remembered of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnRecord {
    /// When it began.
    pub started_at: Timestamp,
    /// The message it was about.
    pub message: Option<MessageId>,
    /// Who that was from.
    pub from: String,
    /// How it began.
    pub body: String,
    /// How the turn ended.
    pub outcome: String,
    /// The model's last words.
    pub last_words: String,
}

/// The last turns, oldest first.
#[derive(Debug)]
pub struct Records {
    file: PathBuf,
    turns: VecDeque<TurnRecord>,
}

impl Records {
    /// Reads what an earlier life left.
    pub fn open(file: PathBuf) -> Self {
        let turns = files::read_capped(&file, MAX_FILE)
            .ok()
            .flatten()
            .and_then(|text| serde_json::from_str(&text.text).ok())
            .unwrap_or_default();
        Self { file, turns }
    }

    /// The last turns, oldest first.
    pub fn recent(&self) -> Vec<TurnRecord> {
        self.turns.iter().cloned().collect()
    }

    /// Adds a turn and writes the file.
    ///
    /// # Errors
    /// Those of the disk; the turn is remembered until the harness ends.
    pub fn push(&mut self, mut turn: TurnRecord) -> io::Result<()> {
        turn.body = text::shorten(&turn.body, MAX_TEXT);
        turn.last_words = text::shorten(&turn.last_words, MAX_TEXT);
        self.turns.push_back(turn);
        while self.turns.len() > KEPT {
            self.turns.pop_front();
        }
        let json = serde_json::to_vec(&self.turns)?;
        files::write_atomically(&self.file, &json)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_few_short_and_outlive_the_harness() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("recent.json");
        let mut records = Records::open(file.clone());
        for n in 0..20 {
            let turn = TurnRecord {
                started_at: Timestamp::from_millis(n),
                message: Some(MessageId(n)),
                from: "bob".to_owned(),
                body: "é".repeat(5_000),
                outcome: "ok".to_owned(),
                last_words: String::new(),
            };
            records.push(turn).unwrap();
        }
        let again = Records::open(file.clone()).recent();
        assert_eq!(again, records.recent());
        assert_eq!(again.len(), KEPT);
        assert_eq!(again[KEPT - 1].message, Some(MessageId(19)));
        assert_eq!(again[0].body.chars().count(), MAX_TEXT + 1);

        std::fs::write(&file, "{ not json").unwrap();
        assert!(Records::open(file).recent().is_empty());
    }
}
