//! What a job sees of the hive while its group is open, and the rules that involve waiting.

use std::{sync::Arc, time::Instant};

use hive_store::{
    Group, Mail, NewMessage, Receive, Received, Refusal,
    event_log::Event,
    mail::Verdict,
    sqlite::{AtOnce, NewQuestion, QuestionEnd, Tx},
};
use hive_wire::{
    AgentName, ErrorCode, MessageId, QuestionId, Recipient, SenderLabel, Timestamp, TurnId,
    WireError,
    agent::{Asked, Message, MessageState, Messages, RequeueReason, Sent, TurnClosed, TurnResult},
    host::QuestionRow,
};
use serde_json::json;

use super::{
    askers::Askers,
    lobby::{Deliver, Lobby, Presence, Waiter},
    report,
};
use crate::{config::Config, pauses::Pauses, roster::Roster};

/// Something to say once the group is durable, or that it is not.
pub(super) type Answer = Box<dyn FnOnce(Option<&WireError>) + Send>;

/// The open group, and everything the broker's thread owns besides the store.
pub struct Desk<'g> {
    pub(super) group: Group<'g>,
    /// Who is in the hive.
    pub roster: &'g mut Roster,
    /// Who begins no turn.
    pub(crate) pauses: &'g mut Pauses,
    /// How this hive is set up.
    pub config: &'g Config,
    pub(super) lobby: &'g mut Lobby,
    pub(super) askers: &'g mut Askers,
    pub(super) now: Timestamp,
    pub(super) spoken: Spoken,
}

/// What a group leads to once it is durable.
#[derive(Default)]
pub(super) struct Spoken {
    /// Mail for those who waited: it goes out first.
    pub(super) deliveries: Vec<Answer>,
    /// Answers to those who asked.
    pub(super) answers: Vec<Answer>,
    /// What happened, for live views.
    pub(super) events: Vec<Event>,
    /// Whether a reminder or an expiry was added or taken away.
    pub(super) agenda_changed: bool,
    /// Durable messages stored.
    pub(super) sent: u32,
}

