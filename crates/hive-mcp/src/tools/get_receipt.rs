use hive_wire::{
    MessageId,
    agent::{GetReceipt as Get, MessageState},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    hyperhive::Hyperhive,
    toolbox::{Call, Checked, Effect, Failure, Tool},
};

/// Says what became of a message.
pub struct GetReceipt;

/// Which message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The id that send returned, or that of a message to you.
    message_id: i64,
}

/// What became of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// The message.
    message_id: i64,
    /// Who sent it.
    from: String,
    /// Who it is for.
    to: String,
    /// Where it stands.
    state: State,
    /// How often it was handed to its recipient.
    deliveries: u32,
    /// When it was sent.
    sent_at: String,
    /// When its recipient had dealt with it.
    acked_at: Option<String>,
}

/// Where a message stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It waits in the inbox.
    Stored,
    /// Its recipient is dealing with it.
    Leased,
    /// Its recipient has dealt with it.
    Acked,
    /// Too many turns failed over it; the operator has to look.
    Dead,
    /// The operator threw it away.
    Discarded,
}

impl Tool<Hyperhive> for GetReceipt {
    const NAME: &'static str = "get_receipt";
    const TITLE: &'static str = "Look what became of a message";
    const DESCRIPTION: &'static str = "Say whether a message that you sent or received still waits, \
        is being dealt with, or is done. That it is done says nothing about an answer: answers come \
        to your inbox by themselves.";
    // The host knows it as what companions of a harness do.
    const CHECKED: Checked = Checked::Here;
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        let receipt = hive
            .call(&Get {
                message_id: MessageId(args.message_id),
            })
            .await?;
        Ok(Reply {
            message_id: receipt.message_id.0,
            from: receipt.from.to_string(),
            to: receipt.to,
            state: match receipt.state {
                MessageState::Stored => State::Stored,
                MessageState::Leased => State::Leased,
                MessageState::Acked => State::Acked,
                MessageState::Dead => State::Dead,
                MessageState::Discarded => State::Discarded,
            },
            deliveries: receipt.deliveries,
            sent_at: receipt.sent_at.to_string(),
            acked_at: receipt.acked_at.map(|at| at.to_string()),
        })
    }
}
