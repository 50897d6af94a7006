//! A hive, a model and one agent, `ada`, whose harness the test can kill.

use std::{
    fs,
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use hive_rehearsal::{Rehearsal, Scenario};
use hive_testkit::hive::TestHive;
use hive_wire::{
    MessageId,
    agent::{MessageState, Receipt},
    client::Client,
    control::ControlAction,
    host::{
        ControlAgent, ControlOutcome, EventPosition, EventRow, Events, GetAgentState,
        LookUpReceipt, SendAsOperator, TurnRow, Turns,
    },
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};

/// How long anything may take: a cold `claude` on a busy machine needs seconds.
const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Stage {
    pub(crate) hive: TestHive,
    pub(crate) model: Rehearsal,
    host: Client,
    engine: PathBuf,
    harness: Option<Child>,
    variables: Vec<(String, String)>,
    seen: Option<EventPosition>,
    pub(crate) events: Vec<EventRow>,
}

impl Stage {
    /// A running agent; none where there is no engine.
    pub(crate) async fn new(scenario: &str) -> Option<Self> {
        let mut stage = Self::set(scenario).await?;
        stage.start();
        Some(stage)
    }

    /// Everything but the harness.
    pub(crate) async fn set(scenario: &str) -> Option<Self> {
        Self::set_on(scenario, async || TestHive::start().await.unwrap()).await
    }

    /// The same, on a hive of the test's own.
    pub(crate) async fn set_on(
        scenario: &str,
        hive: impl AsyncFnOnce() -> TestHive,
    ) -> Option<Self> {
        let engine = crate::engine::under_test()?;
        let model = Rehearsal::start(Scenario::parse("test.toml", scenario).unwrap())
            .await
            .unwrap();
        let hive = hive().await;
        hive.spawn_agent("ada").await.unwrap();
        for dir in ["state", "harness", "claude", "home"] {
            fs::create_dir_all(hive.root().join("ada").join(dir)).unwrap();
        }
        let host = hive.host_client();
        Some(Self {
            hive,
            model,
            host,
            engine,
            harness: None,
            variables: Vec::new(),
            seen: None,
            events: Vec::new(),
        })
    }

    /// Sets a variable of the harness from its next start on; nothing removes it.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A path in the agent's directories.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.hive.root().join("ada").join(name)
    }

    /// Starts the harness.
    pub(crate) fn start(&mut self) {
        let log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.path("harness.log"))
            .unwrap();
        let mut harness = Command::new(env!("CARGO_BIN_EXE_hive"));
        harness
            .arg("serve")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("CLAUDE_CONFIG_DIR", self.path("claude"))
            .env("HIVE_SOCKET", self.hive.agent_socket("ada"))
            .env("HIVE_STATE_DIR", self.path("state"))
            .env("HIVE_HARNESS_DIR", self.path("harness"))
            .env("HIVE_LABEL", "ada")
            .env("HIVE_ENGINE", &self.engine)
            .env("HIVE_BASH_MCP", "no-bash-here")
            .env("HIVE_BASH_DAEMON", "no-bash-here")
            .env("HIVE_DEFAULT_MODEL", "claude-sonnet-4-5")
            .env("HIVE_UNAVAILABLE_FIRST_MS", "10")
            .env("CLAUDE_CODE_MAX_RETRIES", "0")
            .env("ANTHROPIC_API_KEY", "sk-ant-dummy")
            .env("ANTHROPIC_BASE_URL", self.model.url())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .kill_on_drop(true);
        for (name, value) in &self.variables {
            match value.as_str() {
                "" => harness.env_remove(name),
                value => harness.env(name, value),
            };
        }
        self.harness = Some(harness.spawn().unwrap());
    }

    /// Sends a signal to the harness.
    pub(crate) fn signal(&self, signal: Signal) {
        let pid = self.harness.as_ref().and_then(Child::id).unwrap();
        kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// Waits until the harness has ended, and says how.
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let mut harness = self.harness.take().unwrap();
        let status = self
            .patiently("the end of the harness", harness.wait())
            .await
            .unwrap();
        status
            .code()
            .or_else(|| status.signal().map(|signal| -signal))
    }

    /// Kills the harness with SIGKILL.
    pub(crate) async fn kill_harness(&mut self) {
        self.harness.take().unwrap().kill().await.unwrap();
    }

    /// Sends a message as the operator.
    pub(crate) async fn send(&self, body: &str) -> MessageId {
        let message = SendAsOperator {
            to: "ada".to_owned(),
            body: body.to_owned(),
            in_reply_to: None,
            key: None,
        };
        self.host.call(&message).await.unwrap().message_id
    }

    pub(crate) async fn receipt(&self, id: MessageId) -> Receipt {
        self.host
            .call(&LookUpReceipt { message_id: id })
            .await
            .unwrap()
    }

    /// Waits until a message is acked.
    pub(crate) async fn acked(&mut self, id: MessageId) -> Receipt {
        loop {
            let receipt = self.receipt(id).await;
            if receipt.state == MessageState::Acked {
                return receipt;
            }
            assert_ne!(receipt.state, MessageState::Dead, "{}", self.story());
            self.more("an ack").await;
        }
    }

    /// Waits for the next event of this kind whose data meets a condition.
    pub(crate) async fn event(&mut self, kind: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let mut looked = 0;
        loop {
            let fresh = &self.events[looked..];
            if let Some(found) = fresh
                .iter()
                .find(|row| row.kind == kind && is_it(&row.data))
            {
                return found.data.clone();
            }
            looked = self.events.len();
            self.more(kind).await;
        }
    }

    /// The data of every event of a kind so far.
    pub(crate) fn of(&self, kind: &str) -> Vec<&Value> {
        let rows = self.events.iter().filter(|row| row.kind == kind);
        rows.map(|row| &row.data).collect()
    }

    /// The outcomes of the turns so far.
    pub(crate) fn outcomes(&self) -> Vec<&str> {
        let ends = self.of("turn_end");
        ends.into_iter()
            .filter_map(|data| data["outcome"].as_str())
            .collect()
    }

    /// Waits until so many turns have ended.
    pub(crate) async fn turns_ended(&mut self, count: usize) {
        while self.of("turn_end").len() < count {
            self.more("the end of a turn").await;
        }
    }

    /// Waits until the agent's harness says this of itself.
    pub(crate) async fn status(&mut self, wanted: &str) {
        loop {
            let name = "ada".parse().unwrap();
            let state = self.host.call(&GetAgentState { name }).await.unwrap();
            if serde_json::to_value(state.status).unwrap() == wanted {
                return;
            }
            self.more(wanted).await;
        }
    }

    /// Asks the harness for something and waits for what comes of it.
    pub(crate) async fn control(&self, action: ControlAction) -> ControlOutcome {
        let request = ControlAgent {
            name: "ada".parse().unwrap(),
            action,
            wait_seconds: Some(60),
        };
        let called = self.host.call_within(&request, PATIENCE);
        self.patiently("an answer of the harness", called)
            .await
            .unwrap()
    }

    /// The statistics of the turns, oldest first.
    pub(crate) async fn rows(&self) -> Vec<TurnRow> {
        let asked = Turns {
            name: "ada".parse().unwrap(),
            before: None,
            limit: None,
        };
        let mut rows = self.host.call(&asked).await.unwrap().turns;
        rows.reverse();
        rows
    }

    /// Waits for further events.
    pub(crate) async fn more(&mut self, what: &str) {
        let asked = Events {
            after: self.seen.or(Some(EventPosition { epoch: 0, seq: 0 })),
            limit: Some(100),
            wait_seconds: 60,
            about: Some("ada".to_owned()),
        };
        let page = self
            .patiently(what, self.host.call_within(&asked, PATIENCE))
            .await;
        let page =
            page.unwrap_or_else(|error| panic!("waiting for {what}: {error}\n{}", self.story()));
        assert!(
            !page.events.is_empty() || page.gap,
            "nothing happens, waiting for {what}\n{}",
            self.story()
        );
        self.seen = Some(page.next);
        self.events.extend(page.events);
    }

    /// Waits for something, with a bound.
    pub(crate) async fn patiently<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        match tokio::time::timeout(PATIENCE, future).await {
            Ok(value) => value,
            Err(_) => panic!("waited for {what} in vain\n{}", self.story()),
        }
    }

    /// What happened, for a test that fails.
    pub(crate) fn story(&self) -> String {
        let log = fs::read_to_string(self.path("harness.log")).unwrap_or_default();
        let events: String = self
            .events
            .iter()
            .map(|row| {
                let data = row.data.to_string();
                format!(
                    "{} {} {}\n",
                    row.seq,
                    row.kind,
                    data.chars().take(400).collect::<String>()
                )
            })
            .collect();
        format!("--- events\n{events}--- harness\n{log}")
    }
}

/// The processes whose command line or environment names a directory, besides the daemon's.
pub(crate) fn processes_of(dir: &Path) -> Vec<u32> {
    let needle = dir.to_str().unwrap().as_bytes();
    let names = |pid: u32, file: &str| {
        let text = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.windows(needle.len()).any(|window| window == needle)
    };
    let pids = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    pids.filter(|pid| {
        *pid != std::process::id() && (names(*pid, "cmdline") || names(*pid, "environ"))
    })
    .collect()
}
