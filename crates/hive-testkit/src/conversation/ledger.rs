//! What the agents of a conversation know: what they began, and what they heard. It outlives their
//! deaths, as a memory of somebody who watches them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hive_wire::{
    MessageId, QuestionId,
    agent::MessageState,
    client::ClientError,
    host::{LookUpReceipt, Questions},
};

use crate::hive::TestHive;

/// The memory.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    /// Messages by their tag: the id that was answered to their sender.
    said: BTreeMap<String, MessageId>,
    /// The ids under which each tag was heard.
    heard: BTreeMap<String, BTreeSet<MessageId>>,
    /// Reminders by their tag.
    set: BTreeSet<String>,
    /// The ids under which each fired.
    fired: BTreeMap<String, BTreeSet<MessageId>>,
    asked: BTreeSet<QuestionId>,
    /// The news of each question's end, by the answer.
    ended: BTreeMap<QuestionId, BTreeMap<MessageId, String>>,
    lives: u64,
    redelivered: u64,
}

/// How much was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Messages between agents.
    pub messages: usize,
    /// Those among them that answer another.
    pub replies: usize,
    /// Questions.
    pub questions: usize,
    /// Those among them that expired.
    pub expired: usize,
    /// Those among them that were taken back.
    pub cancelled: usize,
    /// Reminders.
    pub reminders: usize,
    /// How often agents began anew.
    pub lives: u64,
    /// Messages that were handed over again.
    pub redelivered: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} messages ({} replies), {} questions ({} expired, {} cancelled), {} reminders, \
             {} lives, {} redeliveries",
            self.messages,
            self.replies,
            self.questions,
            self.expired,
            self.cancelled,
            self.reminders,
            self.lives,
            self.redelivered
        )
    }
}

impl Ledger {
    pub(super) fn lives_again(&self) {
        self.lock().lives += 1;
    }

    pub(super) fn redelivered(&self) {
        self.lock().redelivered += 1;
    }

    pub(super) fn said(&self, tag: &str, id: MessageId) {
        self.lock().said.insert(tag.to_owned(), id);
    }

    pub(super) fn heard(&self, tag: &str, id: MessageId) {
        self.lock()
            .heard
            .entry(tag.to_owned())
            .or_default()
            .insert(id);
    }

    pub(super) fn set(&self, tag: &str) {
        self.lock().set.insert(tag.to_owned());
    }

    pub(super) fn fired(&self, tag: &str, id: MessageId) {
        self.lock()
            .fired
            .entry(tag.to_owned())
            .or_default()
            .insert(id);
    }

    pub(super) fn asked(&self, id: QuestionId) {
        self.lock().asked.insert(id);
    }

    pub(super) fn ended(&self, question: QuestionId, answer: &str, id: MessageId) {
        let mut memory = self.lock();
        let news = memory.ended.entry(question).or_default();
        news.insert(id, answer.to_owned());
    }

    /// What somebody still waits for, in words.
    pub(super) fn open(&self) -> Vec<String> {
        let memory = self.lock();
        let reminders = memory
            .set
            .iter()
            .filter(|tag| !memory.fired.contains_key(*tag));
        let reminders = reminders.map(|tag| format!("reminder {tag} has not fired"));
        let questions = memory
            .asked
            .iter()
            .filter(|id| !memory.ended.contains_key(id));
        let questions = questions.map(|id| format!("the end of question {id} was not heard"));
        reminders.chain(questions).take(20).collect()
    }

    pub(super) fn tally(&self) -> Tally {
        let memory = self.lock();
        let ended_with = |word: &str| {
            let answers = memory.ended.values().flat_map(BTreeMap::values);
            answers.filter(|answer| answer.starts_with(word)).count()
        };
        Tally {
            messages: memory.said.len(),
            replies: memory.said.keys().filter(|tag| tag.contains('>')).count(),
            questions: memory.asked.len(),
            expired: ended_with("[expired]"),
            cancelled: ended_with("[cancelled"),
            reminders: memory.set.len(),
            lives: memory.lives,
            redelivered: memory.redelivered,
        }
    }

