//! `questions`: what somebody wants to know, and of whom.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{QuestionList, QuestionRow, Questions},
    text,
};

use super::{Host, fitting};

pub(super) async fn run(host: Arc<Host>, command: Questions) -> Result<QuestionList, WireError> {
    let mut questions = host
        .read(move |readers| readers.questions(command.all, command.target.as_deref()))
        .await?;
    // Of those that wait the oldest are kept, of all the newest.
    if command.all {
        questions.reverse();
    }
    let more = fitting::cut(&mut questions, size);
    if command.all {
        questions.reverse();
    }
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
