//! The client against scripted servers on real sockets.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{future::Future, io, path::PathBuf, time::Duration};

use hive_wire::{
    ErrorCode,
    agent::{Send, Sent, Status},
    client::{Client, ClientError, Options},
    line::MAX_LINE,
    socket,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixListener,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

/// Long enough never to pass in a test that works.
const AGES: Duration = Duration::from_secs(60);

/// A place for a socket, and the daemon's end of it.
struct Server {
    _dir: TempDir,
    path: PathBuf,
    listener: UnixListener,
}

impl Server {
    fn bind() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.sock");
        let listener = UnixListener::bind(&path).unwrap();
        Self {
            _dir: dir,
            path,
            listener,
        }
    }

    async fn accept(&self) -> Peer {
        let (read, write) = self.listener.accept().await.unwrap().0.into_split();
        Peer {
            lines: BufReader::new(read).lines(),
            write,
        }
    }

    fn client(&self) -> Client {
        Client::new(&self.path, Options::default())
    }

    /// A client that is connected, and the other end of its connection.
    async fn connected(&self) -> (Client, Peer) {
        let (client, peer) = tokio::join!(Client::connect(&self.path), self.accept());
        (client.unwrap(), peer)
    }
}

/// One accepted connection.
struct Peer {
    lines: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
}

impl Peer {
    /// The next request, or none when the client has closed the connection.
    async fn request(&mut self) -> Option<Value> {
        let line = self.lines.next_line().await.ok().flatten()?;
        Some(serde_json::from_str(&line).expect("the client writes whole lines of JSON"))
    }

    async fn say(&mut self, line: &str) {
        self.write.write_all(line.as_bytes()).await.unwrap();
        self.write.write_all(b"\n").await.unwrap();
    }

    /// Answers a `send` with the number that stands in its body.
    async fn answer(&mut self, request: &Value) {
        let message_id: i64 = number_in(request);
        self.say(&json!({"ok":true,"id":request["id"],"message_id":message_id}).to_string())
            .await;
    }

    async fn answer_next(&mut self) {
        let request = self.request().await.expect("a request");
        self.answer(&request).await;
    }
}

/// The body of a test message is its number and padding.
fn number_in(request: &Value) -> i64 {
    let body = request["body"].as_str().unwrap();
    body.trim_end_matches('.').parse().unwrap()
}

fn message(number: i64) -> Send {
    padded(number, 0)
}

fn padded(number: i64, padding: usize) -> Send {
    Send {
        to: "ada".into(),
        body: format!("{number}{}", ".".repeat(padding)),
        in_reply_to: None,
        key: None,
    }
}

async fn send(client: &Client, number: i64) -> Result<i64, ClientError> {
    let sent: Sent = client.call_within(&message(number), AGES).await?;
    Ok(sent.message_id.0)
}

/// Runs a call next to the script of the server that answers it.
async fn with<T>(call: impl Future<Output = T>, script: impl Future<Output = ()>) -> T {
    tokio::join!(call, script).0
}

#[tokio::test]
async fn replies_find_their_calls_in_any_order() {
    let server = Server::bind();
    let client = server.client();
    let script = async {
        let mut peer = server.accept().await;
        let mut requests = Vec::new();
        for _ in 0..3 {
            requests.push(peer.request().await.unwrap());
        }
        for request in requests.iter().rev() {
            peer.answer(request).await;
        }
    };
    let calls = async { tokio::join!(send(&client, 1), send(&client, 2), send(&client, 3)) };
    let (one, two, three) = with(calls, script).await;
    assert_eq!((one.unwrap(), two.unwrap(), three.unwrap()), (1, 2, 3));
}

#[tokio::test]
async fn a_call_after_the_daemon_went_away_connects_anew() {
    let server = Server::bind();
    let (client, mut peer) = server.connected().await;
    let first = with(send(&client, 1), peer.answer_next()).await;
    assert_eq!(first.unwrap(), 1);

    // The client has had no chance to see this yet: it finds out by writing.
    drop(peer);
    let script = async { server.accept().await.answer_next().await };
    assert_eq!(with(send(&client, 2), script).await.unwrap(), 2);
}

#[tokio::test]
async fn a_connection_lost_in_the_middle_says_that_the_outcome_is_open() {
    let server = Server::bind();
    let (client, mut peer) = server.connected().await;
    let script = async {
        peer.request().await.unwrap();
        drop(peer);
    };
    let lost = with(send(&client, 1), script).await.unwrap_err();
    assert!(matches!(lost, ClientError::Lost), "{lost}");
    assert!(lost.to_string().contains("may or may not"), "{lost}");

    let script = async { server.accept().await.answer_next().await };
    assert_eq!(with(send(&client, 2), script).await.unwrap(), 2);
}

