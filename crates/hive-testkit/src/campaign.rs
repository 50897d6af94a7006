//! Many clients against a real daemon that is killed again and again, and the proof afterwards.
//!
//! Clients send, receive, confirm, ack, requeue, abandon turns, drop connections and repeat
//! themselves; each decides from its own random stream, and so does the one who kills. Which moment
//! a kill hits is up to the machine, so a seed repeats what is tried and not what happens; the
//! history tells that.

use std::ops::Range;

use hive_wire::name::OPERATOR;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    behaviour::{Actor, Owner, Role},
    checker::{Report, check},
    history::{History, Op},
    hive::{Options, TestHive},
    rng::Rng,
};
use client::Client;
use exchange::{Caller, Clock};

mod client;
mod drain;
mod exchange;
mod nemesis;

/// The agent that receives without turns.
const HAND: &str = "hand";

/// What a campaign does.
#[derive(Debug, Clone)]
pub struct Campaign {
    /// What all decisions follow from.
    pub seed: u64,
    /// How many clients there are: two or three receive for each agent, the others send.
    pub clients: u32,
    /// How often the daemon dies.
    pub kills: u32,
    /// How long it lives each time.
    pub reprieve_micros: Range<u64>,
    /// Whether it also dies at ordered places, which needs a daemon built with `failpoints`.
    pub failpoints: bool,
    /// After how many counted failures a message is a dead letter.
    pub dead_after: u32,
}

impl Campaign {
    /// A campaign of so many kills.
    pub fn new(seed: u64, kills: u32) -> Self {
        Self {
            seed,
            clients: 20,
            kills,
            reprieve_micros: 20_000..1_200_000,
            failpoints: false,
            dead_after: 4,
        }
    }
}

/// A campaign that is over.
#[derive(Debug)]
pub struct Finished {
    /// What clients saw.
    pub history: History,
    /// What the checker says.
    pub report: Report,
    /// How often the daemon died at an ordered place.
    pub ordered_crashes: u32,
    /// The hive it was tried on, with an empty inbox everywhere.
    pub hive: TestHive,
}

impl Campaign {
    /// Runs the whole campaign; `progress` hears the number of every death.
    ///
    /// # Errors
    /// When the daemon ends by itself, does not come back, hangs or talks nonsense.
    pub async fn run(&self, mut progress: impl FnMut(u32)) -> anyhow::Result<Finished> {
        let config = format!(
            "[hive]\nroot_agent = \"\"\n[limits]\ndeliveries_before_dead = {}\n\
             sends_per_minute = 0\n",
            self.dead_after
        );
        let options = Options {
            config,
            ..Options::default()
        };
        let mut hive = TestHive::start_with(options).await?;
        let agents = self.agents();
        for agent in &agents {
            hive.spawn_agent(agent).await?;
        }
        let clock = Clock::start();
        let stop = CancellationToken::new();
        let mut clients = JoinSet::new();
        for client in self.clients(&hive, &agents, clock, &stop) {
            clients.spawn(client.run());
        }
        let deaths = nemesis::run(self, &mut hive, clock, &mut progress).await;
        stop.cancel();
        let mut history = History {
            dead_after: self.dead_after,
            ..History::default()
        };
        let mut ops: Vec<Vec<Op>> = clients
            .join_all()
            .await
            .into_iter()
            .collect::<Result<_, _>>()?;
        let deaths = deaths?;
        history.crashes = deaths.times;
        hive.kill().await?;
        history.crashes.push(clock.now());
        hive.set_env(Vec::new());
        hive.restart().await?;
        for agent in &agents {
            ops.push(drain::inbox(&hive, agent, clock).await?);
        }
        history.ops = ops.into_iter().flatten().collect();
        history.ops.sort_by_key(|op| op.invoke);
        drain::receipts(&hive, &mut history).await?;
        let report = check(&history);
        Ok(Finished {
            history,
            report,
            ordered_crashes: deaths.ordered,
            hive,
        })
    }

    fn agents(&self) -> Vec<String> {
        let turns = (self.clients / 6).clamp(2, 20);
        let turns = (0..turns).map(|number| format!("agent{number}"));
        turns.chain([HAND.to_owned()]).collect()
    }

    fn clients(
        &self,
        hive: &TestHive,
        agents: &[String],
        clock: Clock,
        stop: &CancellationToken,
    ) -> Vec<Client> {
        let rng = Rng::new(self.seed);
        let roles = (0..).zip(self.roles(agents));
        let clients = roles.map(|(number, (agent, role, pause_micros))| {
            let socket = match agent {
                OPERATOR => hive.host_socket(),
                agent => hive.agent_socket(agent),
            };
            Client {
                actor: Actor::new(number, role, &rng),
                caller: Caller::new(number, agent, socket, clock),
                rng: rng.fork(u64::from(number) + (1 << 32)),
                pause_micros,
                stop: stop.clone(),
            }
        });
        clients.collect()
    }

    /// Who does what for whom, and how long it pauses at most.
    fn roles<'a>(&self, agents: &'a [String]) -> Vec<(&'a str, Role, u64)> {
        let mut roles = Vec::new();
        for agent in agents {
            if agent == HAND {
                roles.push((agent.as_str(), Role::Hand, 5_000));
                continue;
            }
            let unconfirmed = Vec::new();
            roles.push((agent, Role::Owner(Owner::default()), 3_000));
            roles.push((agent, Role::Joiner { unconfirmed }, 10_000));
            if !is_quiet(agent) {
                // A second harness of the same agent: now and then it takes everything over.
                roles.push((agent, Role::Owner(Owner::default()), 60_000));
            }
        }
        let senders = (self.clients as usize).saturating_sub(roles.len()).max(2);
        let weighted = agents.iter().flat_map(|agent| {
            let weight = if is_quiet(agent) { 1 } else { 12 };
            std::iter::repeat_n(agent.clone(), weight)
        });
        let to: Vec<_> = weighted.collect();
        let from = agents.iter().map(String::as_str).chain([OPERATOR]).cycle();
        for agent in from.take(senders) {
            roles.push((agent, Role::Sender { to: to.clone() }, 15_000));
        }
        roles
    }
}

/// Every other agent gets so little mail that its receivers mostly wait for it, and has its turns
/// for itself, so that they live across restarts.
fn is_quiet(agent: &str) -> bool {
    agent.ends_with(['1', '3', '5', '7', '9'])
}
