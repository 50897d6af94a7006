//! The real `claude` behind the host's gateway: it works, and no key is anywhere near it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use hive_rehearsal::{Rehearsal, Scenario};
use hive_testkit::{
    claude,
    hive::{Options, TestHive},
};
use hive_wire::{
    agent::MessageState,
    host::{
        Events, GetAgentState, LookUpReceipt, Runtime, SendAsOperator, Spawn, Spend, SpendPage,
    },
};

/// What must never be found.
const KEY: &str = "sk-ant-the-operators-own-key";
const PATIENCE: Duration = Duration::from_secs(120);

/// Every regular file below a directory that can be read.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files(&entry.path()),
        Ok(kind) if kind.is_file() => vec![entry.path()],
        _ => Vec::new(),
    });
    below.collect()
}

fn holds_key(bytes: &[u8]) -> bool {
    bytes
        .windows(KEY.len())
        .any(|window| window == KEY.as_bytes())
}

/// The processes of an agent, by what their environment names.
fn environs(root: &Path, daemon: u32) -> Vec<(u32, Vec<u8>)> {
    let needle = root.to_str().unwrap().as_bytes();
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != daemon && *pid != std::process::id())
        .filter_map(|pid| Some((pid, fs::read(format!("/proc/{pid}/environ")).ok()?)))
        .filter(|(_, environ)| environ.windows(needle.len()).any(|window| window == needle))
        .collect()
}

async fn spent(hive: &TestHive) -> SpendPage {
    hive.host_client()
        .call(&Spend { days: None })
        .await
        .unwrap()
}

#[tokio::test]
async fn claude_works_through_the_gateway_and_no_key_is_inside() {
    let Some(claude) = claude::claude() else {
        return;
    };
    let scenario = "[[rule]]\nanswer = { text = 'Done.', delay_ms = 300, usage = { input_tokens = 1000, \
        output_tokens = 10, cache_read_tokens = 500 } }";
    let model = Rehearsal::start(Scenario::parse("test.toml", scenario).unwrap())
        .await
        .unwrap();
    let config = format!(
        "[hive]\nroot_agent = \"\"\n[agents]\nmodel = \"claude-sonnet-4-5\"\n\
         [engine]\ndefault = {claude:?}\n[engine.env]\n\
         ANTHROPIC_API_KEY = \"{KEY}\"\nANTHROPIC_BASE_URL = \"{}\"\n",
        model.url()
    );
    let options = Options {
        config,
        env: vec![("HIVE_BIN".into(), env!("CARGO_BIN_EXE_hive").into())],
    };
    let hive = TestHive::start_with(options).await.unwrap();
    let host = hive.host_client();
    let spawn = Spawn {
        runtime: Runtime::Process,
        ..Spawn::elsewhere("ada".parse().unwrap())
    };
    host.call_within(&spawn, PATIENCE).await.unwrap();
    let send = SendAsOperator {
        to: "ada".to_owned(),
        body: "good morning".to_owned(),
        in_reply_to: None,
        key: None,
    };
    let id = host.call(&send).await.unwrap().message_id;
    let daemon = hive.pid().unwrap();
    let (mut seen, deadline) = (0, tokio::time::Instant::now() + PATIENCE);
    loop {
        for (pid, environ) in environs(hive.root(), daemon) {
            assert!(
                !holds_key(&environ),
                "the environment of process {pid} holds the key"
            );
            seen += 1;
        }
        let receipt = host.call(&LookUpReceipt { message_id: id }).await.unwrap();
        if receipt.state == MessageState::Acked {
            break;
        }
        let state = GetAgentState {
            name: "ada".parse().unwrap(),
        };
        assert!(
            tokio::time::Instant::now() < deadline,
            "{receipt:?} {:?}\n{}",
            host.call(&state).await,
            hive.log_tail()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(seen > 0, "the agent's processes were looked at");
    assert_eq!(
        model.requests().len(),
        1,
        "the model was asked once, through the gateway"
    );
    let page = spent(&hive).await;
    let row = &page.days[0];
    assert_eq!((row.agent.as_str(), row.calls), ("ada", 1));
    assert_eq!(
        (row.input_tokens, row.output_tokens, row.cache_read_tokens),
        (1_000, 10, 500)
    );
    assert!(row.cost_micro_usd > 0);
    // Nothing of the agent's, no log and no event holds the key; only the operator's file does.
    for file in files(hive.root()) {
        let is_operators = file == hive.root().join("hive.toml");
        assert_eq!(
            holds_key(&fs::read(&file).unwrap()),
            is_operators,
            "{}",
            file.display()
        );
    }
    let events = Events {
        after: None,
        limit: Some(500),
        wait_seconds: 0,
        about: None,
    };
    let told = serde_json::to_string(&host.call(&events).await.unwrap()).unwrap();
    assert!(!told.contains(KEY));
}

#[tokio::test]
async fn a_call_that_the_gateway_refuses_puts_the_turn_off_and_loses_no_message() {
    let Some(claude) = claude::claude() else {
        return;
    };
    let scenario = "[[rule]]\nanswer.text = 'Done.'";
    let model = Rehearsal::start(Scenario::parse("test.toml", scenario).unwrap())
        .await
        .unwrap();
    let config = format!(
        "[hive]\nroot_agent = \"\"\n[engine]\ndefault = {claude:?}\n[engine.env]\n\
         ANTHROPIC_API_KEY = \"{KEY}\"\nANTHROPIC_BASE_URL = \"{}\"\n",
        model.url()
    );
    let options = Options {
        config,
        env: vec![("HIVE_BIN".into(), env!("CARGO_BIN_EXE_hive").into())],
    };
    // The service is away: the gateway says so, the turn is put off and runs when it is back.
    let mut hive = TestHive::start_with(options).await.unwrap();
    model.refuse().await;
    let host = hive.host_client();
    let spawn = Spawn {
        runtime: Runtime::Process,
        ..Spawn::elsewhere("ada".parse().unwrap())
    };
    host.call_within(&spawn, PATIENCE).await.unwrap();
    let send = SendAsOperator {
        to: "ada".to_owned(),
        body: "good morning".to_owned(),
        in_reply_to: None,
        key: None,
    };
    let id = host.call(&send).await.unwrap().message_id;
    let mut deliveries = 0;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while deliveries == 0 {
        deliveries = host
            .call(&LookUpReceipt { message_id: id })
            .await
            .unwrap()
            .deliveries;
        assert!(
            tokio::time::Instant::now() < deadline,
            "{}",
            hive.log_tail()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // The daemon goes and comes back meanwhile: the way to the model is there again.
    hive.restart().await.unwrap();
    model.accept_again().await;
    let host = hive.host_client();
    loop {
        let receipt = host.call(&LookUpReceipt { message_id: id }).await.unwrap();
        match receipt.state {
            MessageState::Acked => break,
            MessageState::Dead => panic!("given up: {}", hive.log_tail()),
            _ => {}
        }
        assert!(
            tokio::time::Instant::now() < deadline + PATIENCE,
            "{receipt:?}"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    hive.terminate().await.unwrap();
}
