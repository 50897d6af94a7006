//! The log of who went where: every place, but not every visit.
//!
//! An agent can make thousands of requests a minute, and the event log is everybody's. A place is
//! told of when it is first visited and then once in a while, with the number of visits between;
//! and one agent fills at most so many lines.

use std::{collections::BTreeMap, net::IpAddr, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::target::Target;

/// How often the same place is told of.
const AGAIN: Duration = Duration::from_secs(10 * 60);
/// How many places are remembered of one agent.
const REMEMBERED: usize = 256;
/// How many lines an agent fills at once …
const BURST: u32 = 64;
/// … and how long it takes until it may fill one more.
const REFILL: Duration = Duration::from_secs(5);

/// A visit, or an attempt at one.
#[derive(Debug, Clone)]
pub(crate) struct Trip {
    pub(super) target: Target,
    /// `connect` or `http`.
    pub(super) how: &'static str,
    pub(super) outcome: Outcome,
}

#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Went(IpAddr),
    Refused(String),
    Failed(String),
}

/// What one agent visited lately.
#[derive(Debug)]
pub(crate) struct Trail {
    places: BTreeMap<(Target, &'static str), Visits>,
    left: u32,
    refilled: Instant,
    untold: u64,
}

#[derive(Debug)]
struct Visits {
    told_at: Instant,
    since: u64,
}

impl Default for Trail {
    fn default() -> Self {
        Self {
            places: BTreeMap::new(),
            left: BURST,
            refilled: Instant::now(),
            untold: 0,
        }
    }
}

impl Trail {
    /// Notes a visit; what to tell of it, if anything: the kind of the event and its data.
    pub(crate) fn note(&mut self, trip: &Trip) -> Option<(&'static str, Value)> {
        let now = Instant::now();
        let (kind, mut data) = trip.event();
        let place = (trip.target.clone(), kind);
        let visits = match self.places.get_mut(&place) {
            Some(visits) if now < visits.told_at + AGAIN => {
                visits.since += 1;
                return None;
            }
            Some(visits) => visits.since + 1,
            None => 1,
        };
        if !self.take_line(now) {
            self.untold += 1;
            return None;
        }
        if self.places.len() >= REMEMBERED && !self.places.contains_key(&place) {
            self.forget_oldest();
        }
        let told = Visits {
            told_at: now,
            since: 0,
        };
        self.places.insert(place, told);
        data["visits"] = json!(visits);
        if self.untold > 0 {
            data["untold"] = json!(std::mem::take(&mut self.untold));
        }
        Some((kind, data))
    }

    fn take_line(&mut self, now: Instant) -> bool {
        while self.left < BURST && now >= self.refilled + REFILL {
            self.left += 1;
            self.refilled += REFILL;
        }
        if self.left == BURST {
            self.refilled = now;
        }
        let has_line = self.left > 0;
        self.left = self.left.saturating_sub(1);
        has_line
    }

    fn forget_oldest(&mut self) {
        let oldest = self.places.iter().min_by_key(|(_, visits)| visits.told_at);
        if let Some(place) = oldest.map(|(place, _)| place.clone()) {
            self.places.remove(&place);
        }
    }
}

impl Trip {
    fn event(&self) -> (&'static str, Value) {
        let (host, port) = (self.target.host.to_string(), self.target.port);
        let data = json!({"host": host, "port": port, "how": self.how});
        let with = |key: &str, value: Value| {
            let mut data = data.clone();
            data[key] = value;
            data
        };
        match &self.outcome {
            Outcome::Went(address) => ("egress", with("address", json!(address))),
            Outcome::Refused(why) => ("egress_refused", with("why", json!(why))),
            Outcome::Failed(why) => ("egress_failed", with("why", json!(why))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trip(host: &str, outcome: Outcome) -> Trip {
        Trip {
            target: Target::parse(host, Some(443)).unwrap(),
            how: "connect",
            outcome,
        }
    }

    fn went(host: &str) -> Trip {
        trip(host, Outcome::Went("93.184.216.34".parse().unwrap()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_told_of_once_in_a_while_with_its_visits() {
        let mut trail = Trail::default();
        let (kind, data) = trail.note(&went("a.example")).unwrap();
        assert_eq!((kind, &data["visits"]), ("egress", &json!(1)));
        assert_eq!(data["host"], "a.example");
        assert_eq!(data["address"], "93.184.216.34");
        assert!(trail.note(&went("a.example")).is_none());
        let refused = trip("a.example", Outcome::Refused("no".into()));
        assert_eq!(
            trail.note(&refused).unwrap().0,
            "egress_refused",
            "that is news"
        );
        tokio::time::advance(AGAIN).await;
        assert_eq!(trail.note(&went("a.example")).unwrap().1["visits"], 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_fills_a_few_lines_and_says_how_much_it_left_out() {
        let mut trail = Trail::default();
        let flood = |trail: &mut Trail, from: u32| {
            (from..from + 1_000)
                .filter_map(|n| trail.note(&went(&format!("h{n}.example"))))
                .count()
        };
        assert_eq!(flood(&mut trail, 0), BURST as usize);
        tokio::time::advance(REFILL * 2).await;
        let (_, data) = trail.note(&went("later.example")).unwrap();
        assert_eq!(data["untold"], 1_000 - u64::from(BURST));
        assert!(trail.places.len() <= REMEMBERED);
        for round in 1..20 {
            tokio::time::advance(REFILL * BURST).await;
            flood(&mut trail, round * 1_000);
        }
        assert!(trail.places.len() <= REMEMBERED);
    }
}
