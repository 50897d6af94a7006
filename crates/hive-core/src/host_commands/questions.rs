//! `questions`: what somebody wants to know, and of whom.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{QuestionList, QuestionRow, Questions},
    text,
};

use super::Host;

/// How many bytes of texts a list has, so that it fits into one line.
const LIST_BYTES: usize = 768 * 1024;

pub(super) async fn run(host: Arc<Host>, command: Questions) -> Result<QuestionList, WireError> {
    let mut questions = host
        .read(move |readers| readers.questions(command.all))
        .await?;
    let mut bytes = 0;
    let fitting = questions.iter().take_while(|row| {
        bytes += size(row);
        bytes <= LIST_BYTES
    });
    let fitting = fitting.count().max(1);
    let more = fitting < questions.len();
    questions.truncate(fitting);
    Ok(QuestionList { questions, more })
}

fn size(row: &QuestionRow) -> usize {
    let options = row
        .options
        .iter()
        .map(|option| text::encoded_length(option) + 3);
    let answer = row.answer.as_deref().map_or(0, text::encoded_length);
    512 + text::encoded_length(&row.question) + options.sum::<usize>() + answer
}
