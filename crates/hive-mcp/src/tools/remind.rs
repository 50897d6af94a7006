use hive_wire::agent::Remind as SetReminder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Sets a reminder for the agent itself (M8).
pub struct Remind;

/// What to be reminded of, and when.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What to be reminded of, with all that you will need to know then.
    message: String,
    /// In how many seconds; give this or at_unix_timestamp.
    #[serde(default)]
    delay_seconds: Option<u64>,
    /// At what time, in seconds since 1970; give this or delay_seconds.
    #[serde(default)]
    at_unix_timestamp: Option<i64>,
    /// Your own name for this reminder. Called again within a day with the same key, nothing is done
    /// twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

/// The reminder is set.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// Its id, for cancel_loose_end.
    reminder_id: i64,
    /// When it fires.
    due_at: String,
}

impl Tool<Hyperhive> for Remind {
    const NAME: &'static str = "remind";
    const TITLE: &'static str = "Set a reminder";
    const DESCRIPTION: &'static str = "Send yourself a message at a later time. It wakes you, also \
        after a restart of the hive. Use it instead of waiting: set it, and end the turn. At most \
        50 may be pending.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        if args.delay_seconds.is_some() == args.at_unix_timestamp.is_some() {
            return Err(Failure::new(
                "A reminder needs a time, and one of them",
                "give delay_seconds or at_unix_timestamp",
            ));
        }
        let remind = SetReminder {
            message: args.message,
            delay_seconds: args.delay_seconds,
            at_unix_timestamp: args.at_unix_timestamp,
            key: key(args.key)?,
        };
        let reminded = hive.call(&remind).await?;
        Ok(Reply {
            reminder_id: reminded.reminder_id.0,
            due_at: reminded.due_at.to_string(),
        })
    }
}
