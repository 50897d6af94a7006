//! Peers that dawdle, flood, leave early, or are too many.

use axum::routing::any;

use super::*;

fn short(patience: &mut Patience) {
    patience.head = Duration::from_millis(200);
    patience.request = Duration::from_millis(200);
    patience.silence = Duration::from_millis(200);
}

async fn echo() -> SocketAddr {
    let echo = async |body: Bytes| body;
    service(Router::new().fallback(any(echo))).await
}

#[tokio::test]
async fn who_never_finishes_a_head_is_let_go() {
    let mut setup = Setup::at(echo().await);
    short(&mut setup.patience);
    let rig = setup.open();
    for bytes in ["", "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-slow: "] {
        let answer = rig.raw(bytes.as_bytes()).await;
        assert!(!answer.contains("200 OK"), "{answer}");
    }
    assert_eq!(
        rig.told(post("/v1/messages", "{}")).await.0,
        200,
        "others are served"
    );
}

#[tokio::test]
async fn who_never_finishes_a_body_is_told_so() {
    let mut setup = Setup::at(echo().await);
    short(&mut setup.patience);
    let rig = setup.open();
    let head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{";
    let answer = rig.raw(head.as_bytes()).await;
    assert!(
        answer.starts_with("HTTP/1.1 502") || answer.is_empty(),
        "{answer}"
    );
    assert_eq!(rig.told(post("/v1/messages", "{}")).await.0, 200);
}

#[tokio::test]
async fn a_head_has_a_size() {
    let rig = Setup::at(echo().await).open();
    let flood = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: x\r\nx-flood: {}\r\n\r\n",
        "x".repeat(200_000)
    );
    let answer = rig.raw(flood.as_bytes()).await;
    assert!(!answer.contains("200 OK"), "{}", answer.len());
    assert_eq!(rig.told(post("/v1/messages", "{}")).await.0, 200);
}

#[tokio::test]
async fn rubbish_is_refused() {
    let rig = Setup::at(echo().await).open();
    for bytes in [
        "\0\0\0\0\r\n\r\n",
        "GET\r\n\r\n",
        "POST /v1/messages HTTP/9.9\r\n\r\n",
        "POST /v1/messages HTTP/1.1\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
        "POST /v1/messages HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
    ] {
        let answer = rig.raw(bytes.as_bytes()).await;
        assert!(!answer.contains("200 OK"), "{bytes:?}: {answer}");
    }
}

#[tokio::test]
async fn who_has_said_everything_still_gets_an_answer() {
    let rig = Setup::at(echo().await).open();
    let mut stream = rig.connect().await;
    let head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    timeout(LONG, stream.read_to_string(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("{}"),
        "{answer}"
    );
}

#[tokio::test]
async fn a_service_that_falls_silent_is_given_up() {
    let router = Router::new().fallback(any(async || {
        let silent = futures_util::stream::pending::<Result<Bytes, io::Error>>();
        axum::body::Body::from_stream(silent)
    }));
    let mut setup = Setup::at(service(router).await);
    short(&mut setup.patience);
    let rig = setup.open();
    let answer = rig.ask(post("/v1/messages", "{}")).await;
    let ended = timeout(LONG, answer.into_body().collect()).await.unwrap();
    assert!(ended.is_err());
}

#[tokio::test]
async fn a_refusal_that_never_ends_is_passed_on_without_its_words() {
    let router = Router::new().fallback(any(async || {
        let silent = futures_util::stream::pending::<Result<Bytes, io::Error>>();
        let body = axum::body::Body::from_stream(silent);
        (axum::http::StatusCode::BAD_REQUEST, body)
    }));
    let mut setup = Setup::at(service(router).await);
    short(&mut setup.patience);
    let rig = setup.open();
    let told = rig.told(post("/v1/messages", "{}")).await;
    assert_eq!(told, (400, String::new()));
}

#[tokio::test]
async fn many_connections_wait_their_turn_and_all_are_served() {
    let mut setup = Setup::at(echo().await);
    setup.limits.connections = 4;
    let rig = Arc::new(setup.open());
    let mut asked = tokio::task::JoinSet::new();
    for n in 0..40 {
        let rig = Arc::clone(&rig);
        asked.spawn(async move {
            let body = format!("{{\"n\":{n}}}");
            let head = format!(
                "POST /v1/messages HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\
                 content-length: {}\r\n\r\n{body}",
                body.len()
            );
            assert!(rig.raw(head.as_bytes()).await.ends_with(&body));
        });
    }
    timeout(LONG, asked.join_all()).await.unwrap();
}

#[tokio::test]
async fn a_closed_door_ends_what_goes_through_it() {
    let router = Router::new().fallback(any(async || {
        let silent = futures_util::stream::pending::<Result<Bytes, io::Error>>();
        axum::body::Body::from_stream(silent)
    }));
    let rig = Setup::at(service(router).await).open();
    let answer = rig.ask(post("/v1/messages", "{}")).await;
    rig.gateway.close(&"ada".parse().unwrap());
    let ended = timeout(LONG, answer.into_body().collect()).await.unwrap();
    assert!(ended.is_err());
    assert!(UnixStream::connect(&rig.socket).await.is_err());
}
