//! Faults that the reference broker can be built with, each like one that a real broker might have.

use hive_wire::{TurnId, agent::MessageState};

use super::State;

/// A fault that the broker can be built with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// Replies are given before the commit: a crash takes back the last changes.
    LateCommit,
    /// A crash forgets which messages the latest turns acked.
    ForgetsAcks,
    /// A crash forgets the latest delivery numbers.
    ForgetsDeliveries,
    /// A crash forgets all keys.
    ForgetsKeys,
    /// A crash forgets open turns and puts their messages back.
    ForgetsTurns,
    /// A requeued message goes to the end of the inbox.
    RequeuesAtEnd,
    /// A new turn gets messages while the earlier one still holds and may ack its own.
    KeepsDisplaced,
    /// A repeated receive leases more instead of returning the same batch.
    IgnoresReq,
    /// An ack covers everything that the turn holds, handed over or not.
    AcksEverything,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::LateCommit,
        Self::ForgetsAcks,
        Self::ForgetsDeliveries,
        Self::ForgetsKeys,
        Self::ForgetsTurns,
        Self::RequeuesAtEnd,
        Self::KeepsDisplaced,
        Self::IgnoresReq,
        Self::AcksEverything,
    ];
}

impl State {
    /// [`Bug::KeepsDisplaced`]: the messages become free while the turn stays open.
    pub(super) fn give_back(&mut self, agent: &str, turn: &TurnId) {
        for message in self.messages.values_mut() {
            if message.to == agent
                && message.turn.as_ref() == Some(turn)
                && message.state == MessageState::Leased
            {
                message.state = MessageState::Stored;
            }
        }
    }

    /// [`Bug::ForgetsAcks`].
    pub(super) fn forget_acks(&mut self, old: &Self) {
        for (id, message) in &mut self.messages {
            let before = old.messages.get(id).map(|m| m.state);
            if message.state == MessageState::Acked && before != Some(MessageState::Acked) {
                message.state = MessageState::Stored;
            }
        }
    }

    /// [`Bug::ForgetsTurns`].
    pub(super) fn forget_turns(&mut self) {
        for message in self.messages.values_mut() {
            if message.state == MessageState::Leased {
                message.state = MessageState::Stored;
            }
        }
        self.turns.clear();
        self.open.clear();
    }

    /// [`Bug::RequeuesAtEnd`].
    pub(super) fn move_requeued_to_end(&mut self) {
        for message in self.messages.values_mut() {
            if message.state == MessageState::Stored && message.deliveries > 0 {
                message.place = self.next + i64::from(message.deliveries) * 1_000_000;
            }
        }
    }

    /// [`Bug::ForgetsDeliveries`].
    pub(super) fn forget_deliveries(&mut self, old: &Self) {
        for (id, message) in &mut self.messages {
            message.deliveries = old.messages.get(id).map_or(0, |m| m.deliveries);
        }
    }
}
