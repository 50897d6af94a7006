//! Calls of the model.

use axum::{
    body::Body,
    extract::Request as Asked,
    response::IntoResponse,
    routing::{any, post as on_post},
};
use hyper::header::CONTENT_TYPE;
use tokio::sync::mpsc;
use tokio_stream_of::stream_of;

use super::*;

/// A body whose pieces the test sends.
mod tokio_stream_of {
    use super::*;

    pub(super) fn stream_of(mut pieces: mpsc::Receiver<Result<String, io::Error>>) -> Body {
        let next = move |context: &mut std::task::Context<'_>| pieces.poll_recv(context);
        Body::from_stream(futures_util::stream::poll_fn(next))
    }
}

const START: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"model\":\
    \"claude-haiku-4-5\",\"usage\":{\"input_tokens\":10,\"output_tokens\":1}}}\n\n";
const END: &str = "event: message_delta\ndata: {\"usage\":{\"output_tokens\":7}}\n\n";

#[tokio::test]
async fn the_key_is_added_on_the_host_and_the_rest_passes_as_it_is() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let router = Router::new().fallback(any({
        let seen = Arc::clone(&seen);
        async move |asked: Asked| {
            let fields = asked.headers().iter();
            let mut lines: Vec<String> = fields
                .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
                .collect();
            lines.sort();
            let path = asked.uri().to_string();
            let body = asked.into_body().collect().await.unwrap().to_bytes();
            seen.lock().unwrap().push((path, lines, body));
            ([("x-answer", "1"), ("connection", "close")], "{}")
        }
    }));
    let address = service(router).await;
    let rig = Setup::at(address).open();
    let mut request = post("/v1/messages?beta=true", r#"{"a":1}"#);
    request
        .headers_mut()
        .insert("accept-encoding", "gzip".parse().unwrap());
    request
        .headers_mut()
        .insert("cookie", "a=b".parse().unwrap());
    let answer = rig.ask(request).await;
    assert_eq!(answer.headers()["x-answer"], "1");
    let (path, lines, body) = seen.lock().unwrap().remove(0);
    assert_eq!(
        (path.as_str(), &body[..]),
        ("/v1/messages?beta=true", &br#"{"a":1}"#[..])
    );
    assert_eq!(
        lines,
        [
            "accept-encoding: identity",
            "content-length: 7",
            "content-type: application/json",
            &format!("host: {address}"),
            "x-api-key: sk-real-key-1",
        ]
    );
    let mut own = post("/v1/messages", "{}");
    own.headers_mut()
        .insert("authorization", "Bearer own-login".parse().unwrap());
    rig.ask(own).await;
    let (_, lines, _) = seen.lock().unwrap().remove(0);
    assert!(
        lines.contains(&"authorization: Bearer own-login".to_owned()),
        "{lines:?}"
    );
    assert!(
        lines.iter().all(|line| !line.starts_with("x-api-key")),
        "{lines:?}"
    );
}

#[tokio::test]
async fn answers_pass_piece_by_piece_and_are_counted() {
    let (sender, pieces) = mpsc::channel(1);
    let pieces = Arc::new(Mutex::new(Some(pieces)));
    let router = Router::new().route(
        "/v1/messages",
        on_post(async move || {
            let pieces = pieces.lock().unwrap().take().unwrap();
            ([(CONTENT_TYPE, "text/event-stream")], stream_of(pieces)).into_response()
        }),
    );
    let rig = Setup::at(service(router).await).open();
    let mut client = rig.client().await;
    let asked = client.send_request(post("/v1/messages", "{}"));
    sender.send(Ok(START.to_owned())).await.unwrap();
    let mut answer = timeout(LONG, asked).await.unwrap().unwrap();
    // The first piece is there although the service has not sent the second one.
    let piece = timeout(LONG, answer.frame())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(piece.into_data().unwrap(), START);
    assert!(rig.told.spent.lock().unwrap().is_empty());
    sender.send(Ok(END.to_owned())).await.unwrap();
    drop(sender);
    let rest = timeout(LONG, answer.collect()).await.unwrap().unwrap();
    assert_eq!(rest.to_bytes(), END);
    let spent = rig.told.spent.lock().unwrap();
    assert_eq!(spent.len(), 1);
    assert_eq!((spent[0].input_tokens, spent[0].output_tokens), (10, 7));
    assert_eq!(spent[0].cost_micro_usd, 45);
}

#[tokio::test]
async fn a_service_that_dies_half_way_is_noticed_and_counted() {
    let (sender, pieces) = mpsc::channel(2);
    let pieces = Arc::new(Mutex::new(Some(pieces)));
    let router = Router::new().route(
        "/v1/messages",
        on_post(async move || {
            let pieces = pieces.lock().unwrap().take().unwrap();
            ([(CONTENT_TYPE, "text/event-stream")], stream_of(pieces)).into_response()
        }),
    );
    let rig = Setup::at(service(router).await).open();
    sender.send(Ok(START.to_owned())).await.unwrap();
    let answer = rig.ask(post("/v1/messages", "{}")).await;
    sender.send(Err(io::Error::other("gone"))).await.unwrap();
    let ended = timeout(LONG, answer.into_body().collect()).await.unwrap();
    assert!(ended.is_err(), "an answer that was cut must not look whole");
    // The count is told when the gateway drops its end, which may be a moment later.
    eventually("the part is counted", || {
        rig.told.spent.lock().unwrap().len() == 1
    })
    .await;
    assert_eq!(rig.told.spent.lock().unwrap()[0].output_tokens, 1);
}

#[tokio::test]
async fn t6_a_refusal_is_told_of_and_quotes_no_key() {
    let router = Router::new().fallback(any(async || {
        let quoting = "your key sk-real-key-1 is used up";
        let fields = [
            ("retry-after", "120"),
            ("x-echo", "sk-real-key-1"),
            ("x-plain", "1"),
        ];
        (hyper::StatusCode::TOO_MANY_REQUESTS, fields, quoting).into_response()
    }));
    let rig = Setup::at(service(router).await).open();
    let answer = rig.ask(post("/v1/messages", "{}")).await;
    assert_eq!(answer.status(), 429);
    assert_eq!(answer.headers()["x-plain"], "1");
    assert!(!answer.headers().contains_key("x-echo"));
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "your key *** is used up");
    let until = rig.told.limited.lock().unwrap()[0];
    let wait = until.until(Timestamp::now());
    assert!(wait > Duration::from_secs(50), "{wait:?}");
    let mut own = post("/v1/messages", "{}");
    own.headers_mut()
        .insert("authorization", "Bearer own".parse().unwrap());
    rig.ask(own).await;
    assert_eq!(
        rig.told.limited.lock().unwrap().len(),
        1,
        "another's limit is not ours"
    );
}

