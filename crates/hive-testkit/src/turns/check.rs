//! Proves from a campaign's log that the turn loop kept its promises.
//!
//! It knows nothing of the loop. Senders know what was acknowledged, engines what they were asked and
//! what they answered, the host what became of each message; the three have to agree.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
};

use hive_wire::{
    MessageId,
    agent::{MessageState, Receipt},
};

use super::log::{Engines, Log, Run, Sent, Usage};

/// How many violations of one rule are shown.
const SHOWN: usize = 8;
/// How many files a process may have open more than early in its life: connections come and go.
const FILES_SLACK: u64 = 8;
/// How much memory a process may have more than early in its life, in KiB.
const MEMORY_SLACK_KIB: u64 = 6 * 1024;

/// The promise that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// A message whose send was acknowledged ends acked or as a dead letter.
    Lost,
    /// No message is acked unless an engine reported a good result of its last delivery.
    AckWithoutRun,
    /// A message that was acked is not run again.
    RunAgain,
    /// A prompt with a message that an engine has seen before says so.
    Unmarked,
    /// Messages of one sender to one agent are run in their order.
    Order,
    /// Every run is about a message that was sent to that agent, by that sender, with that body.
    Invented,
    /// A dead letter has failed as often as it takes.
    DeadTooEarly,
    /// An agent has one engine at a time.
    TwoEngines,
    /// When nothing is to be done no process is there but daemon and harnesses.
    Stray,
    /// Open files and memory do not grow.
    Growth,
}

/// A broken promise.
#[derive(Debug, Clone)]
pub struct Violation {
    /// Which one.
    pub rule: Rule,
    /// What happened.
    pub what: String,
}

/// What the checker found, and on how much it rests.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Sends that were acknowledged.
    pub sends: usize,
    /// Runs of engines with a message.
    pub runs: usize,
    /// Runs that came to a good result.
    pub good_runs: usize,
    /// Runs of a message that an engine had seen before.
    pub repeats: usize,
    /// Messages that were acked.
    pub acked: usize,
    /// Dead letters.
    pub dead: usize,
    /// Kills of engines and harnesses.
    pub kills: u32,
    /// What is wrong.
    pub violations: Vec<Violation>,
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

    fn add(&mut self, rule: Rule, what: impl Into<String>) {
        let what = what.into();
        self.violations.push(Violation { rule, what });
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} sends, {} runs ({} good, {} repeats), {} kills of engines and harnesses; \
             {} acked, {} dead",
            self.sends, self.runs, self.good_runs, self.repeats, self.kills, self.acked, self.dead
        )?;
        let mut shown = BTreeMap::<Rule, usize>::new();
        for Violation { rule, what } in &self.violations {
            let count = shown.entry(*rule).or_default();
            *count += 1;
            if *count <= SHOWN {
                write!(f, "\n{rule:?}: {what}")?;
            }
        }
        match self.violations.len() {
            0 => write!(f, "\nno violation"),
            count => write!(f, "\n{count} violations"),
        }
    }
}

/// Checks a whole log.
pub fn check(log: &Log) -> Report {
    let mut report = Report {
        sends: log.sends.len(),
        kills: log.agents.values().map(|engines| engines.kills).sum(),
        ..Report::default()
    };
    let receipts: HashMap<_, _> = log.receipts.iter().map(|r| (r.message_id, r)).collect();
    let sends: HashMap<_, _> = log.sends.iter().map(|sent| (sent.id, sent)).collect();
    for sent in &log.sends {
        let runs = log.agents.get(&sent.to).map(|engines| &engines.runs[..]);
        let runs = runs.unwrap_or_default().iter();
        let runs: Vec<_> = runs.filter(|run| run.message == sent.id).collect();
        let kills = log.agents.get(&sent.to).map_or(0, |engines| engines.kills);
        match receipts.get(&sent.id) {
            None => report.add(Rule::Lost, format!("{} has no receipt", named(sent))),
            Some(receipt) => {
                let failures = failures(&runs, kills);
                settled(sent, receipt, &runs, failures, log.dead_after, &mut report);
            }
        }
        repeats(sent, &runs, &mut report);
    }
    for (agent, engines) in &log.agents {
        report.runs += engines.runs.len();
        let good = engines.runs.iter().filter(|run| run.result == Some(true));
        report.good_runs += good.count();
        invented(agent, engines, &sends, &mut report);
        order(agent, engines, &mut report);
        two_engines(agent, engines, &mut report);
    }
    for stray in &log.strays {
        report.add(Rule::Stray, stray);
    }
    growth(&log.usage, &mut report);
    report
}

fn named(sent: &Sent) -> String {
    let Sent { id, key, from, to } = sent;
    format!("message {id} ({key}) from {from} to {to}")
}

