//! Budgets and pauses of a whole hive, with a model's service of the test's own behind the gateway.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    os::unix::net::UnixStream,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use hive_wire::socket;
use serde_json::{Value, json};

use crate::{
    crew::Crew,
    peer::{Doors, PATIENCE, eventually, ok},
};

/// A service whose every answer costs 1,000 tokens, and how often it was asked.
fn service() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
                    break;
                }
                let line = line.to_lowercase();
                if let Some(text) = line.strip_prefix("content-length:") {
                    length = text.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            if reader.read_exact(&mut body).is_err() {
                continue;
            }
            counter.fetch_add(1, Ordering::Relaxed);
            let body =
                r#"{"model":"claude-haiku-4-5","usage":{"input_tokens":900,"output_tokens":100}}"#;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
            reader.get_mut().write_all(answer.as_bytes()).ok();
        }
    });
    (url, asked)
}

/// A hive with one agent, a script, whose engine is this test.
async fn crew(config: &str) -> (Crew, Arc<AtomicUsize>) {
    let (url, asked) = service();
    // The first lines go on with the table `[engine]` that is open there.
    let config = format!(
        "{config}\n[engine.env]\nANTHROPIC_API_KEY = \"sk-real\"\nANTHROPIC_BASE_URL = \"{url}\"\n"
    );
    let crew = Crew::new(&config).await;
    crew.spawn("ada");
    (crew, asked)
}

