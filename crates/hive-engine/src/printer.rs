//! Prints what happens: as stream-json lines, as one JSON object, or as plain text.

use std::io::Write as _;

use hive_providers::{Block, Message, Models, Role, Usage};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::{
    happening::{Answered, Compression, Happening, Notice, Speech, TurnReport, Whole},
    ids,
    permission::Why,
    session::Totals,
    stream_json::{
        ApiRetry, Assistant, CompactBoundary, CompactMetadata, Denial, Informational, Init, Line,
        Partial, PermissionDenied, RateLimitLine, Status, System, TurnResult, User,
    },
    turn_end::{ApiFailure, Failure, class},
};

/// Lines that wait for a slow reader.
const QUEUE: usize = 256;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The last words of the model.
    #[default]
    Text,
    /// The result as one object.
    Json,
    /// Everything, line by line.
    StreamJson,
}

/// A thread that writes lines to standard output, so that a slow reader never holds up a turn.
pub struct Out {
    lines: mpsc::Sender<String>,
    thread: std::thread::JoinHandle<()>,
}

impl Out {
    /// Starts the thread.
    pub fn start() -> Self {
        let (lines, mut queue) = mpsc::channel::<String>(QUEUE);
        let thread = std::thread::spawn(move || {
            let mut stdout = std::io::stdout().lock();
            while let Some(line) = queue.blocking_recv() {
                // When nobody reads any more, closing the queue tells those who write.
                if stdout
                    .write_all(line.as_bytes())
                    .and_then(|()| stdout.flush())
                    .is_err()
                {
                    return;
                }
            }
        });
        Self { lines, thread }
    }

    /// Where lines go in.
    pub fn lines(&self) -> mpsc::Sender<String> {
        self.lines.clone()
    }

    /// Waits until everything is written.
    pub fn finish(self) {
        drop(self.lines);
        // A panic of that thread has been reported by itself.
        drop(self.thread.join());
    }
}

/// What every line needs to know.
#[derive(Clone)]
pub struct Printer {
    /// How to print.
    pub format: Format,
    /// Whether pieces of answers are printed.
    pub partial: bool,
    /// The session.
    pub session_id: String,
    /// What `init` says.
    pub init: Init,
    /// What is known about models.
    pub models: Models,
    /// How many results were printed.
    pub results: u32,
    /// Where lines go.
    pub lines: mpsc::Sender<String>,
}

impl Printer {
    /// Prints one event; false when nobody reads any more.
    pub async fn print_one(&mut self, happening: Happening) -> bool {
        if self.format != Format::StreamJson {
            return match happening {
                Happening::Done(report) => self.last_words(&report).await,
                _ => true,
            };
        }
        for line in self.lines_of(happening) {
            if !self.line(&line).await {
                return false;
            }
        }
        true
    }

    /// Prints one line.
    pub async fn line(&self, line: &Line) -> bool {
        let Ok(mut text) = serde_json::to_string(line) else {
            return true;
        };
        text.push('\n');
        self.lines.send(text).await.is_ok()
    }

    async fn last_words(&mut self, report: &TurnReport) -> bool {
        let result = self.result(report);
        self.results += 1;
        let text = match self.format {
            Format::Json => {
                serde_json::to_string(&Line::Result(Box::new(result))).unwrap_or_default()
            }
            _ => match &report.end.failure {
                Some(Failure::Own { message, .. }) => format!("Error: {message}"),
                Some(Failure::Api(_)) | None => report.end.text.clone(),
            },
        };
        self.lines.send(format!("{text}\n")).await.is_ok()
    }

