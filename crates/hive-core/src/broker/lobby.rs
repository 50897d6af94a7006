//! Receivers that wait for mail, in the order they came.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};

use foldhash::HashMap;
use hive_store::Receive;
use hive_wire::{AgentName, TurnId, WireError, agent::Messages};

/// Whether somebody is still there to take what a receive brings.
pub trait Presence: Send + Sync {
    /// Asked right before messages are handed over: as far as is known.
    fn is_there(&self) -> bool;

    /// The same, but the system is asked: a peer may have hung up without having been noticed.
    fn is_still_there(&self) -> bool;
}

/// What to do with the outcome of a receive.
pub(super) type Deliver = Box<dyn FnOnce(Result<Messages, WireError>) + Send>;

/// A receive that waits.
pub(super) struct Waiter {
    pub(super) receive: Receive,
    pub(super) deadline: Instant,
    pub(super) presence: Arc<dyn Presence>,
    pub(super) done: Deliver,
}

impl Waiter {
    /// Whether messages may be handed over. A turn keeps what it is given, whoever is there; what
    /// goes out without one is gone, so that there the answer must be certain.
    pub(super) fn is_there(&self) -> bool {
        if self.receive.turn.is_some() {
            self.presence.is_there()
        } else {
            self.presence.is_still_there()
        }
    }
}

/// Everybody who waits.
#[derive(Default)]
pub(super) struct Lobby {
    next: u64,
    by_agent: HashMap<AgentName, VecDeque<(u64, Waiter)>>,
    deadlines: BTreeMap<(Instant, u64), AgentName>,
}

impl Lobby {
    pub(super) fn len(&self) -> usize {
        self.deadlines.len()
    }

    /// A mark for [`Self::pop_since`].
    pub(super) fn mark(&self) -> u64 {
        self.next
    }

    /// Takes out one who came after the mark was set.
    pub(super) fn pop_since(&mut self, mark: u64) -> Option<Waiter> {
        let newest = self
            .deadlines
            .iter()
            .find(|((_, ticket), _)| *ticket >= mark);
        let ((_, newest), agent) = newest?;
        let (newest, agent) = (*newest, agent.clone());
        self.remove_where(&agent, |ticket, _| ticket == newest)
    }

    pub(super) fn park(&mut self, waiter: Waiter) {
        let ticket = self.next;
        self.next += 1;
        let agent = waiter.receive.agent.clone();
        self.deadlines
            .insert((waiter.deadline, ticket), agent.clone());
        self.by_agent
            .entry(agent)
            .or_default()
            .push_back((ticket, waiter));
    }

    /// The one who has waited longest on this inbox.
    pub(super) fn first(&self, agent: &AgentName) -> Option<&Waiter> {
        self.by_agent.get(agent)?.front().map(|(_, waiter)| waiter)
    }

    pub(super) fn pop_first(&mut self, agent: &AgentName) -> Option<Waiter> {
        self.remove_where(agent, |_, _| true)
    }

    /// Takes out one who waits on the same receive of the same turn.
    pub(super) fn pop_same(&mut self, receive: &Receive) -> Option<Waiter> {
        receive.req.as_ref()?;
        self.remove_where(&receive.agent, |_, waiter| {
            waiter.receive.req == receive.req && waiter.receive.turn == receive.turn
        })
    }

    /// Takes out one who waits within this turn.
    pub(super) fn pop_of_turn(&mut self, agent: &AgentName, turn: &TurnId) -> Option<Waiter> {
        self.remove_where(agent, |_, waiter| {
            waiter.receive.turn.as_ref() == Some(turn)
        })
    }

    /// Takes out one who waited on behalf of this peer.
    pub(super) fn pop_of_peer(
        &mut self,
        agent: &AgentName,
        peer: &Arc<dyn Presence>,
    ) -> Option<Waiter> {
        self.remove_where(agent, |_, waiter| {
            std::ptr::addr_eq(Arc::as_ptr(&waiter.presence), Arc::as_ptr(peer))
        })
    }

    /// Takes out one whose time is up.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<Waiter> {
        let ((deadline, due), agent) = self.deadlines.first_key_value()?;
        if *deadline > now {
            return None;
        }
        let (due, agent) = (*due, agent.clone());
        self.remove_where(&agent, |ticket, _| ticket == due)
    }

    /// When the next one's time is up.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines
            .first_key_value()
            .map(|((deadline, _), _)| *deadline)
    }

    /// Takes everybody out.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = Waiter> {
        self.deadlines.clear();
        std::mem::take(&mut self.by_agent)
            .into_values()
            .flatten()
            .map(|(_, waiter)| waiter)
    }

    fn remove_where(
        &mut self,
        agent: &AgentName,
        wanted: impl Fn(u64, &Waiter) -> bool,
    ) -> Option<Waiter> {
        let queue = self.by_agent.get_mut(agent)?;
        let place = queue
            .iter()
            .position(|(ticket, waiter)| wanted(*ticket, waiter))?;
        let (ticket, waiter) = queue.remove(place)?;
        if queue.is_empty() {
            self.by_agent.remove(agent);
        }
        self.deadlines.remove(&(waiter.deadline, ticket));
        Some(waiter)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Here;
    impl Presence for Here {
        fn is_there(&self) -> bool {
            true
        }

        fn is_still_there(&self) -> bool {
            true
        }
    }

    fn waiter(agent: &str, turn: Option<&str>, deadline: Instant) -> Waiter {
        Waiter {
            receive: Receive {
                agent: agent.parse().unwrap(),
                turn: turn.map(|turn| turn.parse().unwrap()),
                req: None,
                max: 1,
                parks: true,
            },
            deadline,
            presence: Arc::new(Here),
            done: Box::new(|_| {}),
        }
    }

    #[test]
    fn waiters_leave_in_order_of_arrival_or_of_deadline() {
        let start = Instant::now();
        let late = start + Duration::from_secs(9);
        let mut lobby = Lobby::default();
        lobby.park(waiter("ada", Some("t1"), late));
        lobby.park(waiter("ada", None, start));
        lobby.park(waiter("bob", Some("t1"), late));
        let ada: AgentName = "ada".parse().unwrap();

        assert_eq!(lobby.next_deadline(), Some(start));
        assert!(
            lobby
                .pop_due(start)
                .is_some_and(|due| due.receive.turn.is_none())
        );
        assert!(lobby.pop_due(start).is_none());
        assert!(lobby.pop_of_turn(&ada, &"t2".parse().unwrap()).is_none());
        assert!(lobby.pop_first(&ada).is_some());
        assert!(lobby.pop_first(&ada).is_none());
        assert_eq!(lobby.len(), 1, "bob still waits");
        assert_eq!(lobby.clear().count(), 1);
        assert_eq!(lobby.next_deadline(), None);
    }
}