#[tokio::test]
async fn a_late_reply_disturbs_nobody() {
    let server = Server::bind();
    let (client, mut peer) = server.connected().await;
    let after = Duration::from_millis(20);
    let first = message(1);
    let (timed_out, late) = tokio::join!(client.call_within(&first, after), peer.request());
    assert!(
        matches!(timed_out, Err(ClientError::TimedOut { after: a }) if a == after),
        "{timed_out:?}"
    );

    let script = async {
        let next = peer.request().await.unwrap();
        peer.answer(&late.unwrap()).await;
        peer.answer(&next).await;
    };
    assert_eq!(with(send(&client, 2), script).await.unwrap(), 2);
}

#[tokio::test]
async fn a_refusal_arrives_as_it_was_said() {
    let server = Server::bind();
    let (client, mut peer) = server.connected().await;
    let script = async {
        let id = peer.request().await.unwrap()["id"].clone();
        let error = json!({"code":"not_found","message":"no `ada` here","hint":"spawn it"});
        peer.say(&json!({"ok":false,"id":id,"error":error}).to_string())
            .await;
    };
    match with(send(&client, 1), script).await {
        Err(ClientError::Refused(error)) => {
            assert_eq!(error.code, ErrorCode::NotFound);
            assert_eq!(error.message, "no `ada` here");
            assert_eq!(error.hint, "spawn it");
        }
        other => panic!("{other:?}"),
    }
    // The connection lives on.
    let again = with(send(&client, 2), peer.answer_next()).await;
    assert_eq!(again.unwrap(), 2);
}

#[tokio::test]
async fn a_reply_of_the_wrong_shape_fails_its_call_alone() {
    let server = Server::bind();
    let (client, mut peer) = server.connected().await;
    let script = async {
        for reply in [json!({"ok":true}), json!({"ok":false})] {
            let mut reply = reply;
            reply["id"] = peer.request().await.unwrap()["id"].clone();
            peer.say(&reply.to_string()).await;
        }
        peer.answer_next().await;
    };
    let calls = async {
        for number in [1, 2] {
            let error = send(&client, number).await.unwrap_err();
            assert!(matches!(error, ClientError::Protocol(_)), "{error}");
            assert!(error.to_string().contains("`send`"), "{error}");
        }
        send(&client, 3).await
    };
    assert_eq!(with(calls, script).await.unwrap(), 3);
}

