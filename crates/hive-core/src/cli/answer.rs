//! `answer ID TEXT`: answers a question that was put to the operator.

use clap::Args;
use hive_wire::{QuestionId, client::Client, host::AnswerAsOperator};

use super::{failure::Failure, json, out::Out};

/// Arguments of `answer`.
#[derive(Debug, Args)]
pub struct AnswerArgs {
    /// The question.
    id: QuestionId,
    /// The answer.
    #[arg(allow_hyphen_values = true)]
    text: String,
}

impl AnswerArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let answer = AnswerAsOperator {
            question_id: self.id,
            answer: self.text,
        };
        let answered = host.call(&answer).await?;
        let id = answered.question_id.to_string();
        if out.is_json() {
            return out.json(json::Answered { id });
        }
        out.line(format_args!("question {id} is answered"))
    }
}
