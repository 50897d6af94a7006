//! What a new operator does on the first day, with nothing but our own binaries: the root agent in
//! its container, the native engine, the gateway, and the rehearsed model of the tour.

use hive_rehearsal::{Rehearsal, Scenario};
use hive_runtime::conformance::run_as_user;
use hive_testkit::{
    bash, engine,
    hive::{Options, TestHive},
};
use hive_wire::{
    approval::{ApprovalRow, ApprovalState, Approve, Decided, Pending},
    client::Client,
    host::{AgentRow, List, Runtime},
};

use crate::{LOOK_AGAIN, PATIENCE, Stage};

/// A hive as `up` makes it. None where agents cannot have containers.
async fn first_day() -> Option<Stage> {
    bash::programs().unwrap();
    let model = Rehearsal::start(Scenario::find("tour").unwrap())
        .await
        .unwrap();
    let config = format!(
        "[hive]\nroot_agent = \"ruth\"\n[engine]\ndefault = {engine:?}\n\
         [agents]\nruntime = \"bwrap\"\nmodel = \"haiku\"\n\
         [engine.env]\nANTHROPIC_API_KEY = \"sk-ant-dummy\"\nANTHROPIC_BASE_URL = {url:?}\n",
        engine = engine::native_engine().unwrap(),
        url = model.url()
    );
    let hive = TestHive::start_with(Options {
        config,
        env: vec![("HIVE_BIN".into(), env!("CARGO_BIN_EXE_hive").into())],
    });
    let hive = hive.await.unwrap();
    let stage = Stage { hive, model };
    stage.offers(Runtime::Bwrap).await.then_some(stage)
}

/// What waits for the operator, once something does.
async fn pending(stage: &Stage) -> ApprovalRow {
    let host = stage.hive.host_client();
    let until = tokio::time::Instant::now() + PATIENCE;
    loop {
        let list = host.call(&Pending { all: false }).await.unwrap();
        if let Some(row) = list.approvals.into_iter().next() {
            return row;
        }
        assert!(
            tokio::time::Instant::now() < until,
            "nothing is asked for: {:#?}",
            stage.inbox().await
        );
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

async fn approve(host: &Client, row: &ApprovalRow) -> Decided {
    let approve = Approve {
        approval_id: row.approval_id,
        hash: Some(row.hash.clone()),
        note: String::new(),
    };
    host.call_within(&approve, 2 * PATIENCE).await.unwrap()
}

async fn agent(host: &Client, name: &str) -> AgentRow {
    let list = host.call(&List {}).await.unwrap();
    let mut agents = list.agents.into_iter();
    agents.find(|agent| agent.name.as_str() == name).unwrap()
}

#[tokio::test]
async fn c8_the_first_day_of_an_operator_in_containers() {
    let Some(stage) = first_day().await else {
        return;
    };
    let host = stage.hive.host_client();
    let hello = stage.send("ruth", "hello").await;
    stage.is_acked(hello).await;
    assert_eq!(agent(&host, "ruth").await.runtime, Runtime::Bwrap);

    let wish = stage.send("ruth", "spawn eve").await;
    let spawn = pending(&stage).await;
    let made = approve(&host, &spawn).await;
    assert_eq!(made.state, ApprovalState::Approved, "{}", made.note);
    stage.is_acked(wish).await;
    let hello = stage.send("eve", "hello eve").await;
    stage.is_acked(hello).await;

    let wish = stage.send("ruth", "configure eve: model = \"opus\"").await;
    let change = pending(&stage).await;
    assert!(change.diff.contains("+model = \"opus\""), "{}", change.diff);
    let applied = approve(&host, &change).await;
    assert_eq!(applied.state, ApprovalState::Approved, "{}", applied.note);
    stage.is_acked(wish).await;
    let hello = stage.send("eve", "hello again").await;
    stage.is_acked(hello).await;
    assert_eq!(agent(&host, "eve").await.model, "opus");
    stage.model.stop().await;
}

#[test]
fn as_an_ordinary_user_the_first_day_of_an_operator() {
    run_as_user("c8_the_first_day");
}
