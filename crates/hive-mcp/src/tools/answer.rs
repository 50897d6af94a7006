use hive_wire::{QuestionId, agent::Answer as AnswerQuestion};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Done;
use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Answers a question that was put to this agent (M5).
pub struct Answer;

/// Which question, and the answer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The id in the event question_asked.
    question_id: i64,
    /// The answer; one of the options where it fits, or your own words.
    answer: String,
    /// Your own name for this answer. Called again within a day with the same key, nothing is done
    /// twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

impl Tool<Hyperhive> for Answer {
    const NAME: &'static str = "answer";
    const TITLE: &'static str = "Answer a question";
    const DESCRIPTION: &'static str = "Answer a question that another agent asked you. Such a \
        question comes as a message from `system` with the event question_asked and a question_id. \
        Only you can answer it, and only once. Use this and not send, so that the one who asked \
        knows which question it belongs to.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Reply = Done;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Done, Failure> {
        let answer = AnswerQuestion {
            question_id: QuestionId(args.question_id),
            answer: args.answer,
            key: key(args.key)?,
        };
        hive.call(&answer).await?;
        Ok(Done::new("the answer is on its way"))
    }
}
