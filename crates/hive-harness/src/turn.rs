//! One turn: from a message to its end, whatever happens in between.
//!
//! A turn may need several runs of the engine: a second one after an authentication error, a
//! compaction and another try when the conversation was too long, a new conversation when that did
//! not help. Their number is bounded. How a turn ends at the host follows from its outcome by one
//! table, [`ending`].

mod run;
mod upkeep;

use std::time::Duration;

use hive_wire::{
    MessageId, TurnId,
    agent::{Message, RequeueReason, TurnClosed, TurnResult},
    report::TurnState,
};
use tokio::time::Instant;

use crate::{
    bus::{Timing, TurnEnd, TurnStart},
    engine::{Exit, Purpose, SessionChoice, Stopped, outcome::TurnOutcome},
    prompt::{
        Nonce,
        brief::{Occasion, brief},
        checkpoint::Reason,
        wake::{After, Circumstances, Letter, wake_prompt},
    },
    records::TurnRecord,
    serve::{LAST_WORD, TurnLoop},
    surface::{HostChannel, Surface, SurfaceError},
};
pub(crate) use run::Run;
pub(crate) use upkeep::Compaction;

/// What a turn is about.
#[derive(Debug, Clone)]
pub(crate) struct Mail {
    /// The turn that holds it.
    pub(crate) turn: TurnId,
    /// The message; none when the agent asked itself to go on.
    pub(crate) message: Option<Message>,
    /// Messages of the same turn whose run the operator interrupted.
    pub(crate) carried: Vec<MessageId>,
    /// When it arrived.
    pub(crate) received: Instant,
}

impl Mail {
    /// The messages that the turn acks by name when it ends well.
    fn ids(&self) -> Vec<MessageId> {
        let own = self.message.as_ref().map(|message| message.id);
        self.carried.iter().copied().chain(own).collect()
    }

    fn purpose(&self) -> Purpose {
        match self.message {
            Some(_) => Purpose::Mail,
            None => Purpose::Continue,
        }
    }

    fn letter(&self) -> Letter<'_> {
        match &self.message {
            Some(message) => Letter {
                id: Some(message.id),
                from: message.from.as_str(),
                in_reply_to: message.in_reply_to,
                sent_at: Some(message.sent_at),
                delivery: message.delivery,
                body: &message.body,
            },
            None => Letter {
                id: None,
                from: hive_wire::name::SELF,
                in_reply_to: None,
                sent_at: None,
                delivery: 1,
                body: "continue",
            },
        }
    }
}

/// How a turn ends at the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Its messages are dealt with.
    Ack,
    /// They go back.
    Requeue(RequeueReason),
    /// The operator stopped it: the turn stays open, and the next message joins it.
    CarryOver,
}

/// What an ended turn means for its messages (T11).
pub(crate) fn ending(
    outcome: &TurnOutcome,
    stopped: Option<Stopped>,
    exit: Option<Exit>,
) -> Ending {
    use RequeueReason as Reason;
    match (outcome, stopped) {
        (TurnOutcome::Ok | TurnOutcome::Compacted, _) => Ending::Ack,
        (TurnOutcome::RateLimited { .. }, _) => Ending::Requeue(Reason::RateLimited),
        (TurnOutcome::AuthFailed { .. }, _) => Ending::Requeue(Reason::Auth),
        (TurnOutcome::Unavailable { .. }, _) => Ending::Requeue(Reason::Unavailable),
        (TurnOutcome::Interrupted, Some(Stopped::Interrupted)) => Ending::CarryOver,
        (TurnOutcome::Interrupted, Some(Stopped::ShutDown)) => Ending::Requeue(Reason::Shutdown),
        // Somebody outside ended the engine: as likely the kernel's out-of-memory killer as a
        // person, so it counts.
        (TurnOutcome::Interrupted, _) => Ending::Requeue(Reason::Crash),
        (TurnOutcome::Failed { .. } | TurnOutcome::TooLong, _) => match exit {
            Some(Exit::Signal(_)) if stopped.is_none() => Ending::Requeue(Reason::Crash),
            _ => Ending::Requeue(Reason::Failed),
        },
    }
}

/// What happened in a turn, in a sentence; nothing when it went well.
pub(crate) fn why(outcome: &TurnOutcome, stopped: Option<Stopped>) -> Option<String> {
    Some(match outcome {
        TurnOutcome::Ok | TurnOutcome::Compacted => return None,
        TurnOutcome::TooLong => "the message does not fit into the model's context".to_owned(),
        TurnOutcome::RateLimited {
            resets_at: Some(at),
        } => {
            format!("the model's service refuses for now; the limit resets at {at}")
        }
        TurnOutcome::RateLimited { resets_at: None } => {
            "the model's service refuses for now".to_owned()
        }
        TurnOutcome::AuthFailed { why }
        | TurnOutcome::Unavailable { why }
        | TurnOutcome::Failed { why } => why.clone(),
        TurnOutcome::Interrupted => match stopped {
            Some(Stopped::Interrupted) => "interrupted by the operator".to_owned(),
            Some(Stopped::ShutDown) => "the harness is stopping".to_owned(),
            _ => "the engine was ended from outside".to_owned(),
        },
    })
}

