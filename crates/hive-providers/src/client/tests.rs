//! A client against a server that answers each connection with the next bytes of a script.

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

use super::*;
use crate::{
    Assembler, Message, Thinking,
    anthropic::{Anthropic, Credential},
};

const KEY: &str = "tok-0123456789";
/// Keeps the connection open and sends nothing more.
const HANG: &str = "<hang>";

/// Serves one answer per connection; the requests that came are kept.
struct Server {
    url: String,
    requests: Arc<std::sync::Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(answers: Vec<Vec<String>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::<std::sync::Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&requests);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut open = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = String::new();
                while !request.ends_with("\"stream\":true}") {
                    let mut buffer = [0; 4096];
                    let read = stream.read(&mut buffer).await.unwrap();
                    assert_ne!(read, 0, "no whole request: {request}");
                    request.push_str(&String::from_utf8_lossy(&buffer[..read]));
                }
                seen.lock().unwrap().push(request);
                for piece in answer {
                    if piece == HANG {
                        open.push(stream);
                        break;
                    }
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    stream.flush().await.unwrap();
                    // What is sent apart arrives apart, mostly; no test depends on it.
                    tokio::task::yield_now().await;
                }
            }
            std::future::pending::<()>().await;
        });
        Self {
            url,
            requests,
            _tasks: tasks,
        }
    }

    fn requests(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// Asks until the end: what was heard of it.
    async fn ask(&self) -> Heard {
        let endpoint = Endpoint::parse(&self.url).unwrap();
        let dialect = Anthropic {
            credential: Some(Credential::Bearer(Secret::new(KEY))),
            headers: vec![("x-own".into(), Secret::new("own-secret"))],
        };
        let client = Client::new(
            Arc::new(dialect),
            endpoint.clone(),
            Fetch::new(Some(&endpoint), |_| None),
            RetryPolicy {
                max_retries: 1,
                ..RetryPolicy::default()
            },
            Timeouts {
                idle: Duration::from_millis(300),
                ..Timeouts::default()
            },
        );
        let mut reply = client.ask(&Request {
            model: "m".into(),
            system: String::new(),
            messages: vec![Message::user("hi")],
            tools: Vec::new(),
            max_tokens: 9,
            thinking: Thinking::Off,
        });
        let mut heard = Heard::default();
        loop {
            match reply.next().await {
                Progress::Event(event) => {
                    heard.assembler.push(&event);
                }
                Progress::Limit(_) => {}
                Progress::Retrying { error, .. } => {
                    heard.assembler = Assembler::default();
                    heard.retries.push(error);
                }
                Progress::Done => return heard,
                Progress::Failed(error) => {
                    heard.failure = Some(error);
                    return heard;
                }
            }
        }
    }
}

#[derive(Default)]
struct Heard {
    assembler: Assembler,
    retries: Vec<ApiError>,
    failure: Option<ApiError>,
}

impl Heard {
    fn texts(&self) -> Vec<&str> {
        let done = self.assembler.done.iter();
        done.filter_map(|done| done.block.as_text()).collect()
    }
}

fn head(status: &str, more: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{more}\r\n")
}

fn stream(events: &[Value]) -> Vec<String> {
    let mut pieces = vec![head("200 OK", "content-type: text/event-stream\r\n")];
    pieces.extend(events.iter().map(|event| format!("data: {event}\n\n")));
    pieces
}

/// The events of an answer with one block of text.
fn answer(text: &str) -> Vec<Value> {
    vec![
        json!({"type":"message_start","message":{"id":"m","model":"m","usage":{"input_tokens":1}}}),
        json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}),
        json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":text}}),
        json!({"type":"content_block_stop","index":0}),
        json!({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}),
        json!({"type":"message_stop"}),
    ]
}

#[tokio::test]
async fn a_stream_that_breaks_before_anything_is_whole_is_asked_for_again() {
    let broken = stream(&answer("lost")[..3]);
    let server = Server::start(vec![broken, stream(&answer("whole"))]).await;
    let heard = server.ask().await;
    assert_eq!(
        heard.texts(),
        ["whole"],
        "nothing of the first attempt is left"
    );
    assert_eq!(heard.retries.len(), 1);
    assert_eq!((heard.failure, server.requests()), (None, 2));
}

#[tokio::test]
async fn a_stream_that_breaks_after_a_whole_block_is_not_asked_for_again() {
    for rest in [vec![], vec![HANG.to_owned()]] {
        let mut broken = stream(&answer("kept")[..4]);
        broken.extend(rest);
        let server = Server::start(vec![broken, stream(&answer("twice"))]).await;
        let heard = server.ask().await;
        assert_eq!(heard.texts(), ["kept"]);
        assert_eq!(heard.failure.unwrap().kind, ErrorKind::BrokenOff);
        assert_eq!(server.requests(), 1);
    }
}

#[tokio::test]
async fn what_follows_a_whole_answer_does_not_break_it() {
    for rest in [
        "data: no json\n\n".to_owned(),
        format!(
            "data: {}\n\n",
            json!({"type":"error","error":{"type":"api_error"}})
        ),
        "\u{fffd}\n".repeat(3),
    ] {
        // In one piece, so that both are read at once.
        let mut pieces = stream(&answer("whole"));
        pieces.push(rest);
        let server = Server::start(vec![vec![pieces.concat()]]).await;
        let heard = server.ask().await;
        assert_eq!(heard.texts(), ["whole"]);
        assert_eq!((heard.failure, heard.retries.len()), (None, 0));
    }
}

#[tokio::test]
async fn a_status_counts_even_when_its_body_never_comes() {
    let refused = head("401 Unauthorized", "content-length: 100\r\n");
    let server = Server::start(vec![vec![refused, HANG.to_owned()]]).await;
    let heard = server.ask().await;
    let failure = heard.failure.unwrap();
    assert_eq!(
        (failure.kind, failure.status),
        (ErrorKind::Unauthorized, Some(401))
    );
    assert_eq!(heard.retries.len(), 0, "asking again cannot help");
}

#[tokio::test]
async fn a_redirect_is_not_followed_with_the_key() {
    let elsewhere = Server::start(vec![stream(&answer("stolen"))]).await;
    let location = format!("location: {}/\r\ncontent-length: 0\r\n", elsewhere.url);
    let server = Server::start(vec![vec![head("307 Elsewhere", &location)]]).await;
    let failure = server.ask().await.failure.unwrap();
    assert_eq!(failure.status, Some(307));
    assert_eq!(elsewhere.requests(), 0);
}

#[tokio::test]
async fn no_secret_is_in_what_a_failure_says() {
    let body = json!({"error":{"type":"t","message":format!("bad key {KEY} and own-secret")}});
    let body = body.to_string();
    let length = format!("content-length: {}\r\n", body.len());
    let server = Server::start(vec![vec![head("400 Bad", &length), body]]).await;
    let failure = server.ask().await.failure.unwrap();
    assert_eq!(failure.message, "bad key *** and ***");
    let sent = server.requests.lock().unwrap()[0].to_lowercase();
    assert!(
        sent.contains(&format!("authorization: bearer {KEY}")),
        "{sent}"
    );
    assert!(sent.contains("x-own: own-secret"), "{sent}");
}