    fn lines_of(&mut self, happening: Happening) -> Vec<Line> {
        match happening {
            Happening::Begin => {
                let mut init = self.init.clone();
                init.uuid = ids::uuid();
                vec![Line::System(System::Init(Box::new(init)))]
            }
            Happening::TextDelta(Speech::Block(whole)) | Happening::ToolUse(whole) => {
                vec![self.assistant(whole)]
            }
            Happening::TextDelta(Speech::Piece {
                event,
                message_id,
                ttft,
            }) => {
                if !self.partial {
                    return Vec::new();
                }
                let mut extra = Map::new();
                extra.insert("api_message_id".into(), json!(message_id));
                if let Some(ttft) = ttft {
                    extra.insert("ttft_ms".into(), json!(millis(ttft)));
                }
                vec![Line::StreamEvent(Partial {
                    event,
                    session_id: self.session_id.clone(),
                    parent_tool_use_id: None,
                    uuid: ids::uuid(),
                    extra,
                })]
            }
            Happening::ToolResult(answered) => vec![self.tool_result(*answered)],
            Happening::ContextCompression(compression) => self.compression(compression),
            Happening::Done(report) => self.done(&report),
            Happening::Notice(notice) => self.notice(notice),
        }
    }

    fn assistant(&self, whole: Whole) -> Line {
        let mut message = json!({
            "id": whole.head.id, "type": "message", "role": "assistant",
            "model": whole.head.model, "content": [whole.block], "stop_reason": null,
            "stop_sequence": null, "usage": whole.head.usage, "context_management": null,
        });
        if whole.head.model.is_empty() {
            message["model"] = json!(self.init.model);
        }
        Line::Assistant(Assistant {
            request_id: whole.request_id,
            ..self.said(message)
        })
    }

    fn said(&self, message: Value) -> Assistant {
        Assistant {
            message,
            parent_tool_use_id: None,
            session_id: self.session_id.clone(),
            uuid: ids::uuid(),
            timestamp: Some(ids::now()),
            request_id: None,
            error: None,
            is_api_error_message: None,
            api_error_status: None,
            api_error_type: None,
            api_error: None,
            extra: Map::new(),
        }
    }

    /// A failure in the model's place.
    fn synthetic(&self, text: &str, stop_reason: &str) -> Assistant {
        self.said(json!({
            "id": ids::uuid(), "type": "message", "role": "assistant", "model": "<synthetic>",
            "content": [{"type": "text", "text": text}], "stop_reason": stop_reason,
            "stop_sequence": if stop_reason == "stop_sequence" { json!("") } else { Value::Null },
            "usage": usage(&Usage::default()), "context_management": null,
        }))
    }

    fn user(&self, content: Vec<Block>) -> User {
        User {
            message: Message {
                role: Role::User,
                content,
            },
            parent_tool_use_id: None,
            session_id: self.session_id.clone(),
            uuid: Some(ids::uuid()),
            timestamp: Some(ids::now()),
            tool_use_result: None,
            is_synthetic: None,
            is_replay: None,
            extra: Map::new(),
        }
    }

    fn tool_result(&self, answered: Answered) -> Line {
        let mut meta = json!({"id": answered.tool_use_id});
        match &answered.decision {
            Some((true, why)) => {
                meta["permission_decision"] =
                    json!({"decision": "accept", "source": "config", "reason_type": why.kind});
            }
            Some((false, _)) => {
                meta["non_execution_kind"] = json!("user-rejected");
                meta["permission_decision"] = json!({"decision": "reject", "source": "config"});
            }
            None => {}
        }
        let block = Block::tool_result(&answered.tool_use_id, answered.content, answered.is_error);
        let mut line = User {
            tool_use_result: Some(answered.structured),
            uuid: Some(answered.uuid),
            ..self.user(vec![block])
        };
        line.extra.insert("tool_result_meta".into(), json!([meta]));
        Line::User(line)
    }

    fn status(&self, status: Option<&str>) -> Status {
        Status {
            status: status.map(str::to_owned),
            session_id: self.session_id.clone(),
            uuid: ids::uuid(),
            ..Status::default()
        }
    }

