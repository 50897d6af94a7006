//! How fast an agent may change things: a bucket of tokens that fills with time.

use std::time::{Duration, Instant};

use hive_wire::{ErrorCode, WireError, agent::AgentRequest};

/// What of a request is paid for by one token.
const BYTES_PER_TOKEN: usize = 16 * 1024;

/// How fast, and how much at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    /// Tokens a minute; 0 for no limit.
    pub(crate) per_minute: u32,
    /// The most tokens that are saved up.
    pub(crate) burst: u32,
}

/// The tokens of one agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    pub(super) fn full(rate: Rate, now: Instant) -> Self {
        Self {
            tokens: rate.burst.into(),
            filled: now,
        }
    }

    /// Takes `price` tokens out, or says how long it takes until they are there.
    pub(super) fn take(&mut self, rate: Rate, price: u32, now: Instant) -> Result<(), Duration> {
        if rate.per_minute == 0 {
            return Ok(());
        }
        let per_second = f64::from(rate.per_minute) / 60.0;
        let passed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.tokens = (self.tokens + passed * per_second).min(rate.burst.into());
        self.filled = now;
        // A full bucket is enough for anything: else what is dear could never be had.
        let price = f64::from(price).min(rate.burst.into());
        if self.tokens >= price {
            self.tokens -= price;
            return Ok(());
        }
        Err(Duration::from_secs_f64((price - self.tokens) / per_second))
    }
}

/// What a request costs; nothing for what only reads, and for what a harness needs to run turns.
pub(super) fn price(request: &AgentRequest, bytes: usize) -> u32 {
    let is_change = match request {
        AgentRequest::Send(_)
        | AgentRequest::Wake(_)
        | AgentRequest::Ask(_)
        | AgentRequest::Answer(_)
        | AgentRequest::CancelLooseEnd(_)
        | AgentRequest::Remind(_)
        | AgentRequest::SetStatus(_)
        | AgentRequest::Kill(_)
        | AgentRequest::Start(_)
        | AgentRequest::Restart(_)
        | AgentRequest::RequestSpawn(_)
        | AgentRequest::RequestApplyCommit(_)
        | AgentRequest::Schedule(_)
        | AgentRequest::CancelSchedule(_) => true,
        // These start a process or read a file each.
        AgentRequest::GetLogs(_) | AgentRequest::GetHostJournal(_) => true,
        AgentRequest::Recv(_)
        | AgentRequest::Confirm(_)
        | AgentRequest::AckTurn(_)
        | AgentRequest::RequeueInflight(_)
        | AgentRequest::Status(_)
        | AgentRequest::GetLooseEnds(_)
        | AgentRequest::GetReceipt(_)
        | AgentRequest::GetAgentMeta(_)
        | AgentRequest::ListPeers(_)
        | AgentRequest::PostTurnCounts(_)
        | AgentRequest::PostState(_)
        | AgentRequest::PostEvents(_)
        | AgentRequest::Control(_)
        | AgentRequest::GetPermissions(_)
        | AgentRequest::ListAgents(_)
        | AgentRequest::ListSchedules(_) => false,
    };
    if !is_change {
        return 0;
    }
    u32::try_from(1 + bytes / BYTES_PER_TOKEN).unwrap_or(u32::MAX)
}

pub(super) fn too_fast(wait: Duration) -> WireError {
    let seconds = wait.as_secs_f64().ceil();
    WireError::new(
        ErrorCode::LimitReached,
        "you send faster than this hive takes from one agent",
    )
    .hint(format!(
        "wait {seconds} s, and say more in fewer messages; the operator sets \
         `limits.sends_per_minute` in hive.toml"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate {
        per_minute: 60,
        burst: 3,
    };

    #[test]
    fn a_bucket_gives_what_it_has_and_fills_with_time() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut bucket = Bucket::full(RATE, start);
        for _ in 0..3 {
            assert_eq!(bucket.take(RATE, 1, start), Ok(()));
        }
        let wait = bucket.take(RATE, 1, start).unwrap_err();
        assert_eq!(wait, Duration::from_secs(1));
        assert!(bucket.take(RATE, 1, at(500)).is_err());
        assert_eq!(bucket.take(RATE, 1, at(1_000)), Ok(()));
        assert!(bucket.take(RATE, 1, at(1_000)).is_err());
        // An hour saves up no more than a bucket holds.
        for _ in 0..3 {
            assert_eq!(bucket.take(RATE, 1, at(3_600_000)), Ok(()));
        }
        assert!(bucket.take(RATE, 1, at(3_600_000)).is_err());
    }

    #[test]
    fn what_is_dear_needs_a_full_bucket_and_no_limit_is_none() {
        let start = Instant::now();
        let mut bucket = Bucket::full(RATE, start);
        assert_eq!(bucket.take(RATE, 100, start), Ok(()));
        assert!(bucket.take(RATE, 1, start).is_err());
        let unlimited = Rate {
            per_minute: 0,
            burst: 0,
        };
        for _ in 0..1_000 {
            assert_eq!(bucket.take(unlimited, 100, start), Ok(()));
        }
    }

    #[test]
    fn reading_is_free_and_long_messages_are_dear() {
        let request = |cmd: &str, fields: &str| {
            let line = format!("{{\"cmd\":\"{cmd}\",{fields}}}");
            AgentRequest::parse(cmd, line.as_bytes()).unwrap()
        };
        let send = request("send", "\"to\":\"bob\",\"body\":\"hi\"");
        assert_eq!(price(&send, 40), 1);
        assert_eq!(price(&send, 256 * 1024), 17);
        assert_eq!(price(&request("recv", "\"max\":1"), 40), 0);
    }
}