    /// What should not be.
    ///
    /// # Errors
    /// When the daemon does not answer.
    pub(super) async fn check(&self, hive: &TestHive) -> anyhow::Result<Vec<String>> {
        let host = hive.host_client();
        let mut violations = self.check_memory();
        let said: Vec<MessageId> = self.lock().said.values().copied().collect();
        for message_id in said {
            match host.call(&LookUpReceipt { message_id }).await {
                Ok(receipt) if receipt.state == MessageState::Acked => {}
                Ok(receipt) => violations.push(format!("{receipt:?}: it should be acked")),
                Err(ClientError::Refused(error)) => {
                    violations.push(format!("message {message_id} has no receipt: {error}"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let open = host.call(&Questions { all: false }).await?.questions;
        let open = open.iter().map(|row| format!("nobody ended {row:?}"));
        violations.extend(open);
        Ok(violations)
    }

    /// What can be told from memory alone.
    fn check_memory(&self) -> Vec<String> {
        let memory = self.lock();
        let mut violations = Vec::new();
        for (tag, id) in &memory.said {
            let heard = memory.heard.get(tag).cloned().unwrap_or_default();
            if heard != BTreeSet::from([*id]) {
                violations.push(format!("{tag} was said as {id} and heard as {heard:?}"));
            }
        }
        for tag in memory
            .heard
            .keys()
            .filter(|tag| !memory.said.contains_key(*tag))
        {
            violations.push(format!("{tag} was heard and never said"));
        }
        for tag in &memory.set {
            let times = memory.fired.get(tag).map_or(0, BTreeSet::len);
            if times != 1 {
                violations.push(format!("reminder {tag} fired {times} times"));
            }
        }
        for tag in memory.fired.keys().filter(|tag| !memory.set.contains(*tag)) {
            violations.push(format!("reminder {tag} fired and was never set"));
        }
        for id in &memory.asked {
            let times = memory.ended.get(id).map_or(0, BTreeMap::len);
            if times != 1 {
                violations.push(format!("the end of question {id} was told {times} times"));
            }
        }
        violations
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ledger on which everything went well, changed by `spoil`.
    fn violations(spoil: impl FnOnce(&Ledger)) -> usize {
        let ledger = Ledger::default();
        ledger.said("a-1", MessageId(1));
        ledger.heard("a-1", MessageId(1));
        ledger.set("r-1");
        ledger.fired("r-1", MessageId(2));
        ledger.asked(QuestionId(1));
        ledger.ended(QuestionId(1), "yes", MessageId(3));
        spoil(&ledger);
        ledger.check_memory().len()
    }

    #[test]
    fn each_broken_promise_is_seen() {
        assert_eq!(violations(|_| ()), 0);
        assert_eq!(
            violations(|l| l.heard("a-1", MessageId(1))),
            0,
            "again is no harm"
        );
        assert_eq!(
            violations(|l| l.heard("a-1", MessageId(9))),
            1,
            "heard twice"
        );
        assert_eq!(
            violations(|l| l.said("a-2", MessageId(9))),
            1,
            "never heard"
        );
        assert_eq!(
            violations(|l| l.heard("a-2", MessageId(9))),
            1,
            "never said"
        );
        assert_eq!(violations(|l| l.set("r-2")), 1, "never fired");
        assert_eq!(
            violations(|l| l.fired("r-1", MessageId(9))),
            1,
            "fired twice"
        );
        assert_eq!(violations(|l| l.fired("r-2", MessageId(9))), 1, "never set");
        assert_eq!(violations(|l| l.asked(QuestionId(2))), 1, "no end");
        let twice = |l: &Ledger| l.ended(QuestionId(1), "no", MessageId(9));
        assert_eq!(violations(twice), 1, "two ends");
    }
}
