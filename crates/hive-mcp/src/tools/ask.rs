use hive_wire::agent::Ask as AskQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
};

/// Asks a question without waiting for its answer (M4).
pub struct Ask;

/// What to ask whom.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The question, with all that is needed to answer it: who is asked may know nothing of what
    /// you are doing.
    question: String,
    /// Suggested answers; another answer may come all the same.
    #[serde(default)]
    options: Vec<String>,
    /// Whether several of the options may be chosen.
    #[serde(default)]
    multi: bool,
    /// After so many seconds the answer is `[expired]`; without it the question stays open.
    #[serde(default)]
    ttl_seconds: Option<u32>,
    /// Whom to ask: an agent's name, or `operator`; the operator unless given.
    #[serde(default)]
    to: Option<String>,
    /// Your own name for this question. Called again within a day with the same key, nothing is done
    /// twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

/// The question is stored and on its way.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// Its id: the answer names it, and `cancel_loose_end` takes it back.
    question_id: i64,
}

impl Tool<Hyperhive> for Ask {
    const NAME: &'static str = "ask";
    const TITLE: &'static str = "Ask a question";
    const DESCRIPTION: &'static str = "Ask the operator or another agent something that you need \
        an answer to. This returns at once. The answer comes later as a message from `system` \
        with the event question_answered and this question_id, and wakes you; so do what can be \
        done without it and end the turn. Ask once: an open question is listed by get_loose_ends.";
    const EFFECT: Effect = Effect::Adds;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        let ask = AskQuestion {
            question: args.question,
            options: args.options,
            multi: args.multi,
            ttl_seconds: args.ttl_seconds,
            to: args.to,
            key: key(args.key)?,
            wait: false,
        };
        let asked = hive.call(&ask).await?;
        Ok(Reply {
            question_id: asked.question_id.0,
        })
    }
}
