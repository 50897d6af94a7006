//! Asking someone whether a call may run.

use std::{sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::{mpsc, oneshot};

use crate::{
    permission::Risk,
    tool::{Access, Context, Tool},
};

/// How long an answer may take; then it is no.
const DEADLINE: Duration = Duration::from_secs(300);

/// A call that someone is asked about.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The tool.
    pub tool: String,
    /// The call.
    pub tool_use_id: String,
    /// Its arguments.
    pub input: Value,
    /// Why it is asked.
    pub reason: String,
    /// How bad it can get.
    pub risk: Risk,
    /// The command or the resolved paths, exactly.
    pub preview: String,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Yes, perhaps with other arguments.
    Allow(Option<Value>),
    /// No, and perhaps the turn should end.
    Deny {
        /// Why.
        message: String,
        /// Whether to stop the turn.
        interrupt: bool,
    },
    /// There is nobody to ask.
    Nobody,
}

/// Who is asked.
#[derive(Clone)]
pub enum Consent {
    /// Nobody: the answer is no, at once.
    Nobody,
    /// A tool of an MCP server.
    Tool(Arc<dyn Tool>),
    /// The program on our standard streams.
    Control(mpsc::Sender<(Question, oneshot::Sender<Value>)>),
}

impl std::fmt::Debug for Consent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Nobody => "Nobody",
            Self::Tool(_) => "Tool",
            Self::Control(_) => "Control",
        })
    }
}

/// What the one who is asked sends back.
#[derive(Deserialize)]
#[serde(tag = "behavior", rename_all = "lowercase")]
enum Reply {
    Allow {
        #[serde(rename = "updatedInput")]
        updated_input: Option<Map<String, Value>>,
    },
    Deny {
        #[serde(default)]
        message: String,
        #[serde(default)]
        interrupt: bool,
    },
}

impl Consent {
    /// Asks. Whatever goes wrong is a no.
    pub async fn ask(&self, question: Question, context: &Context) -> Answer {
        let asking = async {
            match self {
                Self::Nobody => Answer::Nobody,
                Self::Tool(tool) => {
                    let input = json!({
                        "tool_name": question.tool,
                        "input": question.input,
                        "tool_use_id": question.tool_use_id,
                        "reason": question.reason,
                        "risk": question.risk.label(),
                        "preview": question.preview,
                    });
                    match tool.run(input, context.clone()).await {
                        Ok(output) => parse(&output.content.text()),
                        Err(error) => refuse(format!("the permission prompt failed: {error}")),
                    }
                }
                Self::Control(channel) => {
                    let (reply, answer) = oneshot::channel();
                    if channel.send((question, reply)).await.is_err() {
                        return Answer::Nobody;
                    }
                    match answer.await {
                        Ok(value) => parse(&value.to_string()),
                        Err(_) => Answer::Nobody,
                    }
                }
            }
        };
        tokio::select! {
            answer = tokio::time::timeout(DEADLINE, asking) => {
                answer.unwrap_or_else(|_| refuse("nobody answered in time".into()))
            }
            () = context.cancel.cancelled() => refuse("interrupted".into()),
        }
    }
}

fn refuse(message: String) -> Answer {
    Answer::Deny {
        message,
        interrupt: false,
    }
}

fn parse(text: &str) -> Answer {
    match serde_json::from_str::<Reply>(text) {
        Ok(Reply::Allow { updated_input }) => Answer::Allow(updated_input.map(Value::Object)),
        Ok(Reply::Deny { message, interrupt }) => Answer::Deny { message, interrupt },
        Err(error) => refuse(format!("the permission prompt answered nonsense: {error}")),
    }
}

/// What exactly a call would do, for the one who is asked.
pub fn preview(accesses: &[Access], input: &Value) -> String {
    let parts: Vec<String> = accesses
        .iter()
        .map(|access| match access {
            Access::Read(place) => format!("read {}", place.real.display()),
            Access::Write(place) => format!("write {}", place.real.display()),
            Access::Command(judgement) => judgement.text.clone(),
            Access::Fetch { host } => format!("fetch from {host}"),
        })
        .collect();
    if parts.is_empty() {
        input.to_string()
    } else {
        parts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        assert_eq!(parse(r#"{"behavior":"allow"}"#), Answer::Allow(None));
        assert_eq!(
            parse(r#"{"behavior":"allow","updatedInput":{"a":1}}"#),
            Answer::Allow(Some(json!({"a":1})))
        );
        for text in [
            "",
            "yes",
            "{}",
            r#"{"behavior":"Allow"}"#,
            r#"{"behavior":"deny"}"#,
            "null",
        ] {
            assert!(matches!(parse(text), Answer::Deny { .. }), "{text}");
        }
    }
}
