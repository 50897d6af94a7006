use std::time::Duration;

use hive_wire::agent::Ask as AskQuestion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    hyperhive::Hyperhive,
    options::Purpose,
    toolbox::{AnswerForm, Call, Effect, Failure, Tool},
};

/// The operator's yes.
const ALLOW: &str = "allow";
/// The operator's no; any other answer is one too, and tells why.
const DENY: &str = "deny";
/// What an answer is when its time ran out.
const EXPIRED: &str = "[expired]";
/// How much longer than the question the wait for it may take.
const GRACE: Duration = Duration::from_secs(20);
/// The most characters of a call's arguments that are shown.
const SHOWN: usize = 4_000;

/// Asks the operator whether a call may run, where the engine's rules leave it open (A5). The
/// engine calls it, with the contract of `--permission-prompt-tool`; the model does not see it.
///
/// Whatever is not a clear yes within the time is a no.
pub struct PermissionPrompt;

/// A call that wants to run.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Args {
    /// The tool.
    tool_name: String,
    /// Its arguments.
    #[serde(default)]
    input: Map<String, Value>,
    /// Why it is asked.
    #[serde(default)]
    reason: Option<String>,
    /// How bad it can get: low, medium, high or unknown.
    #[serde(default)]
    risk: Option<String>,
    /// The exact command, or the files with every link followed.
    #[serde(default)]
    preview: Option<String>,
}

/// What the engine is told.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "behavior", rename_all = "lowercase")]
pub enum Reply {
    /// It may run.
    Allow {
        /// The arguments, unchanged.
        #[serde(rename = "updatedInput")]
        updated_input: Map<String, Value>,
    },
    /// It may not.
    Deny {
        /// Why, for the model.
        message: String,
    },
}

impl Tool<Hyperhive> for PermissionPrompt {
    const NAME: &'static str = "permission_prompt";
    const TITLE: &'static str = "Ask the operator for permission";
    const DESCRIPTION: &'static str = "For the engine: asks the operator whether a call of a tool \
        may run. There is no use in calling it yourself; it permits nothing.";
    const EFFECT: Effect = Effect::Adds;
    // The contract asks for a single text.
    const ANSWER: AnswerForm = AnswerForm::Text;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        let seconds = hive.consent_seconds();
        if hive.purpose() == Purpose::Upkeep || seconds == 0 {
            return Ok(deny("Nobody is asked in this turn."));
        }
        let question = AskQuestion {
            question: question(&args, seconds),
            options: vec![ALLOW.to_owned(), DENY.to_owned()],
            multi: false,
            ttl_seconds: Some(seconds),
            to: None,
            wait: true,
            key: None,
        };
        // On a connection of its own: when this call is dropped, the question is taken back.
        let aside = hive.aside();
        let patience = Duration::from_secs(seconds.into()) + GRACE;
        Ok(match aside.call_within(&question, patience).await {
            Ok(asked) => verdict(asked.answer.as_deref(), args.input, seconds),
            Err(error) => deny(&format!("The operator could not be asked: {error}.")),
        })
    }
}

fn deny(message: &str) -> Reply {
    Reply::Deny {
        message: message.to_owned(),
    }
}

fn verdict(answer: Option<&str>, input: Map<String, Value>, seconds: u32) -> Reply {
    let answer = answer.unwrap_or_default().trim();
    if answer.eq_ignore_ascii_case(ALLOW) {
        return Reply::Allow {
            updated_input: input,
        };
    }
    if answer == EXPIRED {
        return deny(&format!("The operator did not answer within {seconds} s."));
    }
    if answer.is_empty() || answer.eq_ignore_ascii_case(DENY) {
        return deny("The operator refused it.");
    }
    deny(&format!("The operator refused it: {answer}"))
}

/// What the operator reads: the call as it would run comes first.
fn question(args: &Args, seconds: u32) -> String {
    let risk = args.risk.as_deref().unwrap_or("unknown");
    let mut text = format!("May I use {}? Risk: {risk}.\n", args.tool_name);
    if let Some(preview) = &args.preview {
        text.push_str(&format!("\n{}\n", cut(preview)));
    }
    if !args.input.is_empty() {
        let input = serde_json::to_string_pretty(&args.input).unwrap_or_default();
        text.push_str(&format!("\nArguments: {}\n", cut(&input)));
    }
    if let Some(reason) = &args.reason {
        text.push_str(&format!("\nWhy it is asked: {reason}\n"));
    }
    text.push_str(&format!(
        "\nWithout an answer within {seconds} s it is refused. Another answer than `{ALLOW}` is a \
         no, and tells me why."
    ));
    text
}

/// A long text with its middle left out: what is at either end may be what matters.
fn cut(text: &str) -> String {
    let count = text.chars().count();
    if count <= SHOWN {
        return text.to_owned();
    }
    let head: String = text.chars().take(SHOWN / 2).collect();
    let tail: String = text.chars().skip(count - SHOWN / 2).collect();
    format!(
        "{head}\n[… {} characters left out …]\n{tail}",
        count - SHOWN
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn args() -> Args {
        serde_json::from_value(json!({"tool_name": "Bash", "tool_use_id": "t1",
            "input": {"command": "rm -r build"}, "reason": "no rule allows it", "risk": "high",
            "preview": "rm -r build"}))
        .unwrap()
    }

    #[test]
    fn a5_only_a_clear_yes_is_a_yes() {
        let input = args().input;
        for yes in ["allow", " Allow\n"] {
            let allowed = serde_json::to_value(verdict(Some(yes), input.clone(), 9)).unwrap();
            let wanted = json!({"behavior": "allow", "updatedInput": {"command": "rm -r build"}});
            assert_eq!(allowed, wanted);
        }
        for (no, needle) in [
            (None, "refused"),
            (Some("deny"), "refused"),
            (Some("allow?"), "allow?"),
            (Some("yes"), "yes"),
            (Some("not on a Friday"), "not on a Friday"),
            (Some("[expired]"), "within 9 s"),
        ] {
            let Reply::Deny { message } = verdict(no, input.clone(), 9) else {
                panic!("{no:?} was a yes");
            };
            assert!(message.contains(needle), "{message}");
        }
    }

    #[test]
    fn a5_the_operator_sees_the_exact_call_its_risk_and_its_deadline() {
        let mut args = args();
        let text = question(&args, 240);
        for part in [
            "Bash",
            "high",
            "\nrm -r build\n",
            "no rule allows it",
            "240 s",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        args.preview = Some(format!("begin{}end", "x".repeat(50_000)));
        let text = question(&args, 240);
        assert!(text.contains("begin") && text.contains("end") && text.len() < 6_000);
    }
}