/// Why a turn begins a new conversation.
#[derive(Debug, Clone, Copy)]
enum Fresh {
    /// The operator wishes it.
    Wished,
    /// The old one cannot or should not go on.
    Needed(Occasion),
}

impl<S: Surface + HostChannel> TurnLoop<'_, S> {
    /// Sees one turn through, from its message to the confirmed end.
    pub(crate) async fn turn(&mut self, mail: Mail) {
        self.orders.turn_begins();
        // The hint is worth one short question, and no turn waits for it when the host is away.
        let unread = self.surface.inbox_unread().await.unwrap_or(0);
        let letter = mail.letter();
        let ids = mail.ids();
        self.bus.set_turn_state(TurnState::Thinking);
        self.bus.turn_start(&TurnStart {
            turn: &mail.turn,
            from: letter.from,
            body: letter.body,
            unread,
            message_ids: &ids,
            delivery: letter.delivery,
        });
        let run = match self.freshen(&mail).await {
            Ok(()) => self.drive(&mail, &ids, unread).await,
            Err(run) => run,
        };
        let ending = ending(&run.outcome, run.stopped, run.exit);
        let is_settled = self.settle(&mail, &ids, ending).await;
        self.orders.turn_ends();
        self.after(mail, ids, ending, run, is_settled).await;
    }

    /// Begins a new conversation when the old one is long and cold (T22): notes first, then the
    /// real turn without it.
    async fn freshen(&mut self, mail: &Mail) -> Result<(), Run> {
        let window = self.window();
        let conversation = &self.conversation;
        let idle = conversation
            .last_turn
            .map_or(Duration::ZERO, |at| at.elapsed());
        let marks = &self.environment.watermarks;
        if !marks.wants_reset(conversation.context_tokens, window, idle) {
            return Ok(());
        }
        self.bus.note(&format!(
            "the conversation is large ({} tokens) and cold: notes, then a new one",
            conversation.context_tokens
        ));
        let run = self.checkpoint(Reason::Cold, &mail.turn).await;
        if run.is_broken_off() {
            return Err(run);
        }
        self.conversation.fresh = Some(Occasion::Cold);
        Ok(())
    }

    /// Runs the engine for a turn, as often as it takes.
    async fn drive(&mut self, mail: &Mail, ids: &[MessageId], unread: u32) -> Run {
        let fresh = self.take_fresh();
        let (mut session, mut after) = match fresh {
            None => (SessionChoice::Continue, After::Nothing),
            // The operator wants a clean slate: no brief.
            Some(Fresh::Wished) => (SessionChoice::Fresh, After::Nothing),
            Some(Fresh::Needed(occasion)) => (SessionChoice::Fresh, self.new_session(occasion)),
        };
        let (mut may_retry_auth, mut may_compact, mut may_rotate) = (true, true, true);
        let mut is_again = false;
        loop {
            let circumstances = Circumstances {
                unread,
                interrupted: mail.carried.clone(),
                is_again,
                after: after.clone(),
            };
            let prompt = match Nonce::fresh() {
                Ok(nonce) => wake_prompt(&mail.letter(), &circumstances, &nonce),
                Err(error) => return Run::not_begun(format!("no randomness: {error}")),
            };
            let mut run = self
                .run(mail.purpose(), prompt, session, &mail.turn, ids)
                .await;
            if !is_again && run.exit.is_none() {
                self.keep_fresh(fresh);
            }
            if self.must_end() {
                return run;
            }
            is_again = true;
            match &run.outcome {
                TurnOutcome::AuthFailed { why } if may_retry_auth => {
                    may_retry_auth = false;
                    self.bus
                        .note(&format!("authentication failed, one more try: {why}"));
                }
                TurnOutcome::TooLong if may_compact && session == SessionChoice::Continue => {
                    may_compact = false;
                    match self.compact(&mail.turn).await {
                        Compaction::Done => after = After::Compaction,
                        Compaction::Deferred(other) => return *other,
                        Compaction::Failed(why) => {
                            may_rotate = false;
                            self.bus.note(&format!("{why}: a new conversation begins"));
                            (session, after) = self.rotated();
                        }
                    }
                    if self.must_end() {
                        return self.ended_early();
                    }
                }
                TurnOutcome::TooLong if may_rotate => {
                    may_rotate = false;
                    self.bus.note("still too long: a new conversation begins");
                    (session, after) = self.rotated();
                }
                TurnOutcome::Ok if after == After::Compaction => {
                    run.outcome = TurnOutcome::Compacted;
                    return run;
                }
                _ => return run,
            }
        }
    }

    /// Why the turn begins a new conversation, if it does. That holds for this turn alone, however
    /// many runs it takes (T19).
    fn take_fresh(&mut self) -> Option<Fresh> {
        let needed = self.conversation.fresh.take();
        if !self.orders.take_new_session() {
            return needed.map(Fresh::Needed);
        }
        self.conversation.context_tokens = 0;
        self.bus.note("a new session, as the operator wished");
        Some(Fresh::Wished)
    }

    /// No engine was there to begin it: the next turn does.
    fn keep_fresh(&mut self, fresh: Option<Fresh>) {
        match fresh {
            None => {}
            Some(Fresh::Wished) => self.orders.new_session(),
            Some(Fresh::Needed(occasion)) => self.conversation.fresh = Some(occasion),
        }
    }

    fn rotated(&mut self) -> (SessionChoice, After) {
        let after = self.new_session(Occasion::Overflow);
        (SessionChoice::Fresh, after)
    }

    fn new_session(&mut self, occasion: Occasion) -> After {
        self.conversation.context_tokens = 0;
        match Nonce::fresh() {
            Ok(nonce) => After::NewSession {
                brief: brief(occasion, &self.records.recent(), &nonce),
            },
            Err(_) => After::Nothing,
        }
    }

    /// Ends the turn at the host, and says whether the host took it so.
    async fn settle(&mut self, mail: &Mail, ids: &[MessageId], ending: Ending) -> bool {
        let closing = async {
            match ending {
                Ending::Ack => Some(self.surface.ack_turn(&mail.turn, ids).await),
                Ending::Requeue(reason) => {
                    Some(self.surface.requeue_inflight(&mail.turn, reason).await)
                }
                Ending::CarryOver => None,
            }
        };
        // A host that is away is waited for: the turn is over, and saying so is all that is left.
        // Only a harness that stops gives up, and then the message comes again, marked as a repeat.
        // Time for a word there is even then: a turn that was done would be done again.
        let out_of_time = async {
            let grace = self.environment.pace.stop_grace;
            self.orders.out_of_grace(grace).await;
            tokio::time::sleep(LAST_WORD).await;
        };
        let closed = tokio::select! {
            closed = closing => closed,
            () = out_of_time => {
                self.bus.note("stopping without a word from the host: the message comes again");
                return false;
            }
        };
        match closed {
            None => true,
            Some(Ok(TurnClosed {
                result: result @ (TurnResult::Superseded | TurnResult::Unknown),
                ..
            })) => {
                self.bus.note(&format!(
                    "the host has ended this turn another way ({result:?}): its messages come again"
                ));
                false
            }
            Some(Ok(_)) => true,
            Some(Err(SurfaceError::TurnOver | SurfaceError::Away)) => false,
            Some(Err(SurfaceError::Refused(error))) => {
                self.bus
                    .note(&format!("the host refused the end of the turn: {error}"));
                false
            }
        }
    }

    /// What follows from a turn that is over: its last event, the record, the next wait, and the
    /// care for a conversation that has grown large.
    async fn after(
        &mut self,
        mail: Mail,
        ids: Vec<MessageId>,
        ending: Ending,
        run: Run,
        is_settled: bool,
    ) {
        let note = why(&run.outcome, run.stopped);
        let is_good = ending == Ending::Ack && is_settled;
        self.bus.turn_end(&TurnEnd {
            turn: &mail.turn,
            ok: is_good,
            outcome: run.word(),
            note: note.as_deref(),
            timing: timing(&mail, &run),
        });
        self.bus.set_turn_state(TurnState::Idle);
        self.conversation.last_turn = Some(Instant::now());
        self.remember(&mail, &run);
        self.consume_continue(&mail, &run);
        if ending == Ending::CarryOver {
            self.interrupted = Some((mail.turn, ids));
            return;
        }
        if let Ending::Requeue(RequeueReason::Failed | RequeueReason::Crash) = ending {
            self.complain(&mail, note.as_deref().unwrap_or_default())
                .await;
        }
        if run.is_good() {
            self.care(&mail.turn).await;
        }
        self.wait_after(&run.outcome).await;
    }

    fn remember(&mut self, mail: &Mail, run: &Run) {
        let letter = mail.letter();
        let record = TurnRecord {
            started_at: run.started_at,
            message: letter.id,
            from: letter.from.to_owned(),
            body: letter.body.to_owned(),
            outcome: run.word().to_owned(),
            last_words: run.last_words.clone(),
        };
        if let Err(error) = self.records.push(record) {
            tracing::warn!(%error, "the record of this turn is not on disk");
        }
    }

    /// Tells the parent of a failed turn (T11), but not without end.
    async fn complain(&mut self, mail: &Mail, why: &str) {
        let Some(suppressed) = self.complaints.take() else {
            self.bus
                .note("the parent is not told of this failure: too many of late");
            return;
        };
        let letter = mail.letter();
        let about = match letter.id {
            Some(id) => format!(
                "message {id} from {} (delivery {})",
                letter.from, letter.delivery
            ),
            None => "a turn of its own".to_owned(),
        };
        let label = &self.environment.identity.label;
        let mut body = format!("[system] A turn of {label} failed, about {about}: {why}");
        if suppressed > 0 {
            body.push_str(&format!(" ({suppressed} more failures were not reported.)"));
        }
        let key = format!("failed-{}", mail.turn);
        let Ok(key) = key.parse() else { return };
        if let Err(error) = self.surface.send_to_parent(&body, &key).await {
            self.bus.note(&format!(
                "the parent cannot be told of this failure: {error}"
            ));
        }
    }
}

