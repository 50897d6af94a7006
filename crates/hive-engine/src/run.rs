//! A process: its turns from the first prompt to the exit code.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{IsTerminal as _, Write as _},
};

use hive_providers::Models;
use serde_json::{Map, Value, json};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, oneshot},
};
use tokio_util::sync::CancellationToken;

use crate::{
    cli::{InputFormat, OutputFormat, TurnArgs},
    consent::Question,
    conversation::{Conversation, Prompt},
    happening::{Happening, TurnReport},
    ids, input,
    permission::Mode,
    printer::{Format, Out, Printer},
    session::SessionError,
    slash::Slash,
    startup::{self, StartError},
    stream_json::{ControlRequest, ControlResponse, Line, User},
};

/// Events that wait for the printer.
const QUEUE: usize = 64;
/// Prompts that wait for their turn.
const MAX_QUEUED: usize = 256;
/// The exit code after SIGTERM.
const TERMINATED: u8 = 143;

/// Runs a process; returns its exit code.
pub async fn run(args: TurnArgs, env: BTreeMap<String, String>) -> u8 {
    match turns(&args, &env).await {
        Ok(code) => code,
        Err(StartError::Message(text)) => {
            complain(&text);
            1
        }
        Err(StartError::NoSession(error, id)) => {
            complain(&error.to_string());
            if args.output_format != OutputFormat::Text {
                let line = no_session(&id, &error.to_string());
                // With nobody to read it there is nobody to tell.
                drop(writeln!(std::io::stdout(), "{line}"));
            }
            1
        }
    }
}

/// Something for people, on standard error.
fn complain(text: &str) {
    // Without a standard error there is nobody to tell.
    drop(writeln!(std::io::stderr(), "{text}"));
}

fn no_session(id: &str, error: &str) -> Value {
    json!({"type": "result", "subtype": "error_during_execution", "is_error": true, "duration_ms": 0,
        "duration_api_ms": 0, "num_turns": 0, "stop_reason": null, "session_id": id,
        "total_cost_usd": 0, "usage": {}, "modelUsage": {}, "permission_denials": [],
        "errors": [error], "uuid": ids::uuid(), "result_index": 0})
}

async fn turns(args: &TurnArgs, env: &BTreeMap<String, String>) -> Result<u8, StartError> {
    check(args)?;
    let prompt = match args.input_format {
        InputFormat::Text => Some(prompt(args)?),
        InputFormat::StreamJson => None,
    };
    let ready = startup::start(args, env).await?;
    for warning in &ready.warnings {
        complain(warning);
    }
    if !ready.conversation.setup.has_key && args.output_format == OutputFormat::Text {
        complain(
            "hive-engine: there is no key. Set ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN), or \
             OPENAI_API_KEY, or OPENAI_BASE_URL for a local model.",
        );
    }
    let out = Out::start();
    let servers = ready.servers;
    let mut conversation = ready.conversation;
    let printer = Printer {
        format: Format::from(args.output_format),
        partial: args.include_partial_messages,
        session_id: conversation.session.id.clone(),
        init: ready.init,
        models: ready.models,
        results: 0,
        lines: out.lines(),
    };
    let mut process = Process {
        printer,
        signals: Signals::new().map_err(|error| format!("Error: signals: {error}"))?,
        questions: ready.questions,
        asked: BTreeMap::new(),
        seen: conversation.session.seen.clone(),
        has_slash_commands: !args.disable_slash_commands,
        replays: args.replay_user_messages,
        is_terminated: false,
        exit_code: 0,
    };
    let code = match prompt {
        Some(text) => process.one(&mut conversation, text).await,
        None => process.stream(&mut conversation, args).await,
    };
    drop(process);
    conversation.setup.context.browser.stop().await;
    // Servers end also after a turn that could not be written down.
    servers.stop().await;
    out.finish();
    code
}

