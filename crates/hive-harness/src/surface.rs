//! What the loop needs of the hive: mail in, turns ended, a word to the parent (T15), and the
//! channel for reports and control.
//!
//! The loop is written over these traits, in plain values of the wire, so that its tests run it on
//! a hive that they hold in their hand. [`socket`] is the real one.

pub mod socket;

use hive_wire::{
    MessageId, ReqId, SendKey, TurnId, WireError,
    agent::{Message, RequeueReason, TurnClosed},
    control::{Control, ControlRequest},
    report::{PostEvents, PostState, PostTurnCounts},
};
use thiserror::Error;

/// Why a call to the hive brought nothing: one variant per different reaction.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SurfaceError {
    /// The turn has ended at the host: go on with a new one.
    #[error("the turn has ended at the host")]
    TurnOver,
    /// The host did not answer in the time that this call is worth.
    #[error("the host is away")]
    Away,
    /// The host refused, and would refuse again.
    #[error(transparent)]
    Refused(#[from] WireError),
}

/// The mail of one agent.
///
/// Calls that change something are done once however often they have to be repeated, and go on
/// across restarts of the host until they are answered; who has no more time drops them.
pub trait Surface {
    /// Waits for one message and leases it to `turn`, which is opened if it is new. `None` when
    /// `wait_seconds` ran out; the turn is open then, and holds nothing. The same `req` brings the
    /// same message. Waits for the host as long as it is away.
    fn recv_next(
        &self,
        turn: &TurnId,
        req: &ReqId,
        wait_seconds: u32,
    ) -> impl Future<Output = Result<Option<Message>, SurfaceError>>;

    /// How many messages wait. Gives up soon: it is a hint.
    fn inbox_unread(&self) -> impl Future<Output = Result<u32, SurfaceError>>;

    /// Ends a turn that went well: `ids` and what the model took with `recv` are dealt with. Waits
    /// for the host as long as it is away.
    fn ack_turn(
        &self,
        turn: &TurnId,
        ids: &[MessageId],
    ) -> impl Future<Output = Result<TurnClosed, SurfaceError>>;

    /// Ends a turn that did not go well: what it holds goes back. Waits for the host as long as it
    /// is away.
    fn requeue_inflight(
        &self,
        turn: &TurnId,
        reason: RequeueReason,
    ) -> impl Future<Output = Result<TurnClosed, SurfaceError>>;

    /// Reports the counts of one engine run (T12). One try.
    fn post_turn_counts(
        &self,
        counts: &PostTurnCounts,
    ) -> impl Future<Output = Result<(), SurfaceError>>;

    /// Writes to whoever is above the agent; the same `key` is one message. Gives up after a while.
    fn send_to_parent(
        &self,
        body: &str,
        key: &SendKey,
    ) -> impl Future<Output = Result<MessageId, SurfaceError>>;

    /// Puts a message into the agent's own inbox under a label. One try.
    fn wake_external(
        &self,
        from: &str,
        body: &str,
    ) -> impl Future<Output = Result<MessageId, SurfaceError>>;
}

/// The other way of talking to the host: reports to it, requests from it. Each call is one try; the
/// callers repeat, because what they would repeat may be out of date by then.
pub trait HostChannel {
    /// Posts events and says which number the host expects next.
    fn post_events(&self, events: &PostEvents) -> impl Future<Output = Result<u64, SurfaceError>>;

    /// Posts the state.
    fn post_state(&self, state: &PostState) -> impl Future<Output = Result<(), SurfaceError>>;

    /// Carries results back and waits for requests.
    fn control(
        &self,
        poll: &Control,
    ) -> impl Future<Output = Result<Vec<ControlRequest>, SurfaceError>>;
}
