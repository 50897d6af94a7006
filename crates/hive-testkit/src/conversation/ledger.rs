//! What the agents of a conversation know: what each of them said, and what each heard, word for
//! word. It outlives their deaths, as a memory of somebody who watches them.
//!
//! A message may be handed over often. Every time is noted, so that one that comes back changed is
//! seen.

mod check;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use hive_wire::{MessageId, QuestionId};

/// The memory.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    /// What was sent, by the id that was answered to its sender.
    said: BTreeMap<MessageId, BTreeSet<Words>>,
    /// What came, with who heard it.
    heard: BTreeMap<MessageId, BTreeSet<(String, Words)>>,
    /// Reminders: whose, and what they are to say.
    set: BTreeSet<(String, String)>,
    /// Who heard a reminder say what, and in which messages.
    fired: BTreeMap<(String, String), BTreeSet<MessageId>>,
    asked: BTreeMap<QuestionId, BTreeSet<Query>>,
    /// Questions as they reached somebody, who is the target then.
    put: BTreeMap<QuestionId, BTreeSet<(MessageId, Query)>>,
    /// Answers that were accepted: by whom, and what.
    answered: BTreeMap<QuestionId, BTreeSet<(String, String)>>,
    /// Who was allowed to take a question back.
    cancelled: BTreeMap<QuestionId, BTreeSet<String>>,
    /// Who was told that a question was taken back.
    withdrawn: BTreeMap<QuestionId, BTreeSet<(MessageId, String)>>,
    /// The news of each question's end.
    ended: BTreeMap<QuestionId, BTreeSet<News>>,
    lives: u64,
    redelivered: u64,
}

/// A message as one of its two sides knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Words {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) body: String,
    pub(super) in_reply_to: Option<MessageId>,
}

/// A question as one of its two sides knows it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Query {
    pub(super) asker: String,
    pub(super) target: String,
    pub(super) question: String,
    pub(super) options: Vec<String>,
    pub(super) multi: bool,
    pub(super) expires: bool,
}

/// The end of a question as somebody heard of it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct News {
    pub(super) message: MessageId,
    pub(super) to: String,
    pub(super) question: String,
    pub(super) answer: String,
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
    /// Those among them that were answered.
    pub answered: usize,
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
            "{} messages ({} replies), {} questions ({} answered, {} expired, {} cancelled), \
             {} reminders, {} lives, {} redeliveries",
            self.messages,
            self.replies,
            self.questions,
            self.answered,
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

    pub(super) fn said(&self, id: MessageId, words: Words) {
        self.lock().said.entry(id).or_default().insert(words);
    }

    pub(super) fn heard(&self, by: &str, id: MessageId, words: Words) {
        let note = (by.to_owned(), words);
        self.lock().heard.entry(id).or_default().insert(note);
    }

    pub(super) fn set(&self, owner: &str, text: &str) {
        self.lock().set.insert((owner.to_owned(), text.to_owned()));
    }

    pub(super) fn fired(&self, to: &str, text: &str, id: MessageId) {
        let what = (to.to_owned(), text.to_owned());
        self.lock().fired.entry(what).or_default().insert(id);
    }

    pub(super) fn asked(&self, id: QuestionId, query: Query) {
        self.lock().asked.entry(id).or_default().insert(query);
    }

    pub(super) fn put(&self, id: QuestionId, message: MessageId, query: Query) {
        let note = (message, query);
        self.lock().put.entry(id).or_default().insert(note);
    }

    pub(super) fn answered(&self, id: QuestionId, by: &str, answer: &str) {
        let note = (by.to_owned(), answer.to_owned());
        self.lock().answered.entry(id).or_default().insert(note);
    }

    pub(super) fn cancelled(&self, id: QuestionId, by: &str) {
        let note = by.to_owned();
        self.lock().cancelled.entry(id).or_default().insert(note);
    }

    pub(super) fn withdrawn(&self, id: QuestionId, message: MessageId, to: &str) {
        let note = (message, to.to_owned());
        self.lock().withdrawn.entry(id).or_default().insert(note);
    }

    pub(super) fn ended(&self, id: QuestionId, news: News) {
        self.lock().ended.entry(id).or_default().insert(news);
    }

    /// What somebody still waits for, in words. It counts and does not compare: news with a wrong
    /// text is for the check to find, and nothing to wait for.
    pub(super) fn open(&self) -> Vec<String> {
        let memory = self.lock();
        let mut open: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
        for (owner, _) in &memory.set {
            open.entry(owner).or_default().0 += 1;
        }
        for ((to, _), messages) in &memory.fired {
            let reminders = &mut open.entry(to).or_default().0;
            *reminders = reminders.saturating_sub(messages.len());
        }
        for query in memory.asked.values().flatten() {
            open.entry(&query.asker).or_default().1 += 1;
        }
        for news in memory.ended.values().flatten() {
            let ends = &mut open.entry(&news.to).or_default().1;
            *ends = ends.saturating_sub(1);
        }
        let waiting = open.into_iter().filter(|(_, open)| *open != (0, 0));
        let in_words = waiting.map(|(who, (reminders, ends))| {
            format!("{who} waits for {reminders} reminders and the ends of {ends} questions")
        });
        in_words.collect()
    }

    pub(super) fn tally(&self) -> Tally {
        let memory = self.lock();
        let ended_with = |word: &str| {
            let news = memory.ended.values().flatten();
            news.filter(|news| news.answer.starts_with(word)).count()
        };
        let words = memory.said.values().flatten();
        Tally {
            messages: memory.said.len(),
            replies: words.filter(|words| words.in_reply_to.is_some()).count(),
            questions: memory.asked.len(),
            answered: memory.answered.len(),
            expired: ended_with("[expired]"),
            cancelled: ended_with("[cancelled"),
            reminders: memory.set.len(),
            lives: memory.lives,
            redelivered: memory.redelivered,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Memory> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
