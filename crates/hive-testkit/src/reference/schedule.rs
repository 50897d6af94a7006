//! Random schedules of clients against the reference broker, and the histories they leave.
//!
//! Time is a counter. A call is invoked, applied and answered at three different times; between
//! them its client may give up, its connection may drop with the call still on the way, and the
//! broker may crash. Everything follows from the seed.

use hive_wire::{TurnId, agent::MessageState};

use super::{Broker, Bug};
use crate::{
    behaviour::{Actor, Owner, Role, ack},
    history::{Call, History, Nanos, Op, Outcome},
    rng::Rng,
};

/// The agents of the schedule; the last one receives without turns.
const AGENTS: [&str; 4] = ["ada", "bob", "cleo", "hand"];
const DEAD_AFTER: u32 = 3;

/// How a schedule goes.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What everything follows from.
    pub seed: u64,
    /// How many steps there are; a call takes three.
    pub steps: u32,
    /// How many of a hundred calls lose their reply or are given up.
    pub lost_percent: u64,
    /// How many of ten thousand steps are crashes.
    pub crash_permyriad: u64,
    /// What is wrong with the broker.
    pub bug: Option<Bug>,
}

impl Plan {
    /// A schedule of usual length in which everything happens.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            steps: 1_500,
            lost_percent: 8,
            crash_permyriad: 40,
            bug: None,
        }
    }

    /// Runs the schedule to its end and drains every inbox.
    pub fn run(&self) -> History {
        let mut run = Run::new(self);
        for _ in 0..self.steps {
            run.step(self);
        }
        run.finish()
    }
}

struct Run {
    rng: Rng,
    now: Nanos,
    broker: Broker,
    clients: Vec<Client>,
    /// Calls whose connection dropped while they were on the way.
    adrift: Vec<(&'static str, Call)>,
    history: History,
}

struct Client {
    agent: &'static str,
    actor: Actor,
    pending: Option<Pending>,
}

struct Pending {
    invoke: Nanos,
    call: Call,
    applied: bool,
}

impl Run {
    fn new(plan: &Plan) -> Self {
        let rng = Rng::new(plan.seed);
        let owner = || Role::Owner(Owner::default());
        let roles = AGENTS.into_iter().flat_map(|agent| {
            let unconfirmed = Vec::new();
            let receivers = match agent {
                "hand" => vec![Role::Hand],
                _ => vec![owner(), owner(), Role::Joiner { unconfirmed }],
            };
            let to = AGENTS.map(str::to_owned).to_vec();
            let roles = receivers.into_iter().chain([Role::Sender { to }]);
            roles.map(move |role| (agent, role))
        });
        let clients = (0..).zip(roles).map(|(client, (agent, role))| Client {
            agent,
            actor: Actor::new(client, role, &rng),
            pending: None,
        });
        Self {
            clients: clients.collect(),
            rng,
            now: 0,
            broker: Broker::new(DEAD_AFTER, plan.bug),
            adrift: Vec::new(),
            history: History {
                dead_after: DEAD_AFTER,
                ..History::default()
            },
        }
    }

    fn step(&mut self, plan: &Plan) {
        self.now += 1 + self.rng.within(0..20);
        if self.rng.within(0..10_000) < plan.crash_permyriad {
            return self.crash();
        }
        if !self.adrift.is_empty() && self.rng.percent(20) {
            let index = self.rng.index(self.adrift.len());
            let (agent, mut call) = self.adrift.swap_remove(index);
            return self.broker.apply(agent, &mut call);
        }
        let index = self.rng.index(self.clients.len());
        let client = &mut self.clients[index];
        match client.pending.take() {
            None => {
                client.pending = Some(Pending {
                    invoke: self.now,
                    call: client.actor.next_call(),
                    applied: false,
                });
            }
            Some(pending) if self.rng.percent(plan.lost_percent / 2) => {
                if !pending.applied {
                    self.adrift.push((client.agent, pending.call.clone()));
                }
                self.lose(index, pending);
            }
            Some(mut pending) if !pending.applied => {
                self.broker.apply(client.agent, &mut pending.call);
                pending.applied = true;
                client.pending = Some(pending);
            }
            Some(pending) => {
                client.actor.heard(&pending.call);
                self.record(index, pending);
            }
        }
    }

    fn crash(&mut self) {
        for index in 0..self.clients.len() {
            if let Some(pending) = self.clients[index].pending.take() {
                self.lose(index, pending);
            }
        }
        self.adrift.clear();
        self.broker.crash();
        self.now += 1;
        self.history.crashes.push(self.now);
    }

    /// The client of a pending call never hears of it.
    fn lose(&mut self, index: usize, mut pending: Pending) {
        pending.call.lose_reply();
        self.clients[index].actor.lost(&pending.call);
        self.record(index, pending);
    }

    fn record(&mut self, index: usize, pending: Pending) {
        let client = &self.clients[index];
        self.history.ops.push(Op {
            client: client.actor.client,
            agent: client.agent.to_owned(),
            invoke: pending.invoke,
            complete: self.now,
            call: pending.call,
        });
    }

    /// The last restart: every inbox is drained, then the receipts are read.
    fn finish(mut self) -> History {
        self.crash();
        for agent in AGENTS {
            for number in 0.. {
                if !self.drain(agent, number) {
                    break;
                }
            }
        }
        self.history.receipts = self.broker.receipts();
        let receipts = self.history.receipts.iter();
        let dead = receipts.filter(|receipt| receipt.state == MessageState::Dead);
        self.history.dead = dead.map(|receipt| receipt.message_id).collect();
        self.history
    }

    /// Takes and acks a batch; false when there was none.
    fn drain(&mut self, agent: &'static str, number: u32) -> bool {
        let turn: TurnId = format!("drain{number}").parse().expect("a legal name");
        let batch = self.call_at_once(
            agent,
            Call::Recv {
                turn: Some(turn.clone()),
                req: None,
                max: 7,
                outcome: Outcome::Unknown,
            },
        );
        let Call::Recv { outcome, .. } = batch else {
            unreachable!("a call stays what it is");
        };
        let batch = outcome.ok().map_or(&[][..], Vec::as_slice);
        let ids = batch.iter().map(|delivery| delivery.id).collect();
        self.call_at_once(agent, ack(turn, ids));
        !batch.is_empty()
    }

    fn call_at_once(&mut self, agent: &'static str, mut call: Call) -> Call {
        let invoke = self.now + 1;
        self.now += 3;
        self.broker.apply(agent, &mut call);
        self.history.ops.push(Op {
            client: u32::MAX,
            agent: agent.to_owned(),
            invoke,
            complete: self.now,
            call: call.clone(),
        });
        call
    }
}