fn timing(mail: &Mail, run: &Run) -> Timing {
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let now = Instant::now();
    let spawned = run.begun + run.spawned;
    Timing {
        receive_to_spawn_us: micros(spawned.saturating_duration_since(mail.received)),
        exit_to_settled_us: micros(now.saturating_duration_since(run.ended)),
        engine_us: micros(run.ended.saturating_duration_since(spawned)),
        total_us: micros(now.saturating_duration_since(mail.received)),
        spawned_at_us: unix_micros().saturating_sub(micros(now.saturating_duration_since(spawned))),
    }
}

/// The time of day in microseconds since 1970: finer than a [`hive_wire::Timestamp`].
fn unix_micros() -> u64 {
    let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
    since.map_or(0, |since| {
        u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[rustfmt::skip]
    fn t11_each_outcome_has_one_ending() {
        use RequeueReason as Reason;
        let said = || "x".to_owned();
        let limited = TurnOutcome::RateLimited { resets_at: None };
        let auth = TurnOutcome::AuthFailed { why: said() };
        let outage = TurnOutcome::Unavailable { why: said() };
        let failed = TurnOutcome::Failed { why: said() };
        let (operator, shutdown) = (Some(Stopped::Interrupted), Some(Stopped::ShutDown));
        let cases = [
            (&TurnOutcome::Ok, None, Some(Exit::Code(0)), Ending::Ack),
            (&TurnOutcome::Ok, Some(Stopped::Lingered), Some(Exit::Signal(9)), Ending::Ack),
            (&TurnOutcome::Ok, operator, Some(Exit::Code(0)), Ending::Ack),
            (&TurnOutcome::Compacted, None, None, Ending::Ack),
            (&limited, None, Some(Exit::Code(1)), Ending::Requeue(Reason::RateLimited)),
            (&auth, None, Some(Exit::Code(1)), Ending::Requeue(Reason::Auth)),
            (&outage, None, Some(Exit::Code(1)), Ending::Requeue(Reason::Unavailable)),
            (&TurnOutcome::Interrupted, operator, Some(Exit::Code(0)), Ending::CarryOver),
            (&TurnOutcome::Interrupted, shutdown, None, Ending::Requeue(Reason::Shutdown)),
            (&TurnOutcome::Interrupted, None, Some(Exit::Code(0)), Ending::Requeue(Reason::Crash)),
            (&failed, None, Some(Exit::Code(1)), Ending::Requeue(Reason::Failed)),
            (&failed, None, Some(Exit::Signal(9)), Ending::Requeue(Reason::Crash)),
            (&failed, Some(Stopped::Silent), Some(Exit::Signal(15)), Ending::Requeue(Reason::Failed)),
            (&TurnOutcome::TooLong, None, Some(Exit::Code(1)), Ending::Requeue(Reason::Failed)),
        ];
        for (outcome, stopped, exit, wanted) in cases {
            assert_eq!(ending(outcome, stopped, exit), wanted, "{outcome:?} {stopped:?} {exit:?}");
        }
    }

    #[test]
    fn only_what_went_well_needs_no_word() {
        assert_eq!(why(&TurnOutcome::Ok, None), None);
        let interrupted = why(&TurnOutcome::Interrupted, Some(Stopped::Interrupted));
        assert_eq!(interrupted.as_deref(), Some("interrupted by the operator"));
    }
}
