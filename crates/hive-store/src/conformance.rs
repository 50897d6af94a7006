//! The promises of [`Mail`], checked against any implementation.
//!
//! An implementation joins by a [`Subject`] and a [`Factory`]; [`PROMISES`] is the suite, one
//! function per promise. [`Model`] is the reference: the same semantics in memory, written for
//! reading. It passes the suite, and property tests compare other implementations with it step by
//! step.

mod endings;
mod groups;
mod model;
mod receiving;
mod script;
mod sending;

use hive_wire::{
    AgentName, MessageId, Recipient, ReqId, Timestamp, TurnId,
    agent::{InboxStatus, MessageState, Receipt, RequeueReason, Sent, TurnClosed},
};

pub use model::Model;
pub use script::Script;

use crate::{Mail, NewMessage, Receive, Received, Refusal, mail::Verdict};

/// The limits that a subject is to be made with.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The most durable messages that wait in one inbox.
    pub inbox_depth: u32,
    /// After so many counted failures a message is a dead letter.
    pub deliveries_before_dead: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            inbox_depth: 1_000,
            deliveries_before_dead: 3,
        }
    }
}

/// Makes subjects.
pub trait Factory {
    /// A subject that holds nothing.
    fn fresh(&self, limits: Limits) -> Box<dyn Subject>;
}

/// One store under test.
pub trait Subject {
    /// Runs the operations as one group, commits it, and gives the outcome of each.
    fn group(&mut self, now: Timestamp, operations: &[Op]) -> Vec<Outcome>;

    /// Stops in good order and starts again.
    fn restart(&mut self);

    /// Is killed and started again.
    fn crash(&mut self);
}

/// One operation, as data.
#[derive(Debug, Clone)]
pub enum Op {
    /// [`Mail::send`].
    Send(NewMessage),
    /// [`Mail::receive`].
    Receive(Receive),
    /// [`Mail::confirm`].
    Confirm(AgentName, TurnId, ReqId),
    /// [`Mail::ack_turn`].
    Ack(AgentName, TurnId, Vec<MessageId>),
    /// [`Mail::requeue`].
    Requeue(AgentName, TurnId, RequeueReason),
    /// [`Mail::settle`].
    Settle(MessageId, Verdict),
    /// [`Mail::receipt`].
    Receipt(MessageId),
    /// [`Mail::inbox`].
    Inbox(Recipient),
    /// Several as one operation: the first refusal refuses all of them.
    All(Vec<Self>),
}

impl Op {
    /// Carries the operation out.
    ///
    /// # Errors
    /// The refusal.
    pub fn apply(&self, mail: &mut dyn Mail) -> Result<Outcome, Refusal> {
        Ok(match self {
            Self::Send(message) => Outcome::Sent(mail.send(message.clone())?),
            Self::Receive(receive) => Outcome::Received(mail.receive(receive)?),
            Self::Confirm(agent, turn, req) => Outcome::Confirmed(mail.confirm(agent, turn, req)?),
            Self::Ack(agent, turn, ids) => Outcome::Closed(mail.ack_turn(agent, turn, ids)?),
            Self::Requeue(agent, turn, reason) => {
                Outcome::Closed(mail.requeue(agent, turn, *reason)?)
            }
            Self::Settle(id, verdict) => Outcome::Settled(mail.settle(*id, *verdict)?),
            Self::Receipt(id) => Outcome::Receipt(mail.receipt(*id)?),
            Self::Inbox(recipient) => Outcome::Inbox(mail.inbox(recipient)?),
            Self::All(operations) => Outcome::All(
                operations
                    .iter()
                    .map(|operation| operation.apply(mail))
                    .collect::<Result<_, _>>()?,
            ),
        })
    }
}

/// What an operation led to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Of [`Op::Send`].
    Sent(Sent),
    /// Of [`Op::Receive`].
    Received(Received),
    /// Of [`Op::Confirm`].
    Confirmed(u32),
    /// Of [`Op::Ack`] and [`Op::Requeue`].
    Closed(TurnClosed),
    /// Of [`Op::Settle`].
    Settled(MessageState),
    /// Of [`Op::Receipt`].
    Receipt(Option<Receipt>),
    /// Of [`Op::Inbox`].
    Inbox(InboxStatus),
    /// Of [`Op::All`].
    All(Vec<Self>),
    /// It was refused.
    Refused(Why),
}

impl Outcome {
    /// The outcome of an operation that may have been refused.
    pub fn of(result: Result<Self, Refusal>) -> Self {
        result.unwrap_or_else(|refusal| Self::Refused(Why::from(&refusal)))
    }
}

