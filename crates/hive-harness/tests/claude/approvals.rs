//! The whole way of a configuration, with real agents: the root agent asks for a new agent and for
//! changes of it with its own tools, the operator decides, and both learn what came of it (C5, C6,
//! C8, C10, M11, M17).

use std::{path::PathBuf, time::Duration};

use hive_rehearsal::{Rehearsal, Scenario};
use hive_testkit::{
    claude,
    hive::{Options, TestHive},
};
use hive_wire::{
    approval::{ApprovalKind, ApprovalRow, ApprovalState, Approve, Decided, Deny, Pending},
    client::Client,
    host::{AgentRow, AgentState, List, SendAsOperator},
};

/// How long anything may take: several cold starts of `claude` on a busy machine.
const PATIENCE: Duration = Duration::from_secs(180);

/// A root agent that does as it is told: reads the file, writes it, commits it, asks for it.
const SCENARIO: &str = r#"
    [[rule]]
    when = { step = 0, body = { regex = 'ask for an agent (?<name>\w+)' } }
    answer.tools = [{ name = "mcp__hyperhive__request_spawn", input = { name = "{{match.name}}", reason = "the operator wants one" } }]

    [[rule]]
    when = { step = 0, body = { regex = 'let (?<dir>\S+) say (?<text>.+)' } }
    answer.tools = [{ name = "Read", input = { file_path = "{{match.dir}}/agent.toml" } }]
    [[rule]]
    when = { step = 1, body = { regex = 'let (?<dir>\S+) say (?<text>.+)' } }
    answer.tools = [{ name = "Write", input = { file_path = "{{match.dir}}/agent.toml", content = "{{match.text}}\n" } }]
    [[rule]]
    when = { step = 2, body = { regex = 'let (?<dir>\S+) say (?<text>.+)' } }
    answer.tools = [{ name = "mcp__bash__run", input = { cmd = "cd '{{match.dir}}' && git commit -qam change && git status --porcelain", wait_seconds = 30 } }]
    [[rule]]
    when = { step = 3, body = { regex = 'let (?<dir>\S+) say (?<text>.+)' } }
    answer.tools = [{ name = "mcp__hyperhive__request_apply_commit", input = { agent = "tester", commit_ref = "main", reason = "the operator wants {{match.text}}" } }]

    [[rule]]
    answer.text = "ok"
"#;

struct Stage {
    hive: TestHive,
    model: Rehearsal,
    host: Client,
}

impl Stage {
    /// A hive with its root agent; none where there is no `claude`.
    async fn new() -> Option<Self> {
        let claude = claude::claude()?;
        hive_testkit::bash::programs().expect("the background shell is built");
        let model = Rehearsal::start(Scenario::parse("test.toml", SCENARIO).unwrap())
            .await
            .unwrap();
        let config = format!(
            "[hive]\nroot_agent = \"ruth\"\n[engine]\ndefault = {claude:?}\n\
             [agents]\nruntime = \"process\"\nmodel = \"claude-haiku-4-5\"\ntrial_secs = 120\n\
             [engine.env]\nANTHROPIC_API_KEY = \"sk-ant-dummy\"\nANTHROPIC_BASE_URL = {url:?}\n\
             CLAUDE_CODE_MAX_RETRIES = \"0\"\n",
            url = model.url()
        );
        let options = Options {
            config,
            env: vec![("HIVE_BIN".into(), env!("CARGO_BIN_EXE_hive").into())],
        };
        let hive = TestHive::start_with(options).await.unwrap();
        let host = hive.host_client();
        Some(Self { hive, model, host })
    }

    fn config(&self) -> PathBuf {
        self.hive.root().join("state/proposed/tester/config")
    }

    async fn tell(&self, to: &str, body: &str) {
        let message = SendAsOperator {
            to: to.to_owned(),
            body: body.to_owned(),
            in_reply_to: None,
            key: None,
        };
        self.host.call(&message).await.unwrap();
    }

