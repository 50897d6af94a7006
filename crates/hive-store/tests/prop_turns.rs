//! The SQLite store does what the model does, whatever happens in whatever order.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "common/hive.rs"]
mod common;

use std::collections::BTreeMap;

use common::{Sqlite, at};
use hive_store::{
    NewMessage, Receive,
    conformance::{Limits, Model, Op, Outcome, Subject},
    mail::Verdict,
};
use hive_wire::{
    AgentName, MessageId, Recipient, ReqId, Timestamp, TurnId,
    agent::{Message, RequeueReason},
};
use proptest::{collection::vec, option, prelude::*};

const AGENTS: [&str; 3] = ["ada", "bob", "cid"];
const LIMITS: Limits = Limits {
    inbox_depth: 6,
    deliveries_before_dead: 2,
};

/// One thing that happens to the hive.
#[derive(Debug, Clone)]
enum Step {
    Group(Vec<Deed>),
    /// The reply was lost: the last group is run again as it was.
    Again,
    Crash,
    Restart,
    /// The clock jumps by so many hours.
    Jump(i64),
}

/// An operation before names and ids are put in. Messages are chosen by a number that is taken
/// modulo of what was sent so far.
#[derive(Debug, Clone)]
enum Deed {
    Send {
        from: usize,
        to: usize,
        key: Option<u8>,
        reply: Option<u16>,
        transient: bool,
        bounded: bool,
    },
    Receive {
        agent: usize,
        turn: Option<Which>,
        req: Option<u8>,
        max: u32,
        parks: bool,
    },
    Confirm(usize, Which, u8),
    Ack(usize, Which, Vec<u16>),
    Requeue(usize, Which, RequeueReason),
    Settle(u16, Verdict),
    Receipt(u16),
    Inbox(usize),
    All(Vec<Self>),
}

/// Which of an agent's turns.
#[derive(Debug, Clone, Copy)]
enum Which {
    New,
    Latest,
    Earlier(u8),
    Current,
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        2 => Just(Which::New),
        5 => Just(Which::Latest),
        1 => (1_u8..4).prop_map(Which::Earlier),
        2 => Just(Which::Current),
    ]
}

fn reason() -> impl Strategy<Value = RequeueReason> {
    prop::sample::select(vec![
        RequeueReason::Failed,
        RequeueReason::Crash,
        RequeueReason::Unavailable,
        RequeueReason::RateLimited,
        RequeueReason::Auth,
        RequeueReason::Interrupted,
        RequeueReason::Shutdown,
    ])
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop_oneof![Just(Verdict::Redeliver), Just(Verdict::Discard)]
}

fn plain_deed() -> impl Strategy<Value = Deed> {
    let agent = 0..AGENTS.len();
    let key = option::weighted(0.3, 0_u8..3);
    let reply = option::weighted(0.3, any::<u16>());
    let send = (
        agent.clone(),
        0..=AGENTS.len(),
        key,
        reply,
        prop::bool::weighted(0.2),
        any::<bool>(),
    )
        .prop_map(|(from, to, key, reply, transient, bounded)| Deed::Send {
            from,
            to,
            key,
            reply,
            transient,
            bounded,
        });
    let turn = option::weighted(0.85, which());
    let req = option::weighted(0.6, 0_u8..3);
    let receive = (agent.clone(), turn, req, 0_u32..4, any::<bool>()).prop_map(
        |(agent, turn, req, max, parks)| Deed::Receive {
            agent,
            turn,
            req,
            max,
            parks,
        },
    );
    let ids = vec(any::<u16>(), 0..4);
    prop_oneof![
        6 => send,
        6 => receive,
        2 => (agent.clone(), which(), 0_u8..3).prop_map(|(a, w, r)| Deed::Confirm(a, w, r)),
        3 => (agent.clone(), which(), ids).prop_map(|(a, w, ids)| Deed::Ack(a, w, ids)),
        2 => (agent.clone(), which(), reason()).prop_map(|(a, w, r)| Deed::Requeue(a, w, r)),
        2 => (any::<u16>(), verdict()).prop_map(|(id, verdict)| Deed::Settle(id, verdict)),
        1 => any::<u16>().prop_map(Deed::Receipt),
        1 => (0..=AGENTS.len()).prop_map(Deed::Inbox),
    ]
}

