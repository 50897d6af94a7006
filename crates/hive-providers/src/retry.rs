//! When to ask again, and after how long. The only place that decides it.

use std::time::Duration;

use crate::{ApiError, Reaction};

/// The first wait; each further one is twice as long.
const FIRST: Duration = Duration::from_millis(500);
/// No wait of our own is longer.
const LONGEST: Duration = Duration::from_secs(32);
/// When a provider asks for a longer wait than this, the caller is told at once instead: whoever
/// runs the engine can make better use of the time.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often and how long to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Further attempts after the first.
    pub max_retries: u32,
    /// From the first attempt to the last; no retry starts after it.
    pub deadline: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 10,
            deadline: Duration::from_secs(15 * 60),
        }
    }
}

impl RetryPolicy {
    /// How long to wait before retry number `attempt` (from 1), or `None` when it is no use.
    /// `dice` in 0..=255 spreads the wait by up to a quarter, so that many clients do not come back
    /// at once.
    pub fn wait(
        &self,
        attempt: u32,
        error: &ApiError,
        elapsed: Duration,
        dice: u8,
    ) -> Option<Duration> {
        if attempt > self.max_retries || !may_help(error) {
            return None;
        }
        let doubled = FIRST.saturating_mul(1u32.checked_shl(attempt - 1).unwrap_or(u32::MAX));
        let own = doubled.min(LONGEST);
        let own = own + own.mul_f64(f64::from(dice) / 255.0 / 4.0);
        let asked = error.retry_after.unwrap_or_default();
        if asked > PATIENCE {
            return None;
        }
        let wait = own.max(asked);
        (elapsed + wait <= self.deadline).then_some(wait)
    }
}

/// Whether asking again may help. The provider knows best, but for what takes another remedy.
fn may_help(error: &ApiError) -> bool {
    match error.reaction() {
        Reaction::Retry => error.should_retry != Some(false),
        Reaction::GiveUp => error.should_retry == Some(true),
        Reaction::Shorten | Reaction::LogIn | Reaction::WaitForReset => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    fn error(kind: ErrorKind, retry_after: Option<u64>) -> ApiError {
        ApiError {
            retry_after: retry_after.map(Duration::from_secs),
            ..ApiError::local(kind, "x")
        }
    }

    #[test]
    fn waits_double_up_to_a_limit() {
        let policy = RetryPolicy::default();
        let waits: Vec<u64> = (1..=10)
            .map(|n| {
                let wait = policy
                    .wait(n, &error(ErrorKind::Overloaded, None), Duration::ZERO, 0)
                    .unwrap();
                u64::try_from(wait.as_millis()).unwrap()
            })
            .collect();
        assert_eq!(waits[..4], [500, 1000, 2000, 4000]);
        assert_eq!(waits[6..], [32_000; 4]);
    }

    #[test]
    fn what_cannot_succeed_is_not_tried_again() {
        let policy = RetryPolicy::default();
        let wait = |error| policy.wait(1, &error, Duration::ZERO, 0);
        for kind in [
            ErrorKind::NoKey,
            ErrorKind::Unauthorized,
            ErrorKind::Forbidden,
            ErrorKind::Billing,
            ErrorKind::LimitReached,
            ErrorKind::PromptTooLong,
            ErrorKind::TooLarge,
            ErrorKind::ModelNotFound,
            ErrorKind::BadRequest,
            ErrorKind::BrokenOff,
        ] {
            assert_eq!(wait(error(kind, None)), None, "{kind:?}");
        }
        assert_eq!(
            wait(error(ErrorKind::RateLimited, Some(5))),
            Some(Duration::from_secs(5)),
            "the provider's wait is the shortest one"
        );
        assert_eq!(wait(error(ErrorKind::RateLimited, Some(120))), None);
    }

    #[test]
    fn the_provider_says_whether_it_helps() {
        let helps = |kind, should_retry| {
            may_help(&ApiError {
                should_retry,
                ..ApiError::local(kind, "x")
            })
        };
        for (kind, unsaid, told_so) in [
            (ErrorKind::Overloaded, true, true),
            (ErrorKind::BadRequest, false, true),
            (ErrorKind::PromptTooLong, false, false),
            (ErrorKind::Unauthorized, false, false),
            (ErrorKind::LimitReached, false, false),
        ] {
            assert_eq!(helps(kind, None), unsaid, "{kind:?}");
            assert_eq!(helps(kind, Some(true)), told_so, "{kind:?}");
            assert!(!helps(kind, Some(false)), "{kind:?}");
        }
    }

    #[test]
    fn attempts_and_time_end() {
        let policy = RetryPolicy {
            max_retries: 2,
            deadline: Duration::from_secs(60),
        };
        let server = error(ErrorKind::Server, None);
        assert!(policy.wait(2, &server, Duration::ZERO, 255).is_some());
        assert_eq!(policy.wait(3, &server, Duration::ZERO, 0), None);
        assert_eq!(policy.wait(1, &server, Duration::from_secs(60), 0), None);
    }
}