impl Desk<'_> {
    /// The time this group is stamped with.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Runs one operation on the store.
    ///
    /// # Errors
    /// The store's refusal, as the wire says it.
    pub fn store<T>(
        &mut self,
        operation: impl FnOnce(&mut Tx<'_>) -> Result<T, Refusal>,
    ) -> Result<T, WireError> {
        self.group
            .run(operation)
            .map_err(|refusal| WireError::from(&refusal))
    }

    /// Runs one operation that refuses before it writes.
    fn store_checked<T>(
        &mut self,
        operation: impl FnOnce(&mut Tx<'_>) -> Result<T, Refusal>,
    ) -> Result<T, WireError> {
        let outcome = self.group.run_checked(operation);
        outcome.map_err(|refusal| WireError::from(&refusal))
    }

    /// Says `outcome` once the group is durable, or why it is not.
    pub(super) fn answer<T: Send + 'static>(
        &mut self,
        outcome: Result<T, WireError>,
        done: impl FnOnce(Result<T, WireError>) + Send + 'static,
    ) {
        self.spoken.answers.push(Box::new(move |failure| {
            done(failure.map_or(outcome, |failure| Err(failure.clone())));
        }));
    }

    /// Tells live views that something happened, once it is durable.
    pub fn report(&mut self, event: Event) {
        self.spoken.events.push(event);
    }

    /// Stores a message and hands it to whoever waits for it, in the same commit.
    ///
    /// # Errors
    /// The store's refusal.
    pub fn send(&mut self, message: NewMessage) -> Result<Sent, WireError> {
        let stored = report::Stored::of(&message);
        let recipient = message.to.clone();
        let sent = match self.hand_over(message)? {
            AtOnce::Leased(sent, received) => {
                self.report(stored.event(self.now, sent.message_id));
                if let Recipient::Agent(agent) = &recipient {
                    self.deliver_first(agent, Ok(received));
                }
                sent
            }
            AtOnce::NotPossible(message) => {
                let sent = self.store_checked(|tx| tx.send(message))?;
                if sent.duplicate {
                    return Ok(sent);
                }
                self.report(stored.event(self.now, sent.message_id));
                self.serve(&recipient);
                sent
            }
        };
        self.spoken.sent += u32::from(!sent.message_id.is_transient());
        Ok(sent)
    }

    /// Leases the message to whoever waits for it as it is stored, where that is possible.
    fn hand_over(&mut self, message: NewMessage) -> Result<AtOnce, WireError> {
        let waiter = match &message.to {
            Recipient::Agent(agent) if self.pauses.of(agent).is_some() => None,
            Recipient::Agent(agent) => self.lobby.first(agent).filter(|waiter| waiter.is_there()),
            Recipient::Operator => None,
        };
        let Some(waiter) = waiter else {
            return Ok(AtOnce::NotPossible(message));
        };
        let outcome = self
            .group
            .run_checked(|tx| tx.lease_at_once(message, &waiter.receive));
        outcome.map_err(|refusal| WireError::from(&refusal))
    }

    /// Receives now, or parks the receive until there is something or its time is up.
    pub(super) fn receive(
        &mut self,
        mut receive: Receive,
        deadline: Option<Instant>,
        presence: Arc<dyn Presence>,
        done: Deliver,
    ) {
        // Without a turn, what goes out to nobody would be gone.
        if receive.turn.is_none() && !presence.is_still_there() {
            return;
        }
        receive.parks = deadline.is_some();
        let asked = self.allowed(&receive);
        let received = match self.store_checked(|tx| tx.receive(&asked)) {
            Ok(received) => received,
            Err(error) => return self.answer(Err(error), done),
        };
        if let Some(displaced) = &received.displaced {
            self.turn_ended(&receive.agent, displaced);
        }
        receive.turn = received.turn;
        let was_displaced = received.displaced.map(|_| receive.agent.clone());
        if let Some(earlier) = self.lobby.pop_same(&receive) {
            let replaced = WireError::new(ErrorCode::Replaced, "the same receive came again");
            self.answer(Err(replaced), earlier.done);
        }
        match deadline {
            Some(deadline) if received.messages.is_empty() => {
                self.lobby.park(Waiter {
                    receive,
                    deadline,
                    presence,
                    done,
                });
            }
            _ => {
                self.report_delivery(&receive, &received.messages);
                self.answer(
                    Ok(Messages {
                        messages: received.messages,
                    }),
                    done,
                );
            }
        }
        // The displaced turn may have given back more than the new one took.
        if let Some(agent) = was_displaced {
            self.serve(&Recipient::Agent(agent));
        }
    }

    /// Forgets the waits of a peer that is gone, and with them its connection.
    pub fn forget(&mut self, agent: &AgentName, peer: &Arc<dyn Presence>) {
        while self.lobby.pop_of_peer(agent, peer).is_some() {}
        self.take_back(agent, Some(peer));
    }

    /// Takes back the questions whose answers nobody waits for any more.
    fn take_back(&mut self, agent: &AgentName, peer: Option<&Arc<dyn Presence>>) {
        for question in self.askers.questions_of(agent, peer) {
            let end = QuestionEnd::Cancelled { by: agent };
            if let Err(error) = self.end_question(question, &end) {
                tracing::error!(%agent, %error, "cannot take a question back");
            }
        }
    }

    /// Ends a turn that went well.
    ///
    /// # Errors
    /// The store's refusal.
    pub fn ack_turn(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
        ids: &[MessageId],
    ) -> Result<TurnClosed, WireError> {
        self.end_turn(agent, turn, |tx| tx.ack_turn(agent, turn, ids))
    }

    /// Ends a turn that did not go well.
    ///
    /// # Errors
    /// The store's refusal.
    pub fn requeue(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
        reason: RequeueReason,
    ) -> Result<TurnClosed, WireError> {
        self.end_turn(agent, turn, |tx| tx.requeue(agent, turn, reason))
    }

    /// Carries out the operator's verdict on a dead letter.
    ///
    /// # Errors
    /// The store's refusal.
    pub fn settle(&mut self, id: MessageId, verdict: Verdict) -> Result<MessageState, WireError> {
        let (state, to) = self.store(|tx| {
            let state = tx.settle(id, verdict)?;
            Ok((state, tx.receipt(id)?.map(|receipt| receipt.to)))
        })?;
        if let Some(Ok(recipient)) = to.map(|to| to.parse::<Recipient>()) {
            self.report(report::settled(self.now, &recipient, id, state));
            self.serve(&recipient);
        }
        Ok(state)
    }

    /// Ends a question and tells its asker, by mail or on the connection where it waits, and its
    /// target when it was taken back.
    ///
    /// # Errors
    /// The store's refusal.
    pub fn end_question(
        &mut self,
        id: QuestionId,
        end: &QuestionEnd<'_>,
    ) -> Result<QuestionRow, WireError> {
        let row = self.store(|tx| tx.end_question(id, end))?;
        self.spoken.agenda_changed |= row.expires_at.is_some();
        self.report(report::question_ended(self.now, &row));
        let event = json!({
            "event": "question_answered",
            "question_id": id,
            "question": row.question,
            "answer": row.answer,
        });
        if let Some(asker) = self.askers.take(id) {
            let asked = Asked {
                question_id: id,
                circle: Vec::new(),
                answer: row.answer.clone(),
            };
            self.answer(Ok(asked), asker.done);
        } else if let Ok(Recipient::Agent(asker)) = row.asker.as_str().parse() {
            self.tell(&asker, &event);
        }
        if let (QuestionEnd::Cancelled { .. } | QuestionEnd::Gone, Ok(Recipient::Agent(target))) =
            (end, row.target.parse())
        {
            self.tell(
                &target,
                &json!({"event": "question_cancelled", "question_id": id}),
            );
        }
        Ok(row)
    }

    /// Tells live views that a question was asked.
    pub fn report_question(&mut self, id: QuestionId, question: &NewQuestion) {
        let event = report::question_asked(self.now, id, question);
        self.report(event);
    }

    /// Tells live views that something happened to an agent.
    pub fn report_agent(
        &mut self,
        agent: &AgentName,
        kind: &'static str,
        data: &serde_json::Value,
    ) {
        let event = report::event(self.now, agent.as_str(), kind, data.clone());
        self.report(event);
    }

    /// Tells live views that something happened to the whole hive.
    pub fn report_hive(&mut self, kind: &'static str, data: &serde_json::Value) {
        let event = report::event(self.now, hive_wire::name::OPERATOR, kind, data.clone());
        self.report(event);
    }

    /// Tells live views that something happened to what is the operator's.
    pub fn report_operator(&mut self, kind: &'static str, data: &serde_json::Value) {
        let event = report::event(self.now, "operator", kind, data.clone());
        self.report(event);
    }

    /// Sends a helper event (C10) to an agent, if it is still there. The limit on the inbox does
    /// not hold for it: somebody waits for this news.
    pub fn tell(&mut self, agent: &AgentName, event: &serde_json::Value) {
        if self.roster.find(agent.as_str()).is_err() {
            return;
        }
        let message = NewMessage {
            bounded: false,
            ..NewMessage::plain(
                SenderLabel::system(),
                agent.clone().into(),
                event.to_string(),
            )
        };
        if let Err(error) = self.send(message) {
            tracing::error!(%agent, %error, "cannot tell an agent what happened");
        }
    }

    /// Sends the operator word of something that needs a person.
    pub fn tell_operator(&mut self, body: &str) {
        let message = NewMessage {
            bounded: false,
            ..NewMessage::plain(SenderLabel::system(), Recipient::Operator, body.to_owned())
        };
        if let Err(error) = self.send(message) {
            tracing::error!(%error, "cannot tell the operator what happened");
        }
    }

    /// Says that the next reminder, schedule or expiry may have changed.
    pub fn agenda_changed(&mut self) {
        self.spoken.agenda_changed = true;
    }

    /// Ends every wait on an agent's inbox.
    pub fn dismiss(&mut self, agent: &AgentName) {
        while let Some(waiter) = self.lobby.pop_first(agent) {
            let gone = WireError::new(ErrorCode::NotFound, format!("agent `{agent}` is gone"));
            self.answer(Err(gone), waiter.done);
        }
        self.take_back(agent, None);
    }

    /// Answers a receive whose time is up with what there is, usually nothing.
    pub(super) fn time_is_up(&mut self, waiter: Waiter) {
        let receive = Receive {
            parks: false,
            ..self.allowed(&waiter.receive)
        };
        let outcome = self.store(|tx| tx.receive(&receive));
        let outcome = outcome.map(|received| Messages {
            messages: received.messages,
        });
        self.answer(outcome, waiter.done);
    }

    /// A receive as it may be carried out: for an agent that is paused it brings nothing.
    fn allowed(&self, receive: &Receive) -> Receive {
        let is_paused = self.pauses.of(&receive.agent).is_some();
        Receive {
            max: if is_paused { 0 } else { receive.max },
            ..receive.clone()
        }
    }

    /// Takes the pauses as they are on disk now, and hands out mail that waited for the end of one.
    ///
    /// # Errors
    /// The store's refusal.
    pub(crate) fn read_pauses(&mut self) -> Result<Pauses, WireError> {
        let rows = self.store(|tx| tx.pauses())?;
        *self.pauses = Pauses::new(rows);
        let names: Vec<AgentName> = self.roster.iter().map(|one| one.name.clone()).collect();
        for name in names {
            self.serve(&Recipient::Agent(name));
        }
        Ok(self.pauses.clone())
    }

    /// Hands waiting mail to those who wait for it.
    fn serve(&mut self, recipient: &Recipient) {
        let Recipient::Agent(agent) = recipient else {
            return;
        };
        if self.pauses.of(agent).is_some() {
            return;
        }
        while let Some(waiter) = self.lobby.first(agent) {
            if !waiter.is_there() {
                self.lobby.pop_first(agent);
                continue;
            }
            let outcome = self.group.run_checked(|tx| tx.receive(&waiter.receive));
            if outcome
                .as_ref()
                .is_ok_and(|received| received.messages.is_empty())
            {
                return;
            }
            self.deliver_first(agent, outcome);
        }
    }

    /// Gives whoever has waited longest what their receive brought.
    fn deliver_first(&mut self, agent: &AgentName, outcome: Result<Received, Refusal>) {
        let Some(waiter) = self.lobby.pop_first(agent) else {
            return;
        };
        let outcome = match outcome {
            Ok(received) => {
                self.report_delivery(&waiter.receive, &received.messages);
                Ok(Messages {
                    messages: received.messages,
                })
            }
            Err(refusal) => Err(WireError::from(&refusal)),
        };
        self.spoken.deliveries.push(Box::new(move |failure| {
            (waiter.done)(failure.map_or(outcome, |failure| Err(failure.clone())));
        }));
    }

    fn end_turn(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
        end: impl FnOnce(&mut Tx<'_>) -> Result<TurnClosed, Refusal>,
    ) -> Result<TurnClosed, WireError> {
        let (ended, closed) = self.store_checked(|tx| {
            let named = if turn.is_current() {
                tx.open_turn_id(agent)?
            } else {
                Some(turn.clone())
            };
            let closed = end(tx)?;
            let is_news = matches!(closed.result, TurnResult::Acked | TurnResult::Requeued);
            Ok((named.filter(|_| is_news), closed))
        })?;
        if let Some(ended) = ended {
            self.report(report::turn_ended(self.now, agent, &ended, &closed));
            self.turn_ended(agent, &ended);
            if closed.requeued > 0 {
                self.serve(&Recipient::Agent(agent.clone()));
            }
        }
        Ok(closed)
    }

    fn report_delivery(&mut self, receive: &Receive, messages: &[Message]) {
        if !messages.is_empty() {
            self.report(report::delivered(self.now, receive, messages));
        }
    }

    /// Ends the waits of a turn that ended.
    fn turn_ended(&mut self, agent: &AgentName, turn: &TurnId) {
        while let Some(waiter) = self.lobby.pop_of_turn(agent, turn) {
            let ended = WireError::new(ErrorCode::TurnEnded, format!("turn `{turn}` has ended"));
            self.answer(Err(ended), waiter.done);
        }
    }
}
