use hive_wire::agent::{GetLooseEnds as List, LooseEnd as WireLooseEnd};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    hyperhive::Hyperhive,
    toolbox::{Call, Effect, Failure, Tool},
};

/// Lists what is open around an agent (M6).
pub struct GetLooseEnds;

/// Whose loose ends.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// A child of yours; your own loose ends unless given.
    #[serde(default)]
    agent: Option<String>,
}

/// What is open.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// The rows, oldest first within a kind.
    loose_ends: Vec<LooseEnd>,
}

/// One thing that is open.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum LooseEnd {
    /// A question that was asked and not answered.
    Question {
        /// Its id, for answer and cancel_loose_end.
        question_id: i64,
        /// Who asked.
        asker: String,
        /// Who is to answer.
        target: String,
        /// The question.
        question: String,
        /// When its answer becomes `[expired]`.
        expires_at: Option<String>,
    },
    /// A reminder that has not fired.
    Reminder {
        /// Its id, for cancel_loose_end.
        reminder_id: i64,
        /// What it will say.
        message: String,
        /// When.
        due_at: String,
    },
    /// A request that waits for the operator's decision; only the root agent sees it.
    Approval {
        /// Its id, for cancel_loose_end.
        approval_id: i64,
        /// What is asked for: `spawn` or `apply`.
        request: String,
        /// The agent it is about.
        agent: String,
        /// Who asks for it.
        requested_by: String,
        /// When it falls out undecided.
        expires_at: Option<String>,
    },
    /// A background command that runs, or that ended without your knowing it.
    Task {
        /// Its label: a message from it comes when it has ended.
        label: String,
        /// What it is and how it stands.
        text: String,
        /// Since when.
        since: String,
    },
}

impl Tool<Hyperhive> for GetLooseEnds {
    const NAME: &'static str = "get_loose_ends";
    const TITLE: &'static str = "List what is open";
    const DESCRIPTION: &'static str = "List what is still open around you: questions that you \
        asked or owe an answer to, reminders that have not fired, and background commands that \
        run or whose end you have not seen. Look here before you say \
        that your work is done, and when you do not know what you were waiting for.";
    const EFFECT: Effect = Effect::Reads;
    type Args = Args;
    type Reply = Reply;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Reply, Failure> {
        let listed = hive.call(&List { agent: args.agent }).await?;
        Ok(Reply {
            loose_ends: listed.loose_ends.into_iter().map(shown).collect(),
        })
    }
}

fn shown(row: WireLooseEnd) -> LooseEnd {
    match row {
        WireLooseEnd::Question {
            question_id,
            asker,
            target,
            question,
            expires_at,
        } => LooseEnd::Question {
            question_id: question_id.0,
            asker: asker.to_string(),
            target,
            question,
            expires_at: expires_at.map(|at| at.to_string()),
        },
        WireLooseEnd::Reminder {
            reminder_id,
            message,
            due_at,
        } => LooseEnd::Reminder {
            reminder_id: reminder_id.0,
            message,
            due_at: due_at.to_string(),
        },
        WireLooseEnd::Approval {
            approval_id,
            request,
            agent,
            requested_by,
            expires_at,
        } => LooseEnd::Approval {
            approval_id: approval_id.0,
            request,
            agent: agent.to_string(),
            requested_by,
            expires_at: expires_at.map(|at| at.to_string()),
        },
        WireLooseEnd::Task { label, text, since } => LooseEnd::Task {
            label,
            text,
            since: since.to_string(),
        },
    }
}
