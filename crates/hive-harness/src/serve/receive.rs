//! Taking the next message (T1, T2, T13).

use std::{fs, io, time::Duration};

use hive_wire::{
    TurnId,
    agent::{Message, RequeueReason},
};
use tokio::time::Instant;

use super::TurnLoop;
use crate::{
    engine::{Stopped, outcome::TurnOutcome},
    surface::{HostChannel, Surface, SurfaceError},
    turn::{Mail, Run},
};

/// How long one receive waits at the host.
const RECV_SECONDS: u32 = 30;
/// How long ending a turn at the host may take when the harness stops.
pub(crate) const LAST_WORD: Duration = Duration::from_secs(2);
/// The pause after a receive that the host refused.
const AFTER_REFUSAL: Duration = Duration::from_secs(2);
/// The file by which `request_next_turn` asks for another turn.
const CONTINUE: &str = "hyperhive-continue";

/// What came of one receive.
enum Received {
    Message(Box<Message>),
    Nothing,
    TurnOver,
    Refused(SurfaceError),
    Stop,
}

impl<S: Surface + HostChannel> TurnLoop<'_, S> {
    /// Waits for the next message. None when something else has to be seen to first.
    ///
    /// When the agent asked to go on, it is asked without waiting: mail that is there goes first,
    /// and otherwise the turn that this opened is the agent's own.
    pub(super) async fn receive(&mut self) -> Option<Mail> {
        let wait = if self.wants_to_go_on { 0 } else { RECV_SECONDS };
        let (mut turn, mut carried) = match self.interrupted.take() {
            Some(open) => open,
            None => (self.turns.next(), Vec::new()),
        };
        loop {
            let message = match self.receive_once(&turn, wait).await {
                Received::Message(message) => Some(*message),
                Received::Nothing if self.wants_to_go_on => None,
                Received::Nothing => continue,
                Received::TurnOver => {
                    turn = self.turns.next();
                    carried = Vec::new();
                    continue;
                }
                Received::Refused(error) => {
                    self.bus.note(&format!("cannot receive mail: {error}"));
                    self.pause(AFTER_REFUSAL).await;
                    return None;
                }
                Received::Stop => {
                    self.let_go(&turn).await;
                    return None;
                }
            };
            self.wants_to_go_on = false;
            return Some(Mail {
                turn,
                message,
                carried,
                received: Instant::now(),
            });
        }
    }

    /// One receive. What the operator asks for meanwhile is seen to at once.
    async fn receive_once(&mut self, turn: &TurnId, wait: u32) -> Received {
        let req = self.turns.next_req();
        let surface = self.surface;
        let receiving = surface.recv_next(turn, &req, wait);
        tokio::pin!(receiving);
        loop {
            // `receiving` is kept over the rounds, so that no message is lost between them.
            tokio::select! {
                received = &mut receiving => return match received {
                    Ok(Some(message)) => Received::Message(Box::new(message)),
                    Ok(None) => Received::Nothing,
                    Err(SurfaceError::TurnOver) => Received::TurnOver,
                    Err(error) => Received::Refused(error),
                },
                () = self.orders.changed() => {
                    if self.orders.is_stopping() {
                        return Received::Stop;
                    }
                    // A paused agent is handed nothing: the host sees to that.
                    self.forced_compaction().await;
                }
            }
        }
    }

    /// Gives back what a turn holds that is not to run.
    pub(super) async fn give_back(&mut self, turn: &TurnId, reason: RequeueReason) {
        let closing = self.surface.requeue_inflight(turn, reason);
        tokio::select! {
            closed = closing => if let Err(error) = closed {
                self.bus.note(&format!("cannot give a message back: {error}"));
            },
            () = self.orders.stopping().cancelled() => {}
        }
    }

    /// Ends a turn because the harness stops. A host that is away finds out by itself when the next
    /// harness opens a turn.
    pub(super) async fn let_go(&mut self, turn: &TurnId) {
        let closing = self.surface.requeue_inflight(turn, RequeueReason::Shutdown);
        if tokio::time::timeout(LAST_WORD, closing).await.is_err() {
            tracing::warn!("the host is away: the open turn is left to the next harness");
        }
    }

    /// Consumes the agent's wish for another turn (T13). Every turn takes it away; it counts unless
    /// the turn could not authenticate or was interrupted. A turn of the agent's own that was only
    /// put off is wished for still.
    pub(crate) fn consume_continue(&mut self, mail: &Mail, run: &Run) {
        let file = self.environment.places.harness.join(CONTINUE);
        let is_asked = match fs::remove_file(&file) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => {
                self.bus
                    .note(&format!("cannot remove {}: {error}", file.display()));
                false
            }
        };
        let is_put_off = mail.message.is_none()
            && matches!(
                run.outcome,
                TurnOutcome::RateLimited { .. } | TurnOutcome::Unavailable { .. }
            );
        let may_go_on = !matches!(run.outcome, TurnOutcome::AuthFailed { .. })
            && run.stopped != Some(Stopped::Interrupted);
        self.wants_to_go_on = may_go_on && (is_asked || is_put_off);
    }
}