    fn compression(&self, compression: Compression) -> Vec<Line> {
        match compression {
            Compression::Started => {
                vec![Line::System(System::Status(
                    self.status(Some("compacting")),
                ))]
            }
            Compression::Failed(error) => vec![
                Line::System(System::Status(Status {
                    compact_result: Some("failed".into()),
                    compact_error: Some(error),
                    ..self.status(None)
                })),
                self.init_line(),
            ],
            Compression::Done {
                trigger,
                pre_tokens,
                post_tokens,
                took,
                summary,
            } => {
                let mut extra = Map::new();
                let dropped = pre_tokens.saturating_sub(post_tokens);
                extra.insert("cumulative_dropped_tokens".into(), json!(dropped));
                let boundary = CompactBoundary {
                    compact_metadata: CompactMetadata {
                        trigger: trigger.to_owned(),
                        pre_tokens,
                        post_tokens,
                        duration_ms: millis(took),
                        extra,
                    },
                    session_id: self.session_id.clone(),
                    uuid: ids::uuid(),
                    extra: Map::new(),
                };
                let mut lines = vec![Line::System(System::Status(Status {
                    compact_result: Some("success".into()),
                    ..self.status(None)
                }))];
                if trigger == "manual" {
                    lines.push(self.init_line());
                }
                lines.push(Line::System(System::CompactBoundary(boundary)));
                lines.push(Line::User(User {
                    is_replay: Some(false),
                    is_synthetic: Some(true),
                    ..self.user(vec![Block::text(summary)])
                }));
                lines
            }
        }
    }

    fn init_line(&self) -> Line {
        let mut init = self.init.clone();
        init.uuid = ids::uuid();
        Line::System(System::Init(Box::new(init)))
    }

    fn notice(&self, notice: Notice) -> Vec<Line> {
        let session_id = self.session_id.clone();
        let uuid = ids::uuid();
        let line = match notice {
            Notice::Requesting => {
                if !self.partial {
                    return Vec::new();
                }
                Line::System(System::Status(self.status(Some("requesting"))))
            }
            Notice::Retry {
                attempt,
                max_retries,
                delay,
                error,
            } => Line::System(System::ApiRetry(ApiRetry {
                attempt,
                max_retries,
                retry_delay_ms: millis(delay) as f64,
                error_status: error.status,
                error: class(error.kind).to_owned(),
                session_id,
                uuid,
                extra: Map::new(),
            })),
            Notice::Limit(limit) => Line::RateLimitEvent(RateLimitLine {
                rate_limit_info: limit.to_json(),
                session_id,
                uuid,
                extra: Map::new(),
            }),
            Notice::Denied {
                denial,
                why,
                message,
            } => self.denied(denial, why, message),
            Notice::Nudge { text, is_synthetic } => Line::User(User {
                is_synthetic: is_synthetic.then_some(true),
                ..self.user(vec![Block::text(text)])
            }),
            Notice::Info(content) => Line::System(System::Informational(Informational {
                content,
                level: "notice".into(),
                session_id,
                uuid,
                extra: Map::new(),
            })),
            Notice::Reset => {
                let reset = json!({"type": "conversation_reset", "new_conversation_id": session_id,
                    "trigger": "clear", "uuid": uuid, "timestamp": ids::now()});
                match reset {
                    Value::Object(fields) => Line::Other(fields),
                    _ => return Vec::new(),
                }
            }
            Notice::LocalOutput(text) => {
                let text = format!("<local-command-stdout>{text}</local-command-stdout>");
                Line::User(User {
                    is_replay: Some(true),
                    ..self.user(vec![Block::text(text)])
                })
            }
            Notice::LocalFailure { command, text } => self.local_failure(command, &text),
        };
        vec![line]
    }

    fn denied(&self, denial: Denial, why: Why, message: String) -> Line {
        let is_outside = why.kind == "workingDir";
        Line::System(System::PermissionDenied(PermissionDenied {
            tool_name: denial.tool_name,
            tool_use_id: denial.tool_use_id,
            decision_reason_type: Some(why.kind.to_owned()),
            decision_reason: if is_outside {
                Some("Path is outside allowed working directories".into())
            } else {
                why.rule
            },
            message,
            session_id: self.session_id.clone(),
            uuid: ids::uuid(),
            extra: Map::new(),
        }))
    }

    fn local_failure(&self, command: &str, text: &str) -> Line {
        let mut line = self.synthetic(text, "end_turn");
        let source = format!("<local-command-stderr>{text}</local-command-stderr>");
        line.extra
            .insert("local_command_source".into(), json!(source));
        line.extra.insert(
            "local_command_run".into(),
            json!({"command": command, "args": ""}),
        );
        line.extra
            .insert("local_command_outcome".into(), json!({"kind": "failed"}));
        Line::Assistant(line)
    }

