//! What to do about one agent, from what is wanted and what is: pure rules.

use std::time::Duration;

use hive_runtime::{Instance, State};
use hive_store::sqlite::{Run, Wanted};

/// An agent that ran for so long did not end because it was started.
const STEADY: Duration = Duration::from_secs(120);
/// The longest pause before another start.
const LONGEST: Duration = Duration::from_secs(60);

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Nothing runs, and nothing should.
    Rest,
    /// What runs is what should: wait until it ends.
    Watch,
    /// Start it.
    Start,
    /// Stop it, and look again.
    Stop,
}

/// Compares what should be with what is.
pub(super) fn next(run: &Run, actual: Option<&Instance>) -> Action {
    let running = actual.filter(|instance| matches!(instance.state, State::Running { .. }));
    let should = run.wanted == Wanted::Running && run.failure.is_none();
    match running {
        None if should => Action::Start,
        None => Action::Rest,
        Some(instance) if should && instance.generation == run.generation => Action::Watch,
        // Not wanted, or started for an earlier wish.
        Some(_) => Action::Stop,
    }
}

/// Whether a failure of this generation is still news: a newer wish is not to be spoiled by it, nor
/// a stop.
pub(super) fn may_fail(run: &Run, generation: u32) -> bool {
    run.generation == generation && run.wanted == Wanted::Running
}

/// Counts ends that came too soon.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ends {
    count: u32,
}

/// What follows from an end that nobody asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Start it again after this pause.
    Again(Duration),
    /// Leave it to the operator.
    GiveUp {
        /// How often it ended.
        ends: u32,
    },
}

impl Ends {
    /// Takes note of an end after it had run for `lasted`.
    pub(super) fn note(&mut self, lasted: Duration, restarts: u32, first: Duration) -> Verdict {
        if lasted >= STEADY {
            self.count = 0;
        }
        self.count += 1;
        if self.count > restarts {
            return Verdict::GiveUp { ends: self.count };
        }
        let doubled = first.saturating_mul(1 << (self.count - 1).min(16));
        Verdict::Again(doubled.min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use hive_runtime::Exit;
    use hive_wire::Timestamp;

    use super::*;

    #[test]
    fn c7_every_difference_has_one_action() {
        let instance = |generation, state| Instance {
            name: "ada".parse().unwrap(),
            generation,
            started_at: Timestamp::from_millis(0),
            unbounded: Vec::new(),
            state,
        };
        let running = instance(2, State::Running { pid: 7 });
        let older = instance(1, State::Running { pid: 7 });
        let ended = instance(2, State::Ended(Exit::Code(0)));
        let run = |wanted, failure: Option<&str>| Run {
            wanted,
            failure: failure.map(str::to_owned),
            generation: 2,
            ..Run::default()
        };
        use Action::{Rest, Start, Stop, Watch};
        use Wanted::{Gone, Running, Stopped};
        for (wanted, failure, actual, expected) in [
            (Running, None, None, Start),
            (Running, None, Some(&ended), Start),
            (Running, None, Some(&running), Watch),
            (Running, None, Some(&older), Stop),
            (Running, Some("x"), None, Rest),
            (Running, Some("x"), Some(&ended), Rest),
            (Running, Some("x"), Some(&running), Stop),
            (Stopped, None, None, Rest),
            (Stopped, None, Some(&ended), Rest),
            (Stopped, None, Some(&running), Stop),
            (Stopped, None, Some(&older), Stop),
            (Gone, None, Some(&running), Stop),
            (Gone, None, None, Rest),
        ] {
            let action = next(&run(wanted, failure), actual);
            assert_eq!(action, expected, "{wanted:?} {failure:?} {actual:?}");
        }
    }

    #[test]
    fn c18_a_failure_spoils_no_newer_wish() {
        for (wanted, generation, expected) in [
            (Wanted::Running, 2, true),
            (Wanted::Running, 1, false),
            (Wanted::Stopped, 2, false),
            (Wanted::Gone, 2, false),
        ] {
            let run = Run {
                wanted,
                generation: 2,
                ..Run::default()
            };
            assert_eq!(
                may_fail(&run, generation),
                expected,
                "{wanted:?} {generation}"
            );
        }
    }

    #[test]
    fn c18_pauses_grow_and_then_it_is_given_up() {
        let mut ends = Ends::default();
        let second = Duration::from_secs(1);
        let mut note = |lasted| ends.note(Duration::from_secs(lasted), 3, second);
        assert_eq!(note(0), Verdict::Again(second));
        assert_eq!(note(0), Verdict::Again(2 * second));
        assert_eq!(note(0), Verdict::Again(4 * second));
        assert_eq!(note(0), Verdict::GiveUp { ends: 4 });
        assert_eq!(note(3_600), Verdict::Again(second), "it had been well");
        let mut ends = Ends::default();
        let pauses = (0..100).map(|_| ends.note(Duration::ZERO, 100, second));
        assert_eq!(pauses.last(), Some(Verdict::Again(LONGEST)));
        let mut never = Ends::default();
        let verdict = never.note(Duration::ZERO, 0, second);
        assert_eq!(verdict, Verdict::GiveUp { ends: 1 });
    }
}
