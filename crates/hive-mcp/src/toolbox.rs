//! How a tool is declared, listed and called: the one definition behind every transport.
//!
//! A [`Tool`] has typed arguments and a typed reply; their JSON schemas are made from the types. A
//! [`Toolbox`] is the closed, ordered list of a server's tools. A tool that fails says so to the
//! model in words ([`Failure`]): what happened, and what to do next. A protocol error is only for a
//! request that names no tool.

use std::{borrow::Cow, future::Future, pin::Pin, sync::Arc};

use hive_wire::{ErrorCode, WireError, client::ClientError, text};
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, MetaObject, RequestId, Tool as Definition,
    ToolAnnotations,
};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    groups::{Gate, Grants},
    handover::Handovers,
    schema,
};

/// What all tools of a server work on.
pub trait Context: Send + Sync + 'static {
    /// What the caller has been given: which tools a list shows. Asked for each list.
    fn granted(&self) -> impl Future<Output = Grants> + Send;

    /// Whether a call behind this gate is refused here. Those who carry it out may do that instead,
    /// where they check the gate themselves.
    fn refuses(&self, gate: Gate, checked: Checked) -> impl Future<Output = bool> + Send;
}

/// Whether those who carry a call out check its gate as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// The host does, for every request.
    ByHost,
    /// Nobody but us: to the host it is part of what every harness does.
    Here,
}

/// One tool, on a context `C` that all tools of its server share.
pub trait Tool<C>: 'static {
    /// Its name within the server.
    const NAME: &'static str;
    /// Its name for people.
    const TITLE: &'static str;
    /// When to use it and what it does, for the model.
    const DESCRIPTION: &'static str;
    /// What it changes.
    const EFFECT: Effect;
    /// Who checks its gate.
    const CHECKED: Checked = Checked::ByHost;
    /// How long its answer may be before the engine may put it aside in a file, in characters.
    const MAX_ANSWER: Option<u32> = None;
    /// In which forms its answer comes.
    const ANSWER: AnswerForm = AnswerForm::Structured;
    /// Its arguments.
    type Args: DeserializeOwned + JsonSchema + Send + 'static;
    /// Its structured answer.
    type Reply: Serialize + JsonSchema + 'static;

    /// Does it. Dropped at any await when the call is cancelled.
    fn call(
        context: &C,
        args: Self::Args,
        call: &Call,
    ) -> impl Future<Output = Result<Self::Reply, Failure>> + Send;

    /// The answer in words; its JSON unless said otherwise.
    fn text(reply: &Self::Reply) -> String {
        serde_json::to_string(reply).unwrap_or_default()
    }
}

/// In which forms an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerForm {
    /// As text, and structured with a schema.
    Structured,
    /// As one text and nothing else.
    Text,
}

/// What a tool changes, as hints for the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Reads,
    /// It adds something each time.
    Adds,
    /// Something that is the same after it was done twice.
    Sets,
    /// It takes something away, or breaks something off, and is the same after it was done twice.
    Removes,
    /// It breaks something off each time.
    Breaks,
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new().open_world(false);
        match self {
            Self::Reads => hints.read_only(true),
            Self::Adds => hints.read_only(false).destructive(false).idempotent(false),
            Self::Sets => hints.read_only(false).destructive(false).idempotent(true),
            Self::Removes => hints.read_only(false).destructive(true).idempotent(true),
            Self::Breaks => hints.read_only(false).destructive(true).idempotent(false),
        }
    }
}

/// One call of a tool.
pub struct Call {
    pub(crate) request: RequestId,
    pub(crate) cancelled: CancellationToken,
    pub(crate) handovers: Arc<Handovers>,
}

impl Call {
    /// Runs `handover` once the answer to this call was written; drops it when it never will be.
    pub fn once_written(&self, handover: impl Future<Output = ()> + Send + 'static) {
        self.handovers.once_written(self.request.clone(), handover);
        // Whoever cancels marks the call first and looks for its handover then; so either they or
        // this line sees the other.
        if self.cancelled.is_cancelled() {
            self.handovers.forget(&self.request);
        }
    }
}

