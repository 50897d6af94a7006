//! A short hand for the suite: names as text, one operation per group, outcomes unpacked.

use std::fmt::Debug;

use hive_wire::{
    AgentName, MessageId, Recipient, Timestamp,
    agent::{InboxStatus, MessageState, Receipt, RequeueReason, TurnClosed, TurnResult},
};

use super::{Factory, Limits, Op, Outcome, Subject, Why};
use crate::{NewMessage, Receive, Received, mail::Verdict};

/// A subject with a clock, and words to say what happens to it.
pub struct Script<'f> {
    factory: &'f dyn Factory,
    subject: Box<dyn Subject>,
    /// The time that the next group is stamped with, in milliseconds.
    pub clock: i64,
}

pub(super) fn agent(name: &str) -> AgentName {
    text(name)
}

pub(super) fn text<T: std::str::FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().expect("a legal text")
}

pub(super) fn message(from: &str, to: &str, body: &str) -> NewMessage {
    NewMessage::plain(text(from), text(to), body)
}

pub(super) fn receive(of: &str, turn: &str, req: &str, max: u32) -> Receive {
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    Receive {
        agent: agent(of),
        turn: given(turn).map(|turn| text(&turn)),
        req: given(req).map(|req| text(&req)),
        max,
        parks: false,
    }
}

pub(super) fn bodies(received: &Received) -> Vec<&str> {
    let bodies = received.messages.iter();
    bodies.map(|message| message.body.as_str()).collect()
}

pub(super) fn ids(received: &Received) -> Vec<MessageId> {
    received.messages.iter().map(|message| message.id).collect()
}

/// What ending a turn is to say: how, acked, requeued, dead.
pub(super) fn closed(result: TurnResult, acked: u32, requeued: u32, dead: u32) -> TurnClosed {
    TurnClosed {
        result,
        acked,
        requeued,
        dead,
    }
}

impl<'f> Script<'f> {
    /// A script with a fresh subject.
    pub fn new(factory: &'f dyn Factory) -> Self {
        Self {
            factory,
            subject: factory.fresh(Limits::default()),
            clock: 1_700_000_000_000,
        }
    }

    /// Begins again with other limits.
    pub(super) fn limit(&mut self, limits: Limits) {
        self.subject = self.factory.fresh(limits);
    }

    pub(super) fn group(&mut self, operations: &[Op]) -> Vec<Outcome> {
        self.clock += 1;
        let now = Timestamp::from_millis(self.clock);
        let outcomes = self.subject.group(now, operations);
        assert_eq!(outcomes.len(), operations.len());
        outcomes
    }

    pub(super) fn run(&mut self, operation: Op) -> Outcome {
        let mut outcomes = self.group(&[operation]);
        outcomes.pop().expect("one for each")
    }

    pub(super) fn refusal(&mut self, operation: Op) -> Why {
        match self.run(operation) {
            Outcome::Refused(why) => why,
            other => panic!("it was to be refused: {other:?}"),
        }
    }

    pub(super) fn restart(&mut self) {
        self.subject.restart();
    }

    pub(super) fn crash(&mut self) {
        self.subject.crash();
    }

    /// Sends, and gives the id of a message that was not there before.
    pub(super) fn send(&mut self, message: NewMessage) -> MessageId {
        match self.run(Op::Send(message)) {
            Outcome::Sent(sent) if !sent.duplicate => sent.message_id,
            other => panic!("a message was to be stored: {other:?}"),
        }
    }

    pub(super) fn say(&mut self, from: &str, to: &str, body: &str) -> MessageId {
        self.send(message(from, to, body))
    }

    /// Receives; `turn` and `req` may be empty for none.
    pub(super) fn recv(&mut self, of: &str, turn: &str, req: &str, max: u32) -> Received {
        self.receive(receive(of, turn, req, max))
    }

    pub(super) fn park(&mut self, of: &str, turn: &str) -> Received {
        let parks = true;
        self.receive(Receive {
            parks,
            ..receive(of, turn, "", 9)
        })
    }

    fn receive(&mut self, receive: Receive) -> Received {
        match self.run(Op::Receive(receive)) {
            Outcome::Received(received) => received,
            other => panic!("it was to receive: {other:?}"),
        }
    }

    pub(super) fn confirm(&mut self, of: &str, turn: &str, req: &str) -> u32 {
        match self.run(Op::Confirm(agent(of), text(turn), text(req))) {
            Outcome::Confirmed(count) => count,
            other => panic!("it was to confirm: {other:?}"),
        }
    }

    pub(super) fn ack(&mut self, of: &str, turn: &str, ids: &[MessageId]) -> TurnClosed {
        self.close(Op::Ack(agent(of), text(turn), ids.to_vec()))
    }

    pub(super) fn requeue(&mut self, of: &str, turn: &str, reason: RequeueReason) -> TurnClosed {
        self.close(Op::Requeue(agent(of), text(turn), reason))
    }

    fn close(&mut self, operation: Op) -> TurnClosed {
        match self.run(operation) {
            Outcome::Closed(closed) => closed,
            other => panic!("it was to end a turn: {other:?}"),
        }
    }

    pub(super) fn settle(&mut self, id: MessageId, verdict: Verdict) -> MessageState {
        match self.run(Op::Settle(id, verdict)) {
            Outcome::Settled(state) => state,
            other => panic!("it was to settle: {other:?}"),
        }
    }

    pub(super) fn receipt(&mut self, id: MessageId) -> Option<Receipt> {
        match self.run(Op::Receipt(id)) {
            Outcome::Receipt(receipt) => receipt,
            other => panic!("it was to give a receipt: {other:?}"),
        }
    }

    pub(super) fn state(&mut self, id: MessageId) -> MessageState {
        self.receipt(id).expect("a durable message").state
    }

    pub(super) fn inbox(&mut self, of: &str) -> InboxStatus {
        match self.run(Op::Inbox(text::<Recipient>(of))) {
            Outcome::Inbox(status) => status,
            other => panic!("it was to tell of an inbox: {other:?}"),
        }
    }

    /// Messages that wait, messages that are held, and the open turn or nothing.
    pub(super) fn stands(&mut self, of: &str) -> (u32, u32, String) {
        let status = self.inbox(of);
        let turn = status.turn.map(|turn| turn.to_string());
        (status.unread, status.inflight, turn.unwrap_or_default())
    }
}
