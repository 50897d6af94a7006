//! `/mcp` on an agent's port: who gets in, both eras of the protocol, and that a call there is a
//! call on the agent's own socket.

use std::time::Instant;

use hive_testkit::hive::TestHive;
use serde_json::{Value, json};

use crate::{
    crew::{Crew, lives},
    http::{address, exchange, metrics, status, token},
    peer::{Doors, PATIENCE, hive, ok},
    web::{Page, agent_address, hive_with_own_ports},
};

/// The revision without a handshake.
const MODERN: &str = "2026-07-28";
/// The revisions with one.
const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// An MCP client of an agent's port.
pub(crate) struct Tools {
    pub(crate) page: Page,
    session: Option<String>,
}

/// What came back.
#[derive(Debug)]
struct Heard {
    status: u16,
    session: Option<String>,
    /// The JSON-RPC messages in it, or the one JSON document that it is.
    messages: Vec<Value>,
}

impl Tools {
    pub(crate) fn of(hive: &TestHive, agent: &str) -> Self {
        Self {
            page: Page::of_agent(hive, agent),
            session: None,
        }
    }

    /// After the handshake of `revision`.
    fn shaken(hive: &TestHive, agent: &str, revision: &str) -> Self {
        let mut tools = Self::of(hive, agent);
        let heard = tools.post(&[], &hello(revision));
        assert_eq!(heard.status, 200, "{heard:?}");
        assert_eq!(heard.result()["protocolVersion"], revision, "{heard:?}");
        tools.session = heard.session;
        assert!(tools.session.is_some(), "no session");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(tools.post(&[], &ready).status, 202);
        tools
    }

    fn post(&self, headers: &[&str], message: &Value) -> Heard {
        self.say("POST", headers, &message.to_string())
    }

    /// Says this with the token of the page and the session, if there is one.
    fn say(&self, method: &str, headers: &[&str], body: &str) -> Heard {
        let bearer = format!("Authorization: Bearer {}", self.page.token);
        let session = self.session.as_ref();
        let session = session.map(|session| format!("Mcp-Session-Id: {session}"));
        let mut all = vec![bearer.as_str()];
        all.extend(session.as_deref());
        all.extend(headers);
        self.bare(method, &all, body)
    }

    /// Says this without a token.
    fn bare(&self, method: &str, headers: &[&str], body: &str) -> Heard {
        let mut head = format!("{method} /mcp HTTP/1.1\r\nConnection: close\r\n");
        for header in headers {
            head += &format!("{header}\r\n");
        }
        for (name, value) in [
            ("Host", self.page.address.as_str()),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
        ] {
            if !head.contains(&format!("\n{name}: ")) {
                head += &format!("{name}: {value}\r\n");
            }
        }
        let length = body.len();
        let request = format!("{head}Content-Length: {length}\r\n\r\n{body}");
        Heard::parse(&exchange(&self.page.address, &request))
    }

    /// A request of the era without a handshake.
    fn modern(&self, method: &str, mut params: Value) -> Heard {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let version = format!("Mcp-Protocol-Version: {MODERN}");
        let named = format!("Mcp-Method: {method}");
        let object = params["name"].as_str().or(params["uri"].as_str());
        let object = object.map(|name| format!("Mcp-Name: {name}"));
        let mut headers = vec![version.as_str(), named.as_str()];
        headers.extend(object.as_deref());
        self.post(&headers, &request(method, params))
    }

    /// Calls a tool in the era without a handshake; its result.
    pub(crate) fn call(&self, tool: &str, args: Value) -> Value {
        let heard = self.modern("tools/call", json!({"name": tool, "arguments": args}));
        assert_eq!(heard.status, 200, "{heard:?}");
        heard.result()
    }
}