    /// The request that waits, once there is one.
    async fn pending(&self) -> ApprovalRow {
        let look = async {
            loop {
                let list = self.host.call(&Pending { all: false }).await.unwrap();
                if let Some(row) = list.approvals.into_iter().next() {
                    return row;
                }
                // The daemon tells nobody of a request but in its list and its log.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let row = tokio::time::timeout(PATIENCE, look).await;
        row.unwrap_or_else(|_| panic!("nothing was asked for\n{}", self.story()))
    }

    async fn approve(&self, row: &ApprovalRow) -> Decided {
        let approve = Approve {
            approval_id: row.approval_id,
            hash: Some(row.hash.clone()),
            note: String::new(),
        };
        let decided = self.host.call_within(&approve, 2 * PATIENCE).await;
        decided.unwrap_or_else(|error| panic!("{error}\n{}", self.story()))
    }

    async fn deny(&self, row: &ApprovalRow, note: &str) {
        let deny = Deny {
            approval_id: row.approval_id,
            note: note.to_owned(),
        };
        let denied = self.host.call(&deny).await.unwrap();
        assert_eq!(denied.state, ApprovalState::Denied);
    }

    async fn agent(&self, name: &str) -> AgentRow {
        let list = self.host.call(&List {}).await.unwrap();
        let mut agents = list.agents.into_iter();
        agents.find(|agent| agent.name.as_str() == name).unwrap()
    }

    /// Waits until the model was asked something that holds these words; with which model.
    async fn model_heard(&self, words: &[&str]) -> String {
        let look = async {
            loop {
                let asked = self.model.requests();
                let found = asked.iter().find(|request| {
                    let last = request.body["messages"]
                        .as_array()
                        .and_then(|all| all.last());
                    let last = last.map(ToString::to_string).unwrap_or_default();
                    words.iter().all(|word| last.contains(word))
                });
                if let Some(found) = found {
                    return found.body["model"].as_str().unwrap_or_default().to_owned();
                }
                // The model tells nobody what it was asked.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let model = tokio::time::timeout(PATIENCE, look).await;
        model.unwrap_or_else(|_| panic!("the model never heard {words:?}\n{}", self.story()))
    }

    /// What the model was asked, for a failure.
    fn story(&self) -> String {
        let last = |request: &hive_rehearsal::Seen| {
            let messages = request.body["messages"].as_array();
            let last = messages.and_then(|all| all.last()).map(ToString::to_string);
            last.unwrap_or_default()
                .chars()
                .take(600)
                .collect::<String>()
        };
        let asked: Vec<String> = self.model.requests().iter().map(last).collect();
        asked.join("\n")
    }
}

#[tokio::test]
async fn c5_c6_c8_m11_an_agent_is_asked_for_changed_broken_rolled_back_and_refused() {
    let Some(stage) = Stage::new().await else {
        return;
    };
    stage.tell("ruth", "ask for an agent tester").await;
    let spawn = stage.pending().await;
    assert_eq!(
        (spawn.kind, spawn.agent.as_str()),
        (ApprovalKind::Spawn, "tester")
    );
    assert_eq!(spawn.requested_by.as_str(), "ruth");
    assert_eq!(spawn.reason, "the operator wants one");
    let made = stage.approve(&spawn).await;
    assert_eq!(made.state, ApprovalState::Approved, "{}", made.note);
    stage
        .model_heard(&["approval_resolved", "approved", "tester"])
        .await;
    stage.tell("tester", "hello tester").await;
    assert_eq!(
        stage.model_heard(&["hello tester"]).await,
        "claude-haiku-4-5"
    );

    let dir = stage.config();
    let dir = dir.display();
    stage
        .tell(
            "ruth",
            &format!("let {dir} say model = \"claude-opus-4-5\""),
        )
        .await;
    let change = stage.pending().await;
    assert!(
        change.diff.contains("+model = \"claude-opus-4-5\""),
        "{}",
        change.diff
    );
    let applied = stage.approve(&change).await;
    assert_eq!(applied.state, ApprovalState::Approved, "{}", applied.note);
    stage.tell("tester", "hello again").await;
    assert_eq!(stage.model_heard(&["hello again"]).await, "claude-opus-4-5");

    stage
        .tell(
            "ruth",
            &format!("let {dir} say engine = \"/no/such/engine\""),
        )
        .await;
    let broken = stage.pending().await;
    let failed = stage.approve(&broken).await;
    assert_eq!(failed.state, ApprovalState::Failed);
    assert!(failed.note.contains("rolled back"), "{}", failed.note);
    stage
        .model_heard(&["approval_resolved", "failed", "rolled back"])
        .await;
    stage.tell("tester", "are you there").await;
    assert_eq!(
        stage.model_heard(&["are you there"]).await,
        "claude-opus-4-5"
    );
    assert_ne!(stage.agent("tester").await.state, AgentState::Failed);

    stage
        .tell("ruth", &format!("let {dir} say network = \"host\""))
        .await;
    let refused = stage.pending().await;
    stage.deny(&refused, "it needs no network of ours").await;
    stage
        .model_heard(&["denied", "it needs no network of ours"])
        .await;
}
