//! Events on their way from a harness into the log: each once, in order, holes marked.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use hive_store::event_log::{Event, EventData, StreamMark};
use hive_wire::{
    AgentName, ErrorCode, HarnessEpoch, Timestamp, WireError,
    report::{MAX_EVENT_DATA, MAX_POSTED_EVENTS, PostedEvent, PostedKind},
};
use serde_json::{json, value::RawValue};

/// How many lives of a harness are remembered: an old one may end while a new one begins.
const EPOCHS: usize = 4;
/// The first number of an epoch.
const FIRST: u64 = 1;
/// The largest number: the log keeps it in a column with a sign.
const LAST: u64 = i64::MAX as u64 - 1;
/// How far back the time of an event may lie.
const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What of an agent's events is in the log already.
#[derive(Debug, Default)]
pub(super) struct Inflow {
    /// The newest life last.
    marks: VecDeque<StreamMark>,
}

impl Inflow {
    /// One that goes on where the log ends.
    pub(super) fn at(mark: StreamMark) -> Self {
        Self {
            marks: VecDeque::from([mark]),
        }
    }

    /// The number that comes next in this epoch.
    pub(super) fn next(&self, epoch: &HarnessEpoch) -> u64 {
        let mark = self
            .marks
            .iter()
            .find(|mark| &*mark.epoch == epoch.as_str());
        mark.map_or(FIRST, |mark| mark.next)
    }

    /// What of these events is new, ready for the log, and notes it as taken.
    pub(super) fn accept(
        &mut self,
        agent: &AgentName,
        epoch: &HarnessEpoch,
        events: Vec<PostedEvent>,
        now: Timestamp,
    ) -> Result<Vec<(Event, StreamMark)>, WireError> {
        if events.len() > MAX_POSTED_EVENTS {
            let problem = format!(
                "{} events, and {MAX_POSTED_EVENTS} is the most",
                events.len()
            );
            return Err(WireError::new(ErrorCode::BadRequest, problem));
        }
        if events.iter().any(|event| event.seq > LAST) {
            let problem = format!("`seq` is at most {LAST}");
            return Err(WireError::new(ErrorCode::BadRequest, problem));
        }
        let name: Arc<str> = epoch.as_str().into();
        let mut next = self.next(epoch);
        let mut accepted = Vec::with_capacity(events.len());
        for posted in events.into_iter() {
            if posted.seq < next {
                continue;
            }
            if posted.seq > next {
                let dropped = posted.seq - next;
                let data = EventData::Value(json!({"dropped": dropped}));
                let gap = event(agent, now, PostedKind::Gap, data);
                accepted.push((gap, mark(&name, posted.seq)));
            }
            next = posted.seq + 1;
            let at = posted.at.clamp(now.minus(MAX_AGE), now);
            let data = fit(posted.data);
            accepted.push((event(agent, at, posted.kind, data), mark(&name, next)));
        }
        self.remember(mark(&name, next));
        Ok(accepted)
    }

    fn remember(&mut self, mark: StreamMark) {
        self.marks.retain(|known| known.epoch != mark.epoch);
        self.marks.push_back(mark);
        if self.marks.len() > EPOCHS {
            self.marks.pop_front();
        }
    }
}

fn mark(epoch: &Arc<str>, next: u64) -> StreamMark {
    StreamMark {
        epoch: Arc::clone(epoch),
        next,
    }
}

fn event(agent: &AgentName, at: Timestamp, kind: PostedKind, data: EventData) -> Event {
    Event {
        at,
        about: agent.as_str().to_owned(),
        kind: kind.as_str().into(),
        data,
    }
}