/// Why a tool did not do it, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    what: String,
    next: Cow<'static, str>,
}

impl Failure {
    /// What happened, and what to do next.
    pub fn new(what: impl Into<String>, next: impl Into<Cow<'static, str>>) -> Self {
        Self {
            what: what.into(),
            next: next.into(),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (what, next) = (self.what.trim_end_matches('.'), &self.next);
        write!(f, "{what}. What to do: {next}")
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        // Some hints are for whoever has the operator's command line.
        let is_for_operator = error.hint.contains("hive-c0re");
        let next: Cow<'static, str> = match error.code {
            ErrorCode::Denied if is_for_operator => format!(
                "do without it, or ask the operator, who can: {}",
                error.hint
            )
            .into(),
            code if is_for_operator || error.hint.is_empty() => advice(code).into(),
            _ => error.hint.into(),
        };
        Self::new(error.message, next)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Refused(error) => error.into(),
            ClientError::Unreachable { .. } => Self::new(
                "The hive's daemon cannot be reached, so nothing was done",
                "try again later in this turn; if it stays like this, end the turn, and what \
                 waits for you will be delivered again",
            ),
            ClientError::Lost | ClientError::TimedOut { .. } => Self::new(
                format!("{error}"),
                "look how things stand (get_loose_ends, get_receipt) before you do it again",
            ),
            ClientError::Protocol(_) => Self::new(
                format!("{error}"),
                "tell the operator that the hive's parts have different versions",
            ),
        }
    }
}

/// What a model can do about an error that says nothing about it itself.
fn advice(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::NotFound => "check the name or the id; list_peers shows who is there",
        ErrorCode::Denied => "do without it, or ask the operator for the permission",
        ErrorCode::Conflict => "it was settled already, so go on",
        ErrorCode::LimitReached => "deal with what is open first, then try again",
        ErrorCode::NoOpenTurn | ErrorCode::TurnEnded => "end this turn; mail wakes you again",
        ErrorCode::DiskFull | ErrorCode::Storage => {
            "nothing was changed; tell the operator and try again later"
        }
        ErrorCode::ShuttingDown => "try again in a minute",
        _ => "change the arguments and try again",
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<CallToolResult, Failure>> + Send>>;

struct Entry<C> {
    definition: Definition,
    /// What an agent must have; none for a tool that everybody has.
    gate: Option<Gate>,
    run: fn(Arc<C>, Option<Gate>, JsonObject, Call) -> Answer,
}

/// The tools of one server, in the order in which they are listed.
pub struct Toolbox<C> {
    entries: Vec<Entry<C>>,
}

impl<C> Default for Toolbox<C> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
        }
    }
}

impl<C: Context> Toolbox<C> {
    /// The same with one tool more, which everybody has.
    #[must_use]
    pub fn with<T: Tool<C>>(self) -> Self {
        self.with_entry::<T>(None)
    }

    /// The same with one tool more, for those who have what its gate asks for.
    #[must_use]
    pub fn behind<T: Tool<C>>(self, gate: Gate) -> Self {
        self.with_entry::<T>(Some(gate))
    }

    fn with_entry<T: Tool<C>>(mut self, gate: Option<Gate>) -> Self {
        self.entries.push(Entry {
            definition: definition::<C, T>(),
            gate,
            run: run::<C, T>,
        });
        self
    }

    /// What every tool is called, does and takes that whoever has these grants is shown.
    pub fn definitions(&self, grants: &Grants) -> impl Iterator<Item = &Definition> {
        let is_shown = |gate: Option<Gate>| gate.is_none_or(|gate| grants.open(gate));
        let tools = self.tools().filter(move |(_, gate)| is_shown(*gate));
        tools.map(|(tool, _)| tool)
    }

    /// Every tool with its gate.
    pub fn tools(&self) -> impl Iterator<Item = (&Definition, Option<Gate>)> {
        let entries = self.entries.iter();
        entries.map(|entry| (&entry.definition, entry.gate))
    }

