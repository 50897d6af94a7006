use hive_wire::{
    MessageId,
    agent::{MAX_BODY, Send as SendMessage},
    text,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Sends a message (M2).
pub struct Send;

/// What to send to whom.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The recipient: an agent's name, `operator` for the human who runs the hive, or `<parent>`
    /// for whoever is above you.
    to: String,
    /// The text, at most 256 KiB. It arrives exactly as it is written here.
    body: String,
    /// The id of the message that this one answers, so that both belong to one thread.
    #[serde(default)]
    in_reply_to: Option<i64>,
    /// Your own name for this message, such as `report-2026-01-02`. Sent again within a day, the
    /// same key makes no second message.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

/// The message is stored.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// Its id, for `get_receipt` and for answers to it.
    message_id: i64,
    /// True when this key was sent before and no second message was made.
    duplicate: bool,
}

impl Tool<Hyperhive> for Send {
    const NAME: &'static str = "send";
    const TITLE: &'static str = "Send a message";
    const DESCRIPTION: &'static str = "Send a message to another agent, to the operator or to your \
        parent. It is stored durably before this returns, and wakes the recipient; the answer, if \
        any, comes to your inbox later. Do not wait for it: end the turn, and it will wake you. \
        Set in_reply_to when you answer a message. Text that you do not send is read by nobody.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        let length = text::encoded_length(&args.body);
        if length > MAX_BODY {
            return Err(Failure::new(
                format!("The body has {length} bytes, and a message has at most {MAX_BODY}"),
                "write the text to a file that the recipient can read and send its path, or send \
                 a summary",
            ));
        }
        let send = SendMessage {
            to: args.to,
            body: args.body,
            in_reply_to: args.in_reply_to.map(MessageId),
            key: key(args.key)?,
        };
        let sent = hive.call(&send).await?;
        Ok(Reply {
            message_id: sent.message_id.0,
            duplicate: sent.duplicate,
        })
    }
}
