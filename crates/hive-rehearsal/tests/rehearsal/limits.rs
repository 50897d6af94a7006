//! Many clients at once, and a clean end.

use std::net::{IpAddr, Ipv4Addr};

use hive_rehearsal::{Options, Rehearsal, Scenario, StartError};
use serde_json::json;
use tokio::{net::TcpStream, task::JoinSet};

use super::client::{post, prompt, request, start};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_clients_at_once_are_all_answered_with_their_own_words() {
    let model = start(
        "[[rule]]\nanswer = { text = 'to {{last_user}}', chunk_chars = 3, chunk_delay_ms = 1 }",
    )
    .await;
    let port = model.port();
    let mut clients = JoinSet::new();
    for number in 0..200 {
        clients.spawn(async move {
            let mut body = prompt(&format!("<{number}>"));
            body["stream"] = json!(true);
            let headers = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";
            let answer = request(port, "POST", "/v1/messages", headers, &body.to_string()).await;
            let events = answer.unwrap().events();
            let said = events
                .iter()
                .filter_map(|(_, data)| data["delta"]["text"].as_str());
            assert_eq!(said.collect::<String>(), format!("to <{number}>"));
        });
    }
    clients.join_all().await;
    assert_eq!(model.wait_for_requests(200).await.unwrap().len(), 200);
    model.stop().await;
}

#[tokio::test]
async fn a_stopped_server_is_gone_and_its_port_is_free() {
    let model = start("").await;
    let port = model.port();
    let idle = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    model.stop().await;
    assert!(TcpStream::connect(("127.0.0.1", port)).await.is_err());
    drop(idle);
    let options = Options {
        port,
        ..Options::default()
    };
    let again = Rehearsal::start_with(Scenario::default(), options)
        .await
        .unwrap();
    assert_eq!(again.port(), port);
    again.stop().await;
}

#[tokio::test]
async fn only_loopback_and_only_a_free_port() {
    let everywhere = Options {
        host: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        ..Options::default()
    };
    let error = Rehearsal::start_with(Scenario::default(), everywhere)
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::NotLoopback(_)), "{error}");
    let model = start("").await;
    let taken = Options {
        port: model.port(),
        ..Options::default()
    };
    let error = Rehearsal::start_with(Scenario::default(), taken)
        .await
        .unwrap_err();
    assert!(matches!(error, StartError::Listen { .. }), "{error}");
    model.stop().await;
}

#[tokio::test]
async fn what_is_kept_of_requests_is_bounded() {
    let options = Options {
        keep_bytes: 10_000,
        ..Options::default()
    };
    let model = Rehearsal::start_with(Scenario::default(), options)
        .await
        .unwrap();
    for number in 0..10 {
        let text = format!("{number} {}", "x".repeat(3_000));
        post(&model, "/v1/messages", &prompt(&text)).await;
    }
    let seen = model.wait_for_requests(10).await.unwrap();
    let calls: Vec<_> = seen.iter().filter_map(|seen| seen.call).collect();
    assert_eq!(calls, [8, 9, 10], "the newest that fit");
    model.stop().await;
}
