//! A scripted stand-in for `claude --print --output-format stream-json`, for tests, soak and bench.
//!
//! It takes the flags of a turn, `--version` and `--help`, and both input formats. It starts in
//! about a millisecond and asks nobody: what it does is written in steps.
//!
//! Where steps come from, the first that applies:
//! 1. lines of the prompt that begin with `!fake `, one step each. With a line `!fake plan NAME`,
//!    lines `!fake N: STEP` belong to the N-th run that this plan has had, over all processes with
//!    this record; the others are for every run that has no lines of its own;
//! 2. the file named by `FAKE_ENGINE_SCRIPT`: sections that begin with `on WORD` (the prompt holds
//!    WORD; `on *` fits every prompt), followed by one step per line. The first section that fits is
//!    played. `once on WORD` fits one time only, over all processes that use this file (a marker
//!    file beside it says so). `#` begins a comment;
//! 3. otherwise: `init`, `say ok`, `result ok`; for `/compact`: `init`, `compact`, `result`.
//!
//! | step | what it does |
//! |---|---|
//! | `init` | prints `system/init` |
//! | `say TEXT` | an assistant's text |
//! | `tool NAME [MS]` | a call of a tool, and its result after MS milliseconds |
//! | `context N` | input tokens of what is said from here on (default 1000) |
//! | `result [TEXT]` | a good result; the turn is over |
//! | `error STATUS CLASS REASON TEXT` | the engine's report of an API error and a result with `is_error`; `-` for none. One process per turn then exits with 1 |
//! | `limit SECONDS` | a usage limit that ends at this time since 1970 |
//! | `compact [failed TEXT]` | a compaction, or what is printed when there is none |
//! | `raw TEXT`, `stderr TEXT` | a line on stdout or stderr, as it is |
//! | `transcript FILE` | the lines of this file |
//! | `garbage` | bytes that are no UTF-8, JSON that is no object, a cut line |
//! | `long N`, `longresult N` | an assistant's text, or a good result, with N bytes of text |
//! | `flood N` | N short events |
//! | `unended TEXT` | text without a newline |
//! | `sleep MS`, `hang` | waits, for a time or for ever |
//! | `ignore SIGNAL…` | takes no notice of `INT`, `TERM` or a control request `interrupt` (`CONTROL`) from here on |
//! | `child` | starts a process with a session of its own that sleeps for ten minutes and keeps the pipes open |
//! | `touch FILE` | creates a file: a test can wait for it |
//! | `await FILE` | waits until there is such a file |
//! | `unnamed` | leaves out `user_message_uuids` from here on |
//! | `exit CODE`, `die SIGNAL` | ends like this at once |
//! | `stay` | never exits after its result, nor when its stdin is closed |
//!
//! By itself it answers SIGINT (and a control request `interrupt`) like `claude`: an `aborted`
//! result, exit code 0; and SIGTERM with exit code 143.
//!
//! `FAKE_ENGINE_RECORD` names a file to which it appends a JSON line for its start (`argv`, `env`,
//! `cwd`, `pid`, `at_us`: when, in microseconds since 1970), for every prompt (`prompt`, `uuid`, `pid`), for every result before it is printed
//! (`result`: whether it is a good one, `pid`), every `child` (`child`: its pid) and its end
//! (`exit`). `FAKE_ENGINE_LACKS` holds flags that it does not take. With `CLAUDE_CONFIG_DIR` set it
//! keeps its conversation there: `--continue` finds the session's id and its total cost again.

use std::{
    collections::VecDeque,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use rustix::process::{Signal, getpid, kill_process};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};