fn check(args: &TurnArgs) -> Result<(), StartError> {
    let message = |text: &str| Err(StartError::Message(text.to_owned()));
    if !args.print && args.prompt.is_none() {
        return message(
            "Error: hive-engine has no interactive mode. Give it a prompt: hive-engine 'what is in \
             src?', or --print with the prompt on standard input (see --help).",
        );
    }
    if args.output_format == OutputFormat::StreamJson && !args.verbose {
        return message(
            "Error: When using --print, --output-format=stream-json requires --verbose",
        );
    }
    if args.input_format == InputFormat::StreamJson
        && args.output_format != OutputFormat::StreamJson
    {
        return message("Error: --input-format=stream-json requires output-format=stream-json.");
    }
    if args.include_partial_messages && args.output_format != OutputFormat::StreamJson {
        return message(
            "Error: --include-partial-messages requires --print and --output-format=stream-json.",
        );
    }
    Ok(())
}

fn prompt(args: &TurnArgs) -> Result<String, StartError> {
    let mut text = args.prompt.clone().unwrap_or_default();
    if !std::io::stdin().is_terminal() {
        let piped = input::read_all()?;
        if !piped.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&piped);
        }
    }
    if text.is_empty() {
        return Err(StartError::Message(
            "Error: Input must be provided either through stdin or as a prompt argument when using \
             --print"
                .into(),
        ));
    }
    if text.trim().is_empty() {
        return Err(StartError::Message(
            "Error: Input contained only whitespace".into(),
        ));
    }
    Ok(text)
}

/// What stops a turn.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

/// Which signal came.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    Interrupt,
    Terminate,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// The next one. Cancel-safe: a signal that is not taken stays.
    async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.interrupt.recv() => Stop::Interrupt,
            _ = self.terminate.recv() => Stop::Terminate,
            _ = self.hang_up.recv() => Stop::Terminate,
        }
    }
}

type Questions = mpsc::Receiver<(Question, oneshot::Sender<Value>)>;

/// A process between and during its turns. The conversation is lent to it, so that a turn can hold
/// it while everything else stays usable.
struct Process {
    printer: Printer,
    signals: Signals,
    questions: Questions,
    /// Questions that are out, by request id.
    asked: BTreeMap<String, oneshot::Sender<Value>>,
    /// The ids of prompts that were taken.
    seen: Vec<String>,
    has_slash_commands: bool,
    replays: bool,
    is_terminated: bool,
    exit_code: u8,
}

/// What came in while a turn ran, to be looked at after it.
enum Waiting {
    Prompt(Prompt),
    Control(ControlRequest),
}

impl Process {
    /// One prompt, one turn.
    async fn one(
        &mut self,
        conversation: &mut Conversation,
        text: String,
    ) -> Result<u8, StartError> {
        let (_keep, mut nothing) = mpsc::channel(1);
        self.take(
            conversation,
            Prompt::text(text),
            &mut nothing,
            &mut VecDeque::new(),
        )
        .await?;
        Ok(self.code())
    }

    fn code(&self) -> u8 {
        if self.is_terminated {
            TERMINATED
        } else {
            self.exit_code
        }
    }

    /// Prompts from standard input until it ends.
    async fn stream(
        &mut self,
        conversation: &mut Conversation,
        args: &TurnArgs,
    ) -> Result<u8, StartError> {
        let mut incoming = input::lines();
        let mut waiting: VecDeque<Waiting> = VecDeque::new();
        if let Some(text) = &args.prompt {
            waiting.push_back(Waiting::Prompt(Prompt::text(text.clone())));
        }
        loop {
            while let Some(next) = waiting.pop_front() {
                match next {
                    Waiting::Prompt(prompt) => {
                        self.take(conversation, prompt, &mut incoming, &mut waiting)
                            .await?;
                    }
                    Waiting::Control(request) => self.control(conversation, request).await,
                }
                if self.is_terminated || self.printer.lines.is_closed() {
                    return Ok(self.code());
                }
            }
            // Both are cancel-safe: a line or signal that is not taken stays.
            tokio::select! {
                line = incoming.recv() => match line {
                    None => return Ok(self.code()),
                    Some(line) => self.sort(line, &mut waiting, None).await,
                },
                stop = self.signals.next() => {
                    self.is_terminated = stop == Stop::Terminate;
                    return Ok(self.code());
                }
            }
        }
    }

