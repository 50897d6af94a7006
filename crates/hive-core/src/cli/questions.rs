//! `questions`: what agents asked, and what they were answered.

use clap::Args;
use hive_wire::{
    Timestamp,
    client::Client,
    host::{QuestionList, Questions},
};

use super::{age::age, failure::Failure, json, out::Out, table::Table};

/// Arguments of `questions`.
#[derive(Debug, Args)]
pub struct QuestionsArgs {
    /// Also those that are answered, expired or cancelled.
    #[arg(long)]
    all: bool,

    /// Only those put to this agent, or to `operator`.
    #[arg(long, value_name = "NAME")]
    to: Option<String>,
}

impl QuestionsArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let questions = Questions {
            all: self.all,
            target: self.to,
        };
        let list = host.call(&questions).await?;
        if out.is_json() {
            return out.json(json::QuestionList::from(&list));
        }
        if list.questions.is_empty() {
            out.note(if self.all {
                "nobody has asked anything yet"
            } else {
                "no open questions: see answered ones with `hive-c0re questions --all`"
            });
            return Ok(());
        }
        out.table(&table(&list))?;
        if list.more {
            out.note(if self.all {
                "there are older ones, which are not shown"
            } else {
                "there are more; they show when some of these are answered"
            });
        }
        if list.questions.iter().any(|row| row.answer.is_none()) {
            out.note("answer with `hive-c0re answer ID TEXT`");
        }
        Ok(())
    }
}

fn table(list: &QuestionList) -> Table {
    let now = Timestamp::now();
    let mut table = Table::new(&["ID", "AGE", "FROM", "TO", "QUESTION", "OPTIONS", "ANSWER"]);
    for row in &list.questions {
        let options = if row.options.is_empty() {
            "-".to_owned()
        } else {
            row.options.join(" | ")
        };
        table.row([
            row.question_id.to_string().into(),
            age(row.asked_at, now).into(),
            row.asker.as_str().into(),
            row.target.as_str().into(),
            row.question.as_str().into(),
            options.into(),
            row.answer.as_deref().unwrap_or("-").into(),
        ]);
    }
    table
}