/// Stands for a long text.
const FILL: &str = "<fill>";
const VERSION: &str = "2.1.325 (fake engine)";
const FLAGS: [(&str, bool); 15] = [
    ("--print", false),
    ("--verbose", false),
    ("--output-format", true),
    ("--input-format", true),
    ("--model", true),
    ("--continue", false),
    ("--settings", true),
    ("--system-prompt-file", true),
    ("--system-prompt-snapshot", true),
    ("--setting-sources", true),
    ("--mcp-config", true),
    ("--strict-mcp-config", false),
    ("--tools", true),
    ("--allowedTools", true),
    ("--replay-user-messages", false),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "fake-child") {
        return be_a_child();
    }
    if args.iter().any(|arg| arg == "--version") {
        return printed(format_args!("{VERSION}\n"));
    }
    if args.iter().any(|arg| arg == "--help") {
        let flags: Vec<_> = accepted().map(|(flag, _)| format!("  {flag}\n")).collect();
        return printed(format_args!(
            "Usage: fake-engine [options]\n{}",
            flags.concat()
        ));
    }
    let mut flags = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let Some((flag, takes_value)) = accepted().find(|(flag, _)| flag == arg) else {
            complain(&format!("error: unknown option '{arg}'"));
            return ExitCode::FAILURE;
        };
        let value = if takes_value {
            rest.next().cloned()
        } else {
            None
        };
        flags.push((flag, value.unwrap_or_default()));
    }
    for flag in ["--settings", "--system-prompt-file", "--mcp-config"] {
        let file = flags.iter().find(|(name, _)| *name == flag);
        if let Some((_, path)) = file.filter(|(_, path)| !Path::new(path).exists()) {
            complain(&format!("Error: {flag}: file not found: {path}"));
            return ExitCode::FAILURE;
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let code = match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(Engine::new(&args, &flags).run());
            // Reading stdin occupies a thread that may never come back.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            complain(&error.to_string());
            70
        }
    };
    record(&json!({"exit": code}));
    ExitCode::from(code)
}

fn accepted() -> impl Iterator<Item = (&'static str, bool)> {
    let lacks = std::env::var("FAKE_ENGINE_LACKS").unwrap_or_default();
    FLAGS
        .into_iter()
        .filter(move |(flag, _)| !lacks.split(' ').any(|lack| lack == *flag))
}

/// What comes on stdin.
enum Input {
    Prompt { text: String, uuid: Option<String> },
    Interrupt,
    End,
}

/// What interrupts a step.
enum Break {
    Interrupt,
    Terminate,
}

/// How a prompt was dealt with.
enum Played {
    /// There is a result.
    Done,
    /// There is one, of an error.
    Failed,
    /// The engine ends now.
    Exit(u8),
}

struct Engine {
    stream_input: bool,
    model: String,
    session: Session,
    tokens: u64,
    uuid: Option<String>,
    unnamed: bool,
    stays: bool,
    ignores: Vec<String>,
    seen: Vec<String>,
    results: u64,
}

