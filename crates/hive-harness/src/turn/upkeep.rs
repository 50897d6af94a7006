//! The care for a conversation: checkpoint turns, compaction, and beginning anew (T20–T23).
//!
//! Whatever happens here, the messages of the turn before are settled already, or are still held by
//! their own turn: upkeep never takes mail and never fails a turn that succeeded.

use hive_wire::{TurnId, report::TurnState};

use super::{Run, why};
use crate::{
    compaction::Remedy,
    engine::{Purpose, SessionChoice, outcome::TurnOutcome},
    prompt::{
        COMPACT,
        brief::Occasion,
        checkpoint::{Reason, checkpoint_prompt},
    },
    serve::TurnLoop,
    surface::{HostChannel, Surface},
};

/// What came of a compaction.
#[derive(Debug)]
pub(crate) enum Compaction {
    /// The conversation is compacted.
    Done,
    /// It cannot be compacted.
    Failed(String),
    /// It was put off by something that concerns the next turn as well.
    Deferred(Box<Run>),
}

impl<S: Surface + HostChannel> TurnLoop<'_, S> {
    /// Lets the agent write its notes. Mail is closed meanwhile: the tools for it are not allowed.
    pub(crate) async fn checkpoint(&mut self, reason: Reason, turn: &TurnId) -> Run {
        let prompt = checkpoint_prompt(reason);
        let run = self.run_upkeep(Purpose::Checkpoint, prompt, turn).await;
        if let Some(why) = why(&run.outcome, run.stopped) {
            self.bus
                .note(&format!("the checkpoint turn did not end well: {why}"));
        }
        run
    }

    /// Compacts the conversation.
    pub(crate) async fn compact(&mut self, turn: &TurnId) -> Compaction {
        let before = self.bus.state().turn_state;
        self.bus.set_turn_state(TurnState::Compacting);
        let run = self
            .run_upkeep(Purpose::Compact, COMPACT.to_owned(), turn)
            .await;
        self.bus.set_turn_state(before);
        if run.outcome == TurnOutcome::Compacted {
            return Compaction::Done;
        }
        if run.is_broken_off() {
            return Compaction::Deferred(Box::new(run));
        }
        let why = why(&run.outcome, run.stopped).unwrap_or_else(|| run.word().to_owned());
        Compaction::Failed(format!("the conversation cannot be compacted: {why}"))
    }

    /// A run on the conversation itself; like any other it is tried once more when it could not
    /// authenticate (T7).
    async fn run_upkeep(&mut self, purpose: Purpose, prompt: String, turn: &TurnId) -> Run {
        let session = SessionChoice::Continue;
        let run = self.run(purpose, prompt.clone(), session, turn, &[]).await;
        if !matches!(run.outcome, TurnOutcome::AuthFailed { .. }) || self.must_end() {
            return run;
        }
        self.run(purpose, prompt, session, turn, &[]).await
    }

    /// After a good turn: looks whether the conversation has grown too large (T21).
    pub(crate) async fn care(&mut self, turn: &TurnId) {
        let tokens = self.conversation.context_tokens;
        let mark = self.environment.watermarks.compact;
        let is_over = mark.is_reached(tokens, self.window());
        let remedy = self.conversation.breaker.after_turn(is_over);
        if self.orders.is_stopping() {
            return;
        }
        match remedy {
            None => {}
            Some(Remedy::Compact) => {
                self.bus.note(&format!(
                    "the context holds {tokens} tokens: notes, then compaction"
                ));
                self.orders.turn_begins();
                self.compact_with_notes(turn).await;
                self.orders.turn_ends();
                self.bus.set_turn_state(TurnState::Idle);
            }
            Some(Remedy::Rotate) => {
                self.bus
                    .note("compaction did not help: the next turn begins a new conversation");
                self.conversation.breaker.tried();
                self.conversation.fresh = Some(Occasion::Overflow);
            }
            Some(Remedy::Nothing) => {
                self.bus.note(&format!(
                    "the context holds {tokens} tokens even in a new conversation: no more \
                     compaction until it shrinks; see HIVE_COMPACT_WATERMARK_TOKENS"
                ));
            }
        }
    }

    async fn compact_with_notes(&mut self, turn: &TurnId) {
        self.bus.set_turn_state(TurnState::Thinking);
        let notes = self.checkpoint(Reason::Full, turn).await;
        if self.must_end() {
            return;
        }
        if notes.is_broken_off() {
            self.put_off(&notes.outcome);
            return;
        }
        match self.compact(turn).await {
            Compaction::Done => self.conversation.breaker.tried(),
            Compaction::Failed(why) => {
                self.bus
                    .note(&format!("{why}: the next turn begins a new conversation"));
                self.conversation.breaker.tried();
                self.conversation.fresh = Some(Occasion::Overflow);
            }
            Compaction::Deferred(run) => {
                self.bus.note("the compaction is put off");
                self.put_off(&run.outcome);
            }
        }
    }

    /// Carries out a compaction that the operator asked for (T23), and answers everybody who did.
    pub(crate) async fn forced_compaction(&mut self) {
        let asked = self.orders.take_compactions();
        if asked.is_empty() {
            return;
        }
        let turn = self.turns.next();
        self.orders.turn_begins();
        let result = match self.compact(&turn).await {
            Compaction::Done => Ok("compacted".to_owned()),
            Compaction::Failed(why) => Err(why),
            Compaction::Deferred(run) => {
                let why = why(&run.outcome, run.stopped).unwrap_or_default();
                self.put_off(&run.outcome);
                Err(format!("not compacted: {why}"))
            }
        };
        self.orders.turn_ends();
        self.bus.set_turn_state(TurnState::Idle);
        for request in asked {
            self.answers.answer(request, result.clone());
        }
    }
}