    /// The definition of the tool with this name, whoever may use it.
    pub(crate) fn find(&self, name: &str) -> Option<&Definition> {
        self.entry(name).map(|entry| &entry.definition)
    }

    /// Calls a tool; none when there is no such tool.
    pub(crate) fn call(
        &self,
        context: &Arc<C>,
        name: &str,
        args: JsonObject,
        call: Call,
    ) -> Option<Answer> {
        let entry = self.entry(name)?;
        Some((entry.run)(Arc::clone(context), entry.gate, args, call))
    }

    /// The tool whose name is nearest to one that does not exist.
    pub(crate) fn nearest(&self, name: &str) -> Option<&str> {
        let names = self.entries.iter().map(|entry| &*entry.definition.name);
        text::did_you_mean(name, names)
    }

    fn entry(&self, name: &str) -> Option<&Entry<C>> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.definition.name == name)
    }
}

fn definition<C, T: Tool<C>>() -> Definition {
    let mut tool = Definition::new(T::NAME, T::DESCRIPTION, JsonObject::new())
        .with_title(T::TITLE)
        .with_input_schema::<T::Args>()
        .with_annotations(T::EFFECT.annotations());
    if T::ANSWER == AnswerForm::Structured {
        tool = tool.with_output_schema::<T::Reply>();
    }
    let input = Arc::make_mut(&mut tool.input_schema);
    schema::without_null(input);
    schema::without_sizes(input);
    if let Some(output) = &mut tool.output_schema {
        let output = Arc::make_mut(output);
        schema::with_null_apart(output);
        schema::without_sizes(output);
    }
    match T::MAX_ANSWER {
        Some(max) => tool.with_meta(MetaObject(JsonObject::from_iter([(
            "anthropic/maxResultSizeChars".to_owned(),
            Value::from(max),
        )]))),
        None => tool,
    }
}

fn run<C: Context, T: Tool<C>>(
    context: Arc<C>,
    gate: Option<Gate>,
    args: JsonObject,
    call: Call,
) -> Answer {
    Box::pin(async move {
        if let Some(gate) = gate
            && context.refuses(gate, T::CHECKED).await
        {
            return Err(Failure::new(
                format!("`{}` needs {gate}, which you do not have", T::NAME),
                "do without it, or ask the operator for the permission",
            ));
        }
        let args = serde_json::from_value(Value::Object(args)).map_err(|error| {
            let why = text::shorten_middle(&error.to_string(), 300);
            Failure::new(
                format!("The arguments of `{}` do not fit: {why}", T::NAME),
                "call it again with arguments that fit its schema",
            )
        })?;
        let reply = T::call(&context, args, &call).await?;
        let structured = serde_json::to_value(&reply).map_err(|error| {
            Failure::new(
                format!("The answer of `{}` cannot be shown: {error}", T::NAME),
                "tell the operator",
            )
        })?;
        let mut result = CallToolResult::success(vec![ContentBlock::text(T::text(&reply))]);
        result.structured_content = (T::ANSWER == AnswerForm::Structured).then_some(structured);
        Ok(result)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_ends_with_what_to_do() {
        let said = |error: WireError| Failure::from(error).to_string();
        assert_eq!(
            said(WireError::new(ErrorCode::NotFound, "no agent `bob`").hint("did you mean `rob`?")),
            "no agent `bob`. What to do: did you mean `rob`?"
        );
        let for_operator = "run `hive-c0re permissions ada --grant lifecycle`";
        for (code, contains) in [(ErrorCode::Denied, true), (ErrorCode::NotFound, false)] {
            let said = said(WireError::new(code, "no").hint(for_operator));
            assert_eq!(said.contains("hive-c0re"), contains, "{said}");
        }
        for code in ErrorCode::ALL {
            let said = said(WireError::new(*code, "it failed."));
            assert!(said.starts_with("it failed. What to do: "), "{said}");
            assert!(said.len() > 30, "{said}");
        }
    }
}