    fn done(&mut self, report: &TurnReport) -> Vec<Line> {
        let mut lines = Vec::new();
        if let Some(Failure::Api(failure)) = &report.end.failure {
            let ApiFailure {
                text,
                error,
                status,
                api_type,
                api_error,
                request_id,
            } = failure.as_ref();
            lines.push(Line::Assistant(Assistant {
                error: Some((*error).to_owned()),
                is_api_error_message: Some(true),
                api_error_status: *status,
                api_error_type: api_type.clone(),
                api_error: api_error.map(str::to_owned),
                request_id: request_id.clone(),
                ..self.synthetic(text, "stop_sequence")
            }));
        }
        lines.push(Line::Result(Box::new(self.result(report))));
        self.results += 1;
        lines
    }

    fn result(&self, report: &TurnReport) -> TurnResult {
        let end = &report.end;
        let (subtype, is_error, result, errors) = match &end.failure {
            None => ("success", false, Some(end.text.clone()), None),
            Some(Failure::Api(failure)) => ("success", true, Some(failure.text.clone()), None),
            Some(Failure::Own { subtype, message }) => {
                (*subtype, true, None, Some(vec![message.clone()]))
            }
        };
        let api = match &end.failure {
            Some(Failure::Api(failure)) => Some(failure.as_ref()),
            _ => None,
        };
        let is_local = report.local_command.is_some();
        let own_usage = if is_local {
            Totals::default()
        } else {
            report.turn.clone()
        };
        let mut total = Usage::default();
        own_usage
            .models
            .values()
            .for_each(|model| total.add(&model.usage));
        let mut extra = Map::new();
        if let Some(ttft) = report.ttft {
            extra.insert("ttft_ms".into(), json!(millis(ttft)));
        }
        extra.insert("queued_turn_count".into(), json!(0));
        TurnResult {
            subtype: subtype.to_owned(),
            is_error,
            api_error_status: api.and_then(|failure| failure.status),
            api_error_type: api.and_then(|failure| failure.api_type.clone()),
            api_error: api.and_then(|failure| failure.api_error).map(str::to_owned),
            duration_ms: millis(report.took),
            duration_api_ms: report.session.api_ms,
            num_turns: report.num_turns,
            result,
            errors,
            stop_reason: end.stop_reason.clone(),
            terminal_reason: (!is_local).then(|| end.terminal_reason.to_owned()),
            session_id: self.session_id.clone(),
            total_cost_usd: report.session.cost_usd(),
            usage: usage(&total),
            model_usage: self.model_usage(&report.session),
            model_usage_since_last_result: self.model_usage(&report.turn),
            permission_denials: report.denials.clone(),
            local_command: report.local_command.map(str::to_owned),
            user_message_uuids: report.prompts.clone(),
            result_index: self.results,
            uuid: ids::uuid(),
            extra,
        }
    }

    fn model_usage(&self, totals: &Totals) -> Map<String, Value> {
        let entries = totals.models.iter().map(|(name, model)| {
            let (info, is_known) = self.models.find(name);
            let usage = &model.usage;
            let value = json!({
                "inputTokens": usage.input_tokens,
                "outputTokens": usage.output_tokens,
                "cacheReadInputTokens": usage.cache_read_input_tokens,
                "cacheCreationInputTokens": usage.cache_creation_input_tokens,
                "webSearchRequests": 0,
                "costUSD": model.cost_usd,
                "contextWindow": info.context_window,
                "maxOutputTokens": info.max_output_tokens,
                "costBasis": if is_known { "list" } else { "unknown" },
            });
            (name.clone(), value)
        });
        entries.collect()
    }
}

/// The counts as `claude` prints them.
fn usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "cache_creation_input_tokens": usage.cache_creation_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens,
        "output_tokens": usage.output_tokens,
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
        "cache_creation": usage.cache_creation,
    })
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
