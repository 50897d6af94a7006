use std::time::Duration;

use hive_wire::{
    ErrorCode,
    agent::{
        Confirm, MAX_BATCH, MAX_WAIT_SECONDS, Message as WireMessage, Messages, Recv as Receive,
    },
    client::{Client, ClientError},
    id::CURRENT,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    hyperhive::{Hyperhive, Ticket},
    options::Purpose,
    spill,
    toolbox::{Call, Checked, Effect, Failure, Tool},
};

/// How much longer than its wait a receive may take.
const GRACE: Duration = Duration::from_secs(20);
/// How long it is tried to say that a batch was handed over.
const CONFIRM_WITHIN: Duration = Duration::from_secs(5);

/// Takes further messages out of the inbox during a turn (M3).
///
/// What it brings belongs to the running turn. The host is told that the model has it after the
/// answer was written, so that a message which never reached the engine is delivered again.
pub struct Recv;

/// How long to wait for how many messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// How many seconds to wait for the first message, 0 to 180; 0 unless given.
    #[serde(default)]
    #[schemars(range(max = 180))]
    wait_seconds: u32,
    /// How many messages to take at most, 1 to 32; 1 unless given.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 32))]
    max: u32,
}

fn one() -> u32 {
    1
}

/// The messages, oldest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// The messages; none when nothing waits.
    messages: Vec<Message>,
}

/// One message.
#[derive(Debug, Serialize, JsonSchema)]
struct Message {
    /// Its id, for in_reply_to.
    message_id: i64,
    /// Who sent it, as the hive knows them: an agent, `operator`, `system`, or the label of a wake
    /// such as `bash-task-12`.
    from: String,
    /// The text; only its beginning when body_file is set.
    body: String,
    /// A file with the whole text, when it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    body_file: Option<String>,
    /// The message it answers.
    in_reply_to: Option<i64>,
    /// When it was sent.
    sent_at: String,
    /// 1 the first time, more when an earlier turn took it and did not end well.
    delivery: u32,
}

impl Tool<Hyperhive> for Recv {
    const NAME: &'static str = "recv";
    const TITLE: &'static str = "Receive messages";
    const DESCRIPTION: &'static str = "Take further messages out of your inbox during this turn, \
        oldest first. The message that woke you is not among them. Use it to see what else waits, \
        or with wait_seconds for an answer that you expect within the next minutes; for anything \
        longer end the turn, since new mail wakes you. An empty list means that nothing waits. \
        What you take here you must deal with in this turn.";
    // The host knows it as what every harness does.
    const CHECKED: Checked = Checked::Here;
    const EFFECT: Effect = Effect::Adds;
    const MAX_ANSWER: Option<u32> = Some(500_000);
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, call: &Call) -> Result<Reply, Failure> {
        if hive.purpose() == Purpose::Upkeep {
            return Err(Failure::new(
                "There is no mail in this turn: it is for writing down your notes",
                "write your notes and end the turn; your mail waits for the next one",
            ));
        }
        if !(1..=MAX_BATCH).contains(&args.max) || args.wait_seconds > MAX_WAIT_SECONDS {
            return Err(Failure::new(
                format!("max is 1 to {MAX_BATCH}, wait_seconds is 0 to {MAX_WAIT_SECONDS}"),
                "call it again with values in these ranges",
            ));
        }
        let _slot = hive.receives().acquire().await.map_err(|_| closing())?;
        let aside = hive.aside();
        let ticket = hive.ticket();
        let taken = match join(&aside, &args, &ticket).await {
            Ok(taken) => {
                if !taken.messages.is_empty() {
                    call.once_written(confirm(hive.client(), ticket));
                }
                taken
            }
            Err(ClientError::Refused(error)) if error.code == ErrorCode::NoOpenTurn => {
                by_hand(&aside, &args).await?
            }
            Err(error) => return Err(error.into()),
        };
        let spill = hive.state_dir().map(spill::Spill::new);
        let messages = taken.messages.into_iter();
        Ok(Reply {
            messages: messages.map(|m| shown(m, spill.as_ref())).collect(),
        })
    }
}

fn closing() -> Failure {
    Failure::new("The server is stopping", "end the turn")
}

/// Receives for the turn that is open now.
async fn join(aside: &Client, args: &Args, ticket: &Ticket) -> Result<Messages, ClientError> {
    let receive = Receive {
        wait_seconds: args.wait_seconds,
        max: args.max,
        turn: Some(CURRENT.parse().expect("`current` is a legal turn id")),
        req: Some(ticket.req().clone()),
    };
    let deadline = Duration::from_secs(args.wait_seconds.into()) + GRACE;
    aside.call_idempotent(&receive, deadline).await
}

/// Receives outside of any turn: what comes is acked as it is returned.
async fn by_hand(aside: &Client, args: &Args) -> Result<Messages, ClientError> {
    let receive = Receive {
        wait_seconds: args.wait_seconds,
        max: args.max,
        turn: None,
        req: None,
    };
    let deadline = Duration::from_secs(args.wait_seconds.into()) + GRACE;
    aside.call_within(&receive, deadline).await
}

/// Tells the host that the engine has the batch. Without this, it is delivered again.
async fn confirm(client: Client, ticket: Ticket) {
    let confirm = Confirm {
        turn: CURRENT.parse().expect("`current` is a legal turn id"),
        req: ticket.used(),
    };
    if let Err(error) = client.call_idempotent(&confirm, CONFIRM_WITHIN).await {
        tracing::warn!(%error, "a batch was handed over, and the host does not know it");
    }
}

fn shown(message: WireMessage, spill: Option<&spill::Spill>) -> Message {
    let (body, body_file) = match spill {
        Some(spill) => spill.keep_short(message.id, message.body),
        None => (message.body, None),
    };
    Message {
        message_id: message.id.0,
        from: message.from.to_string(),
        body,
        body_file: body_file.map(|path| path.display().to_string()),
        in_reply_to: message.in_reply_to.map(|id| id.0),
        sent_at: message.sent_at.to_string(),
        delivery: message.delivery,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_docs_say_for_how_long_it_is_repeated() {
        let docs = include_str!("../../../../docs/mcp.md");
        let within_turn = format!(
            "a `recv` within a turn for as long as it waits and {} seconds more",
            GRACE.as_secs()
        );
        for said in [
            &*within_turn,
            "Not repeated are a `recv` outside of any turn",
        ] {
            assert!(docs.contains(said), "docs/mcp.md does not say: {said}");
        }
    }
}
