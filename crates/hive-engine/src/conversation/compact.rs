//! Shortening a conversation: a summary by the model replaces what came before.

use std::time::Instant;

use hive_providers::{ApiError, Block, ErrorKind, Message, ResultContent, Role};
use tokio_util::sync::CancellationToken;

use super::{
    Conversation, Events, Turn,
    answer::{Audience, Ending},
};
use crate::{
    happening::{Compression, Happening, Notice, TurnReport},
    session::SessionError,
    turn_end::{EndReason, Failure, TurnEnd},
};

/// How often the oldest part is dropped when even the summary's request is too long.
const MAX_DROPS: usize = 5;
/// The last prompt and what followed it stay as they are, if they are not more than this.
const KEEP_MESSAGES: usize = 8;
const KEEP_BYTES: usize = 20_000;

const INSTRUCTION: &str = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\nYour task is \
    to create a detailed summary of the conversation so far, for yourself: you will go on from it \
    without seeing the conversation again. Cover what the user asked for and how it changed, what \
    was done and found out, files and commands that matter with their exact names, errors and how \
    they were solved, decisions and their reasons, what is still open, and the next step. Quote \
    what must not be lost word for word.";

impl Conversation {
    /// `/compact`: a turn of its own.
    pub async fn compact(
        &mut self,
        instructions: &str,
        events: &Events,
        cancel: &CancellationToken,
        prompts: Vec<String>,
    ) -> Result<TurnReport, SessionError> {
        let mut turn = Turn::new(events, cancel);
        turn.num_turns = 0;
        let failure = if self.session.messages.is_empty() {
            turn.emit(Happening::Begin).await;
            Some("Error: No messages to compact".to_owned())
        } else if !self.setup.has_key {
            turn.emit(Happening::Begin).await;
            Some("Error during compaction: Not logged in · Please run /login".to_owned())
        } else {
            self.shorten(&mut turn, "manual", instructions).await?.err()
        };
        let mut end = TurnEnd::completed(EndReason::EndTurn, String::new(), None);
        match failure {
            None => turn.notice(Notice::LocalOutput("Compacted ".into())).await,
            Some(text) => {
                if text != "Error: No messages to compact" {
                    end.text.clone_from(&text);
                }
                turn.notice(Notice::LocalFailure {
                    command: "compact",
                    text,
                })
                .await;
            }
        }
        self.finish(turn, end, prompts, Some("compact")).await
    }

    /// `/clear`: the history is gone for the model and stays in the file.
    pub async fn clear(
        &mut self,
        events: &Events,
        cancel: &CancellationToken,
        prompts: Vec<String>,
    ) -> Result<TurnReport, SessionError> {
        let mut turn = Turn::new(events, cancel);
        turn.num_turns = 0;
        self.session.compact("clear", Vec::new())?;
        turn.notice(Notice::Reset).await;
        turn.emit(Happening::Begin).await;
        let end = TurnEnd::completed(EndReason::EndTurn, String::new(), None);
        self.finish(turn, end, prompts, Some("clear")).await
    }

    /// A local command that only says something.
    pub async fn local(
        &mut self,
        command: &'static str,
        text: String,
        events: &Events,
        cancel: &CancellationToken,
        prompts: Vec<String>,
    ) -> Result<TurnReport, SessionError> {
        let mut turn = Turn::new(events, cancel);
        turn.num_turns = 0;
        turn.emit(Happening::Begin).await;
        turn.notice(Notice::LocalOutput(text.clone())).await;
        let end = TurnEnd::completed(EndReason::EndTurn, text, None);
        self.finish(turn, end, prompts, Some(command)).await
    }

    /// Replaces the history by a summary; the inner error says in words why not.
    pub(super) async fn shorten(
        &mut self,
        turn: &mut Turn<'_>,
        trigger: &'static str,
        instructions: &str,
    ) -> Result<Result<(), String>, SessionError> {
        let began = Instant::now();
        turn.emit(Happening::ContextCompression(Compression::Started))
            .await;
        let pre_tokens = match self.session.context_tokens {
            0 => estimate(&self.session.messages),
            tokens => tokens,
        };
        let (summary, is_partial) = match self.summarise(turn, instructions).await {
            Ok(summary) => summary,
            Err(error) => {
                let end = TurnEnd::api(&error, &self.setup.model, &self.client.authority());
                let text = match &end.failure {
                    Some(Failure::Api(failure)) => failure.text.clone(),
                    _ => error.to_string(),
                };
                let text = format!("Error during compaction: {text}");
                turn.emit(Happening::ContextCompression(Compression::Failed(
                    text.clone(),
                )))
                .await;
                return Ok(Err(text));
            }
        };
        let kept = recent(&self.session.messages);
        let transcript = self.session.path().display().to_string();
        let text = wrap(&summary, &transcript, is_partial, !kept.is_empty());
        let mut messages = vec![Message::user(text.clone())];
        messages.extend(kept);
        let post_tokens = estimate(&messages);
        self.session.compact(trigger, messages)?;
        turn.emit(Happening::ContextCompression(Compression::Done {
            trigger,
            pre_tokens,
            post_tokens,
            took: began.elapsed(),
            summary: text,
        }))
        .await;
        Ok(Ok(()))
    }

