//! Which credential an agent is on, and what a usage limit on it means for everybody who shares
//! it: pure rules.
//!
//! A limit is a state of the credential, not of one agent. When one agent meets it, the others on
//! the same credential wait too, until the stated reset, and go on one by one. The stated reset is
//! an agent's word, so it is believed within a horizon only: then the first one tries, and its
//! next report decides. Which credential an agent is on is never its word.

use std::{fmt, time::Duration};

use hive_wire::{
    AgentName, Timestamp,
    host::Runtime,
    report::{HarnessStatus, PostState},
};

/// The longest wait that a report can cause; then the first one probes.
pub(crate) const HORIZON: Duration = Duration::from_secs(24 * 60 * 60);
/// The wait when the service did not say when the limit ends.
const UNSTATED: Duration = Duration::from_secs(5 * 60);
/// The wait when the stated end has passed already.
const PASSED: Duration = Duration::from_secs(30);
/// How long after each other those who waited go on.
const STAGGER: Duration = Duration::from_secs(2);

/// What an agent uses to reach its model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Credential {
    /// The operator's key, which all such agents share.
    Host,
    /// A login of its own.
    Own(AgentName),
}

impl Credential {
    /// The credential of an agent. One that runs elsewhere has its own, as far as the hive can
    /// tell: what it reports must not reach others.
    pub(crate) fn of(name: &AgentName, runtime: Runtime, host_has_key: bool) -> Self {
        match runtime {
            Runtime::None => Self::Own(name.clone()),
            _ if host_has_key => Self::Host,
            _ => Self::Own(name.clone()),
        }
    }
}

impl fmt::Display for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Own(name) => write!(f, "own:{name}"),
        }
    }
}

/// A usage limit that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limit {
    /// When the first one goes on.
    pub(crate) until: Timestamp,
    /// Who met it: it goes on first.
    pub(crate) met_by: AgentName,
}

impl Limit {
    /// The limit that a report tells of.
    pub(crate) fn reported(by: &AgentName, resets_at: Option<Timestamp>, now: Timestamp) -> Self {
        Self {
            until: believed(resets_at, now),
            met_by: by.clone(),
        }
    }

    /// Until when the `place`th of those who share the credential waits; the one who met the limit
    /// is not counted and goes on first.
    pub(crate) fn turn_of(&self, agent: &AgentName, place: u32) -> Timestamp {
        if *agent == self.met_by {
            return self.until;
        }
        self.until.plus(STAGGER.saturating_mul(place + 1))
    }

    /// Whether somebody still waits, given that so many share the credential.
    pub(crate) fn is_in_force(&self, sharing: u32, now: Timestamp) -> bool {
        self.until.plus(STAGGER.saturating_mul(sharing)) > now
    }
}

/// When a limit ends, as far as an agent's word is believed.
fn believed(resets_at: Option<Timestamp>, now: Timestamp) -> Timestamp {
    match resets_at {
        None => now.plus(UNSTATED),
        Some(at) if at <= now => now.plus(PASSED),
        Some(at) => at.min(now.plus(HORIZON)),
    }
}

/// Whether a report tells of a limit that the host has not acted on. A harness repeats its report
/// after each connect, and a limit that the operator lifted must not come back by that.
pub(crate) fn is_news(before: Option<&PostState>, report: &PostState) -> bool {
    if report.status != HarnessStatus::RateLimited {
        return false;
    }
    match before {
        Some(before) if before.status == HarnessStatus::RateLimited => {
            before.resets_at != report.resets_at
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use hive_wire::report::TurnState;

    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_000_000);

    fn name(text: &str) -> AgentName {
        text.parse().unwrap()
    }

    fn report(status: HarnessStatus, resets_in: Option<i64>) -> PostState {
        PostState {
            turn_state: TurnState::Idle,
            since: NOW,
            status,
            model: String::new(),
            context_tokens: 0,
            window: 0,
            current_tool: None,
            engine: None,
            engine_version: None,
            credential: Some("host".into()),
            resets_at: resets_in.map(|ms| Timestamp::from_millis(NOW.millis() + ms)),
            rehearsed: false,
        }
    }

    #[test]
    fn t6_the_host_decides_who_shares_a_credential() {
        let ada = name("ada");
        for (runtime, host_has_key, expected) in [
            (Runtime::Process, true, "host"),
            (Runtime::Bwrap, true, "host"),
            (Runtime::Process, false, "own:ada"),
            (Runtime::None, true, "own:ada"),
            (Runtime::None, false, "own:ada"),
        ] {
            let credential = Credential::of(&ada, runtime, host_has_key);
            assert_eq!(credential.to_string(), expected, "{runtime:?}");
        }
    }

    #[test]
    fn t6_the_stated_reset_counts_within_a_horizon() {
        let day = 24 * 60 * 60 * 1_000;
        for (resets_in, waits) in [
            (Some(90_000), 90_000),
            (Some(day), day),
            (Some(day + 1), day),
            (Some(i64::MAX - NOW.millis()), day),
            (Some(0), 30_000),
            (Some(-500), 30_000),
            (Some(i64::MIN + NOW.millis()), 30_000),
            (None, 300_000),
        ] {
            let report = report(HarnessStatus::RateLimited, resets_in);
            let limit = Limit::reported(&name("ada"), report.resets_at, NOW);
            assert_eq!(limit.until.millis() - NOW.millis(), waits, "{resets_in:?}");
        }
    }

    #[test]
    fn t6_who_met_the_limit_goes_first_and_the_others_one_by_one() {
        let limit = Limit {
            until: NOW,
            met_by: name("ada"),
        };
        let waits = |agent: &str, place| limit.turn_of(&name(agent), place).millis() - NOW.millis();
        assert_eq!(waits("ada", 7), 0);
        assert_eq!(waits("bob", 0), 2_000);
        assert_eq!(waits("cyd", 1), 4_000);
        let later = |ms| Timestamp::from_millis(NOW.millis() + ms);
        assert!(limit.is_in_force(3, later(5_999)));
        assert!(!limit.is_in_force(3, later(6_000)));
    }

    #[test]
    fn t6_a_report_that_is_only_repeated_is_no_news() {
        use HarnessStatus::{Online, RateLimited};
        let before = |status, resets_in| Some(report(status, resets_in));
        for (before, status, resets_in, expected) in [
            (None, RateLimited, None, true),
            (before(Online, None), RateLimited, Some(5), true),
            (before(RateLimited, Some(5)), RateLimited, Some(5), false),
            (before(RateLimited, None), RateLimited, None, false),
            (before(RateLimited, Some(5)), RateLimited, Some(9), true),
            (before(RateLimited, Some(5)), Online, None, false),
            (None, Online, Some(5), false),
        ] {
            let report = report(status, resets_in);
            assert_eq!(is_news(before.as_ref(), &report), expected, "{before:?}");
        }
    }
}
