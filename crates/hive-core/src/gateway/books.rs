//! The host's own bookkeeping behind the gateway: what was spent goes to the budgets, limits to the
//! credential, trips to the event log.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hive_store::{
    event_log::{Event, EventLog},
    sqlite::CallCost,
};
use hive_wire::{AgentName, Timestamp, WireError};

use super::{Bookkeeper, Spent};
use crate::{
    agent_config::Configs,
    broker::Broker,
    budgets::{self, Consequences},
    config::Config,
    egress::{Trail, Trip},
    harnesses::Harnesses,
};

/// The books of a running hive.
pub(crate) struct Books {
    broker: Broker,
    harnesses: Arc<Harnesses>,
    events: Arc<EventLog>,
    config: Arc<Config>,
    configs: Arc<Configs>,
    kept: Arc<Mutex<Kept>>,
}

/// What the books are made of.
pub(crate) struct Shelf {
    pub(crate) broker: Broker,
    pub(crate) harnesses: Arc<Harnesses>,
    pub(crate) events: Arc<EventLog>,
    pub(crate) config: Arc<Config>,
    pub(crate) configs: Arc<Configs>,
}

#[derive(Default)]
struct Kept {
    trails: BTreeMap<AgentName, Trail>,
    /// Whose calls are refused, and why.
    refused: BTreeMap<AgentName, String>,
}

impl Books {
    /// Books with nothing in them.
    pub(crate) fn new(shelf: Shelf) -> Self {
        Self {
            broker: shelf.broker,
            harnesses: shelf.harnesses,
            events: shelf.events,
            config: shelf.config,
            configs: shelf.configs,
            kept: Arc::default(),
        }
    }

    /// Lets everybody call again who was refused: what a budget allows has changed.
    pub(crate) fn forgive(&self) {
        lock(&self.kept).refused.clear();
    }
}

impl Bookkeeper for Books {
    fn may_call(&self, agent: &AgentName) -> Result<(), String> {
        match lock(&self.kept).refused.get(agent) {
            Some(why) => Err(why.clone()),
            None => Ok(()),
        }
    }

    fn spent(&self, agent: &AgentName, spent: Spent) {
        tracing::debug!(%agent, model = spent.model, output = spent.output_tokens, "counted");
        let cost = CallCost {
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cache_read_tokens: spent.cache_read_tokens,
            cache_creation_tokens: spent.cache_creation_tokens,
            cost_micro_usd: spent.cost_micro_usd,
        };
        let own = budgets::of_agent(&self.config, &self.configs.get(agent));
        let counted = agent.clone();
        let (agent, kept, harnesses) = (
            agent.clone(),
            Arc::clone(&self.kept),
            Arc::clone(&self.harnesses),
        );
        self.broker.submit(
            move |desk| budgets::count(desk, &counted, &own, &cost),
            move |outcome| act(&agent, outcome, &kept, &harnesses),
        );
    }

    fn limited(&self, agent: &AgentName, until: Timestamp) {
        let (agent, harnesses) = (agent.clone(), Arc::clone(&self.harnesses));
        self.broker.submit(
            |desk| Ok(desk.roster.iter().cloned().collect::<Vec<_>>()),
            move |everybody| {
                if let Ok(everybody) = everybody {
                    harnesses.limit_seen(&agent, until, &everybody);
                }
            },
        );
    }

    fn went(&self, agent: &AgentName, trip: &Trip) {
        let told = lock(&self.kept)
            .trails
            .entry(agent.clone())
            .or_default()
            .note(trip);
        if let Some((kind, data)) = told {
            self.events.publish(Event {
                at: Timestamp::now(),
                about: agent.to_string(),
                kind: kind.into(),
                data: data.into(),
            });
        }
    }
}

/// Acts on what a count led to, once it is on disk.
fn act(
    agent: &AgentName,
    outcome: Result<Consequences, WireError>,
    kept: &Mutex<Kept>,
    harnesses: &Harnesses,
) {
    match outcome {
        Ok(consequences) => {
            if let Some(why) = consequences.refused {
                lock(kept).refused.insert(agent.clone(), why);
            }
            if let Some(pauses) = consequences.pauses {
                harnesses.set_pauses(pauses, &|_| false);
            }
        }
        Err(error) => tracing::error!(%agent, %error, "what a call cost is not counted"),
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    // Nothing under this lock panics half-way.
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