    /// Asks for a summary, of less and less if it does not fit.
    async fn summarise(
        &mut self,
        turn: &mut Turn<'_>,
        instructions: &str,
    ) -> Result<(String, bool), ApiError> {
        let mut messages = self.session.messages.clone();
        let mut instruction = INSTRUCTION.to_owned();
        if !instructions.trim().is_empty() {
            instruction.push_str("\n\nAdditional instructions: ");
            instruction.push_str(instructions.trim());
        }
        for dropped in 0..=MAX_DROPS {
            let mut asked = messages.clone();
            asked.push(Message::user(instruction.clone()));
            match self.ask_for_text(turn, &asked).await {
                Ok(text) => return Ok((text, dropped > 0)),
                Err(error) if error.kind == ErrorKind::PromptTooLong && messages.len() > 1 => {
                    messages.drain(..messages.len().div_ceil(3));
                }
                Err(error) => return Err(error),
            }
        }
        Err(ApiError::local(
            ErrorKind::PromptTooLong,
            "Conversation too long",
        ))
    }

    async fn ask_for_text(
        &mut self,
        turn: &mut Turn<'_>,
        messages: &[Message],
    ) -> Result<String, ApiError> {
        let request = self.request(messages);
        let (assembler, ending) = self.follow(turn, &request, Audience::Nobody).await;
        match ending {
            Ending::Whole => {}
            Ending::Failed(error) => return Err(*error),
            Ending::Interrupted => {
                return Err(ApiError::local(ErrorKind::BadRequest, "interrupted"));
            }
        }
        let blocks = assembler
            .done
            .iter()
            .filter_map(|done| done.block.as_text());
        let text: String = blocks.collect();
        if text.trim().is_empty() {
            return Err(ApiError::local(
                ErrorKind::Malformed,
                "the model gave no summary",
            ));
        }
        Ok(summary_of(&text).to_owned())
    }
}

/// The part between the tags, if the model used them: what it noted for itself before is left out.
fn summary_of(text: &str) -> &str {
    let inside = text
        .split_once("<summary>")
        .map_or(text, |(_, inside)| inside);
    inside
        .split_once("</summary>")
        .map_or(inside, |(inside, _)| inside)
        .trim()
}

fn wrap(summary: &str, transcript: &str, is_partial: bool, has_recent: bool) -> String {
    let mut text = format!(
        "This session is being continued from a previous conversation that ran out of context. The \
         summary below covers the earlier portion of the conversation.\n\nSummary:\n{summary}\n\nIf \
         you need specific details from before compaction (like exact code snippets, error \
         messages, or content you generated), read the full transcript at: {transcript}\n"
    );
    if is_partial {
        text.push_str(
            "\nNote: part of the earlier conversation was too large to include and is NOT covered \
             by this summary (the full transcript mentioned above still has it).\n",
        );
    }
    text.push_str(
        "Continue the conversation from where it left off without asking the user any further \
         questions. Resume directly — do not acknowledge the summary, do not recap what was \
         happening. Pick up the last task as if the break never happened.",
    );
    if has_recent {
        text.push_str(
            "\n\nThe messages after this summary are the most recent messages from before \
             compaction, kept verbatim.",
        );
    }
    text
}

/// The last prompt and what followed it, if that is not too much.
fn recent(messages: &[Message]) -> Vec<Message> {
    let is_prompt = |message: &Message| {
        message.role == Role::User
            && !message
                .content
                .iter()
                .any(|block| matches!(block, Block::ToolResult { .. }))
    };
    let from = messages
        .iter()
        .rposition(is_prompt)
        .unwrap_or(messages.len());
    let kept = &messages[from..];
    if kept.len() > KEEP_MESSAGES || kept.iter().map(bytes).sum::<usize>() > KEEP_BYTES {
        return Vec::new();
    }
    kept.to_vec()
}

/// Tokens of a text that no provider has counted: a quarter of its bytes.
fn estimate(messages: &[Message]) -> u64 {
    let bytes: usize = messages.iter().map(bytes).sum();
    bytes as u64 / 4
}

fn bytes(message: &Message) -> usize {
    let sizes = message.content.iter().map(|block| match block {
        Block::Text { text, .. } => text.len(),
        Block::Thinking { thinking, .. } => thinking.len(),
        Block::ToolUse { input, .. } => input.to_string().len(),
        Block::ToolResult {
            content: ResultContent::Text(text),
            ..
        } => text.len(),
        Block::ToolResult {
            content: ResultContent::Blocks(blocks),
            ..
        } => blocks
            .iter()
            .map(|block| block.as_text().map_or(6_000, str::len))
            .sum(),
        Block::RedactedThinking { data } => data.len(),
        Block::Image { .. } | Block::Document { .. } => 6_000,
        Block::Other(fields) => fields.len() * 100,
    });
    sizes.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_summary_counts() {
        for (text, expected) in [
            ("plain", "plain"),
            ("<analysis>x</analysis>\n<summary>\nit\n</summary>", "it"),
            ("<summary>cut off", "cut off"),
        ] {
            assert_eq!(summary_of(text), expected);
        }
    }

    #[test]
    fn the_latest_messages_are_kept_from_a_prompt_on() {
        let call = Message {
            role: Role::Assistant,
            content: vec![Block::tool_use("t", "Read", json!({}))],
        };
        let result = Message {
            role: Role::User,
            content: vec![Block::tool_result(
                "t",
                ResultContent::Text("r".into()),
                false,
            )],
        };
        let history = [
            Message::user("old"),
            Message::assistant("x"),
            Message::user("new"),
            call,
            result,
            Message::assistant("done"),
        ];
        let kept = recent(&history);
        assert_eq!(kept.len(), 4);
        assert_eq!(kept[0].text(), "new");
        assert!(recent(&[Message::user("x".repeat(KEEP_BYTES + 1))]).is_empty());
        assert!(recent(&[Message::assistant("only")]).is_empty());
    }
}