impl Heard {
    fn parse(raw: &str) -> Self {
        let (head, body) = raw.split_once("\r\n\r\n").unwrap();
        let header = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.to_owned())
        };
        let body = match header("transfer-encoding") {
            Some(_) => unchunked(body),
            None => body.to_owned(),
        };
        let is_stream = header("content-type").is_some_and(|kind| kind == "text/event-stream");
        let messages = if is_stream {
            let data = body.lines().filter_map(|line| line.strip_prefix("data:"));
            data.filter_map(|data| serde_json::from_str(data).ok())
                .collect()
        } else {
            serde_json::from_str(&body).into_iter().collect()
        };
        Self {
            status: status(raw),
            session: header("mcp-session-id"),
            messages,
        }
    }

    /// The result of the only answer.
    fn result(&self) -> Value {
        let mut answers = self
            .messages
            .iter()
            .filter(|message| message.get("id").is_some());
        let answer = answers
            .next()
            .unwrap_or_else(|| panic!("no answer: {self:?}"));
        assert!(answers.next().is_none(), "two answers: {self:?}");
        answer["result"].clone()
    }

    fn error(&self) -> i64 {
        let message = self.messages.last().unwrap_or_else(|| panic!("{self:?}"));
        message["error"]["code"]
            .as_i64()
            .unwrap_or_else(|| panic!("{self:?}"))
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole += &rest[..length];
        body = &rest[length + 2..];
    }
    whole
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
}

fn hello(revision: &str) -> Value {
    request(
        "initialize",
        json!({
            "protocolVersion": revision,
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }),
    )
}

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["tools"]
        .as_array()
        .unwrap_or_else(|| panic!("{listed}"));
    tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn mcp_needs_the_token_of_this_page() {
    let hive = hive(&["ada", "bob"]).await;
    let (ada, bob) = (Tools::of(&hive, "ada"), Tools::of(&hive, "bob"));
    let body = hello("2025-11-25").to_string();
    let foreign = format!("Authorization: Bearer {}", bob.page.token);
    let operator = format!("Authorization: Bearer {}", token(&hive));
    for headers in [
        &[][..],
        &["Authorization: Bearer x"],
        &[foreign.as_str()],
        &[operator.as_str()],
    ] {
        for method in ["POST", "GET", "DELETE", "PUT"] {
            let heard = ada.bare(method, headers, &body);
            assert_eq!(heard.status, 401, "{method} {headers:?}: {heard:?}");
        }
    }
    assert_eq!(ada.post(&[], &hello("2025-11-25")).status, 200);
    // The dashboard is nobody's tools.
    let dashboard = Tools {
        page: Page::dashboard(&hive),
        session: None,
    };
    assert_eq!(dashboard.post(&[], &hello("2025-11-25")).status, 404);
}

#[tokio::test]
async fn mcp_takes_requests_for_its_own_host_and_of_its_own_origin() {
    let hive = hive(&["ada"]).await;
    let ada = Tools::of(&hive, "ada");
    let dashboard = format!("Origin: http://{}", address(&hive));
    for (header, code) in [
        ("Host: evil.test", 421),
        ("Host: 127.0.0.1", 421),
        ("Origin: http://evil.test", 403),
        ("Origin: null", 403),
        (dashboard.as_str(), 403),
    ] {
        let heard = ada.post(&[header], &hello("2025-11-25"));
        assert_eq!(heard.status, code, "{header}: {heard:?}");
    }
    let own = format!("Origin: http://{}", ada.page.address);
    assert_eq!(ada.post(&[&own], &hello("2025-11-25")).status, 200);
}

#[tokio::test]
async fn mcp_every_handshake_lists_and_calls() {
    let hive = hive(&["ada", "bob"]).await;
    for revision in HANDSHAKES {
        let ada = Tools::shaken(&hive, "ada", revision);
        let listed = ada.post(&[], &request("tools/list", json!({}))).result();
        assert!(names(&listed).contains(&"send"), "{listed}");
        let params = json!({"name": "send", "arguments": {"to": "bob", "body": revision}});
        let sent = ada.post(&[], &request("tools/call", params)).result();
        assert_ne!(sent["isError"], true, "{sent}");
        assert_eq!(ada.say("DELETE", &[], "").status, 202);
        let gone = ada.post(&[], &request("tools/list", json!({})));
        assert_eq!(gone.status, 404, "its session was ended: {gone:?}");
    }
    let mail = ok(hive.peer("bob").ask(&json!({"cmd": "recv", "max": 8})));
    for (message, revision) in mail["messages"].as_array().unwrap().iter().zip(HANDSHAKES) {
        // The sender is whoever owns the port, and nothing in a call says otherwise.
        assert_eq!(
            (&message["from"], &message["body"]),
            (&json!("ada"), &json!(revision))
        );
    }
}

