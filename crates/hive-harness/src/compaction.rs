//! When a conversation is compacted or begun anew (T20–T22): pure decisions over sizes and times.

use std::time::Duration;

/// A context size from which on something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watermark {
    /// This share of the model's window, in percent.
    Share(u64),
    /// This many tokens.
    Tokens(u64),
    /// Never.
    Off,
}

impl Watermark {
    /// Whether a context of this size has reached it.
    pub fn is_reached(self, context_tokens: u64, window: u64) -> bool {
        match self {
            Self::Share(percent) => {
                u128::from(context_tokens) * 100 >= u128::from(window) * u128::from(percent)
            }
            Self::Tokens(tokens) => context_tokens >= tokens,
            Self::Off => false,
        }
    }
}

/// The watermarks of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watermarks {
    /// From here on a conversation is compacted.
    pub compact: Watermark,
    /// From here on a conversation is begun anew after a long pause.
    pub reset: Watermark,
    /// What counts as a long pause.
    pub cache_ttl: Duration,
}

impl Watermarks {
    /// Whether the conversation is begun anew before the next turn (T22): it is large, and what the
    /// model's service had cached of it is gone, so that going on costs as much as reading it all.
    pub fn wants_reset(&self, context_tokens: u64, window: u64, idle: Duration) -> bool {
        idle > self.cache_ttl && self.reset.is_reached(context_tokens, window)
    }
}

/// What to do about a conversation that has reached the watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Compact it.
    Compact,
    /// Compacting did not help: begin a new one with a brief.
    Rotate,
    /// Nothing helps; the breaker is open.
    Nothing,
}

/// Stops endless compaction. It counts remedies after which the context was still over the
/// watermark, and closes again only when a turn shows that it is under it.
#[derive(Debug, Default)]
pub struct Breaker {
    /// Remedies in a row that brought nothing.
    fruitless: u32,
    /// Whether a remedy was tried since the last measurement.
    tried: bool,
}

impl Breaker {
    /// Takes note of the context size after a turn and says what to do about it.
    pub fn after_turn(&mut self, is_over: bool) -> Option<Remedy> {
        if !is_over {
            *self = Self::default();
            return None;
        }
        if self.tried {
            self.fruitless += 1;
            self.tried = false;
        }
        Some(match self.fruitless {
            0 => Remedy::Compact,
            1 => Remedy::Rotate,
            _ => Remedy::Nothing,
        })
    }

    /// Takes note that a remedy was carried out.
    pub fn tried(&mut self) {
        self.tried = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t21_the_watermark_is_a_share_or_a_number_or_off() {
        let cases = [
            (Watermark::Share(75), 149_999, false),
            (Watermark::Share(75), 150_000, true),
            (Watermark::Tokens(10), 9, false),
            (Watermark::Tokens(10), 10, true),
            (Watermark::Off, u64::MAX, false),
            (Watermark::Share(75), u64::MAX, true),
        ];
        for (watermark, context, reached) in cases {
            let is = watermark.is_reached(context, 200_000);
            assert_eq!(is, reached, "{watermark:?} at {context}");
        }
    }

    #[test]
    fn t22_a_reset_needs_both_size_and_pause() {
        let marks = Watermarks {
            compact: Watermark::Share(75),
            reset: Watermark::Share(50),
            cache_ttl: Duration::from_secs(3_600),
        };
        let cases = [
            (100_000, 3_601, true),
            (100_000, 3_600, false),
            (99_999, 9_999, false),
        ];
        for (context, idle, wanted) in cases {
            let is = marks.wants_reset(context, 200_000, Duration::from_secs(idle));
            assert_eq!(is, wanted, "{context} after {idle} s");
        }
        let off = Watermarks {
            reset: Watermark::Off,
            ..marks
        };
        assert!(!off.wants_reset(u64::MAX, 1, Duration::MAX));
    }

    #[test]
    fn t21_compaction_without_progress_rotates_and_then_stops() {
        let mut breaker = Breaker::default();
        assert_eq!(breaker.after_turn(false), None);
        assert_eq!(breaker.after_turn(true), Some(Remedy::Compact));
        breaker.tried();
        assert_eq!(breaker.after_turn(true), Some(Remedy::Rotate));
        breaker.tried();
        for _ in 0..3 {
            assert_eq!(breaker.after_turn(true), Some(Remedy::Nothing));
        }
        assert_eq!(breaker.after_turn(false), None);
        assert_eq!(
            breaker.after_turn(true),
            Some(Remedy::Compact),
            "closed again"
        );
    }

    #[test]
    fn t21_a_remedy_that_was_not_carried_out_does_not_count() {
        let mut breaker = Breaker::default();
        for _ in 0..3 {
            assert_eq!(breaker.after_turn(true), Some(Remedy::Compact));
        }
    }
}
