//! What a tool is: schema, handler, metadata, properties and permission.
//!
//! A tool is made with [`build`], whose defaults are the careful ones: not read-only, destructive,
//! never beside another call. A tool says beforehand what a call will touch, so that one place can
//! permit it. What goes wrong in a tool is told to the model; nothing else ends a turn.

use std::{collections::BTreeMap, fmt, future::Future, path::PathBuf, pin::Pin, sync::Arc};

use hive_providers::{Fetch, ResultContent, ToolSpec};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{
    bash,
    browser::Browser,
    files::Ledger,
    paths::{Place, Workspace},
    sandbox::Sandbox,
};

/// What a tool needs to be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// Look at things.
    Read,
    /// Change files.
    Write,
    /// Run programs or act outside.
    Execute,
    /// Change how the engine itself works.
    Admin,
    /// Nothing: it touches only the conversation.
    Auto,
}

/// How a tool behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Properties {
    /// It changes nothing.
    pub read_only: bool,
    /// What it does may be impossible to undo.
    pub destructive: bool,
    /// It may run beside other calls.
    pub concurrency_safe: bool,
}

impl Default for Properties {
    fn default() -> Self {
        Self {
            read_only: false,
            destructive: true,
            concurrency_safe: false,
        }
    }
}

/// Something a call is going to do, to be permitted first.
#[derive(Debug, Clone, PartialEq)]
pub enum Access {
    /// Look at a file or directory.
    Read(Place),
    /// Change or create a file.
    Write(Place),
    /// Run a shell command.
    Command(Box<bash::Judgement>),
    /// Ask a host.
    Fetch {
        /// The host's name.
        host: String,
    },
}

/// Why a tool failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// Told to the model, which may try something else.
    #[error("{0}")]
    Tell(String),
    /// The call was cut short because the turn is being stopped.
    #[error("interrupted")]
    Interrupted,
}

impl ToolError {
    /// An error for the model.
    pub fn tell(message: impl Into<String>) -> Self {
        Self::Tell(message.into())
    }
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// For the model.
    pub content: ResultContent,
    /// For programs: `tool_use_result` in the events.
    pub structured: Value,
    /// Whether the model should see it as a failure.
    pub is_error: bool,
}

impl Output {
    /// Plain text.
    pub fn text(text: impl Into<String>, structured: Value) -> Self {
        Self {
            content: ResultContent::Text(text.into()),
            structured,
            is_error: false,
        }
    }
}

/// What a call runs in.
#[derive(Clone)]
pub struct Context {
    /// The directories.
    pub workspace: Arc<Workspace>,
    /// The files that the model has seen.
    pub ledger: Arc<Ledger>,
    /// Where long outputs go.
    pub spill_dir: PathBuf,
    /// The environment of child processes: no secrets in it.
    pub env: Arc<BTreeMap<String, String>>,
    /// For tools that ask other hosts.
    pub fetch: Fetch,
    /// How commands are confined.
    pub sandbox: Arc<Sandbox>,
    /// Ends with the turn.
    pub cancel: CancellationToken,
    /// Hosts that a rule names, and that may therefore be private.
    pub named_hosts: Arc<Vec<String>>,
    /// A browser, started when it is first used.
    pub browser: Arc<Browser>,
    /// The bridge to the background daemon, where there is one.
    pub background: Option<Arc<dyn Tool>>,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("workspace", &self.workspace)
            .finish_non_exhaustive()
    }
}

/// A future that a tool returns.
pub type Running<'a> = Pin<Box<dyn Future<Output = Result<Output, ToolError>> + Send + 'a>>;

/// A tool. Its five parts are methods; `accesses` makes the permission exact for one call.
pub trait Tool: Send + Sync {
    /// Name, description and schema, as the model sees them.
    fn spec(&self) -> &ToolSpec;

    /// How a call with this input behaves.
    fn properties(&self, input: &Value) -> Properties;

    /// What it needs to be allowed to do.
    fn permission(&self) -> Permission;

    /// Checks the input and says what a call will touch. It changes nothing.
    fn accesses(&self, input: &Value, workspace: &Workspace) -> Result<Vec<Access>, ToolError>;