#[tokio::test]
async fn what_is_not_inference_what_is_refused_and_what_is_too_long_goes_nowhere() {
    let calls = Arc::new(AtomicUsize::new(0));
    let router = Router::new().fallback(any({
        let calls = Arc::clone(&calls);
        async move |asked: Asked| {
            calls.fetch_add(1, Ordering::Relaxed);
            asked.into_body().collect().await.ok();
            "{}"
        }
    }));
    let mut setup = Setup::at(service(router).await);
    setup.limits.request = 1_000;
    let rig = setup.open();
    for path in [
        "/v1/files",
        "/v1/messages/batches",
        "/v1/organizations/api_keys",
        "/v1//messages",
    ] {
        let (status, body) = rig.told(post(path, "{}")).await;
        assert_eq!(status, 404, "{path}");
        assert!(body.contains("not_found_error"), "{body}");
    }
    let (status, body) = rig.told(post("/v1/messages", &"x".repeat(1_001))).await;
    assert_eq!(
        (status, body.contains("request_too_large")),
        (413, true),
        "{body}"
    );
    *rig.told.refuses.lock().unwrap() = Some("the budget is spent".to_owned());
    let (status, body) = rig.told(post("/v1/messages", "{}")).await;
    assert_eq!(
        (status, body.contains("the budget is spent")),
        (503, true),
        "{body}"
    );
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    // One that does not say how long it is, is measured on its way.
    *rig.told.refuses.lock().unwrap() = None;
    let chunk = format!("3e8\r\n{}\r\n", "x".repeat(1_000));
    let head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\
        connection: close\r\n\r\n";
    let answer = rig
        .raw(format!("{head}{chunk}{chunk}0\r\n\r\n").as_bytes())
        .await;
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
}

#[tokio::test]
async fn a_service_that_is_not_there_is_named_and_the_key_is_not() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let rig = Setup::at(address).open();
    let (status, body) = rig.told(post("/v1/messages", "{}")).await;
    assert_eq!(status, 502);
    assert!(body.contains(&address.to_string()), "{body}");
    assert!(!body.contains("sk-real"), "{body}");
}
