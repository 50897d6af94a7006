//! Usage limits in force, and telling those who have to wait.

use std::collections::{BTreeMap, BTreeSet};

use hive_store::sqlite::AgentRecord;
use hive_wire::{AgentName, ControlId, Timestamp, control::ControlAction, host::Lifted};

use super::{Harnesses, Inner};
use crate::credentials::{Credential, Limit};

/// Ends of a limit that lie closer together are one.
const SAME_LIMIT: std::time::Duration = std::time::Duration::from_secs(5);

/// The limits in force, by credential.
#[derive(Default)]
pub(super) struct Limits {
    by_credential: BTreeMap<Credential, Shared>,
}

/// A limit with everybody who waits for it.
struct Shared {
    limit: Limit,
    /// Everybody on the credential but the one who met the limit, in the order they go on.
    waiting: BTreeSet<AgentName>,
}

impl Limits {
    /// The limit on a credential that is in force.
    pub(super) fn of(&mut self, credential: &Credential, now: Timestamp) -> Option<&Limit> {
        let shared = self.by_credential.get(credential)?;
        let sharing = u32::try_from(shared.waiting.len()).unwrap_or(u32::MAX);
        if !shared.limit.is_in_force(sharing, now) {
            self.by_credential.remove(credential);
            return None;
        }
        self.by_credential
            .get(credential)
            .map(|shared| &shared.limit)
    }

    /// Until when this agent has to wait; none when it need not.
    pub(super) fn held_until(
        &mut self,
        credential: &Credential,
        agent: &AgentName,
        now: Timestamp,
    ) -> Option<Timestamp> {
        self.of(credential, now)?;
        let shared = self.by_credential.get(credential)?;
        Some(shared.turn_of(agent)).filter(|until| *until > now)
    }
}

impl Shared {
    fn turn_of(&self, agent: &AgentName) -> Timestamp {
        // Who came after the limit was met goes on after all the others.
        let place = self.waiting.iter().position(|waiting| waiting == agent);
        let place = place.unwrap_or(self.waiting.len());
        self.limit
            .turn_of(agent, u32::try_from(place).unwrap_or(u32::MAX))
    }
}

impl Harnesses {
    /// The credential that an agent is on.
    pub(super) fn credential(&self, agent: &AgentRecord) -> Credential {
        Credential::of(&agent.name, agent.runtime, self.host_has_key)
    }

    /// Makes everybody on the reporter's credential wait for the limit that it met.
    pub(super) fn hold_others(
        &self,
        inner: &mut Inner,
        reporter: &AgentName,
        resets_at: Option<Timestamp>,
        everybody: &[AgentRecord],
    ) {
        let Some(record) = everybody.iter().find(|agent| agent.name == *reporter) else {
            return;
        };
        let credential = self.credential(record);
        let limit = Limit::reported(reporter, resets_at, Timestamp::now());
        let waiting: BTreeSet<AgentName> = everybody
            .iter()
            .filter(|agent| agent.name != *reporter && self.credential(agent) == credential)
            .map(|agent| agent.name.clone())
            .collect();
        tracing::info!(
            %credential, agent = %reporter, until = %limit.until, others = waiting.len(),
            "a usage limit was met"
        );
        let shared = Shared { limit, waiting };
        for agent in &shared.waiting {
            let until = shared.turn_of(agent);
            let reason = format!("{reporter} met the usage limit of the credential `{credential}`");
            inner.stand(agent, ControlAction::Hold { until, reason });
        }
        inner.limits.by_credential.insert(credential, shared);
    }

    /// Makes everybody on the host's credential wait for a limit that the gateway saw an agent
    /// meet. The service says it again with every call, so that only a later end is news.
    pub(crate) fn limit_seen(
        &self,
        agent: &AgentName,
        until: Timestamp,
        everybody: &[AgentRecord],
    ) {
        let mut inner = self.lock();
        let known = inner.limits.of(&Credential::Host, Timestamp::now());
        if known.is_some_and(|limit| until <= limit.until.plus(SAME_LIMIT)) {
            return;
        }
        self.hold_others(&mut inner, agent, Some(until), everybody);
    }

    /// Lifts the limit of the credential that an agent is on, for everybody on it.
    pub(crate) fn lift(&self, agent: &AgentRecord, everybody: &[AgentRecord]) -> Lifted {
        let credential = self.credential(agent);
        let mut inner = self.lock();
        let was_held = inner.limits.by_credential.remove(&credential).is_some();
        let mut released = 0;
        for other in everybody {
            if self.credential(other) != credential {
                continue;
            }
            inner.stand(&other.name, ControlAction::Release);
            let harness = inner.agents.get(&other.name);
            released += u32::from(harness.is_some_and(super::Harness::is_connected));
        }
        Lifted {
            credential: credential.to_string(),
            was_held,
            released,
        }
    }
}