#[tokio::test]
async fn mcp_without_a_handshake_each_request_stands_for_itself() {
    let mut hive = hive_with_own_ports(&["ada", "bob"]).await;
    let ada = Tools::of(&hive, "ada");
    let found = ada.modern("server/discover", json!({}));
    assert_eq!(found.status, 200, "{found:?}");
    let found = found.result();
    assert!(
        found["supportedVersions"]
            .as_array()
            .unwrap()
            .contains(&json!(MODERN))
    );
    assert_eq!(found["capabilities"], json!({"tools": {}}));
    let listed = ada.modern("tools/list", json!({})).result();
    assert!(names(&listed).contains(&"recv"));
    let sent = ada.call("send", json!({"to": "bob", "body": "hi"}));
    assert!(sent["structuredContent"]["message_id"].is_i64(), "{sent}");
    let text = sent["content"][0]["text"].as_str().unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(text).unwrap(),
        sent["structuredContent"]
    );

    // There is nothing that a restart could lose.
    hive.kill().await.unwrap();
    hive.restart().await.unwrap();
    let ada = Tools {
        page: Page {
            address: agent_address(&hive, "ada"),
            token: ada.page.token,
        },
        session: None,
    };
    let peers = ada.call("list_peers", json!({}));
    assert_eq!(
        peers["structuredContent"]["peers"][0]["name"], "bob",
        "{peers}"
    );
}

#[tokio::test]
async fn mcp_is_our_server_and_answers_nothing_undeclared() {
    let hive = hive(&["ada"]).await;
    let ada = Tools::of(&hive, "ada");
    let hello = ada.post(&[], &hello("2025-11-25")).result();
    assert_eq!(hello["serverInfo"]["name"], "hyperhive");
    assert_eq!(hello["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(hello["capabilities"], json!({"tools": {}}));
    let session = Tools::shaken(&hive, "ada", "2025-11-25");
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "x"})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "file:///etc/passwd"})),
        ("logging/setLevel", json!({"level": "debug"})),
        ("tasks/list", json!({})),
        ("hive/secret", json!({})),
    ] {
        let old = session.post(&[], &request(method, params.clone()));
        assert_eq!(old.error(), -32601, "{method}: {old:?}");
        let new = ada.modern(method, params);
        assert_eq!(
            (new.status, new.error()),
            (404, -32601),
            "{method}: {new:?}"
        );
    }
}

