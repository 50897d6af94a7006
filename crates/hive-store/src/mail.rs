//! Messages, turns and leases as a trait, with the promise of each method.
//!
//! A message is *stored*, *leased* to a turn, and *acked* when that turn ended well; or it goes
//! back to its place, and after too many counted failures it is *dead* until the operator decides.
//! An agent has at most one open turn. Opening another one displaces it.

use hive_wire::{
    AgentName, MessageId, Recipient, ReqId, SendKey, SenderLabel, TurnId,
    agent::{InboxStatus, Message, MessageState, Receipt, RequeueReason, Sent, TurnClosed},
};

use crate::Refusal;

/// A message that is to be stored.
#[derive(Debug, Clone)]
pub struct NewMessage {
    /// Who sends it, as stamped by the host.
    pub from: SenderLabel,
    /// Whose inbox it goes to.
    pub to: Recipient,
    /// What is said.
    pub body: String,
    /// The message it answers.
    pub in_reply_to: Option<MessageId>,
    /// The sender's own name for it.
    pub key: Option<SendKey>,
    /// Kept in memory only: handed over at most once, lost with the process.
    pub transient: bool,
    /// Whether the limit on the inbox's depth holds for it; the host's own messages pass.
    pub bounded: bool,
}

impl NewMessage {
    /// A durable message with nothing but sender, recipient and body.
    pub fn plain(from: SenderLabel, to: Recipient, body: impl Into<String>) -> Self {
        Self {
            from,
            to,
            body: body.into(),
            in_reply_to: None,
            key: None,
            transient: false,
            bounded: true,
        }
    }
}

/// A receive on an agent's inbox.
#[derive(Debug, Clone)]
pub struct Receive {
    /// Whose inbox.
    pub agent: AgentName,
    /// The turn that is to hold the messages; without one they are acked at once.
    pub turn: Option<TurnId>,
    /// The name of this receive within the turn.
    pub req: Option<ReqId>,
    /// At most so many messages.
    pub max: u32,
    /// Whether the caller goes on waiting when there is nothing: then nothing is answered yet, and
    /// an opened turn need not be on disk yet.
    pub parks: bool,
}

/// What a receive found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Received {
    /// The messages, oldest first; transient ones before durable ones.
    pub messages: Vec<Message>,
    /// The turn that `current` or a given id stood for.
    pub turn: Option<TurnId>,
    /// The open turn that this receive displaced.
    pub displaced: Option<TurnId>,
}

/// What the operator decided about a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Back into its inbox, with its failures forgotten.
    Redeliver,
    /// Away with it; its receipt stays.
    Discard,
}

/// Messages with turn semantics. Every method is one operation: it happens as a whole or not at
/// all, and a refused one leaves no trace.
pub trait Mail {
    /// Stores a message. A key that the same sender used within a day stores nothing and returns
    /// the first message's id; the key of a transient message is not remembered. Ids of durable
    /// messages ascend in the order of sends and are never given twice.
    fn send(&mut self, message: NewMessage) -> Result<Sent, Refusal>;

    /// Hands the oldest waiting messages to a turn, or acks and returns them when no turn is given.
    ///
    /// A new turn id opens that turn; an open turn it displaces gives back what it holds, counted
    /// as a failure. The open turn's own id or `current` joins it. A `req` that already brought
    /// messages in this turn returns the same ones and leases nothing. An id whose turn has ended
    /// is refused.
    fn receive(&mut self, receive: &Receive) -> Result<Received, Refusal>;

    /// Marks the batch that `req` brought as handed over, and says how many messages it has.
    /// Repeating it, or naming a batch that is not there, changes nothing.
    fn confirm(&mut self, agent: &AgentName, turn: &TurnId, req: &ReqId) -> Result<u32, Refusal>;

    /// Ends the turn: messages in `ids` and in confirmed batches are acked, the rest goes back
    /// without being counted as failed. Repeated, it tells how the turn ended.
    fn ack_turn(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
        ids: &[MessageId],
    ) -> Result<TurnClosed, Refusal>;

    /// Ends the turn: everything it holds goes back to its place; with a reason that counts, a
    /// message that failed too often becomes a dead letter. Repeated, it tells how the turn ended.
    fn requeue(
        &mut self,
        agent: &AgentName,
        turn: &TurnId,
        reason: RequeueReason,
    ) -> Result<TurnClosed, Refusal>;

    /// Carries out the operator's verdict on a dead letter and says where it stands.
    fn settle(&mut self, id: MessageId, verdict: Verdict) -> Result<MessageState, Refusal>;

    /// What became of a durable message; none when it never was or has passed its retention.
    fn receipt(&mut self, id: MessageId) -> Result<Option<Receipt>, Refusal>;

    /// How many messages wait for the recipient, and what its open turn holds.
    fn inbox(&mut self, recipient: &Recipient) -> Result<InboxStatus, Refusal>;
}
