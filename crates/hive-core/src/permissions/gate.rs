//! Where every request of an agent passes: what it may do, and how fast. One lock, held for a
//! lookup; what the operator changes holds for whatever is asked after the operator was answered.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use hive_store::sqlite::Permissions;
use hive_wire::{AgentName, Timestamp, WireError, agent::AgentRequest};

use super::{
    Grants, Rate, check,
    rate::{Bucket, price, too_fast},
};

/// What all agents were granted.
pub(crate) struct Gate {
    agents: Mutex<HashMap<AgentName, Pass>>,
    root_agent: String,
    rate: Rate,
}

struct Pass {
    grants: Arc<Grants>,
    bucket: Bucket,
}

impl Gate {
    /// The gate of a hive with this root agent, with what is on disk.
    pub(crate) fn new(
        root_agent: &str,
        rate: Rate,
        stored: Vec<(AgentName, Permissions, Timestamp)>,
    ) -> Self {
        let gate = Self {
            agents: Mutex::default(),
            root_agent: root_agent.to_owned(),
            rate,
        };
        for (name, permissions, changed_at) in stored {
            let is_root = gate.is_root(&name);
            gate.set(&name, Grants::stored(is_root, &permissions, changed_at));
        }
        gate
    }

    /// What an agent was granted.
    pub(crate) fn grants(&self, agent: &AgentName) -> Arc<Grants> {
        Arc::clone(&self.pass(&mut self.lock(), agent).grants)
    }

    /// Lets a request through, or says why not. `bytes` is how long its line is.
    ///
    /// # Errors
    /// `denied` for what the agent lacks, `limit_reached` for what comes too fast.
    pub(crate) fn admit(
        &self,
        agent: &AgentName,
        request: &AgentRequest,
        bytes: usize,
    ) -> Result<Arc<Grants>, WireError> {
        let mut agents = self.lock();
        let pass = self.pass(&mut agents, agent);
        check(agent, request, &pass.grants)?;
        let price = price(request, bytes);
        if price > 0 {
            let taken = pass.bucket.take(self.rate, price, Instant::now());
            taken.map_err(too_fast)?;
        }
        Ok(Arc::clone(&pass.grants))
    }

    /// Puts in force what is on disk now.
    pub(crate) fn set(&self, agent: &AgentName, grants: Grants) {
        self.pass(&mut self.lock(), agent).grants = Arc::new(grants);
    }

    /// Forgets an agent that was destroyed: a later one of its name begins with the defaults.
    pub(crate) fn forget(&self, agent: &AgentName) {
        self.lock().remove(agent);
    }

    fn is_root(&self, agent: &AgentName) -> bool {
        agent.as_str() == self.root_agent
    }

    fn pass<'p>(
        &self,
        agents: &'p mut HashMap<AgentName, Pass>,
        agent: &AgentName,
    ) -> &'p mut Pass {
        agents.entry(agent.clone()).or_insert_with(|| Pass {
            grants: Arc::new(Grants::defaults(self.is_root(agent))),
            bucket: Bucket::full(self.rate, Instant::now()),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<AgentName, Pass>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