#[tokio::test]
async fn mcp_headers_and_bodies_must_agree() {
    let hive = hive(&["ada"]).await;
    let ada = Tools::of(&hive, "ada");
    let version = format!("Mcp-Protocol-Version: {MODERN}");
    let call = request(
        "tools/call",
        json!({"name": "list_peers", "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        }}),
    );
    for (headers, code) in [
        (vec!["Mcp-Method: tools/call", "Mcp-Name: send"], -32020),
        (
            vec!["Mcp-Method: tools/list", "Mcp-Name: list_peers"],
            -32020,
        ),
        (vec!["Mcp-Method: tools/call"], -32020),
    ] {
        let headers = [&[version.as_str()][..], &headers].concat();
        let heard = ada.post(&headers, &call);
        assert_eq!(
            (heard.status, heard.error()),
            (400, code),
            "{headers:?}: {heard:?}"
        );
    }
    let heard = ada.post(&["Content-Type: text/plain"], &call);
    assert_eq!(heard.status, 415, "{heard:?}");
    let long = request("tools/list", json!({"x": "y".repeat(600 * 1024)}));
    assert_eq!(ada.post(&[], &long).status, 413);
    assert!(ada.say("POST", &[], "not json").status >= 400);
    assert_eq!(ada.say("PUT", &[], "{}").status, 405);
}

#[tokio::test]
async fn mcp_a_received_batch_is_confirmed_once_its_answer_was_written() {
    let hive = hive(&["ada", "bob"]).await;
    let ada = Tools::of(&hive, "ada");
    let mut harness = hive.peer("ada");
    for body in ["one", "two"] {
        hive.send("bob", "ada", body);
    }
    let opened = ok(harness.ask(&json!({"cmd": "recv", "turn": "t1"})));
    let first = opened["messages"][0]["id"].clone();
    let before = operations(&hive);
    let got = ada.call("recv", json!({}));
    assert_eq!(
        got["structuredContent"]["messages"][0]["body"], "two",
        "{got}"
    );
    // The word that it was written follows the answer. It is the third operation: the batch was
    // one, and that its connection was closed another.
    let deadline = Instant::now() + PATIENCE;
    while operations(&hive) < before + 3 {
        assert!(Instant::now() < deadline, "nobody confirmed the batch");
    }
    let ended = ok(harness.ask(&json!({"cmd": "ack_turn", "turn": "t1", "ids": [first]})));
    assert_eq!(
        (&ended["acked"], &ended["requeued"]),
        (&json!(2), &json!(0)),
        "{ended}"
    );
}

/// How much the broker has done.
fn operations(hive: &TestHive) -> u64 {
    let metrics = metrics(hive);
    let mut lines = metrics.lines();
    let count = lines.find_map(|line| line.strip_prefix("hive_broker_operations_total "));
    count
        .unwrap_or_else(|| panic!("{metrics}"))
        .parse()
        .unwrap()
}

#[tokio::test]
async fn mcp_sessions_are_bounded() {
    let hive = hive(&["ada"]).await;
    let ada = Tools::of(&hive, "ada");
    let mut opened = 0;
    let refused = loop {
        let heard = ada.post(&[], &hello("2025-11-25"));
        if heard.status != 200 {
            break heard;
        }
        opened += 1;
        assert!(opened <= 64, "no end of sessions");
    };
    assert_eq!((opened, refused.status), (64, 429), "{refused:?}");
    // Whoever needs none is not in the way of anybody.
    assert_ne!(ada.call("list_peers", json!({}))["isError"], true);
}

#[tokio::test]
async fn mcp_m11_an_agent_stops_and_starts_its_own_children_alone() {
    let crew = Crew::new("").await;
    let hive = &crew.hive;
    for agent in ["ada", "bob"] {
        hive.spawn_agent(agent).await.unwrap();
    }
    let kid = ["spawn", "kid", "--parent", "ada", "--runtime", "process"];
    hive.cli_json(&kid);
    let first = crew.runs("kid", 1)[0];
    for agent in ["ada", "bob"] {
        hive.cli_json(&["permissions", agent, "--grant", "lifecycle"]);
    }
    let (ada, bob) = (Tools::of(hive, "ada"), Tools::of(hive, "bob"));
    for tool in ["kill", "start", "restart"] {
        let refused = bob.call(tool, json!({"name": "kid"}));
        assert_eq!(refused["isError"], true, "{tool}: {refused}");
    }
    let restart = json!({"name": "kid", "key": "again"});
    for _ in 0..2 {
        let done = ada.call("restart", restart.clone());
        assert_ne!(done["isError"], true, "{done}");
    }
    let runs = crew.runs("kid", 2);
    assert!(!lives(first) && lives(runs[1]), "{runs:?}");
    let killed = ada.call("kill", json!({"name": "kid"}));
    assert_eq!(killed["structuredContent"]["state"], "stopped", "{killed}");
    assert!(!lives(runs[1]));
    let listed = ada.call("list_agents", json!({}));
    assert_eq!(
        listed["structuredContent"]["agents"][0]["state"], "stopped",
        "{listed}"
    );
    let started = ada.call("start", json!({"name": "kid"}));
    assert_ne!(started["isError"], true, "{started}");
    assert_eq!(crew.runs("kid", 3).len(), 3, "the repeated restart was one");
}
