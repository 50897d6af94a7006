//! A real `claude` in a real container of a real hive, with a rehearsed model: as root, with a hive
//! that only root can enter, and as an ordinary user.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(
    clippy::print_stderr,
    reason = "a test that did not run says so, wherever it is run"
)]

mod rebuilds;
mod tour;

use std::{fs, path::Path, time::Duration};

use hive_rehearsal::{Rehearsal, Scenario};
use hive_runtime::conformance::run_as_user;
use hive_testkit::{
    claude,
    hive::{Options, TestHive},
};
use hive_wire::{
    AgentName, MessageId,
    agent::MessageState,
    host::{AgentRow, Destroy, Inbox, LookUpReceipt, Runtime, SendAsOperator, Spawn, TryRuntimes},
};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A hive that runs agents with the real `claude`; none where that or the runtime is missing.
struct Stage {
    hive: TestHive,
    model: Rehearsal,
}

impl Stage {
    async fn set(runtime: Runtime) -> Option<Self> {
        Self::with_engine(runtime, &claude::claude()?).await
    }

    /// The same with another engine.
    async fn with_engine(runtime: Runtime, engine: &Path) -> Option<Self> {
        let scenario = Scenario::find("tour").unwrap();
        let model = Rehearsal::start(scenario).await.unwrap();
        let hive = TestHive::start_with(Options {
            config: format!(
                "[hive]\nroot_agent = \"\"\n[engine]\ndefault = \"{}\"\n\
                 [limits]\ndeliveries_before_dead = 1000\n[agents]\nnetwork = \"host\"\n",
                engine.display()
            ),
            env: vec![
                ("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into()),
                ("ANTHROPIC_BASE_URL".into(), model.url()),
                ("ANTHROPIC_API_KEY".into(), "rehearsal".into()),
                ("HIVE_BIN".into(), env!("CARGO_BIN_EXE_hive").into()),
            ],
        });
        let hive = hive.await.unwrap();
        let stage = Self { hive, model };
        stage.offers(runtime).await.then_some(stage)
    }

    /// Whether a runtime works here; says why not.
    async fn offers(&self, runtime: Runtime) -> bool {
        let host = self.hive.host_client();
        let states = host.call_within(&TryRuntimes {}, PATIENCE).await.unwrap();
        let mut states = states.runtimes.iter();
        let problem = states
            .find(|state| state.runtime == runtime)
            .map_or("", |state| &state.problem);
        if !problem.is_empty() {
            eprintln!(
                "SKIPPED: {} does not work here: {problem}",
                runtime.as_str()
            );
        }
        problem.is_empty()
    }

    async fn spawn(&self, name: &str, runtime: Runtime) -> AgentRow {
        let spawn = Spawn {
            runtime,
            ..Spawn::elsewhere(name.parse().unwrap())
        };
        self.hive
            .host_client()
            .call_within(&spawn, PATIENCE)
            .await
            .unwrap()
    }

    async fn send(&self, to: &str, body: &str) -> MessageId {
        let send = SendAsOperator {
            to: to.to_owned(),
            body: body.to_owned(),
            in_reply_to: None,
            key: None,
        };
        let sent = self.hive.host_client().call(&send).await;
        sent.unwrap().message_id
    }

    /// Waits until a message is dealt with.
    async fn is_acked(&self, message_id: MessageId) {
        let host = self.hive.host_client();
        let until = tokio::time::Instant::now() + PATIENCE;
        loop {
            let receipt = host.call(&LookUpReceipt { message_id }).await.unwrap();
            if receipt.state == MessageState::Acked {
                return;
            }
            assert!(tokio::time::Instant::now() < until, "{receipt:?}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// What agents wrote to the operator.
    async fn inbox(&self) -> Vec<String> {
        let inbox = self.hive.host_client().call(&Inbox::default()).await;
        let messages = inbox.unwrap().messages;
        messages.into_iter().map(|message| message.body).collect()
    }
}

async fn claude_works_in(runtime: Runtime) {
    let Some(mut stage) = Stage::set(runtime).await else {
        return;
    };
    let ada = stage.spawn("ada", runtime).await;
    assert_eq!(ada.runtime, runtime);
    let first = stage.send("ada", "hello from outside").await;
    stage.is_acked(first).await;
    assert!(stage.inbox().await[0].contains("hello from outside"));

    // Its daemon dies, and it goes on with the next one.
    stage.hive.kill().await.unwrap();
    stage.hive.restart().await.unwrap();
    let second = stage.send("ada", "and once more").await;
    stage.is_acked(second).await;
    let answers = stage.inbox().await;
    assert!(answers.iter().any(|answer| answer.contains("once more")));

    // What it wrote is on the host, and nobody else's.
    let state = stage.hive.root().join("state/agents/ada/state");
    assert!(fs::read_dir(state).unwrap().next().is_some());
    let name: AgentName = "ada".parse().unwrap();
    let destroy = Destroy { name, purge: false };
    let host = stage.hive.host_client();
    host.call_within(&destroy, PATIENCE).await.unwrap();
    stage.model.stop().await;
}

#[tokio::test]
async fn c13_bwrap_a_real_claude_answers_from_its_container() {
    claude_works_in(Runtime::Bwrap).await;
}

#[tokio::test]
async fn c13_nspawn_a_real_claude_answers_from_its_container() {
    claude_works_in(Runtime::Nspawn).await;
}

#[tokio::test]
async fn c13_podman_a_real_claude_answers_from_its_container() {
    claude_works_in(Runtime::Podman).await;
}

#[test]
fn as_an_ordinary_user_a_real_claude_answers_from_its_container() {
    run_as_user("c13_bwrap");
}
