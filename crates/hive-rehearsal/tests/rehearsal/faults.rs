//! Every fault, as a client meets it.

use std::{io::ErrorKind, time::Duration};

use serde_json::json;
use tokio::{io::AsyncWriteExt, net::TcpStream};

use super::client::{post, post_streaming, prompt, read, read_until, request, start};

const MESSAGES: &str = "/v1/messages";

#[tokio::test]
async fn every_status_has_the_words_of_the_real_api() {
    #[rustfmt::skip]
    let table = [
        ("'prompt_too_long'", 400, "invalid_request_error", "prompt is too long"),
        ("'bad_request'", 400, "invalid_request_error", ""),
        ("'credit'", 400, "invalid_request_error", "credit balance is too low"),
        ("'unauthorized'", 401, "authentication_error", "invalid x-api-key"),
        ("'forbidden'", 403, "permission_error", "permission"),
        ("'model_not_found'", 404, "not_found_error", "model: claude-test"),
        ("'too_large'", 413, "request_too_large", ""),
        ("'rate_limit'", 429, "rate_limit_error", "rate limit"),
        ("'server_error'", 500, "api_error", "Internal server error"),
        ("'overloaded'", 529, "overloaded_error", "Overloaded"),
        ("{ kind = 'status', status = 504, error_type = 'timeout_error', message = 'no {{body}}' }", 504, "timeout_error", "no x"),
    ];
    for (fault, status, kind, message) in table {
        let model = start(&format!("[[rule]]\nfault = {fault}")).await;
        let answer = post_streaming(&model, MESSAGES, &prompt("x")).await;
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, &error["type"]),
            (status, &json!(kind)),
            "{fault}"
        );
        assert!(
            error["message"].as_str().unwrap().contains(message),
            "{error}"
        );
        model.stop().await;
    }
}

#[tokio::test]
async fn a_rate_limit_tells_its_end_in_headers() {
    let model = start(
        "[[rule]]\ntimes = 1\nfault = { kind = 'rate_limit', retry_after_secs = 120, reset_at = '2030-01-02T03:04:05Z' }\n\
         [[rule]]\ntimes = 1\nfault = { kind = 'rate_limit', subscription = 'five_hour', reset_at = 1893553445, headers = { x-more = 'y' } }\n\
         [[rule]]\nanswer = { text = 'ok', limits = { subscription = 'seven_day', status = 'allowed_warning', utilization = 0.8, reset_at = 7 } }",
    )
    .await;
    let metered = post(&model, MESSAGES, &prompt("x")).await;
    assert_eq!(metered.headers["retry-after"], "120");
    assert_eq!(
        metered.headers["anthropic-ratelimit-requests-reset"],
        "2030-01-02T03:04:05Z"
    );
    let subscribed = post(&model, MESSAGES, &prompt("x")).await;
    assert_eq!(subscribed.status, 429);
    assert_eq!(
        subscribed.headers["anthropic-ratelimit-unified-reset"],
        "1893553445"
    );
    assert_eq!(
        subscribed.headers["anthropic-ratelimit-unified-5h-status"],
        "rejected"
    );
    assert_eq!(subscribed.headers["x-more"], "y");
    let warned = post(&model, MESSAGES, &prompt("x")).await;
    assert_eq!(warned.status, 200);
    assert_eq!(
        warned.headers["anthropic-ratelimit-unified-status"],
        "allowed_warning"
    );
    assert_eq!(
        warned.headers["anthropic-ratelimit-unified-7d-utilization"],
        "0.8"
    );
    model.stop().await;
}

#[tokio::test]
async fn a_reset_comes_after_the_first_piece() {
    let model =
        start("[[rule]]\nanswer = { text = 'abcdef', chunk_chars = 3 }\nfault = 'reset'").await;
    let answer = post_streaming(&model, MESSAGES, &prompt("x")).await;
    assert_eq!(answer.error, Some(ErrorKind::ConnectionReset));
    assert!(
        answer.body.contains("abc") && !answer.body.contains("def"),
        "{}",
        answer.body
    );
    let whole = post(&model, MESSAGES, &prompt("x")).await;
    assert_eq!(whole.error, Some(ErrorKind::ConnectionReset));
    assert!(!whole.is_complete && whole.body.starts_with('{'));
    model.stop().await;
}

#[tokio::test]
async fn a_cut_stream_ends_in_order_and_too_early() {
    let model = start("[[rule]]\nfault = { kind = 'cut', after_events = 2 }").await;
    let answer = post_streaming(&model, MESSAGES, &prompt("x")).await;
    assert_eq!((answer.error, answer.is_complete), (None, false));
    assert_eq!(answer.events().len(), 2);
    model.stop().await;
}

#[tokio::test]
async fn a_stalled_stream_stays_open_until_the_server_stops() {
    let model =
        start("[[rule]]\nanswer = { text = 'abcdef', chunk_chars = 3 }\nfault = 'stall'").await;
    let mut stream = TcpStream::connect(("127.0.0.1", model.port()))
        .await
        .unwrap();
    send(&mut stream, true).await;
    let seen = read_until(&mut stream, "abc").await;
    assert!(!seen.contains("def"), "{seen}");
    let mut byte = [0];
    let more = tokio::io::AsyncReadExt::read(&mut stream, &mut byte);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), more)
            .await
            .is_err()
    );
    model.stop().await;
    assert!(
        read(stream).await.is_err(),
        "the connection ended with the server"
    );
}