impl Inner {
    /// Tells a harness, now or when it connects, that it has to wait or need not.
    fn stand(&mut self, agent: &AgentName, action: ControlAction) {
        self.next_request += 1;
        let id = ControlId(self.next_request);
        let harness = self.agents.entry(agent.clone()).or_default();
        harness.controls.stand(id, action);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hive_store::event_log::{self, EventLog};
    use hive_wire::{
        control::{Control, ControlRequest},
        host::Runtime,
        report::{HarnessStatus, PostState, TurnState},
    };

    use super::*;
    use crate::broker::Presence;

    struct There;

    impl Presence for There {
        fn is_there(&self) -> bool {
            true
        }

        fn is_still_there(&self) -> bool {
            true
        }
    }

    fn name(text: &str) -> AgentName {
        text.parse().unwrap()
    }

    fn record(text: &str, runtime: Runtime) -> AgentRecord {
        AgentRecord {
            name: name(text),
            parent: None,
            runtime,
            port: 8100,
            created_at: Timestamp::from_millis(0),
            run: hive_store::sqlite::Run::default(),
        }
    }

    fn report(status: HarnessStatus, resets_at: Timestamp) -> PostState {
        PostState {
            turn_state: TurnState::Idle,
            since: Timestamp::now(),
            status,
            model: String::new(),
            context_tokens: 0,
            window: 0,
            current_tool: None,
            engine: None,
            engine_version: None,
            credential: None,
            resets_at: Some(resets_at),
            rehearsed: false,
        }
    }

    struct Fleet {
        harnesses: Harnesses,
        everybody: Vec<AgentRecord>,
        peer: Arc<dyn Presence>,
        _dir: tempfile::TempDir,
    }

    impl Fleet {
        /// Three on the operator's key, and one that runs elsewhere.
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("events.db");
            let events = EventLog::open(&path, event_log::Limits::default()).unwrap();
            let process = |text| record(text, Runtime::Process);
            Self {
                harnesses: Harnesses::new(
                    Arc::new(events),
                    Vec::new(),
                    crate::pauses::Pauses::default(),
                    true,
                ),
                everybody: vec![
                    process("ada"),
                    process("bob"),
                    process("cyd"),
                    record("far", Runtime::None),
                ],
                peer: Arc::new(There),
                _dir: dir,
            }
        }

        fn report(&self, agent: &str, report: PostState) {
            self.harnesses
                .post_state(&name(agent), report, &self.everybody);
        }

        /// What a harness is told when it connects.
        async fn hello(&self, agent: &str) -> Vec<ControlAction> {
            let control = Control {
                hello: true,
                ..Control::default()
            };
            let poll = self.harnesses.begin_poll(&name(agent), control, &self.peer);
            let told = self
                .harnesses
                .finish_poll(&name(agent), poll)
                .await
                .unwrap();
            let actions = told
                .requests
                .into_iter()
                .map(|ControlRequest { action, .. }| action);
            actions.collect()
        }

        async fn held_until(&self, agent: &str) -> Option<Timestamp> {
            match self.hello(agent).await.as_slice() {
                [ControlAction::Hold { until, .. }] => Some(*until),
                _ => None,
            }
        }
    }

    fn ahead(seconds: u64) -> Timestamp {
        Timestamp::now().plus(std::time::Duration::from_secs(seconds))
    }

    fn later(time: Timestamp, seconds: u64) -> Option<Timestamp> {
        Some(time.plus(std::time::Duration::from_secs(seconds)))
    }

    #[tokio::test]
    async fn t6_those_on_the_same_credential_wait_and_go_on_one_by_one() {
        let fleet = Fleet::new();
        let reset = ahead(600);
        fleet.report("bob", report(HarnessStatus::RateLimited, reset));
        assert_eq!(fleet.held_until("ada").await, later(reset, 2));
        assert_eq!(fleet.held_until("cyd").await, later(reset, 4));
        assert_eq!(
            fleet.held_until("bob").await,
            None,
            "it waits by itself, and goes on first"
        );
        assert_eq!(fleet.held_until("far").await, None, "another credential");
        let facts = fleet.harnesses.facts(&fleet.everybody[0]);
        assert_eq!(facts.resets_at, Some(reset));
        assert_eq!(facts.held_until, later(reset, 2));
    }

    #[tokio::test]
    async fn t6_if_the_first_is_limited_again_the_others_wait_on() {
        let fleet = Fleet::new();
        let (first, second) = (ahead(10), ahead(900));
        fleet.report("bob", report(HarnessStatus::RateLimited, first));
        assert_eq!(fleet.held_until("ada").await, later(first, 2));
        fleet.report("bob", report(HarnessStatus::Online, first));
        assert_eq!(
            fleet.held_until("ada").await,
            later(first, 2),
            "one good word ends no limit"
        );
        fleet.report("bob", report(HarnessStatus::RateLimited, second));
        assert_eq!(fleet.held_until("ada").await, later(second, 2));
    }

    #[tokio::test]
    async fn t6_a_lift_frees_everybody_on_the_credential_until_there_is_news() {
        let fleet = Fleet::new();
        let reset = ahead(600);
        fleet.hello("ada").await;
        fleet.report("bob", report(HarnessStatus::RateLimited, reset));
        let lifted = fleet.harnesses.lift(&fleet.everybody[0], &fleet.everybody);
        assert_eq!(
            (lifted.credential.as_str(), lifted.was_held),
            ("host", true)
        );
        assert_eq!(lifted.released, 1, "ada alone is connected");
        assert_eq!(fleet.hello("ada").await, [ControlAction::Release]);
        assert_eq!(
            fleet.hello("cyd").await,
            [ControlAction::Release],
            "told when it connects"
        );
        fleet.report("bob", report(HarnessStatus::RateLimited, reset));
        assert_eq!(
            fleet.hello("ada").await,
            [ControlAction::Release],
            "only repeated"
        );
        fleet.report("bob", report(HarnessStatus::Online, reset));
        fleet.report("bob", report(HarnessStatus::RateLimited, reset));
        assert_eq!(fleet.held_until("ada").await, later(reset, 2), "met again");
        assert_eq!(fleet.hello("far").await, []);
    }
}