    /// Looks at a line. What can wait is put into `waiting`; an interruption cannot.
    async fn sort(
        &mut self,
        incoming: input::Incoming,
        waiting: &mut VecDeque<Waiting>,
        cancel: Option<&CancellationToken>,
    ) {
        let line = match incoming {
            input::Incoming::Line(line) => *line,
            input::Incoming::Bad(reason) => {
                complain(&format!("Error parsing streaming input line: {reason}"));
                return;
            }
        };
        match line {
            Line::User(user) if waiting.len() < MAX_QUEUED => {
                if let Some(prompt) = self.accept(user).await {
                    waiting.push_back(Waiting::Prompt(prompt));
                }
            }
            Line::User(_) => complain("Error: too many prompts wait; this one is dropped"),
            Line::ControlRequest(request) if request.request["subtype"] == "interrupt" => {
                if let Some(cancel) = cancel {
                    cancel.cancel();
                }
                self.respond(&request.request_id, Ok(json!({"still_queued": []})))
                    .await;
            }
            Line::ControlRequest(request) => waiting.push_back(Waiting::Control(request)),
            Line::ControlResponse(response) => self.answered(&response),
            // Other kinds are for newer versions.
            _ => {}
        }
    }

    /// A user message as a prompt; one that was taken before is not taken again.
    async fn accept(&mut self, user: User) -> Option<Prompt> {
        if let Some(uuid) = &user.uuid {
            if self.seen.contains(uuid) {
                return None;
            }
            self.seen.push(uuid.clone());
        }
        if self.replays {
            let line = Line::User(User {
                is_replay: Some(true),
                session_id: self.printer.session_id.clone(),
                ..user.clone()
            });
            self.printer.line(&line).await;
        }
        let is_empty = user.message.text().trim().is_empty()
            && user
                .message
                .content
                .iter()
                .all(|block| block.as_text().is_some());
        (!is_empty).then_some(Prompt {
            content: user.message.content,
            uuid: user.uuid,
        })
    }

    /// Runs a prompt as a turn or as a command, and takes care of what comes in meanwhile.
    async fn take(
        &mut self,
        conversation: &mut Conversation,
        prompt: Prompt,
        incoming: &mut mpsc::Receiver<input::Incoming>,
        waiting: &mut VecDeque<Waiting>,
    ) -> Result<(), StartError> {
        let slash = prompt
            .as_text()
            .and_then(|text| Slash::parse(text.trim_end()));
        if let Some(Slash::Model(name)) = &slash
            && self.has_slash_commands
            && !name.is_empty()
        {
            self.set_model(conversation, name);
        }
        let (events, mut queue) = mpsc::channel::<Happening>(QUEUE);
        let cancel = CancellationToken::new();
        let turn = begin(
            conversation,
            prompt,
            slash,
            self.has_slash_commands,
            events,
            &cancel,
        );
        tokio::pin!(turn);
        let mut report = None;
        let (mut is_printed, mut has_input) = (false, true);
        while report.is_none() || !is_printed {
            // The turn goes on where it was; every other arm is a channel or a signal, and what is
            // not taken from those stays there.
            tokio::select! {
                done = &mut turn, if report.is_none() => report = Some(done),
                happening = queue.recv(), if !is_printed => match happening {
                    Some(happening) => {
                        is_printed = matches!(happening, Happening::Done(_));
                        if !self.printer.print_one(happening).await {
                            cancel.cancel();
                        }
                    }
                    None => is_printed = true,
                },
                line = incoming.recv(), if has_input && report.is_none() => match line {
                    Some(line) => self.sort(line, waiting, Some(&cancel)).await,
                    None => has_input = false,
                },
                Some((question, reply)) = self.questions.recv() => {
                    self.forward(question, reply).await;
                }
                stop = self.signals.next() => {
                    self.is_terminated |= stop == Stop::Terminate;
                    cancel.cancel();
                }
            }
        }
        match report {
            Some(Ok(report)) => self.exit_code = report.end.exit_code(),
            Some(Err(error)) => return Err(StartError::Message(error.to_string())),
            None => {}
        }
        Ok(())
    }

    /// Hands a question about permissions to the program on our standard streams.
    async fn forward(&mut self, question: Question, reply: oneshot::Sender<Value>) {
        let request_id = ids::uuid();
        let request = json!({"subtype": "can_use_tool", "tool_name": question.tool,
            "input": question.input, "tool_use_id": question.tool_use_id,
            "decision_reason": question.reason, "risk": question.risk.label(),
            "preview": question.preview});
        let request = request.as_object().cloned().unwrap_or_default();
        self.asked.insert(request_id.clone(), reply);
        self.printer
            .line(&Line::ControlRequest(ControlRequest {
                request_id,
                request,
            }))
            .await;
    }

