//! Runs an engine once and reads what it printed.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use hive_rehearsal::{Rehearsal, Scenario};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

/// Longer than any case takes, on a busy machine with the real `claude`.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Engine {
    Native,
    Claude(PathBuf),
}

impl Engine {
    pub(crate) fn is_native(&self) -> bool {
        *self == Self::Native
    }
}

/// Makes two tests of each case.
macro_rules! contract {
    ($($case:ident),+ $(,)?) => {
        $(
            mod $case {
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn native() {
                    super::$case(crate::support::Engine::Native).await;
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn claude() {
                    if let Some(claude) = hive_testkit::claude::claude() {
                        super::$case(crate::support::Engine::Claude(claude)).await;
                    }
                }
            }
        )+
    };
}
pub(crate) use contract;

/// A home, a working directory and a model.
pub(crate) struct Stage {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) model: Rehearsal,
    pub(crate) engine: Engine,
    pub(crate) retries: u32,
    pub(crate) key: Option<&'static str>,
    pub(crate) env: Vec<(&'static str, &'static str)>,
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) lines: Vec<Value>,
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
}

impl Stage {
    pub(crate) async fn new(engine: Engine, scenario: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["home", "work"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let scenario = Scenario::parse("test", scenario).unwrap_or_else(|error| panic!("{error}"));
        let model = Rehearsal::start(scenario).await.unwrap();
        Self {
            dir,
            model,
            engine,
            retries: 0,
            key: Some("dummy-key-0123456789"),
            env: Vec::new(),
        }
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work").canonicalize().unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        let path = self.work().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn command(&self, args: &[&str]) -> Command {
        let program = match &self.engine {
            Engine::Native => Path::new(env!("CARGO_BIN_EXE_hive-engine")),
            Engine::Claude(path) => path.as_path(),
        };
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path().join("home"))
            .env("TERM", "dumb")
            .env("ANTHROPIC_BASE_URL", self.model.url())
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")
            .env("CLAUDE_CODE_MAX_RETRIES", self.retries.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        if let Some(key) = self.key {
            command.env("ANTHROPIC_API_KEY", key);
        }
        command.envs(self.env.iter().copied());
        command
    }

    /// The flags of the turn loop, and `more`.
    pub(crate) fn flags<'a>(&self, more: &[&'a str]) -> Vec<&'a str> {
        let mut args = vec![
            "--print",
            "--verbose",
            "--output-format",
            "stream-json",
            "--model",
            "claude-sonnet-4-5",
            "--setting-sources",
            "user",
            "--system-prompt",
            "You are a test.",
        ];
        if !more.contains(&"--tools") {
            args.extend(["--tools", "Read,Write,Bash"]);
        }
        args.extend_from_slice(more);
        args
    }

    /// One turn with the prompt on standard input.
    pub(crate) async fn turn(&self, prompt: &str, more: &[&str]) -> Run {
        self.raw(prompt, &self.flags(more)).await
    }

    pub(crate) async fn raw(&self, stdin: &str, args: &[&str]) -> Run {
        let mut child = self.command(args).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        // An engine that refuses its flags does not read its prompt.
        input.write_all(stdin.as_bytes()).await.ok();
        drop(input);
        finish(child).await
    }

    /// A process that stays open.
    pub(crate) fn open(&self, args: &[&str]) -> Live {
        let mut child = self.command(args).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Live {
            child,
            input,
            output,
            lines: Vec::new(),
        }
    }
}

async fn finish(child: Child) -> Run {
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output())
        .await
        .expect("the engine ends")
        .unwrap();
    let lines = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    Run {
        lines,
        code: output.status.code(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// A process that stays open.
pub(crate) struct Live {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pub(crate) lines: Vec<Value>,
}

impl Live {
    pub(crate) async fn send(&mut self, line: Value) {
        let input = self.input.as_mut().unwrap();
        input
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    pub(crate) async fn say(&mut self, text: &str, uuid: &str) {
        self.send(serde_json::json!({"type": "user", "uuid": uuid, "message":
            {"role": "user", "content": [{"type": "text", "text": text}]}}))
            .await;
    }

    /// The whole prompt.
    pub(crate) async fn write(&mut self, text: &str) {
        let mut input = self.input.take().unwrap();
        input.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until a line that `is_it`.
    pub(crate) async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            let reading = self.output.read_line(&mut line);
            let read = tokio::time::timeout(PATIENCE, reading)
                .await
                .expect("a line comes")
                .unwrap();
            assert!(
                read > 0,
                "the output ended before it came: {:#?}",
                self.lines
            );
            let value: Value = serde_json::from_str(&line).unwrap();
            self.lines.push(value.clone());
            if is_it(&value) {
                return value;
            }
        }
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Everything that still comes, and the end.
    pub(crate) async fn end(mut self) -> Run {
        self.input = None;
        let mut lines = std::mem::take(&mut self.lines);
        let mut line = String::new();
        loop {
            line.clear();
            let reading = self.output.read_line(&mut line);
            match tokio::time::timeout(PATIENCE, reading)
                .await
                .expect("it ends")
            {
                Ok(0) | Err(_) => break,
                Ok(_) => lines.extend(serde_json::from_str(&line)),
            }
        }
        let rest = finish(self.child).await;
        Run {
            lines,
            code: rest.code,
            stderr: rest.stderr,
        }
    }
}

impl Run {
    /// What happened, in words: `system/init`, `assistant/tool_use`, `user/tool_result` …
    pub(crate) fn shape(&self) -> Vec<String> {
        let is_noise = |word: &str| {
            matches!(
                word,
                "system/thinking_tokens"
                    | "rate_limit_event"
                    | "system/status/requesting"
                    | "command_lifecycle"
                    | "system/background_tasks_changed"
            )
        };
        self.lines
            .iter()
            .map(word)
            .filter(|word| !is_noise(word))
            .collect()
    }

    pub(crate) fn result(&self) -> &Value {
        let results: Vec<_> = self
            .lines
            .iter()
            .filter(|line| line["type"] == "result")
            .collect();
        assert_eq!(results.len(), 1, "exactly one result: {self:#?}");
        results[0]
    }

    pub(crate) fn init(&self) -> &Value {
        self.lines
            .iter()
            .find(|line| line["subtype"] == "init")
            .unwrap_or_else(|| panic!("an init: {self:#?}"))
    }

    /// The text of the tool results, in order.
    pub(crate) fn tool_results(&self) -> Vec<String> {
        self.lines
            .iter()
            .filter(|line| word(line) == "user/tool_result")
            .map(|line| {
                let content = &line["message"]["content"][0]["content"];
                content.as_str().map_or_else(
                    || content[0]["text"].as_str().unwrap_or_default().to_owned(),
                    str::to_owned,
                )
            })
            .collect()
    }
}

fn word(line: &Value) -> String {
    let kind = line["type"].as_str().unwrap_or_default();
    match kind {
        "assistant" | "user" => {
            let block = line["message"]["content"][0]["type"]
                .as_str()
                .unwrap_or("text");
            format!("{kind}/{block}")
        }
        "stream_event" => format!(
            "{kind}/{}",
            line["event"]["type"].as_str().unwrap_or_default()
        ),
        _ => {
            let subtype = line["subtype"]
                .as_str()
                .map_or_else(String::new, |text| format!("/{text}"));
            let status = line["status"]
                .as_str()
                .map_or_else(String::new, |text| format!("/{text}"));
            format!("{kind}{subtype}{status}")
        }
    }
}
