//! An agent is made anew again and again while mail flows: no message is lost.

use hive_testkit::engine::fake_engine;
use hive_wire::host::{Rebuild, Runtime};

use crate::{PATIENCE, Stage};

/// How often it is made anew.
const REBUILDS: usize = 20;
/// How many messages come in between.
const BATCH: usize = 3;

async fn no_message_is_lost(runtime: Runtime) {
    let Some(stage) = Stage::with_engine(runtime, &fake_engine().unwrap()).await else {
        return;
    };
    stage.spawn("ada", runtime).await;
    let host = stage.hive.host_client();
    let mut sent = Vec::new();
    for number in 0..REBUILDS {
        for part in 0..BATCH {
            sent.push(stage.send("ada", &format!("message {number}.{part}")).await);
        }
        let rebuild = Rebuild {
            name: "ada".parse().unwrap(),
        };
        host.call_within(&rebuild, PATIENCE).await.unwrap();
    }
    for message in sent {
        stage.is_acked(message).await;
    }
}

#[tokio::test]
async fn c7_process_twenty_rebuilds_while_mail_flows_lose_no_message() {
    no_message_is_lost(Runtime::Process).await;
}

#[tokio::test]
async fn c7_bwrap_twenty_rebuilds_while_mail_flows_lose_no_message() {
    no_message_is_lost(Runtime::Bwrap).await;
}