#[tokio::test]
async fn a_request_without_an_answer_gets_no_byte() {
    let model = start("[[rule]]\ntimes = 1\nfault = 'no_answer'").await;
    let mut stream = TcpStream::connect(("127.0.0.1", model.port()))
        .await
        .unwrap();
    send(&mut stream, true).await;
    model.wait_for_requests(1).await.unwrap();
    let mut byte = [0];
    let first = tokio::io::AsyncReadExt::read(&mut stream, &mut byte);
    assert!(
        tokio::time::timeout(Duration::from_millis(50), first)
            .await
            .is_err()
    );
    // Others are answered meanwhile.
    assert_eq!(post(&model, MESSAGES, &prompt("x")).await.status, 200);
    model.stop().await;
}

#[tokio::test]
async fn a_malformed_event_stands_between_good_ones() {
    let model = start("[[rule]]\nfault = 'malformed'").await;
    let answer = post_streaming(&model, MESSAGES, &prompt("x")).await;
    let events = answer.events();
    let broken: Vec<_> = events.iter().filter(|(_, data)| data.is_string()).collect();
    assert_eq!(broken.len(), 1);
    assert_eq!(events[events.len() - 1].0, "message_stop");
    model.stop().await;
}

#[tokio::test]
async fn an_error_event_ends_a_stream() {
    let model = start(
        "[[rule]]\nwhen.api = 'anthropic'\nfault = 'error_event'\n\
         [[rule]]\nfault = { kind = 'error_event', status = 500, error_type = 'server_error', message = 'gone' }",
    )
    .await;
    let answer = post_streaming(&model, MESSAGES, &prompt("x")).await;
    assert_eq!(answer.status, 200);
    let (name, data) = answer.events().pop().unwrap();
    assert_eq!(
        (name.as_str(), &data["error"]["type"]),
        ("error", &json!("overloaded_error"))
    );
    let whole = post(&model, MESSAGES, &prompt("x")).await;
    assert_eq!(whole.status, 529);
    let chat = json!({"model": "m", "messages": [{"role": "user", "content": "x"}]});
    let answer = post_streaming(&model, "/v1/chat/completions", &chat).await;
    assert_eq!(answer.events().pop().unwrap().1["error"]["message"], "gone");
    model.stop().await;
}

#[tokio::test]
async fn the_listener_really_refuses_and_nobody_stays_connected() {
    let model = start("[[rule]]\ntimes = 1\nfault = { kind = 'refused', for_ms = 600000 }").await;
    let mut idle = TcpStream::connect(("127.0.0.1", model.port()))
        .await
        .unwrap();
    let ask = || {
        let body = prompt("x").to_string();
        let port = model.port();
        async move { request(port, "POST", MESSAGES, HEADERS, &body).await }
    };
    assert_eq!(ask().await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut byte = [0];
    let end = tokio::io::AsyncReadExt::read(&mut idle, &mut byte).await;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    for _ in 0..3 {
        assert_eq!(
            ask().await.unwrap_err().kind(),
            ErrorKind::ConnectionRefused
        );
    }
    model.accept_again().await;
    assert_eq!(ask().await.unwrap().status, 200);
    model.stop().await;
}

#[tokio::test]
async fn the_listener_comes_back_by_itself_on_its_port() {
    let model = start("[[rule]]\ntimes = 1\nfault = { kind = 'refused', for_ms = 50 }").await;
    let body = prompt("x").to_string();
    let answer = loop {
        match request(model.port(), "POST", MESSAGES, HEADERS, &body).await {
            Ok(answer) => break answer,
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    assert_eq!((answer.status, model.requests().len()), (200, 2));
    model.stop().await;
}

#[tokio::test]
async fn the_next_connections_can_be_reset() {
    let model = start("[[rule]]\ntimes = 1\nfault = { kind = 'refused', connections = 2 }").await;
    for _ in 0..3 {
        let broken = request(
            model.port(),
            "POST",
            MESSAGES,
            HEADERS,
            &prompt("x").to_string(),
        )
        .await;
        assert!(broken.is_err(), "{broken:?}");
    }
    assert_eq!(post(&model, MESSAGES, &prompt("x")).await.status, 200);
    assert_eq!(model.requests().len(), 2, "two were never read");
    model.stop().await;
}

#[tokio::test]
async fn a_test_can_refuse_and_accept_again() {
    let model = start("").await;
    for _ in 0..3 {
        model.refuse().await;
        let refused = TcpStream::connect(("127.0.0.1", model.port())).await;
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
        model.accept_again().await;
        assert_eq!(post(&model, MESSAGES, &prompt("x")).await.status, 200);
    }
    model.stop().await;
}

#[tokio::test]
async fn a_server_can_begin_by_refusing() {
    let model = start("refuse_at_start_ms = 60000").await;
    let refused = TcpStream::connect(("127.0.0.1", model.port())).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    model.accept_again().await;
    assert_eq!(post(&model, MESSAGES, &prompt("x")).await.status, 200);
    model.stop().await;
}

const HEADERS: &str = "x-api-key: k\r\nanthropic-version: 2023-06-01\r\n";

async fn send(stream: &mut TcpStream, is_streamed: bool) {
    let mut body = prompt("x");
    body["stream"] = json!(is_streamed);
    let body = body.to_string();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\n{HEADERS}content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body.as_bytes()).await.unwrap();
}