/// How many counted failures of a message there can have been at most: runs that came to no good
/// result, and kills, which may have hit it before or after its run.
fn failures(runs: &[&Run], kills: u32) -> u32 {
    let bad = runs.iter().filter(|run| run.result != Some(true)).count();
    u32::try_from(bad).unwrap_or(u32::MAX).saturating_add(kills)
}

fn settled(
    sent: &Sent,
    receipt: &Receipt,
    runs: &[&Run],
    failures: u32,
    dead_after: u32,
    report: &mut Report,
) {
    let deliveries = receipt.deliveries;
    match receipt.state {
        MessageState::Acked => {
            report.acked += 1;
            let good = |run: &&&Run| run.result == Some(true) && run.delivery == deliveries;
            if runs.iter().find(good).is_none() {
                let what = format!(
                    "{} was acked at delivery {deliveries}, and no run of that ended well: {}",
                    named(sent),
                    story(runs)
                );
                report.add(Rule::AckWithoutRun, what);
            }
        }
        MessageState::Dead | MessageState::Discarded => {
            report.dead += 1;
            if deliveries < dead_after || failures < dead_after {
                let what = format!(
                    "{} is dead after {deliveries} deliveries: {}",
                    named(sent),
                    story(runs)
                );
                report.add(Rule::DeadTooEarly, what);
            }
        }
        state @ (MessageState::Stored | MessageState::Leased) => {
            let what = format!("{} is {state:?} in the end: {}", named(sent), story(runs));
            report.add(Rule::Lost, what);
        }
    }
    if runs.iter().any(|run| run.delivery > deliveries) {
        let what = format!(
            "{} was run after its {deliveries} deliveries: {}",
            named(sent),
            story(runs)
        );
        report.add(Rule::RunAgain, what);
    }
}

/// Every later run of a message says of itself that it is one, and delivery numbers never fall.
fn repeats(sent: &Sent, runs: &[&Run], report: &mut Report) {
    for pair in runs.windows(2) {
        let (before, run) = (pair[0], pair[1]);
        report.repeats += 1;
        if !run.is_marked || run.delivery < before.delivery {
            report.add(Rule::Unmarked, format!("{}: {}", named(sent), story(runs)));
            return;
        }
    }
}

fn story(runs: &[&Run]) -> String {
    let word = |run: &&Run| {
        let end = match run.result {
            Some(true) => "good",
            Some(false) => "bad",
            None => "no result",
        };
        let mark = if run.is_marked { ", marked" } else { "" };
        format!("delivery {}{mark}: {end}", run.delivery)
    };
    let words: Vec<_> = runs.iter().map(word).collect();
    format!("[{}]", words.join("; "))
}

fn invented(
    agent: &str,
    engines: &Engines,
    sends: &HashMap<MessageId, &Sent>,
    report: &mut Report,
) {
    for run in &engines.runs {
        let is_known = sends
            .get(&run.message)
            .is_some_and(|sent| sent.to == agent && sent.from == run.from && sent.key == run.key);
        if !is_known {
            let Run {
                message, from, key, ..
            } = run;
            let what = format!("{agent} ran message {message} ({key}) from {from}");
            report.add(Rule::Invented, what);
        }
    }
}

/// One message at a time, and one that goes back keeps its place: ids never fall.
fn order(agent: &str, engines: &Engines, report: &mut Report) {
    let mut newest = HashMap::new();
    for run in &engines.runs {
        let newest = newest.entry(&run.from).or_insert(run.message);
        if run.message < *newest {
            let what = format!(
                "{agent} ran message {} of {} after {newest}",
                run.message, run.from
            );
            report.add(Rule::Order, what);
        }
        *newest = run.message.max(*newest);
    }
}

fn two_engines(agent: &str, engines: &Engines, report: &mut Report) {
    for pair in engines.lives.windows(2) {
        if pair[0].last > pair[1].first {
            let what = format!(
                "engine {} of {agent} worked on after engine {} had begun",
                pair[0].pid, pair[1].pid
            );
            report.add(Rule::TwoEngines, what);
        }
    }
}

/// Compares the last sample of each process with its second: the first is of one that has only just
/// begun.
fn growth(usage: &[Usage], report: &mut Report) {
    let mut lives = BTreeMap::<u32, Vec<&Usage>>::new();
    for sample in usage {
        lives.entry(sample.pid).or_default().push(sample);
    }
    for samples in lives.into_values() {
        let &[_, early, .., late] = &samples[..] else {
            continue;
        };
        let files = late.files > early.files + FILES_SLACK;
        let memory = late.memory_kib > early.memory_kib + MEMORY_SLACK_KIB;
        if files || memory {
            let what = format!(
                "{} ({} samples) went from {} files and {} KiB to {} and {}",
                late.name,
                samples.len(),
                early.files,
                early.memory_kib,
                late.files,
                late.memory_kib
            );
            report.add(Rule::Growth, what);
        }
    }
}