/// A refusal without the ids in it, which differ between implementations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// [`Refusal::InboxFull`].
    InboxFull,
    /// [`Refusal::NoOpenTurn`].
    NoOpenTurn,
    /// [`Refusal::TurnEnded`].
    TurnEnded(String),
    /// [`Refusal::NotFound`].
    NotFound,
    /// [`Refusal::NotYourThread`].
    NotYourThread,
    /// [`Refusal::NotDead`].
    NotDead(MessageState),
    /// Any other, in words.
    Other(String),
}

impl From<&Refusal> for Why {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::InboxFull { .. } => Self::InboxFull,
            Refusal::NoOpenTurn => Self::NoOpenTurn,
            Refusal::TurnEnded(turn) => Self::TurnEnded(turn.clone()),
            Refusal::NotFound { .. } => Self::NotFound,
            Refusal::NotYourThread(_) => Self::NotYourThread,
            Refusal::NotDead { state, .. } => Self::NotDead(*state),
            other => Self::Other(other.to_string()),
        }
    }
}

macro_rules! promises {
    ($($module:ident :: $promise:ident),+ $(,)?) => {
        [$((stringify!($promise), $module::$promise)),+]
    };
}

/// A promise: its name, and the function that panics when it is broken.
pub type Promise = (&'static str, fn(&mut Script));

/// Every promise. A function that is missing here is dead code, which the compiler reports.
pub const PROMISES: &[Promise] = &promises![
    sending::c3_a_sent_message_survives_a_crash,
    sending::c3_ids_ascend_and_are_never_given_twice,
    sending::c3_order_is_kept_per_sender_and_recipient,
    sending::c3_a_key_stands_for_one_message_for_a_day,
    sending::c3_a_key_belongs_to_its_sender,
    sending::c3_a_reply_needs_a_message_of_its_sender,
    sending::c15_a_full_inbox_refuses_bounded_messages_only,
    sending::m16_a_transient_message_comes_once_and_first,
    sending::m16_a_transient_message_is_lost_with_the_process,
    sending::m16_transient_messages_are_bounded,
    receiving::m3_a_receive_brings_the_oldest_up_to_max,
    receiving::m3_a_batch_fits_into_a_line,
    receiving::m3_a_batch_of_transients_fits_into_a_line,
    receiving::m3_without_a_turn_messages_are_acked_at_once,
    receiving::c3_a_lease_survives_a_restart_and_a_crash,
    receiving::c3_current_joins_the_open_turn_or_is_refused,
    receiving::c3_the_same_req_brings_the_same_batch,
    receiving::c3_a_req_that_brought_nothing_may_bring_something_later,
    receiving::c3_a_new_turn_displaces_the_open_one,
    receiving::c3_an_ended_turn_is_not_opened_again,
    receiving::c3_turns_of_different_agents_are_apart,
    receiving::c3_a_parked_receive_opens_its_turn,
    receiving::c3_a_parked_turn_that_was_displaced_has_ended,
    endings::c3_an_ack_covers_listed_and_confirmed_messages_only,
    endings::c3_foreign_ids_in_an_ack_mean_nothing,
    endings::c3_confirm_says_how_many_and_may_be_repeated,
    endings::c3_a_repeated_end_tells_how_the_turn_ended,
    endings::c3_a_late_end_survives_a_crash,
    endings::c3_requeued_messages_keep_their_place,
    endings::c3_only_counting_reasons_lead_to_a_dead_letter,
    endings::c3_displacement_counts_as_a_failure,
    endings::c3_what_an_ack_gives_back_is_not_counted,
    endings::c3_a_dead_letter_waits_for_its_verdict,
    endings::c3_a_receipt_tells_what_became_of_a_message,
    groups::a_refused_operation_leaves_its_neighbours_alone,
    groups::an_operation_that_wrote_and_was_refused_leaves_no_trace,
    groups::a_refused_operation_gives_transient_messages_back,
    groups::a_refused_operation_restores_a_parked_turn,
    groups::a_clock_that_jumps_changes_no_order,
    groups::the_depth_is_right_whoever_asks_first,
];

/// Checks every promise.
///
/// # Panics
/// When a promise is broken; its name is on stderr then.
pub fn check(factory: &dyn Factory) {
    struct OnPanic(&'static str);
    impl Drop for OnPanic {
        #[expect(clippy::print_stderr, reason = "a failed test speaks there")]
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("the broken promise: {}", self.0);
            }
        }
    }
    for (name, promise) in PROMISES {
        let _on_panic = OnPanic(name);
        promise(&mut Script::new(factory));
    }
}