fn deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        8 => plain_deed(),
        1 => vec(plain_deed(), 2..4).prop_map(Deed::All),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => vec(deed(), 1..5).prop_map(Step::Group),
        2 => Just(Step::Again),
        1 => Just(Step::Crash),
        1 => Just(Step::Restart),
        1 => (-50_i64..50).prop_map(Step::Jump),
    ]
}

/// What one store calls the messages that both know, in the order they were sent.
#[derive(Default)]
struct Ids(Vec<MessageId>);

impl Ids {
    fn real(&self, number: u16) -> MessageId {
        // One more than there are: an id that nobody has.
        let place = usize::from(number) % (self.0.len() + 1);
        self.0.get(place).copied().unwrap_or(MessageId(1_000_000))
    }

    fn common(&self, id: MessageId) -> MessageId {
        let place = self.0.iter().rposition(|known| *known == id);
        place.map_or(id, |place| MessageId(i64::try_from(place).unwrap()))
    }

    /// The outcome with common names for ids; new ids are learned from it.
    fn translate(&mut self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Sent(mut sent) => {
                if !sent.duplicate {
                    self.0.push(sent.message_id);
                }
                sent.message_id = self.common(sent.message_id);
                Outcome::Sent(sent)
            }
            Outcome::Received(mut received) => {
                for Message {
                    id, in_reply_to, ..
                } in &mut received.messages
                {
                    *id = self.common(*id);
                    *in_reply_to = in_reply_to.map(|id| self.common(id));
                }
                Outcome::Received(received)
            }
            Outcome::Receipt(Some(mut receipt)) => {
                receipt.message_id = self.common(receipt.message_id);
                Outcome::Receipt(Some(receipt))
            }
            Outcome::All(outcomes) => {
                Outcome::All(outcomes.into_iter().map(|o| self.translate(o)).collect())
            }
            other => other,
        }
    }
}

/// Puts names and ids into deeds.
#[derive(Default)]
struct Names {
    turns: BTreeMap<usize, u32>,
    bodies: u32,
}

impl Names {
    fn turn(&mut self, agent: usize, which: Which) -> TurnId {
        let latest = self.turns.entry(agent).or_default();
        let name = match which {
            Which::Current => return "current".parse().unwrap(),
            Which::New => {
                *latest += 1;
                *latest
            }
            Which::Latest => *latest,
            Which::Earlier(by) => latest.saturating_sub(u32::from(by)),
        };
        format!("t{name}").parse().unwrap()
    }

    /// The same deed for two stores.
    fn op(&mut self, deed: &Deed, ids: [&Ids; 2]) -> [Op; 2] {
        let each = |make: &dyn Fn(&Ids) -> Op| ids.map(make);
        match deed {
            Deed::Send {
                from,
                to,
                key,
                reply,
                transient,
                bounded,
            } => {
                self.bodies += 1;
                each(&|ids| {
                    Op::Send(NewMessage {
                        from: AGENTS[*from].parse().unwrap(),
                        to: recipient(*to),
                        body: format!("body {}", self.bodies),
                        in_reply_to: reply.map(|number| ids.real(number)),
                        key: key.map(|key| format!("k{key}").parse().unwrap()),
                        transient: *transient,
                        bounded: *bounded,
                    })
                })
            }
            Deed::Receive {
                agent,
                turn,
                req,
                max,
                parks,
            } => {
                let receive = Receive {
                    agent: name(*agent),
                    turn: turn.map(|which| self.turn(*agent, which)),
                    req: req.map(req_named),
                    max: *max,
                    parks: *parks,
                };
                each(&|_| Op::Receive(receive.clone()))
            }
            Deed::Confirm(agent, which, req) => {
                let turn = self.turn(*agent, *which);
                each(&|_| Op::Confirm(name(*agent), turn.clone(), req_named(*req)))
            }
            Deed::Ack(agent, which, chosen) => {
                let turn = self.turn(*agent, *which);
                each(&|ids| {
                    let chosen = chosen.iter().map(|number| ids.real(*number));
                    Op::Ack(name(*agent), turn.clone(), chosen.collect())
                })
            }
            Deed::Requeue(agent, which, reason) => {
                let turn = self.turn(*agent, *which);
                each(&|_| Op::Requeue(name(*agent), turn.clone(), *reason))
            }
            Deed::Settle(id, verdict) => each(&|ids| Op::Settle(ids.real(*id), *verdict)),
            Deed::Receipt(id) => each(&|ids| Op::Receipt(ids.real(*id))),
            Deed::Inbox(of) => each(&|_| Op::Inbox(recipient(*of))),
            Deed::All(deeds) => {
                let pairs = deeds.iter().map(|deed| self.op(deed, ids));
                let (left, right): (Vec<_>, Vec<_>) =
                    pairs.map(|[left, right]| (left, right)).unzip();
                [Op::All(left), Op::All(right)]
            }
        }
    }
}

