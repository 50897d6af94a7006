//! `questions`: what somebody wants to know, and of whom.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{QuestionList, Questions},
};

use super::Host;

pub(super) async fn run(host: Arc<Host>, command: Questions) -> Result<QuestionList, WireError> {
    let questions = host
        .read(move |readers| readers.questions(command.all))
        .await?;
    Ok(QuestionList { questions })
}
