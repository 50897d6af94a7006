use hive_wire::{
    QuestionId, ReminderId,
    agent::{CancelLooseEnd as Cancel, LooseEndId},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Done;
use crate::{
    hyperhive::Hyperhive,
    toolbox::{Call, Effect, Failure, Tool},
};

/// Takes back a question or a reminder of the agent's own (M7).
pub struct CancelLooseEnd;

/// Which one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// What it is.
    kind: Kind,
    /// The question, when kind is `question`.
    #[serde(default)]
    question_id: Option<i64>,
    /// The reminder, when kind is `reminder`.
    #[serde(default)]
    reminder_id: Option<i64>,
}

/// What can be taken back.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Question,
    Reminder,
}

impl Tool<Hyperhive> for CancelLooseEnd {
    const NAME: &'static str = "cancel_loose_end";
    const TITLE: &'static str = "Take something back";
    const DESCRIPTION: &'static str = "Take back a question that you asked, or a reminder that you \
        set, when it is no longer needed. Give the kind and the id as get_loose_ends lists them. \
        You can only take back what is your own. The one who was asked is told.";
    const EFFECT: Effect = Effect::Removes;
    type Args = Args;
    type Reply = Done;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Done, Failure> {
        let row = match (args.kind, args.question_id, args.reminder_id) {
            (Kind::Question, Some(id), None) => LooseEndId::Question {
                question_id: QuestionId(id),
            },
            (Kind::Reminder, None, Some(id)) => LooseEndId::Reminder {
                reminder_id: ReminderId(id),
            },
            _ => {
                return Err(Failure::new(
                    "Exactly one id is needed, and it has to be of the kind that is named",
                    "give question_id for kind `question`, or reminder_id for kind `reminder`",
                ));
            }
        };
        hive.once(&Cancel { row, key: None }).await?;
        Ok(Done::new("it is taken back"))
    }
}