fn req_named(req: u8) -> ReqId {
    format!("r{req}").parse().unwrap()
}

fn name(agent: usize) -> AgentName {
    AGENTS[agent].parse().unwrap()
}

fn recipient(of: usize) -> Recipient {
    AGENTS
        .get(of)
        .map_or(Recipient::Operator, |name| name.parse().unwrap())
}

/// The store and the model side by side.
struct Pair {
    sides: [(Box<dyn Subject>, Ids); 2],
    names: Names,
    clock: i64,
    last: Vec<[Op; 2]>,
}

impl Pair {
    /// `behind`: how many groups SQLite may lag behind its redo journal.
    fn new(behind: u32) -> Self {
        let sqlite: Box<dyn Subject> = Box::new(Sqlite::new(LIMITS, behind));
        let model: Box<dyn Subject> = Box::new(Model::new(LIMITS));
        Self {
            sides: [sqlite, model].map(|subject| (subject, Ids::default())),
            names: Names::default(),
            clock: 1_700_000_000_000,
            last: Vec::new(),
        }
    }

    fn now(&mut self) -> Timestamp {
        self.clock += 1;
        at(self.clock)
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Crash => self
                .sides
                .iter_mut()
                .for_each(|(subject, _)| subject.crash()),
            Step::Restart => self
                .sides
                .iter_mut()
                .for_each(|(subject, _)| subject.restart()),
            Step::Jump(hours) => self.clock += hours * 3_600_000,
            Step::Again => self.run_last()?,
            Step::Group(deeds) => {
                let [(_, left), (_, right)] = &self.sides;
                let names = &mut self.names;
                self.last = deeds
                    .iter()
                    .map(|deed| names.op(deed, [left, right]))
                    .collect();
                self.run_last()?;
            }
        }
        self.compare_inboxes()
    }

    fn run_last(&mut self) -> Result<(), TestCaseError> {
        let now = self.now();
        let pairs = self.last.clone();
        let operations = |side: usize| pairs.iter().map(|pair| pair[side].clone()).collect();
        self.compare(now, [operations(0), operations(1)])
    }

    fn compare(&mut self, now: Timestamp, operations: [Vec<Op>; 2]) -> Result<(), TestCaseError> {
        let mut side = 0;
        let [sqlite, model] = self.sides.each_mut().map(|(subject, ids)| {
            let outcomes = subject.group(now, &operations[side]);
            side += 1;
            let common = outcomes.into_iter().map(|outcome| ids.translate(outcome));
            common.collect::<Vec<_>>()
        });
        prop_assert_eq!(sqlite, model, "after {:?}", operations[1]);
        Ok(())
    }

    fn compare_inboxes(&mut self) -> Result<(), TestCaseError> {
        let inboxes: Vec<_> = (0..=AGENTS.len())
            .map(|of| Op::Inbox(recipient(of)))
            .collect();
        let now = at(self.clock);
        self.compare(now, [inboxes.clone(), inboxes])
    }

    fn compare_receipts(&mut self) -> Result<(), TestCaseError> {
        let receipts = |ids: &Ids| ids.0.iter().map(|id| Op::Receipt(*id)).collect();
        let [(_, left), (_, right)] = &self.sides;
        let operations = [receipts(left), receipts(right)];
        let now = at(self.clock);
        self.compare(now, operations)
    }
}

fn config() -> ProptestConfig {
    let mut config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = 96;
    }
    config
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn prop_sqlite_does_what_the_model_does(
        behind in prop::sample::select(vec![0, 1, 5, u32::MAX]),
        steps in vec(step(), 1..40),
    ) {
        let mut pair = Pair::new(behind);
        for step in &steps {
            pair.step(step)?;
        }
        pair.compare_receipts()?;
        pair.step(&Step::Crash)?;
        pair.compare_receipts()?;
    }
}
