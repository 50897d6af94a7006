//! Who the hive is, on its whole way: from hive.toml through the daemon, which starts the harness,
//! into the system prompt that the engine of a turn was given.

use std::fs;

use hive_testkit::{
    engine::fake_engine,
    hive::{Options, TestHive},
};
use hive_wire::{
    agent::MessageState,
    host::{Runtime, Spawn},
};
use tokio::time::{Instant, sleep};

use crate::{
    harness::{LOOK_AGAIN, PATIENCE},
    receipt, send,
};

/// The system prompt of ada's first turn, in a hive with these lines beneath `[hive]`.
async fn prompt(names: &str) -> String {
    let hive = TestHive::start_with(Options {
        config: format!(
            "[hive]\nroot_agent = \"\"\n{names}[engine]\ndefault = {:?}\n\
             [agents]\nruntime = \"process\"\n",
            fake_engine().unwrap()
        ),
        env: vec![("HIVE_BIN".into(), env!("CARGO_BIN_EXE_hive").into())],
    });
    let hive = hive.await.unwrap();
    let spawn = Spawn {
        runtime: Runtime::Process,
        ..Spawn::elsewhere("ada".parse().unwrap())
    };
    let host = hive.host_client();
    host.call_within(&spawn, PATIENCE).await.unwrap();
    let message = send(&hive, "hello").await;
    let deadline = Instant::now() + PATIENCE;
    while receipt(&hive, message).await.0 != MessageState::Acked {
        assert!(Instant::now() < deadline, "no turn\n{}", hive.log_tail());
        sleep(LOOK_AGAIN).await;
    }
    let harness = hive.root().join("state/agents/ada/harness");
    fs::read_to_string(harness.join("claude-system-prompt.md")).unwrap()
}

#[tokio::test]
async fn c15_t27_name_swarm_and_domain_of_hive_toml_are_in_the_system_prompt() {
    let names = "name = \"pr1ma\"\nswarm = \"far north\"\ndomain = \"example.org\"\n";
    let prompt = prompt(names).await;
    let expected = "You are `ada`, an agent on hive `pr1ma` in swarm `far north`. \
                    Your address is `ada@example.org`. ";
    assert!(prompt.starts_with(expected), "{prompt}");
}

#[tokio::test]
async fn c15_t27_empty_names_are_as_if_they_were_not_there() {
    let prompts = [
        prompt("").await,
        prompt("name = \"\"\nswarm = \"\"\ndomain = \"\"\n").await,
    ];
    let expected = "You are `ada`, an agent. Your address is `ada`. ";
    for prompt in &prompts {
        assert!(prompt.starts_with(expected), "{prompt}");
    }
    assert_eq!(prompts[0], prompts[1]);
}