/// Calls the model as the agent's engine would; the status of the answer.
fn call(crew: &Crew, agent: &str) -> u16 {
    let path = crew
        .hive
        .root()
        .join("run/agents")
        .join(agent)
        .join("gateway.sock");
    let mut stream = UnixStream::connect(socket::reachable(&path).unwrap()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\
        connection: close\r\n\r\n{}";
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// The questions that wait for the operator.
fn questions(crew: &Crew) -> Vec<Value> {
    crew.hive.cli_json(&["questions"])["questions"]
        .as_array()
        .unwrap()
        .clone()
}

/// What a new turn of an agent gets at once.
fn mail(crew: &Crew, agent: &str, turn: &str) -> Vec<Value> {
    let asked = json!({"cmd":"recv","turn":turn,"max":9});
    ok(crew.hive.peer(agent).ask(&asked))["messages"]
        .as_array()
        .unwrap()
        .clone()
}

#[tokio::test]
async fn a_budget_is_noted_then_asked_about_and_no_turn_begins_past_its_cap() {
    let (mut crew, asked) = crew("[agents.budget]\ntokens = 4_500").await;
    for _ in 0..3 {
        assert_eq!(call(&crew, "ada"), 200);
    }
    assert!(
        crew.hive.cli_json(&["inbox"])["messages"]
            .as_array()
            .unwrap()
            .is_empty()
    );
    assert_eq!(call(&crew, "ada"), 200);
    let inbox = || {
        crew.hive.cli_json(&["inbox"])["messages"]
            .as_array()
            .unwrap()
            .clone()
    };
    eventually("a note of four fifths", || inbox().len() == 1);
    let note = inbox()[0]["body"].as_str().unwrap().to_owned();
    assert!(
        note.contains("88 %") && note.contains("4000 of 4500 tokens"),
        "{note}"
    );
    assert!(questions(&crew).is_empty());

    assert_eq!(call(&crew, "ada"), 200);
    eventually("a question at the cap", || questions(&crew).len() == 1);
    let question = questions(&crew)[0].clone();
    assert!(
        question["question"]
            .as_str()
            .unwrap()
            .contains("ada's budget"),
        "{question}"
    );
    assert_eq!(question["options"], json!(["raise", "keep paused"]));
    crew.hive.cli_json(&["send", "ada", "work"]);
    assert_eq!(mail(&crew, "ada", "t1"), [Value::Null; 0], "no turn begins");

    // All of it is so after a crash, too.
    crew.hive.kill().await.unwrap();
    crew.hive.restart().await.unwrap();
    assert_eq!(mail(&crew, "ada", "t2"), [Value::Null; 0]);
    let page = crew.hive.cli_json(&["spend"]);
    assert_eq!(
        (&page["days"][0]["calls"], &page["days"][0]["input_tokens"]),
        (&json!(5), &json!(4_500))
    );
    assert_eq!(page["budgets"][0]["tokens"], 5_000);
    assert_eq!(page["budgets"][0]["tokens_cap"], 4_500);

    // The turn that is under way may go on, but not for ever.
    assert_eq!((call(&crew, "ada"), call(&crew, "ada")), (200, 200));
    eventually("it is refused the model", || call(&crew, "ada") == 503);
    let calls = asked.load(Ordering::Relaxed);
    assert_eq!(call(&crew, "ada"), 503);
    assert_eq!(
        asked.load(Ordering::Relaxed),
        calls,
        "nothing more is spent"
    );
    assert_eq!(questions(&crew).len(), 1, "asked once");

    let id = questions(&crew)[0]["id"].as_str().unwrap().to_owned();
    crew.hive.cli_json(&["answer", &id, "raise"]);
    assert_eq!(mail(&crew, "ada", "t3").len(), 1, "it goes on");
    assert_eq!(call(&crew, "ada"), 200);
    assert_eq!(
        crew.hive.cli_json(&["spend"])["budgets"][0]["tokens_cap"],
        9_000
    );
}

#[tokio::test]
async fn the_hives_budget_pauses_everybody() {
    let (crew, _) = crew("[hive.budget]\nusd = 0.002").await;
    crew.spawn("bob");
    // 900 tokens in and 100 out cost 1,400 millionths of a dollar.
    assert_eq!((call(&crew, "ada"), call(&crew, "bob")), (200, 200));
    eventually("a question", || questions(&crew).len() == 1);
    for agent in ["ada", "bob"] {
        crew.hive.cli_json(&["send", agent, "work"]);
        assert_eq!(mail(&crew, agent, "t1"), [Value::Null; 0], "{agent}");
    }
    let status = crew.hive.cli_json(&["status"]);
    assert!(
        status["paused"]
            .as_str()
            .unwrap()
            .contains("the hive's budget"),
        "{status}"
    );
    assert_eq!(status["spent_today"]["cost_micro_usd"], 2_800);
    let id = questions(&crew)[0]["id"].as_str().unwrap().to_owned();
    crew.hive.cli_json(&["answer", &id, "keep paused"]);
    assert_eq!(mail(&crew, "bob", "t2"), [Value::Null; 0]);
    crew.hive.cli_json(&["resume"]);
    assert_eq!(
        mail(&crew, "bob", "t3").len(),
        1,
        "the operator's word counts"
    );
}

#[tokio::test]
async fn c18_mail_of_a_paused_agent_waits_and_pauses_outlive_the_daemon() {
    let (mut crew, _) = crew("").await;
    crew.spawn("bob");
    let paused = crew.hive.cli_json(&["pause", "ada", "--reason", "lunch"]);
    assert_eq!(
        (&paused["changed"], &paused["pauses"][0]["reason"]),
        (&json!(true), &json!("lunch"))
    );
    let id = crew.hive.cli_json(&["send", "ada", "work"])["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(mail(&crew, "ada", "t1"), [Value::Null; 0]);
    // One who waits is not handed anything either, until the pause is over.
    let mut waiting = crew.hive.peer("ada");
    waiting.say(&json!({"cmd":"recv","turn":"t2","wait_seconds":120}));
    crew.hive.cli_json(&["send", "bob", "work"]);
    assert_eq!(mail(&crew, "bob", "t1").len(), 1, "others go on");
    crew.hive.cli_json(&["resume", "ada"]);
    assert_eq!(ok(waiting.hear())["messages"].as_array().unwrap().len(), 1);
    ok(crew
        .hive
        .peer("ada")
        .ask(&json!({"cmd":"requeue_inflight","turn":"t2","reason":"interrupted"})));

    crew.hive.cli_json(&["pause"]);
    let again = crew.hive.cli_json(&["pause"]);
    assert_eq!(again["changed"], false);
    crew.hive.kill().await.unwrap();
    crew.hive.restart().await.unwrap();
    assert_eq!(
        mail(&crew, "ada", "t4"),
        [Value::Null; 0],
        "it outlives the daemon"
    );
    assert_eq!(crew.hive.cli_json(&["receipt", &id])["state"], "stored");
    // A pause of its own outlasts that of the hive.
    crew.hive.cli_json(&["pause", "ada"]);
    crew.hive.cli_json(&["resume"]);
    assert_eq!(mail(&crew, "ada", "t5"), [Value::Null; 0]);
    crew.hive.cli_json(&["resume", "ada"]);
    assert_eq!(mail(&crew, "ada", "t6").len(), 1);
    let said = crew.hive.cli(&["pause", "nobody"]);
    assert_eq!(said.code, 3, "{}", said.stderr);
}

#[tokio::test]
async fn the_gateway_of_a_destroyed_agent_is_closed() {
    let (crew, _) = crew("").await;
    assert_eq!(call(&crew, "ada"), 200);
    crew.hive.cli_json(&["destroy", "ada", "--yes"]);
    let path = crew.hive.root().join("run/agents/ada/gateway.sock");
    assert!(UnixStream::connect(socket::reachable(&path).unwrap_or(path)).is_err());
}
