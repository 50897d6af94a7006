use hive_wire::agent::{Ask as AskQuestion, Asked};
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
    /// Only when agents now wait for each other's answers: their names, beginning with yours. Each
    /// waits for the next one, and the last for you, so that no answer will come by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    circle: Option<Vec<String>>,
    /// What to do about the circle.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl Reply {
    fn new(asked: Asked) -> Self {
        let circle = Some(asked.circle).filter(|circle| !circle.is_empty());
        let note = circle.as_ref().and_then(|circle| {
            let (you, last) = (circle.first()?, circle.last()?);
            Some(format!(
                "Each waits for the next one's answer: {} → {you}. Nobody goes on by itself: answer \
                 what {last} asked you (get_loose_ends lists it), or take this question back with \
                 cancel_loose_end. The operator is told.",
                circle.join(" → ")
            ))
        });
        Self {
            question_id: asked.question_id.0,
            circle,
            note,
        }
    }
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
        Ok(Reply::new(asked))
    }
}

#[cfg(test)]
mod tests {
    use hive_wire::QuestionId;
    use serde_json::json;

    use super::*;

    #[test]
    fn m4_a_circle_is_named_with_the_way_out_of_it() {
        let reply = |circle: &[&str]| {
            let asked = Asked {
                question_id: QuestionId(8),
                circle: circle.iter().map(|name| (*name).to_owned()).collect(),
                answer: None,
            };
            serde_json::to_value(Reply::new(asked)).unwrap()
        };
        assert_eq!(reply(&[]), json!({"question_id": 8}));
        let closed = reply(&["ada", "bob", "cid"]);
        assert_eq!(closed["circle"], json!(["ada", "bob", "cid"]));
        let note = closed["note"].as_str().unwrap();
        for words in [
            "ada → bob → cid → ada",
            "what cid asked you",
            "cancel_loose_end",
        ] {
            assert!(note.contains(words), "{words}: {note}");
        }
        let pair = reply(&["ada", "bob"])["note"].to_string();
        assert!(pair.contains("what bob asked you"), "{pair}");
    }
}