impl Engine {
    fn new(args: &[String], flags: &[(&str, String)]) -> Self {
        let value = |name: &str| {
            flags
                .iter()
                .find(|(flag, _)| *flag == name)
                .map(|(_, v)| &**v)
        };
        let env: serde_json::Map<_, _> = std::env::vars()
            .map(|(name, value)| (name, Value::from(value)))
            .collect();
        let cwd = std::env::current_dir().unwrap_or_default();
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        let at_us = since.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(0));
        let pid = std::process::id();
        record(&json!({"argv": args, "env": env, "cwd": cwd, "pid": pid, "at_us": at_us}));
        Self {
            stream_input: value("--input-format") == Some("stream-json"),
            model: value("--model").unwrap_or("fake-model").to_owned(),
            session: Session::open(value("--continue").is_some()),
            tokens: 1000,
            uuid: None,
            unnamed: false,
            stays: false,
            ignores: Vec::new(),
            seen: Vec::new(),
            results: 0,
        }
    }

    async fn run(mut self) -> u8 {
        let (Ok(mut int), Ok(mut term)) = (
            signal(SignalKind::interrupt()),
            signal(SignalKind::terminate()),
        ) else {
            return 70;
        };
        let (send, mut inputs) = mpsc::channel(16);
        let (wake, mut breaks) = mpsc::channel(16);
        let stream_input = self.stream_input;
        let reader = read_stdin(stream_input, send, wake.clone());
        let watcher = async {
            loop {
                let what = tokio::select! {
                    _ = int.recv() => Break::Interrupt,
                    _ = term.recv() => Break::Terminate,
                };
                if wake.send(what).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            code = self.serve(&mut inputs, &mut breaks) => code,
            () = async { tokio::join!(reader, watcher); } => 70,
        }
    }

    async fn serve(&mut self, inputs: &mut mpsc::Receiver<Input>, breaks: &mut Breaks) -> u8 {
        loop {
            let input = tokio::select! {
                input = inputs.recv() => input.unwrap_or(Input::End),
                Some(why) = breaks.recv() => match why {
                    Break::Terminate if !self.ignores("TERM") => return 143,
                    Break::Interrupt if !self.stream_input && !self.ignores("INT") => return 0,
                    _ => continue,
                },
            };
            match input {
                Input::Interrupt => {}
                Input::End => {
                    if self.stays
                        && let Some(code) = self.stay(breaks).await
                    {
                        return code;
                    }
                    return 0;
                }
                Input::Prompt { text, uuid } => {
                    if text.trim().is_empty() {
                        complain(
                            "Error: Input must be provided either through stdin or as a prompt argument when using --print",
                        );
                        return 1;
                    }
                    let repeated = uuid.as_ref().is_some_and(|uuid| self.seen.contains(uuid));
                    self.seen.extend(uuid.clone());
                    record(&json!({"prompt": text, "uuid": uuid, "pid": std::process::id()}));
                    if repeated {
                        continue;
                    }
                    self.uuid = uuid;
                    let played = self.play(&text, breaks).await;
                    match played {
                        Played::Exit(code) => return code,
                        Played::Done | Played::Failed if self.stream_input => {}
                        _ if self.stays => {
                            if let Some(code) = self.stay(breaks).await {
                                return code;
                            }
                        }
                        Played::Done => return 0,
                        Played::Failed => return 1,
                    }
                }
            }
        }
    }

    /// Never ends by itself.
    async fn stay(&mut self, breaks: &mut Breaks) -> Option<u8> {
        while let Some(why) = breaks.recv().await {
            match why {
                Break::Terminate if !self.ignores("TERM") => return Some(143),
                Break::Interrupt if !self.ignores("INT") => return Some(0),
                _ => {}
            }
        }
        std::future::pending().await
    }

    async fn play(&mut self, prompt: &str, breaks: &mut Breaks) -> Played {
        let mut steps = steps_for(prompt);
        let mut played = Played::Done;
        while let Some(step) = steps.pop_front() {
            let (word, rest) = step.split_once(' ').unwrap_or((&step, ""));
            let pause = match word {
                "sleep" => Some(number(rest)),
                "tool" => {
                    let (name, ms) = rest.split_once(' ').unwrap_or((rest, "0"));
                    self.tool_call(name);
                    steps.push_front("toolresult".to_owned());
                    Some(number(ms))
                }
                "hang" => Some(u64::MAX),
                "await" => {
                    if Path::new(rest).exists() {
                        continue;
                    }
                    steps.push_front(step.clone());
                    Some(1)
                }
                _ => None,
            };
            if let Some(ms) = pause {
                if let Some(why) = self.pause(ms, breaks).await {
                    return self.broken_off(why);
                }
                continue;
            }
            match self.step(word, rest) {
                Some(Played::Exit(code)) => return Played::Exit(code),
                Some(now) => played = now,
                None => {}
            }
        }
        played
    }

    /// Waits; gives what broke it off.
    async fn pause(&mut self, ms: u64, breaks: &mut Breaks) -> Option<Break> {
        // A hang that cannot be broken off is one of years.
        let sleep = tokio::time::sleep(Duration::from_millis(ms.min(1 << 40)));
        tokio::pin!(sleep);
        loop {
            tokio::select! {
                () = &mut sleep => return None,
                Some(why) = breaks.recv() => match why {
                    Break::Interrupt if self.ignores("INT") || self.ignores("CONTROL") => {}
                    Break::Terminate if self.ignores("TERM") => {}
                    why => return Some(why),
                },
            }
        }
    }

    fn broken_off(&mut self, why: Break) -> Played {
        match why {
            Break::Terminate => Played::Exit(143),
            Break::Interrupt => {
                let result = json!({
                    "subtype": "error_during_execution", "is_error": true,
                    "terminal_reason": "aborted_streaming", "errors": ["[diagnostic] interrupted"],
                });
                self.result(result);
                // Interrupted by a signal, it exits with 0 for all that.
                Played::Done
            }
        }
    }

    fn step(&mut self, word: &str, rest: &str) -> Option<Played> {
        match word {
            "init" => self.init(),
            "say" => self.say(&json!([{"type": "text", "text": rest}])),
            "toolresult" => emit(
                &json!({"type": "user", "message": {"role": "user", "content":
                [{"type": "tool_result", "tool_use_id": "toolu_fake", "content": "done"}]}}),
            ),
            "context" => self.tokens = number(rest),
            "result" => {
                let result = json!({"subtype": "success", "is_error": false, "result": rest,
                    "terminal_reason": "completed"});
                self.result(result);
            }
            "error" => {
                self.error(rest);
                return Some(Played::Failed);
            }
            "limit" => {
                emit(&json!({"type": "rate_limit_event", "rate_limit_info":
                    {"status": "rejected", "resetsAt": number(rest), "rateLimitType": "five_hour"}}));
                self.error("429 rate_limit api_error You've hit your limit");
                return Some(Played::Failed);
            }
            "compact" => self.compact(rest),
            "raw" => emit_bytes(format!("{rest}\n").as_bytes()),
            "unended" => emit_bytes(rest.as_bytes()),
            "stderr" => complain(rest),
            "transcript" => emit_bytes(&fs::read(rest).unwrap_or_default()),
            "garbage" => emit_bytes(
                b"\xff\xfe\x00{\"type\":\n[1,2]\n42\n\"result\"\n{\"type\":\"resu\nnull\n",
            ),
            "long" => {
                let content = json!([{"type": "text", "text": FILL}]);
                emit_filled(&self.said(&content), size(rest));
            }
            "longresult" => {
                let result = json!({"a": FILL, "subtype": "success", "is_error": false,
                    "result": FILL, "terminal_reason": "completed"});
                emit_filled(&self.resulting(result), size(rest));
            }
            "flood" => flood(number(rest)),
            "ignore" => self.ignores.extend(rest.split(' ').map(str::to_owned)),
            "child" => start_child(),
            "touch" => drop(File::create(rest)),
            "unnamed" => self.unnamed = true,
            "stay" => self.stays = true,
            "exit" => return Some(Played::Exit(u8::try_from(number(rest)).unwrap_or(255))),
            "die" => die(rest),
            _ => {
                complain(&format!("fake-engine: unknown step `{word} {rest}`"));
                return Some(Played::Exit(64));
            }
        }
        None
    }

    fn ignores(&self, what: &str) -> bool {
        self.ignores.iter().any(|ignored| ignored == what)
    }

    fn named(&self, mut event: Value) -> Value {
        if let (Some(uuid), false) = (&self.uuid, self.unnamed) {
            event["user_message_uuids"] = json!([uuid]);
        }
        event["session_id"] = json!(self.session.id);
        event
    }

    fn init(&self) {
        emit(&self.named(json!({
            "type": "system", "subtype": "init", "model": self.model, "tools": ["Read", "Edit"],
            "mcp_servers": [{"name": "hyperhive", "status": "connected"}],
            "claude_code_version": "2.1.325", "permissionMode": "default",
        })));
    }

    fn usage(&self) -> Value {
        json!({"input_tokens": self.tokens, "output_tokens": 5,
            "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0})
    }

    fn say(&self, content: &Value) {
        emit(&self.said(content));
    }

    fn said(&self, content: &Value) -> Value {
        self.named(
            json!({"type": "assistant", "parent_tool_use_id": null, "message": {
            "role": "assistant", "model": self.model, "content": content, "usage": self.usage()}}),
        )
    }

    fn tool_call(&self, name: &str) {
        self.say(&json!([{"type": "tool_use", "id": "toolu_fake", "name": name, "input": {}}]));
    }

    fn result(&mut self, result: Value) {
        emit(&self.resulting(result));
    }

    /// A result, with what it cost.
    fn resulting(&mut self, mut result: Value) -> Value {
        let good = result["is_error"] == json!(false);
        record(&json!({"result": good, "pid": std::process::id()}));
        self.session.add(0.01);
        result["type"] = json!("result");
        result["num_turns"] = json!(1);
        result["result_index"] = json!(self.results);
        result["usage"] = self.usage();
        result["total_cost_usd"] = json!(self.session.cost);
        let since = json!({"inputTokens": self.tokens, "outputTokens": 5, "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0, "costUSD": 0.01, "contextWindow": 200_000});
        result["model_usage_since_last_result"] = json!({ self.model.clone(): since });
        self.results += 1;
        self.named(result)
    }

    fn error(&mut self, rest: &str) {
        let mut words = rest.splitn(4, ' ');
        let mut word = || words.next().filter(|word| *word != "-");
        let status: Option<u16> = word().and_then(|word| word.parse().ok());
        let (class, reason, text) = (word(), word(), word().unwrap_or("API Error"));
        emit(&self.named(
            json!({"type": "assistant", "error": class, "api_error_status": status,
            "is_api_error_message": true, "message": {"role": "assistant", "model": "<synthetic>",
            "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 0}}}),
        ));
        self.result(
            json!({"subtype": "success", "is_error": true, "result": text,
            "api_error_status": status, "terminal_reason": reason}),
        );
    }

    fn compact(&mut self, rest: &str) {
        emit(&json!({"type": "system", "subtype": "status", "status": "compacting"}));
        let (result, why) = match rest.strip_prefix("failed") {
            Some(why) => ("failed", Some(why.trim())),
            None => ("success", None),
        };
        emit(
            &json!({"type": "system", "subtype": "status", "status": null,
            "compact_result": result, "compact_error": why}),
        );
        if why.is_none() {
            self.tokens = 100;
            emit(
                &json!({"type": "system", "subtype": "compact_boundary", "compact_metadata":
                {"trigger": "manual", "pre_tokens": 1000, "post_tokens": 100}}),
            );
        }
    }
}

type Breaks = mpsc::Receiver<Break>;

/// The conversation, as far as it has an id and a cost.
struct Session {
    file: Option<PathBuf>,
    id: String,
    cost: f64,
}

impl Session {
    fn open(continued: bool) -> Self {
        let dir = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let file = dir.map(|dir| dir.join("fake-session.json"));
        let saved = file
            .as_ref()
            .filter(|_| continued)
            .and_then(|file| fs::read(file).ok());
        let saved: Option<Value> = saved.and_then(|text| serde_json::from_slice(&text).ok());
        let nanos = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |now| now.as_nanos());
        let new = format!("fake-{}-{nanos}", std::process::id());
        Self {
            file,
            id: saved
                .as_ref()
                .and_then(|s| s["id"].as_str())
                .unwrap_or(&new)
                .to_owned(),
            cost: saved
                .as_ref()
                .and_then(|s| s["cost"].as_f64())
                .unwrap_or(0.0),
        }
    }

    fn add(&mut self, cost: f64) {
        self.cost += cost;
        if let Some(file) = &self.file {
            let text = json!({"id": self.id, "cost": self.cost}).to_string();
            fs::write(file, text).ok();
        }
    }
}

/// Reads prompts until stdin ends. One process per turn has a single prompt: all there is.
async fn read_stdin(stream: bool, send: mpsc::Sender<Input>, wake: mpsc::Sender<Break>) {
    if stream {
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let line: Value = serde_json::from_str(&line).unwrap_or_default();
            let input = match line["type"].as_str() {
                Some("user") => Input::Prompt {
                    text: line["message"]["content"][0]["text"]
                        .as_str()
                        .unwrap_or_default()
                        .to_owned(),
                    uuid: line["uuid"].as_str().map(str::to_owned),
                },
                Some("control_request") if line["request"]["subtype"] == "interrupt" => {
                    wake.send(Break::Interrupt).await.ok();
                    Input::Interrupt
                }
                _ => continue,
            };
            if send.send(input).await.is_err() {
                return;
            }
        }
    } else {
        let mut text = Vec::new();
        tokio::io::stdin().read_to_end(&mut text).await.ok();
        let text = String::from_utf8_lossy(&text).into_owned();
        send.send(Input::Prompt { text, uuid: None }).await.ok();
    }
    send.send(Input::End).await.ok();
    std::future::pending().await
}

/// The steps for this prompt.
fn steps_for(prompt: &str) -> VecDeque<String> {
    // A brief about earlier messages goes before the message itself, and holds their bodies.
    let own = prompt.rsplit_once(" begins · ");
    let inline = own
        .map_or(prompt, |(_, body)| body)
        .lines()
        .filter_map(|line| line.strip_prefix("!fake "));
    let inline: Vec<_> = inline.collect();
    if let Some(plan) = inline.iter().find_map(|step| step.strip_prefix("plan ")) {
        return planned(&inline, runs_of(plan));
    }
    if !inline.is_empty() {
        return inline.into_iter().map(str::to_owned).collect();
    }
    let script = std::env::var_os("FAKE_ENGINE_SCRIPT").map(PathBuf::from);
    if let Some(steps) = script.and_then(|path| section(&path, prompt)) {
        return steps;
    }
    let default: &[&str] = match prompt.trim() {
        "/compact" => &["init", "compact", "result"],
        _ => &["init", "say ok", "result ok"],
    };
    default.iter().map(|&step| step.to_owned()).collect()
}

/// What a plan says of its `run`-th run.
fn planned(lines: &[&str], run: u64) -> VecDeque<String> {
    let (mut own, mut others) = (VecDeque::new(), VecDeque::new());
    for line in lines.iter().filter(|line| !line.starts_with("plan ")) {
        match line.split_once(": ") {
            Some((number, step)) if number.parse() == Ok(run) => own.push_back(step.to_owned()),
            Some((number, _)) if number.parse::<u64>().is_ok() => {}
            _ => others.push_back((*line).to_owned()),
        }
    }
    if own.is_empty() { others } else { own }
}

/// How many runs the plan has had, this one included: a file beside the record grows by a byte each.
fn runs_of(plan: &str) -> u64 {
    let mut path = std::env::var_os("FAKE_ENGINE_RECORD").unwrap_or_default();
    path.push(format!(".{plan}"));
    let counted = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .and_then(|mut file| {
            file.write_all(b".")?;
            file.metadata()
        });
    counted.map_or(1, |file| file.len())
}

/// The first section of the script that fits.
fn section(path: &Path, prompt: &str) -> Option<VecDeque<String>> {
    let script = fs::read_to_string(path).ok()?;
    let mut found: Option<VecDeque<String>> = None;
    for (number, line) in script.lines().map(str::trim).enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (once, line) = match line.strip_prefix("once ") {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        if let Some(word) = line.strip_prefix("on ") {
            if found.is_some() {
                return found;
            }
            let fits = word == "*" || prompt.contains(word);
            if fits && (!once || first_time(path, number)) {
                found = Some(VecDeque::new());
            }
        } else if let Some(steps) = &mut found {
            steps.push_back(line.to_owned());
        }
    }
    found
}

/// Whether this section has never been played: the marker is created by one process only.
fn first_time(script: &Path, line: usize) -> bool {
    let mut marker = script.as_os_str().to_owned();
    marker.push(format!(".used-{line}"));
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(marker)
        .is_ok()
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or(0)
}

fn size(text: &str) -> usize {
    usize::try_from(number(text)).unwrap_or(0)
}

fn flood(count: u64) {
    let mut lines = String::new();
    for n in 0..count {
        lines.push_str(&format!(
            "{{\"type\":\"system\",\"subtype\":\"flood\",\"n\":{n}}}\n"
        ));
    }
    emit_bytes(lines.as_bytes());
}

/// Starts a process that leads a session of its own, and waits until it does. It keeps stdout and
/// stderr open, as a daemon that a tool started would.
fn start_child() {
    let started = std::env::current_exe().and_then(|exe| {
        let (mut mine, its) = UnixStream::pair()?;
        let child = Command::new(exe)
            .arg("fake-child")
            .stdin(OwnedFd::from(its))
            .spawn()?;
        mine.read_exact(&mut [0])?;
        Ok(child.id())
    });
    match started {
        Ok(pid) => record(&json!({"child": pid})),
        Err(error) => complain(&format!("fake-engine: no child: {error}")),
    }
}

fn be_a_child() -> ExitCode {
    let ready = rustix::process::setsid()
        .map_err(io::Error::from)
        .and_then(|_| {
            let stdin = io::stdin().as_fd().try_clone_to_owned()?;
            UnixStream::from(stdin).write_all(b".")
        });
    if ready.is_err() {
        return ExitCode::FAILURE;
    }
    std::thread::sleep(Duration::from_secs(600));
    ExitCode::SUCCESS
}

fn die(name: &str) {
    let signal = match name {
        "INT" => Signal::INT,
        "TERM" => Signal::TERM,
        "ABRT" => Signal::ABORT,
        _ => Signal::KILL,
    };
    kill_process(getpid(), signal).ok();
    // Some signals are answered a moment later.
    std::thread::sleep(Duration::from_secs(5));
}

fn emit(event: &Value) {
    emit_bytes(format!("{event}\n").as_bytes());
}

/// Prints an event with every [`FILL`] in it replaced by this many bytes.
fn emit_filled(event: &Value, bytes: usize) {
    let event = event.to_string();
    for (n, part) in event.split(FILL).enumerate() {
        if n > 0 {
            emit_bytes(&vec![b'x'; bytes]);
        }
        emit_bytes(part.as_bytes());
    }
    emit_bytes(b"\n");
}

fn emit_bytes(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        std::process::exit(74);
    }
}

fn printed(text: std::fmt::Arguments<'_>) -> ExitCode {
    match io::stdout().write_fmt(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn complain(text: &str) {
    writeln!(io::stderr(), "{text}").ok();
}

fn record(what: &Value) {
    let Some(path) = std::env::var_os("FAKE_ENGINE_RECORD") else {
        return;
    };
    let file = OpenOptions::new().append(true).create(true).open(path);
    if let Ok(mut file) = file {
        file.write_all(format!("{what}\n").as_bytes()).ok();
    }
}