/// The particulars as an object of bounded size.
fn fit(data: Box<RawValue>) -> EventData {
    let bytes = data.get().len();
    if bytes > MAX_EVENT_DATA {
        return EventData::Value(json!({"cut": true, "bytes": bytes}));
    }
    if data.get().starts_with('{') {
        return EventData::Raw(data);
    }
    // Readers count on an object.
    EventData::Value(json!({"value": serde_json::from_str::<serde_json::Value>(data.get()).ok()}))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn post(inflow: &mut Inflow, epoch: &str, seqs: &[u64]) -> Result<Vec<String>, WireError> {
        let events = seqs.iter().map(|seq| PostedEvent {
            seq: *seq,
            at: NOW,
            kind: PostedKind::Note,
            data: RawValue::from_string(format!("{{\"n\":{seq}}}")).unwrap(),
        });
        let agent = "ada".parse().unwrap();
        let accepted = inflow.accept(&agent, &epoch.parse().unwrap(), events.collect(), NOW)?;
        let show = |(event, mark): &(Event, StreamMark)| {
            let data = event.data.text();
            format!("{} {data} → {}", event.kind, mark.next)
        };
        Ok(accepted.iter().map(show).collect())
    }

    #[test]
    fn each_event_comes_once_and_a_hole_is_marked() {
        let mut inflow = Inflow::default();
        let first = post(&mut inflow, "e1", &[1, 2]).unwrap();
        assert_eq!(first, ["note {\"n\":1} → 2", "note {\"n\":2} → 3"]);
        let again = post(&mut inflow, "e1", &[1, 2, 3]).unwrap();
        assert_eq!(again, ["note {\"n\":3} → 4"]);
        let hole = post(&mut inflow, "e1", &[9]).unwrap();
        assert_eq!(hole, ["gap {\"dropped\":5} → 9", "note {\"n\":9} → 10"]);
        let backwards = post(&mut inflow, "e1", &[12, 11, 10]).unwrap();
        assert_eq!(backwards.len(), 2, "a gap and one event: {backwards:?}");
        assert_eq!(inflow.next(&"e1".parse().unwrap()), 13);
    }

    #[test]
    fn a_new_life_counts_anew_and_the_old_one_is_not_taken_twice() {
        let mut inflow = Inflow::at(StreamMark {
            epoch: "e1".into(),
            next: 5,
        });
        assert_eq!(
            post(&mut inflow, "e2", &[1]).unwrap(),
            ["note {\"n\":1} → 2"]
        );
        assert_eq!(
            post(&mut inflow, "e1", &[4, 5]).unwrap(),
            ["note {\"n\":5} → 6"]
        );
        let late = post(&mut inflow, "e3", &[3]).unwrap();
        assert_eq!(late, ["gap {\"dropped\":2} → 3", "note {\"n\":3} → 4"]);
    }

    #[test]
    fn forged_epochs_and_numbers_are_bounded() {
        let mut inflow = Inflow::default();
        for n in 0..100 {
            post(&mut inflow, &format!("e{n}"), &[1]).unwrap();
        }
        assert_eq!(inflow.marks.len(), EPOCHS);
        assert!(post(&mut inflow, "e", &[u64::MAX]).is_err());
        assert_eq!(post(&mut inflow, "e", &[LAST]).unwrap().len(), 2);
        assert_eq!(post(&mut inflow, "e", &[0, 1, LAST]).unwrap().len(), 0);
        let many: Vec<u64> = (1..=1_001).collect();
        assert!(post(&mut inflow, "f", &many).is_err());
    }

    #[test]
    fn particulars_are_an_object_of_bounded_size() {
        let raw = |text: String| fit(RawValue::from_string(text).unwrap());
        let shown = |data: EventData| data.text();
        assert_eq!(shown(raw("[1]".into())), "{\"value\":[1]}");
        assert_eq!(shown(raw("{\"a\": 1}".into())), "{\"a\": 1}");
        let large = format!("{{\"a\":\"{}\"}}", "x".repeat(MAX_EVENT_DATA));
        let expected = format!("{{\"bytes\":{},\"cut\":true}}", large.len());
        assert_eq!(shown(raw(large)), expected);
    }
}