    fn answered(&mut self, response: &ControlResponse) {
        let id = response.response["request_id"].as_str().unwrap_or_default();
        if let Some(reply) = self.asked.remove(id) {
            // The turn may have given up on it.
            drop(
                reply.send(
                    response
                        .response
                        .get("response")
                        .cloned()
                        .unwrap_or_default(),
                ),
            );
        }
    }

    async fn respond(&self, request_id: &str, result: Result<Value, String>) {
        let mut response = Map::new();
        response.insert("request_id".into(), json!(request_id));
        match result {
            Ok(value) => {
                response.insert("subtype".into(), json!("success"));
                response.insert("response".into(), value);
            }
            Err(error) => {
                response.insert("subtype".into(), json!("error"));
                response.insert("error".into(), json!(error));
            }
        }
        self.printer
            .line(&Line::ControlResponse(ControlResponse { response }))
            .await;
    }

    fn set_model(&mut self, conversation: &mut Conversation, name: &str) {
        let model = Models::resolve(name, |name| std::env::var(name).ok());
        self.printer.init.model.clone_from(&model);
        conversation.setup.model = model;
    }

    /// A control request between two turns.
    async fn control(&mut self, conversation: &mut Conversation, request: ControlRequest) {
        let text = |name: &str| {
            request
                .request
                .get(name)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let result = match text("subtype").as_deref() {
            Some("initialize") => Ok(
                json!({"commands": [], "agents": [], "output_style": "default",
                "available_output_styles": ["default"], "models": [], "account": {}}),
            ),
            Some("set_model") => {
                let name = text("model").unwrap_or_else(|| "default".into());
                self.set_model(
                    conversation,
                    if name == "default" { "sonnet" } else { &name },
                );
                Ok(json!({"model": conversation.setup.model}))
            }
            Some("set_permission_mode") => {
                let name = text("mode").unwrap_or_default();
                Mode::parse(&name).map(|mode| {
                    conversation.setup.policy.mode = mode;
                    self.printer.init.permission_mode = mode.contract_name().to_owned();
                    json!({"mode": name})
                })
            }
            Some("set_max_thinking_tokens") => Ok(json!({})),
            Some("mcp_status") => Ok(json!({"mcpServers": self.printer.init.mcp_servers})),
            Some("get_context_usage") => {
                let (info, _) = self.printer.models.find(&conversation.setup.model);
                let total = conversation.session.context_tokens;
                Ok(
                    json!({"totalTokens": total, "maxTokens": info.context_window,
                    "percentage": total * 100 / info.context_window.max(1)}),
                )
            }
            Some("interrupt") => Ok(json!({"still_queued": []})),
            other => Err(format!(
                "unknown control request {}",
                other.unwrap_or("without a subtype")
            )),
        };
        self.respond(&request.request_id, result).await;
    }
}

/// The turn or command that a prompt is.
async fn begin(
    conversation: &mut Conversation,
    prompt: Prompt,
    slash: Option<Slash>,
    has_slash_commands: bool,
    events: mpsc::Sender<Happening>,
    cancel: &CancellationToken,
) -> Result<TurnReport, SessionError> {
    let uuids: Vec<String> = prompt.uuid.clone().into_iter().collect();
    let Some(slash) = slash else {
        return conversation.turn(prompt, &events, cancel).await;
    };
    let name = slash.name();
    if !has_slash_commands {
        let text = format!("/{name} isn't available in this environment.");
        return conversation.local(name, text, &events, cancel, uuids).await;
    }
    match slash {
        Slash::Compact(instructions) => {
            conversation
                .compact(&instructions, &events, cancel, uuids)
                .await
        }
        Slash::Clear => conversation.clear(&events, cancel, uuids).await,
        Slash::Model(_) => {
            let text = format!("Set model to `{}`", conversation.setup.model);
            conversation.local(name, text, &events, cancel, uuids).await
        }
        Slash::Context => {
            let (info, _) = conversation.setup.models.find(&conversation.setup.model);
            let used = conversation.session.context_tokens;
            let text = format!("{used} of {} tokens are used", info.context_window);
            conversation.local(name, text, &events, cancel, uuids).await
        }
    }
}
