//! The calls of one answer: permitted, run in batches, answered in order.

use std::sync::Arc;

use hive_providers::{Block, Message, ResultContent, Role};
use serde_json::{Value, json};

use super::{Conversation, INTERRUPTED_TOOLS, Next, Turn, answer::Asked};
use crate::{
    batch,
    consent::{Answer, Question, preview},
    happening::{Answered, Happening, Notice},
    ids,
    permission::{Call, Decision, Why, classify},
    session::SessionError,
    stream_json::Denial,
    tool::{Output, Properties, Tool, ToolError},
};

/// A call that was looked at.
enum Prepared {
    /// It may run, with these arguments.
    Ready {
        tool: Arc<dyn Tool>,
        input: Value,
        why: Why,
    },
    /// It is answered already.
    Answered { output: Output, why: Option<Why> },
}

impl Conversation {
    /// Runs calls and writes down their results; each call gets exactly one.
    pub(super) async fn run_calls(
        &mut self,
        turn: &mut Turn<'_>,
        calls: Vec<Asked>,
    ) -> Result<Next, SessionError> {
        let properties: Vec<Properties> = calls.iter().map(|call| self.behaviour(call)).collect();
        let mut results: Vec<Answered> = Vec::new();
        let mut wants_stop = false;
        for range in batch::partition(&properties, self.setup.max_parallel) {
            let mut prepared = Vec::new();
            for call in &calls[range.clone()] {
                if turn.cancel.is_cancelled() || wants_stop {
                    prepared.push(answered(INTERRUPTED_TOOLS, None));
                    continue;
                }
                let (one, stop) = self.prepare(turn, call).await;
                wants_stop |= stop;
                prepared.push(one);
            }
            for (call, answered) in calls[range]
                .iter()
                .zip(self.run_batch(turn, prepared).await)
            {
                let answered = Answered {
                    tool_use_id: call.id.clone(),
                    ..answered
                };
                turn.num_turns += 1;
                turn.emit(Happening::ToolResult(Box::new(answered.clone())))
                    .await;
                results.push(answered);
            }
        }
        let content = results
            .into_iter()
            .map(|result| Block::tool_result(result.tool_use_id, result.content, result.is_error))
            .collect();
        let message = Message {
            role: Role::User,
            content,
        };
        self.session.say(&ids::uuid(), message, None)?;
        if turn.cancel.is_cancelled() || wants_stop {
            let end = self
                .interrupted(turn, INTERRUPTED_TOOLS, "aborted_tools")
                .await?;
            return Ok(Next::End(end));
        }
        Ok(Next::GoOn)
    }

    fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.setup
            .tools
            .iter()
            .find(|tool| tool.spec().name == name)
    }

    fn behaviour(&self, call: &Asked) -> Properties {
        self.find(&call.name)
            .map_or_else(Properties::default, |tool| tool.properties(&call.input))
    }

    /// Looks at one call: is there such a tool, do the arguments fit, may it run?
    async fn prepare(&self, turn: &mut Turn<'_>, asked: &Asked) -> (Prepared, bool) {
        let Some(tool) = self.find(&asked.name) else {
            let text = format!("Error: No such tool available: {}", asked.name);
            return (tool_error(&text), false);
        };
        if let Some(bad) = &asked.bad_input {
            let shown: String = bad.chars().take(200).collect();
            let text =
                format!("InputValidationError: the arguments are not a JSON object: {shown}");
            return (tool_error(&text), false);
        }
        let call = match self.view(tool, &asked.input) {
            Ok(call) => call,
            Err(error) => return (tool_error(&error.to_string()), false),
        };
        match self.setup.policy.decide(&call) {
            Decision::Allow(why) => (ready(tool, asked.input.clone(), why), false),
            Decision::Deny(why) => {
                let message = format!(
                    "Permission to use {} has been denied: {}",
                    asked.name, why.text
                );
                (self.deny(turn, asked, why, message).await, false)
            }
            Decision::Ask(why) => self.consult(turn, asked, tool, call, why).await,
        }
    }

    fn view(&self, tool: &Arc<dyn Tool>, input: &Value) -> Result<Call, ToolError> {
        let accesses = tool.accesses(input, &self.setup.policy.workspace)?;
        Ok(Call {
            tool: tool.spec().name.clone(),
            permission: tool.permission(),
            properties: tool.properties(input),
            accesses,
            input: input.clone(),
        })
    }

    async fn consult(
        &self,
        turn: &mut Turn<'_>,
        asked: &Asked,
        tool: &Arc<dyn Tool>,
        call: Call,
        why: Why,
    ) -> (Prepared, bool) {
        let question = Question {
            tool: asked.name.clone(),
            tool_use_id: asked.id.clone(),
            input: asked.input.clone(),
            reason: why.text.clone(),
            preview: preview(&call.accesses, &asked.input),
            risk: classify(call).await,
        };
        let mut context = self.setup.context.clone();
        context.cancel = turn.cancel.clone();
        match self.setup.consent.ask(question, &context).await {
            Answer::Nobody => {
                let message = why.text.clone();
                (self.deny(turn, asked, why, message).await, false)
            }
            Answer::Deny { message, interrupt } => {
                let message = if message.is_empty() {
                    why.text.clone()
                } else {
                    message
                };
                (self.deny(turn, asked, why, message).await, interrupt)
            }
            Answer::Allow(None) => (ready(tool, asked.input.clone(), why), false),
            Answer::Allow(Some(input)) => {
                // Other arguments are another call: what forbids it still counts.
                let denied = match self
                    .view(tool, &input)
                    .map(|call| self.setup.policy.decide(&call))
                {
                    Ok(Decision::Deny(why)) => Some((why.clone(), why.text)),
                    Ok(Decision::Allow(_) | Decision::Ask(_)) => None,
                    Err(error) => Some((why.clone(), error.to_string())),
                };
                match denied {
                    Some((why, message)) => (self.deny(turn, asked, why, message).await, false),
                    None => (ready(tool, input, why), false),
                }
            }
        }
    }

    async fn deny(
        &self,
        turn: &mut Turn<'_>,
        asked: &Asked,
        why: Why,
        message: String,
    ) -> Prepared {
        let denial = Denial {
            tool_name: asked.name.clone(),
            tool_use_id: asked.id.clone(),
            tool_input: asked.input.clone(),
        };
        turn.denials.push(denial.clone());
        turn.notice(Notice::Denied {
            denial,
            why: why.clone(),
            message: message.clone(),
        })
        .await;
        answered(&message, Some(why))
    }

    async fn run_batch(&self, turn: &Turn<'_>, prepared: Vec<Prepared>) -> Vec<Answered> {
        let mut calls = Vec::new();
        for one in &prepared {
            if let Prepared::Ready { tool, input, .. } = one {
                let mut context = self.setup.context.clone();
                context.cancel = turn.cancel.clone();
                calls.push((Arc::clone(tool), input.clone(), context));
            }
        }
        let mut ran = batch::run(calls).await.into_iter();
        let answered = prepared.into_iter().map(|one| match one {
            Prepared::Ready { why, .. } => {
                let result = ran.next().unwrap_or(Err(ToolError::Interrupted));
                finished(result, why)
            }
            Prepared::Answered { output, why } => Answered {
                tool_use_id: String::new(),
                content: output.content,
                is_error: output.is_error,
                structured: output.structured,
                decision: why.map(|why| (false, why)),
                uuid: ids::uuid(),
            },
        });
        answered.collect()
    }
}

fn ready(tool: &Arc<dyn Tool>, input: Value, why: Why) -> Prepared {
    Prepared::Ready {
        tool: Arc::clone(tool),
        input,
        why,
    }
}

fn answered(text: &str, why: Option<Why>) -> Prepared {
    let structured = json!(format!("Error: {text}"));
    Prepared::Answered {
        output: Output {
            is_error: true,
            ..Output::text(text, structured)
        },
        why,
    }
}

fn tool_error(text: &str) -> Prepared {
    let structured = json!(text);
    Prepared::Answered {
        output: Output {
            is_error: true,
            ..Output::text(
                format!("<tool_use_error>{text}</tool_use_error>"),
                structured,
            )
        },
        why: None,
    }
}

fn finished(result: Result<Output, ToolError>, why: Why) -> Answered {
    let output = match result {
        Ok(output) => output,
        Err(ToolError::Interrupted) => Output {
            is_error: true,
            ..Output::text(INTERRUPTED_TOOLS, json!(INTERRUPTED_TOOLS))
        },
        Err(ToolError::Tell(text)) => Output {
            is_error: true,
            ..Output::text(
                format!("<tool_use_error>{text}</tool_use_error>"),
                json!(format!("Error: {text}")),
            )
        },
    };
    let content = match output.content {
        // An empty result says so: some providers refuse nothing.
        ResultContent::Text(text) if text.is_empty() => {
            ResultContent::Text("(no output)".to_owned())
        }
        content => content,
    };
    Answered {
        tool_use_id: String::new(),
        content,
        is_error: output.is_error,
        structured: output.structured,
        decision: Some((true, why)),
        uuid: ids::uuid(),
    }
}
