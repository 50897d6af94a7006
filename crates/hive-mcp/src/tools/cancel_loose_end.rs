use hive_wire::{
    ApprovalId, QuestionId, ReminderId,
    agent::{CancelLooseEnd as Cancel, LooseEndId},
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Done;
use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Takes back something of the agent's own (M7).
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
    /// The request, when kind is `approval`; for the root agent alone.
    #[serde(default)]
    approval_id: Option<i64>,
    /// Your own name for this cancellation. Called again within a day with the same key, nothing is done
    /// twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

/// What can be taken back.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Question,
    Reminder,
    Approval,
}

impl Tool<Hyperhive> for CancelLooseEnd {
    const NAME: &'static str = "cancel_loose_end";
    const TITLE: &'static str = "Take something back";
    const DESCRIPTION: &'static str = "Take back a question that you asked, or a reminder that you \
        set, when it is no longer needed. Give the kind and the id as get_loose_ends lists them. \
        You can only take back what is your own. The one who was asked is told. The root agent can \
        also take back a request that waits for the operator's approval.";
    const EFFECT: Effect = Effect::Removes;
    type Args = Args;
    type Reply = Done;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Done, Failure> {
        let ids = (args.question_id, args.reminder_id, args.approval_id);
        let row = match (args.kind, ids) {
            (Kind::Question, (Some(id), None, None)) => LooseEndId::Question {
                question_id: QuestionId(id),
            },
            (Kind::Reminder, (None, Some(id), None)) => LooseEndId::Reminder {
                reminder_id: ReminderId(id),
            },
            (Kind::Approval, (None, None, Some(id))) => LooseEndId::Approval {
                approval_id: ApprovalId(id),
            },
            _ => {
                return Err(Failure::new(
                    "Exactly one id is needed, and it has to be of the kind that is named",
                    "give question_id for kind `question`, reminder_id for `reminder`, or \
                     approval_id for `approval`",
                ));
            }
        };
        let key = key(args.key)?;
        hive.call(&Cancel { row, key }).await?;
        Ok(Done::new("it is taken back"))
    }
}
