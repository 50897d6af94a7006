//! What the clients of a campaign or a schedule do next: pure, and the same for both.
//!
//! Each client has its own stream of randomness, so that its decisions depend on what it heard and
//! not on who ran first. Every name it makes up is its own.

use std::{fmt::Debug, str::FromStr};

use hive_wire::{
    MessageId, ReqId, TurnId,
    agent::{RequeueReason, TurnResult},
    id::CURRENT,
};

use crate::{
    history::{Body, Call, Outcome},
    rng::Rng,
};

/// What a client is there for.
#[derive(Debug)]
pub enum Role {
    /// Sends to these agents, half of the time with a key.
    Sender {
        /// Whom it writes to.
        to: Vec<String>,
    },
    /// Opens turns, joins and ends them, or abandons them.
    Owner(Owner),
    /// Takes part in whatever turn is open.
    Joiner {
        /// Receives that brought something and are not confirmed yet.
        unconfirmed: Vec<ReqId>,
    },
    /// Receives without turns.
    Hand,
}

/// What an owner of turns knows.
#[derive(Debug, Default)]
pub struct Owner {
    turn: Option<TurnId>,
    seen: Vec<MessageId>,
    reqs: Vec<ReqId>,
}

/// A client: what it is there for, and what it remembers.
#[derive(Debug)]
pub struct Actor {
    /// Its number.
    pub client: u32,
    role: Role,
    rng: Rng,
    /// The call to repeat, mostly one whose reply was lost.
    retry: Option<Call>,
    serial: u64,
}

impl Actor {
    /// A client that has done nothing yet.
    pub fn new(client: u32, role: Role, rng: &Rng) -> Self {
        Self {
            client,
            role,
            rng: rng.fork(u64::from(client)),
            retry: None,
            serial: 0,
        }
    }

    /// What the client asks next, with the outcome still unknown.
    pub fn next_call(&mut self) -> Call {
        if let Some(call) = self.retry.take() {
            return self.repeated(call);
        }
        self.serial += 1;
        match &mut self.role {
            Role::Sender { to } => {
                let to = self.rng.pick(to).clone();
                self.send(to)
            }
            Role::Hand => self.recv(None),
            Role::Joiner { unconfirmed } => match unconfirmed.pop() {
                Some(req) if self.rng.percent(70) => confirm(current(), req),
                _ => self.recv(Some(current())),
            },
            Role::Owner(_) => self.next_of_owner(),
        }
    }

    /// The client hears the answer to its call.
    pub fn heard(&mut self, call: &Call) {
        match (&mut self.role, call) {
            (Role::Owner(owner), Call::Recv { req, outcome, .. }) => match outcome {
                Outcome::Ok(batch) => {
                    owner.seen.extend(batch.iter().map(|delivery| delivery.id));
                    owner.reqs.extend(req.clone());
                }
                Outcome::Refused(_) | Outcome::Unknown => owner.turn = None,
            },
            (Role::Owner(owner), Call::Ack { outcome, .. } | Call::Requeue { outcome, .. })
                if outcome.ok().is_none_or(|c| c.result != TurnResult::Unknown) =>
            {
                owner.turn = None;
            }
            (Role::Joiner { unconfirmed }, Call::Recv { req, outcome, .. })
                if outcome.ok().is_some_and(|batch| !batch.is_empty()) =>
            {
                unconfirmed.extend(req.clone());
            }
            _ => {}
        }
        if self.rng.percent(5) {
            self.retry_later(call);
        }
    }

    /// The client will not hear the answer to its call.
    pub fn lost(&mut self, call: &Call) {
        if self.rng.percent(70) {
            self.retry_later(call);
        } else if let Role::Owner(owner) = &mut self.role {
            owner.turn = None;
        }
    }

    fn retry_later(&mut self, call: &Call) {
        // A send without a key would be a second message.
        if !matches!(call, Call::Send { key: None, .. }) {
            let mut call = call.clone();
            call.lose_reply();
            self.retry = Some(call);
        }
    }

    /// A repeated ack may have forgotten one of its messages.
    fn repeated(&mut self, mut call: Call) -> Call {
        if let Call::Ack { ids, .. } = &mut call
            && self.rng.percent(10)
        {
            ids.pop();
        }
        call
    }

    fn next_of_owner(&mut self) -> Call {
        let fresh: TurnId = self.name("t");
        let Role::Owner(owner) = &mut self.role else {
            unreachable!("only owners come here");
        };
        let Some(open) = owner.turn.clone().filter(|_| !self.rng.percent(10)) else {
            *owner = Owner {
                turn: Some(fresh.clone()),
                ..Owner::default()
            };
            return self.recv(Some(fresh));
        };
        match self.rng.within(0..100) {
            0..40 => self.recv(Some(open)),
            40..55 if !owner.reqs.is_empty() => confirm(open, self.rng.pick(&owner.reqs).clone()),
            40..85 => {
                let seen = owner.seen.iter().copied();
                let ids = seen.filter(|_| self.rng.percent(90)).collect();
                ack(open, ids)
            }
            _ => self.requeue(open),
        }
    }

    fn send(&mut self, to: String) -> Call {
        let tag: String = self.name("m");
        Call::Send {
            to,
            key: self.rng.percent(50).then(|| self.name("k")),
            body: Body::of(&text(&tag)),
            outcome: Outcome::Unknown,
        }
    }

    fn recv(&mut self, turn: Option<TurnId>) -> Call {
        let named = turn.is_some() && self.rng.percent(80);
        Call::Recv {
            req: named.then(|| self.name("r")),
            turn,
            max: u32::try_from(self.rng.within(1..6)).expect("small"),
            outcome: Outcome::Unknown,
        }
    }

    fn requeue(&mut self, turn: TurnId) -> Call {
        let reasons = [
            RequeueReason::Failed,
            RequeueReason::Crash,
            RequeueReason::Unavailable,
            RequeueReason::RateLimited,
            RequeueReason::Auth,
            RequeueReason::Interrupted,
            RequeueReason::Shutdown,
        ];
        Call::Requeue {
            turn,
            reason: *self.rng.pick(&reasons),
            outcome: Outcome::Unknown,
        }
    }

    /// A name that no other client and no other call has.
    fn name<T: FromStr<Err: Debug>>(&self, what: &str) -> T {
        let name = format!("{what}{}.{}", self.client, self.serial);
        name.parse().expect("a legal name")
    }
}

const WORDS: [&str; 6] = [
    "hello ",
    "\"quoted\" ",
    "zwölf\n",
    "\t\\ ",
    "🐝 ",
    "\u{1}\u{7f} ",
];

/// The whole body that a tag stands for: mostly short, now and then long, with some characters
/// that JSON has to escape.
pub fn text(tag: &str) -> String {
    let mut rng = Rng::new(Body::of(tag).digest);
    let words = match rng.within(0..100) {
        0..97 => rng.within(0..40),
        97..99 => rng.within(100..2_000),
        _ => rng.within(2_000..12_000),
    };
    let mut text = format!("{tag} ");
    for _ in 0..words {
        text.push_str(rng.pick::<&str>(&WORDS));
    }
    text
}

/// Ends a turn well.
pub(crate) fn ack(turn: TurnId, ids: Vec<MessageId>) -> Call {
    Call::Ack {
        turn,
        ids,
        outcome: Outcome::Unknown,
    }
}

fn confirm(turn: TurnId, req: ReqId) -> Call {
    Call::Confirm {
        turn,
        req,
        outcome: Outcome::Unknown,
    }
}

fn current() -> TurnId {
    CURRENT.parse().expect("a legal name")
}