    /// Does it.
    fn run(&self, input: Value, context: Context) -> Running<'static>;
}

type Handler<I> = Box<dyn Fn(I, Context) -> Running<'static> + Send + Sync>;
type Touches<I> = Box<dyn Fn(&I, &Workspace) -> Result<Vec<Access>, ToolError> + Send + Sync>;
type Behaves<I> = Box<dyn Fn(&I) -> Properties + Send + Sync>;

/// A tool in the making; see [`build`].
pub struct Builder<I> {
    spec: ToolSpec,
    permission: Permission,
    properties: Properties,
    behaves: Option<Behaves<I>>,
    touches: Option<Touches<I>>,
}

/// Begins a tool with careful defaults.
pub fn build<I: DeserializeOwned + Send + 'static>(
    name: &str,
    permission: Permission,
    description: &str,
    schema: Value,
) -> Builder<I> {
    Builder {
        spec: ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            input_schema: schema,
        },
        permission,
        properties: Properties::default(),
        behaves: None,
        touches: None,
    }
}

impl<I: DeserializeOwned + Send + 'static> Builder<I> {
    /// It changes nothing and may run beside others.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.properties = Properties {
            read_only: true,
            destructive: false,
            concurrency_safe: true,
        };
        self
    }

    /// What it does can be undone.
    #[must_use]
    pub fn undoable(mut self) -> Self {
        self.properties.destructive = false;
        self
    }

    /// How it behaves depends on the input.
    #[must_use]
    pub fn behaves(mut self, behaves: impl Fn(&I) -> Properties + Send + Sync + 'static) -> Self {
        self.behaves = Some(Box::new(behaves));
        self
    }

    /// What a call touches.
    #[must_use]
    pub fn touches(
        mut self,
        touches: impl Fn(&I, &Workspace) -> Result<Vec<Access>, ToolError> + Send + Sync + 'static,
    ) -> Self {
        self.touches = Some(Box::new(touches));
        self
    }

    /// The handler; the tool is done.
    pub fn run<F>(self, handler: impl Fn(I, Context) -> F + Send + Sync + 'static) -> Arc<dyn Tool>
    where
        F: Future<Output = Result<Output, ToolError>> + Send + 'static,
    {
        Arc::new(Built {
            parts: self,
            handler: Box::new(move |input, context| Box::pin(handler(input, context))),
        })
    }

    /// A handler that blocks: it runs on a thread of its own.
    pub fn run_blocking(
        self,
        handler: fn(I, &Context) -> Result<Output, ToolError>,
    ) -> Arc<dyn Tool> {
        self.run(move |input, context| async move {
            let work = tokio::task::spawn_blocking(move || handler(input, &context));
            match work.await {
                Ok(result) => result,
                Err(_) => Err(ToolError::tell(
                    "The tool crashed. This is a bug in the engine.",
                )),
            }
        })
    }
}

struct Built<I> {
    parts: Builder<I>,
    handler: Handler<I>,
}

impl<I: DeserializeOwned> Built<I> {
    fn parse(&self, input: &Value) -> Result<I, ToolError> {
        I::deserialize(input).map_err(|error| {
            ToolError::tell(format!(
                "InputValidationError: {} failed: {error}. The schema is {}",
                self.parts.spec.name, self.parts.spec.input_schema
            ))
        })
    }
}

impl<I: DeserializeOwned + Send + 'static> Tool for Built<I> {
    fn spec(&self) -> &ToolSpec {
        &self.parts.spec
    }

    fn properties(&self, input: &Value) -> Properties {
        let behaves = self.parts.behaves.as_ref();
        let own = behaves.and_then(|behaves| Some(behaves(&self.parse(input).ok()?)));
        own.unwrap_or(self.parts.properties)
    }

    fn permission(&self) -> Permission {
        self.parts.permission
    }

    fn accesses(&self, input: &Value, workspace: &Workspace) -> Result<Vec<Access>, ToolError> {
        let input = self.parse(input)?;
        match &self.parts.touches {
            Some(touches) => touches(&input, workspace),
            None => Ok(Vec::new()),
        }
    }

    fn run(&self, input: Value, context: Context) -> Running<'static> {
        match self.parse(&input) {
            Ok(input) => (self.handler)(input, context),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
