//! The test hive itself: it starts, dies, comes back with what it had, and stops when told to.

use hive_testkit::hive::TestHive;
use hive_wire::agent::{Recv, Send};

fn send(body: &str) -> Send {
    Send {
        to: "bob".to_owned(),
        body: body.to_owned(),
        in_reply_to: None,
        key: None,
    }
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_every_kind_of_end() {
    let mut hive = TestHive::start().await.unwrap();
    hive.spawn_agent("ada").await.unwrap();
    hive.spawn_agent("bob").await.unwrap();
    let (ada, bob) = (hive.agent_client("ada"), hive.agent_client("bob"));

    ada.call(&send("one")).await.unwrap();
    hive.kill().await.unwrap();
    hive.restart().await.unwrap();
    ada.call(&send("two")).await.unwrap();
    hive.terminate().await.unwrap();
    assert_eq!(hive.pid(), None);
    hive.restart().await.unwrap();

    let recv = Recv {
        max: 10,
        ..Recv::default()
    };
    let messages = bob.call(&recv).await.unwrap().messages;
    let bodies: Vec<_> = messages.iter().map(|message| &*message.body).collect();
    assert_eq!(bodies, ["one", "two"]);
}

#[tokio::test]
async fn a_daemon_that_does_not_come_up_shows_its_log() {
    let options = hive_testkit::hive::Options {
        config: "[hive]\nroot_agnet = \"\"\n".to_owned(),
        ..Default::default()
    };
    let error = TestHive::start_with(options).await.unwrap_err();
    let error = format!("{error:#}");
    assert!(error.contains("root_agent"), "{error}");
}