#[tokio::test]
async fn nonsense_ends_the_connection_and_every_call_on_it() {
    for nonsense in [
        "hello",
        "{}",
        r#"{"ok":true}"#,
        r#"{"ok":true,"id":"x"}"#,
        r#"{"ok":false,"error":{"code":"bad_request","message":"no cmd"}}"#,
    ] {
        let server = Server::bind();
        let (client, mut peer) = server.connected().await;
        let script = async {
            peer.request().await.unwrap();
            peer.request().await.unwrap();
            peer.say(nonsense).await;
            assert!(peer.request().await.is_none(), "the client hangs up");
        };
        let calls = async { tokio::join!(send(&client, 1), send(&client, 2)) };
        let (one, two) = with(calls, script).await;
        for outcome in [one, two] {
            assert!(
                matches!(outcome, Err(ClientError::Protocol(_))),
                "{nonsense}: {outcome:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_reply_may_fill_a_line_and_not_a_byte_more() {
    for (extra, fits) in [(0, true), (1, false)] {
        let server = Server::bind();
        let (client, mut peer) = server.connected().await;
        let script = async {
            let id = peer.request().await.unwrap()["id"].clone();
            let short = json!({"ok":true,"id":id,"message_id":1,"padding":""}).to_string();
            let padding = "x".repeat(MAX_LINE + extra - short.len());
            let reply = json!({"ok":true,"id":id,"message_id":1,"padding":padding}).to_string();
            assert_eq!(reply.len(), MAX_LINE + extra);
            // The client may hang up before all of it is out.
            peer.write.write_all(reply.as_bytes()).await.ok();
            peer.write.write_all(b"\n").await.ok();
        };
        match with(send(&client, 1), script).await {
            Ok(1) if fits => {}
            Err(ClientError::Protocol(what)) if !fits => {
                assert!(what.contains("longer than"), "{what}");
            }
            other => panic!("{extra}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_request_above_the_limit_is_refused_without_being_sent() {
    let nowhere = Client::new("/nonexistent/s.sock", Options::default());
    let error = nowhere.call(&padded(1, MAX_LINE)).await.unwrap_err();
    match error {
        ClientError::Refused(error) => assert_eq!(error.code, ErrorCode::LineTooLong),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_unreachable_daemon_is_named_by_its_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("none.sock");
    let error = Client::connect(&path).await.unwrap_err();
    assert!(
        error.to_string().contains(path.to_str().unwrap()),
        "{error}"
    );
    match error {
        ClientError::Unreachable { source, .. } => {
            assert_eq!(source.kind(), io::ErrorKind::NotFound);
        }
        other => panic!("{other:?}"),
    }

    // A socket file that nobody listens on any more.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    match Client::connect(&path).await.unwrap_err() {
        ClientError::Unreachable { source, .. } => {
            assert_eq!(source.kind(), io::ErrorKind::ConnectionRefused);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_full_queue_of_connections_is_waited_for() {
    let server = Server::bind();
    rustix::net::listen(&server.listener, 0).unwrap();
    let first = socket::connect(&server.path).await.unwrap();
    let full = socket::connect(&server.path).await.unwrap_err();
    assert_eq!(full.kind(), io::ErrorKind::WouldBlock);

    let impatient = Options {
        connect_timeout: Duration::from_millis(20),
        ..Options::default()
    };
    match Client::new(&server.path, impatient).call(&Status {}).await {
        Err(ClientError::Unreachable { source, .. }) => {
            assert_eq!(source.kind(), io::ErrorKind::TimedOut);
        }
        other => panic!("{other:?}"),
    }

    let script = async {
        drop(server.accept().await);
        drop(first);
        server.accept().await.answer_next().await;
    };
    let client = server.client();
    assert_eq!(with(send(&client, 1), script).await.unwrap(), 1);
}

#[tokio::test]
async fn a_daemon_that_takes_no_connection_is_heard() {
    let server = Server::bind();
    let client = server.client();
    let script = async {
        let mut peer = server.accept().await;
        peer.say(r#"{"ok":false,"error":{"code":"limit_reached","message":"500 connections"}}"#)
            .await;
    };
    match with(send(&client, 1), script).await {
        Err(ClientError::Refused(error)) => assert_eq!(error.code, ErrorCode::LimitReached),
        other => panic!("{other:?}"),
    }
}

/// Starts a call whose line does not fit into the socket's buffer and drops it half written.
async fn drop_half_written(client: &Client, peer: &mut Peer, number: i64) {
    let large = padded(number, MAX_LINE - 1000);
    let readable = async {
        let stream: &OwnedReadHalf = peer.lines.get_ref().get_ref();
        stream.readable().await.unwrap();
    };
    tokio::select! {
        biased;
        outcome = client.call_within(&large, AGES) => panic!("nobody answered: {outcome:?}"),
        () = readable => {}
    }
}

#[tokio::test]
async fn the_next_call_finishes_the_line_of_a_dropped_one() {
    let server = Server::bind();
    let (client, mut peer) = server.connected().await;
    drop_half_written(&client, &mut peer, 1).await;
    let script = async {
        let dropped = peer.request().await.unwrap();
        assert_eq!(number_in(&dropped), 1);
        peer.answer(&dropped).await;
        peer.answer_next().await;
    };
    assert_eq!(with(send(&client, 2), script).await.unwrap(), 2);
}

#[tokio::test]
async fn the_line_of_a_dropped_call_is_finished_even_when_no_other_follows() {
    let server = Server::bind();
    let (client, mut peer) = server.connected().await;
    drop_half_written(&client, &mut peer, 1).await;
    assert_eq!(number_in(&peer.request().await.unwrap()), 1);
    client.close().await;
    assert!(peer.request().await.is_none());
}

#[tokio::test]
async fn calls_beyond_the_limit_wait_for_their_turn() {
    let server = Server::bind();
    let options = Options {
        max_in_flight: 1,
        ..Options::default()
    };
    let client = Client::new(&server.path, options);
    let script = async {
        let mut peer = server.accept().await;
        for number in [1, 2] {
            let request = peer.request().await.unwrap();
            assert_eq!(number_in(&request), number);
            let more = peer.lines.get_ref().buffer();
            assert!(more.is_empty(), "only one call may be under way");
            peer.answer(&request).await;
        }
    };
    let calls = async { tokio::join!(send(&client, 1), send(&client, 2)) };
    let (one, two) = with(calls, script).await;
    assert_eq!((one.unwrap(), two.unwrap()), (1, 2));
}

#[tokio::test]
async fn the_connection_goes_with_its_last_handle() {
    let server = Server::bind();
    let (client, mut peer) = server.connected().await;
    let clone = client.clone();
    drop(client);
    let outcome = with(send(&clone, 1), peer.answer_next()).await;
    assert_eq!(outcome.unwrap(), 1);
    drop(clone);
    assert!(peer.request().await.is_none());
}

#[tokio::test]
async fn closing_ends_the_calls_under_way() {
    let server = Server::bind();
    let (client, mut peer) = server.connected().await;
    let other = client.clone();
    let script = async {
        peer.request().await.unwrap();
        client.close().await;
        assert!(peer.request().await.is_none());
    };
    let outcome = with(send(&other, 1), script).await;
    assert!(matches!(outcome, Err(ClientError::Lost)), "{outcome:?}");

    // A handle that is left connects anew.
    let script = async { server.accept().await.answer_next().await };
    assert_eq!(with(send(&other, 2), script).await.unwrap(), 2);
}

#[tokio::test]
async fn an_idempotent_call_goes_on_until_somebody_answers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let client = Client::new(&path, Options::default());
    let first = message(1);
    let call = client.call_idempotent(&first, AGES);
    let script = async {
        // The call was polled first, so that its first attempt found nobody.
        let listener = UnixListener::bind(&path).unwrap();
        let server = Server {
            _dir: tempfile::tempdir().unwrap(),
            path: path.clone(),
            listener,
        };
        let mut dies = server.accept().await;
        dies.request().await.unwrap();
        drop(dies);
        let mut stops = server.accept().await;
        let id = stops.request().await.unwrap()["id"].clone();
        let error = json!({"code":"shutting_down","message":"stopping"});
        stops
            .say(&json!({"ok":false,"id":id,"error":error}).to_string())
            .await;
        drop(stops);
        server.accept().await.answer_next().await;
    };
    assert_eq!(with(call, script).await.unwrap().message_id.0, 1);
}

#[tokio::test]
async fn an_idempotent_call_gives_up_at_its_deadline_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let client = Client::new(dir.path().join("none.sock"), Options::default());
    let outcome = client
        .call_idempotent(&Status {}, Duration::from_millis(50))
        .await;
    assert!(
        matches!(outcome, Err(ClientError::Unreachable { .. })),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn an_idempotent_call_takes_no_for_an_answer() {
    let server = Server::bind();
    let (client, mut peer) = server.connected().await;
    let script = async {
        let id = peer.request().await.unwrap()["id"].clone();
        let error = json!({"code":"denied","message":"not yours"});
        peer.say(&json!({"ok":false,"id":id,"error":error}).to_string())
            .await;
    };
    let first = message(1);
    let outcome = with(client.call_idempotent(&first, AGES), script).await;
    match outcome {
        Err(ClientError::Refused(error)) => assert_eq!(error.code, ErrorCode::Denied),
        other => panic!("{other:?}"),
    }
}

/// Hundreds of calls of all sizes on one connection, a third of them dropped as soon as they have
/// begun: lines stay whole and every other call gets its own reply.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn dropped_calls_among_many_harm_nobody() {
    const CALLS: i64 = 200;
    let server = Server::bind();
    let options = Options {
        max_in_flight: 16,
        ..Options::default()
    };
    let client = Client::new(&server.path, options);
    // A dropped call may take its half-made connection with it, so that this one comes first.
    let script = async {
        let mut peer = server.accept().await;
        peer.answer_next().await;
        peer
    };
    let (outcome, mut peer) = tokio::join!(send(&client, CALLS), script);
    assert_eq!(outcome.unwrap(), CALLS);

    let mut calls = tokio::task::JoinSet::new();
    for number in 0..CALLS {
        let client = client.clone();
        calls.spawn(async move {
            let padding = [0, 200, 5_000, 300_000][usize::try_from(number % 4).unwrap()];
            let patience = if number % 3 == 0 {
                Duration::ZERO
            } else {
                AGES
            };
            let outcome = client.call_within(&padded(number, padding), patience).await;
            (number, outcome)
        });
    }
    let mut scripts = tokio::task::JoinSet::new();
    scripts.spawn(async move {
        while let Some(request) = peer.request().await {
            peer.answer(&request).await;
        }
    });
    while let Some(outcome) = calls.join_next().await {
        match outcome.unwrap() {
            (number, Ok(sent)) => assert_eq!(sent.message_id.0, number),
            (number, Err(ClientError::TimedOut { .. })) => assert_eq!(number % 3, 0),
            (number, Err(error)) => panic!("{number}: {error}"),
        }
    }
    // The server answers in order: after this one it owes nothing to the dropped calls.
    assert_eq!(send(&client, CALLS).await.unwrap(), CALLS);
    client.close().await;
    scripts.join_next().await.unwrap().unwrap();
}
