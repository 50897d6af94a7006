//! Proves from the clients' own records that the broker kept its promises.
//!
//! It knows nothing of the broker's inside. Every call took effect at some instant between its
//! invocation and its completion (or, when the reply was lost, until the daemon next died, or
//! never); a violation is reported only when no choice of instants explains what was seen. So a
//! report is always right, while silence proves as much as the clients could see.

use std::fmt;

use crate::history::{Call, History};

mod acks;
mod content;
mod index;
mod numbers;
mod order;
mod receipts;
mod story;
mod turns;

/// How many violations of one rule are kept with their evidence; more of them are only counted.
const KEPT: usize = 8;

/// The promise that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// (a) A message whose send was acknowledged ends acked by its recipient or as a dead letter.
    Lost,
    /// (b) A message that was acked is not delivered again.
    AckedAgain,
    /// (b) An ack that was acknowledged stands.
    AckVanished,
    /// (c) Each new lease of a message has the next delivery number, the first has 1.
    Unmarked,
    /// (c) A repeated receive returns the same batch.
    ReplayDiffers,
    /// (d) Messages keep their order, requeued or not.
    Order,
    /// (e) Every delivered message was sent, by that sender to that recipient.
    Invented,
    /// (e) A body arrives as it was sent.
    Altered,
    /// (f) A send is one message, and so are all sends with one key.
    Duplicated,
    /// (g) A receipt says what happened.
    Receipt,
    /// (h) No message is held by two turns, and an inbox has one open turn.
    TwoHolders,
    /// A turn ends once, and its end is told truthfully.
    TurnEnd,
}

/// A broken promise with the calls that show it.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Which promise.
    pub rule: Rule,
    /// What happened.
    pub what: String,
    /// The calls that show it, one per line.
    pub evidence: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)?;
        for line in &self.evidence {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

/// How much a history holds: what a clean verdict rests on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Sends that were acknowledged.
    pub sends_ok: usize,
    /// Sends whose reply was lost.
    pub sends_unknown: usize,
    /// Sends that were refused.
    pub sends_refused: usize,
    /// Messages that are known to exist.
    pub messages: usize,
    /// Receives that were answered with messages.
    pub batches: usize,
    /// Receives that may have taken messages without their client hearing of it.
    pub recvs_lost: usize,
    /// Leases that a client saw.
    pub deliveries: usize,
    /// Those with a delivery number above 1.
    pub redeliveries: usize,
    /// Turns that were acked for certain.
    pub acked_turns: usize,
    /// Messages that were acked for certain.
    pub acked: usize,
    /// Dead letters.
    pub dead: usize,
    /// Deaths of the daemon.
    pub crashes: usize,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} crashes; sends: {} ok, {} unknown, {} refused; {} messages; \
             {} batches, {} receives lost; {} deliveries, {} of them again; \
             {} acked by {} turns; {} dead",
            self.crashes,
            self.sends_ok,
            self.sends_unknown,
            self.sends_refused,
            self.messages,
            self.batches,
            self.recvs_lost,
            self.deliveries,
            self.redeliveries,
            self.acked,
            self.acked_turns,
            self.dead
        )
    }
}

/// What the checker found.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was checked.
    pub tally: Tally,
    /// What is wrong, the first few of each kind.
    pub violations: Vec<Violation>,
    /// How much more is wrong.
    pub more: usize,
}

impl Report {
    /// Whether no promise was broken.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// Whether a violation of the rule was found.
    pub fn found(&self, rule: Rule) -> bool {
        self.violations.iter().any(|found| found.rule == rule)
    }

    fn add(&mut self, rule: Rule, what: String, evidence: impl FnOnce() -> Vec<String>) {
        let same = self.violations.iter().filter(|found| found.rule == rule);
        if same.count() == KEPT {
            self.more += 1;
            return;
        }
        let evidence = evidence();
        self.violations.push(Violation {
            rule,
            what,
            evidence,
        });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "checked: {}", self.tally)?;
        for violation in &self.violations {
            write!(f, "\n\n{violation}")?;
        }
        match (self.violations.len(), self.more) {
            (0, _) => write!(f, "\nno violation"),
            (found, 0) => write!(f, "\n\n{found} violations"),
            (found, more) => write!(f, "\n\n{} violations", found + more),
        }
    }
}

/// Checks a whole history.
pub fn check(history: &History) -> Report {
    let index = index::Index::new(history);
    let mut report = Report::default();
    content::check(&index, &mut report);
    numbers::check(&index, &mut report);
    order::check(&index, &mut report);
    turns::check(&index, &mut report);
    let acked = acks::certain(&index);
    acks::check(&index, &acked, &mut report);
    receipts::check(&index, &acked, &mut report);
    report.tally = tally(history, &index, &acked);
    report
}

fn tally(history: &History, index: &index::Index<'_>, acked: &[acks::Acked]) -> Tally {
    let mut tally = Tally {
        messages: index.messages.len(),
        deliveries: index.leases.len(),
        redeliveries: index
            .leases
            .keys()
            .filter(|(_, number)| *number > 1)
            .count(),
        acked: acked.len(),
        dead: history.dead.len(),
        crashes: history.crashes.len(),
        ..Tally::default()
    };
    let mut turns: Vec<_> = acked.iter().map(|acked| acked.turn).collect();
    turns.dedup();
    tally.acked_turns = turns.len();
    for op in &history.ops {
        match &op.call {
            Call::Send { outcome, .. } if outcome.ok().is_some() => tally.sends_ok += 1,
            Call::Send { outcome, .. } if outcome.possible() => tally.sends_unknown += 1,
            Call::Send { .. } => tally.sends_refused += 1,
            Call::Recv { outcome, .. } if outcome.lossy() => tally.recvs_lost += 1,
            Call::Recv { outcome, .. } => {
                tally.batches += usize::from(outcome.ok().is_some_and(|batch| !batch.is_empty()));
            }
            _ => {}
        }
    }
    tally
}
