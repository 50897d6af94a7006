//! The API on the dashboard's port and on the agents' ports: who gets in, what is refused, and that
//! it does what the admin socket does.

use std::{
    io::{Read, Write},
    net::TcpStream,
};

use hive_testkit::hive::TestHive;
use serde_json::{Value, json};

use crate::{
    http::{address, exchange, get, status, token},
    peer::{Doors, PATIENCE, hive, hive_with, mail, ok},
};

/// Where an agent's page is, as `127.0.0.1:PORT`.
pub(crate) fn agent_address(hive: &TestHive, agent: &str) -> String {
    let list = hive.cli_json(&["list"]);
    let agents = list["agents"].as_array().unwrap();
    let row = agents.iter().find(|row| row["name"] == agent).unwrap();
    format!("127.0.0.1:{}", row["port"])
}

/// A hive whose agents have ports that no other test uses, so that a page is there again after a
/// restart.
pub(crate) async fn hive_with_own_ports(agents: &[&str]) -> TestHive {
    let low = 10_000 + std::process::id() % 1_000 * 20;
    let config = format!("[dashboard]\nagent_ports = \"{low}-{}\"\n", low + 19);
    hive_with(&config, agents).await
}

/// What anybody may have: it holds no data of the hive.
const OPEN: [&str; 7] = [
    "/healthz",
    "/readyz",
    "/api/login",
    "/",
    "/assets/{name}",
    "/icon",
    "/own/{*path}",
];

/// A client of one page.
pub(crate) struct Page {
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Page {
    /// The dashboard, for whoever can read the operator's token.
    pub(crate) fn dashboard(hive: &TestHive) -> Self {
        Self {
            address: address(hive),
            token: token(hive),
        }
    }

    /// An agent's page, by a one-time link.
    pub(crate) fn of_agent(hive: &TestHive, agent: &str) -> Self {
        let (address, code) = link(hive, &["link", agent]);
        let login = post_to(&address, "/api/login", &[], &json!({"code":code}));
        assert_eq!(login.0, 200, "{login:?}");
        let token = login.1["token"].as_str().unwrap().to_owned();
        Self { address, token }
    }

    pub(crate) fn get(&self, path: &str) -> (u16, Value) {
        let host = format!("Host: {}", self.address);
        let bearer = format!("Authorization: Bearer {}", self.token);
        parse(&get(&self.address, path, &[&host, &bearer]))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Authorization: Bearer {}", self.token);
        post_to(&self.address, path, &[&bearer], body)
    }
}

/// The address and the code of a new link.
pub(crate) fn link(hive: &TestHive, args: &[&str]) -> (String, String) {
    let link = hive.cli_json(args);
    let url = link["url"]
        .as_str()
        .unwrap()
        .strip_prefix("http://")
        .unwrap();
    let (address, code) = url.split_once("/#code=").unwrap();
    (address.to_owned(), code.to_owned())
}

pub(crate) fn post_to(address: &str, path: &str, headers: &[&str], body: &Value) -> (u16, Value) {
    let kind = ["Content-Type: application/json"];
    post_raw(
        address,
        path,
        &[&kind, headers].concat(),
        body.to_string().as_bytes(),
    )
}

pub(crate) fn post_raw(address: &str, path: &str, headers: &[&str], body: &[u8]) -> (u16, Value) {
    let headers: String = headers
        .iter()
        .map(|header| format!("{header}\r\n"))
        .collect();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{headers}\r\n"
    );
    let body = String::from_utf8(body.to_vec()).unwrap();
    parse(&exchange(address, &format!("{head}{body}")))
}

pub(crate) fn parse(reply: &str) -> (u16, Value) {
    let body = reply.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (
        status(reply),
        serde_json::from_str(body).unwrap_or(Value::Null),
    )
}

#[tokio::test]
async fn web_a_link_works_once_and_for_its_page_alone() {
    let mut hive = hive_with_own_ports(&["ada", "bob"]).await;
    let (dashboard, code) = link(&hive, &["link"]);
    assert_eq!(dashboard, address(&hive));
    let wrong = post_to(
        &dashboard,
        "/api/login",
        &[],
        &json!({"code":"0".repeat(32)}),
    );
    assert_eq!(wrong.0, 403, "{wrong:?}");
    let elsewhere = post_to(
        &agent_address(&hive, "ada"),
        "/api/login",
        &[],
        &json!({"code":code}),
    );
    assert_eq!(
        elsewhere.0, 403,
        "a code of the dashboard on an agent's port"
    );
    let login = post_to(&dashboard, "/api/login", &[], &json!({"code":code}));
    assert_eq!((login.0, login.1["ok"].as_bool()), (200, Some(true)));
    let again = post_to(&dashboard, "/api/login", &[], &json!({"code":code}));
    assert_eq!(
        (again.0, &again.1["error"]["code"]),
        (403, &json!("denied"))
    );
    let operator = Page {
        address: dashboard.clone(),
        token: login.1["token"].as_str().unwrap().to_owned(),
    };
    assert_eq!(operator.get("/api/state").0, 200);

    let (ada, bob) = (Page::of_agent(&hive, "ada"), Page::of_agent(&hive, "bob"));
    assert_eq!(ada.get("/api/state").1["name"], "ada");
    for (token, address) in [
        (&ada.token, &bob.address),
        (&ada.token, &dashboard),
        (&operator.token, &ada.address),
        (&token(&hive), &ada.address),
    ] {
        let page = Page {
            address: address.clone(),
            token: token.clone(),
        };
        for path in ["/api/state", "/api/events", "/metrics", "/nothing"] {
            assert_eq!(page.get(path).0, 401, "{path} on {address}");
        }
        assert_eq!(page.post("/api/send", &json!({"body":"x"})).0, 401);
    }
    assert_eq!(hive.cli(&["link", "zoe"]).code, 3);

    hive.kill().await.unwrap();
    hive.restart().await.unwrap();
    assert_eq!(ada.get("/api/state").0, 200, "sessions survive the daemon");
    assert_eq!(ada.post("/api/logout", &json!({})).0, 200);
    assert_eq!(ada.get("/api/state").0, 401, "ended on the server");
    assert_eq!(bob.get("/api/state").0, 200);
    link(&hive, &["link", "bob", "--rotate"]);
    assert_eq!(bob.get("/api/state").0, 401);
}

#[tokio::test]
async fn web_rotating_the_dashboard_ends_its_tokens() {
    let hive = hive(&["ada"]).await;
    let (operator, ada) = (Page::dashboard(&hive), Page::of_agent(&hive, "ada"));
    assert_eq!(operator.get("/api/state").0, 200);
    let (address, code) = link(&hive, &["link", "--rotate"]);
    assert_eq!(operator.get("/api/state").0, 401);
    assert_eq!(ada.get("/api/state").0, 200, "another page");
    assert_eq!(
        Page::dashboard(&hive).get("/api/state").0,
        200,
        "the file has the new one"
    );
    assert_eq!(
        post_to(&address, "/api/login", &[], &json!({"code":code})).0,
        200
    );
}

#[tokio::test]
async fn web_a_destroyed_agents_page_is_gone_with_its_sessions() {
    let hive = hive_with_own_ports(&["ada"]).await;
    let ada = Page::of_agent(&hive, "ada");
    assert_eq!(hive.cli(&["destroy", "ada", "--yes"]).code, 0);
    assert!(
        TcpStream::connect(&ada.address).is_err(),
        "nobody listens there any more when the answer comes"
    );
    hive.spawn_agent("ada").await.unwrap();
    assert_eq!(
        agent_address(&hive, "ada"),
        ada.address,
        "C4: the port stays its own"
    );
    assert_eq!(ada.get("/api/state").0, 401);
}

#[tokio::test]
async fn web_every_route_is_documented_and_none_is_open() {
    let hive = hive(&["ada"]).await;
    let (dashboard, ada) = (Page::dashboard(&hive), Page::of_agent(&hive, "ada"));
    for (page, expected) in [
        (
            &dashboard,
            &[
                "/api/state",
                "/api/events",
                "/api/send",
                "/metrics",
                "/api/agents/{name}/model",
            ][..],
        ),
        (
            &ada,
            &[
                "/api/state",
                "/api/events",
                "/api/send",
                "/api/interrupt",
                "/api/compact",
                "/api/new-session",
                "/api/model",
                "/api/engine-login/start",
                "/api/engine-login/input",
                "/api/engine-login/cancel",
                "/api/lift",
                "/api/stats",
                "/api/turns",
                "/mcp",
            ][..],
        ),
    ] {
        let (code, document) = page.get("/api/openapi.json");
        assert_eq!((code, &document["openapi"]), (200, &json!("3.1.0")));
        let paths = document["paths"].as_object().unwrap();
        for path in expected {
            assert!(paths.contains_key(*path), "{path} is not documented");
        }
        for (path, item) in paths {
            let real = path.replace("{name}", "ada").replace("{id}", "1");
            for (method, operation) in item.as_object().unwrap() {
                let is_open = operation.get("security").is_none();
                assert_eq!(is_open, OPEN.contains(&path.as_str()), "{path}");
                if is_open {
                    continue;
                }
                let host = format!("Host: {}", page.address);
                let (code, answer) = match method.as_str() {
                    "get" => parse(&get(&page.address, &real, &[&host])),
                    "post" => post_to(&page.address, &real, &[], &json!({})),
                    other => {
                        let method = other.to_uppercase();
                        let request = format!(
                            "{method} {real} HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n"
                        );
                        parse(&exchange(&page.address, &request))
                    }
                };
                assert_eq!(code, 401, "{method} {path}");
                assert_eq!(answer["error"]["code"], "denied", "{method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn web_other_sites_and_forms_are_refused() {
    let hive = hive(&["ada"]).await;
    let ada = Page::of_agent(&hive, "ada");
    let bearer = format!("Authorization: Bearer {}", ada.token);
    let own = format!("Origin: http://{}", ada.address);
    let json_kind = "Content-Type: application/json";
    let body = json!({"body":"hi"}).to_string();
    let dashboard = format!("Origin: http://{}", address(&hive));
    for origin in [
        "Origin: http://evil.test",
        "Origin: null",
        dashboard.as_str(),
    ] {
        for path in ["/api/send", "/api/login", "/nothing"] {
            let sent = post_raw(
                &ada.address,
                path,
                &[json_kind, &bearer, origin],
                body.as_bytes(),
            );
            assert_eq!(sent.0, 403, "{origin} {path}");
        }
        let host = format!("Host: {}", ada.address);
        let read = get(&ada.address, "/healthz", &[&host, origin]);
        assert_eq!(status(&read), 403, "{origin}");
        assert!(!read.to_lowercase().contains("access-control"), "{read}");
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ] {
        let kind = format!("Content-Type: {kind}");
        let sent = post_raw(
            &ada.address,
            "/api/send",
            &[&kind, &bearer, &own],
            body.as_bytes(),
        );
        assert_eq!(sent.0, 415, "{kind}");
    }
    let none = post_raw(&ada.address, "/api/send", &[&bearer], body.as_bytes());
    assert_eq!(none.0, 415);
    let inbox = hive.peer("ada").ask(&json!({"cmd":"status"}));
    assert_eq!(ok(inbox)["unread"], 0, "nothing of it was done");
    let sent = post_raw(
        &ada.address,
        "/api/send",
        &[json_kind, &bearer, &own],
        body.as_bytes(),
    );
    assert_eq!(sent.0, 200, "{sent:?}");
}

#[tokio::test]
async fn web_answers_tell_browsers_what_not_to_do() {
    let hive = hive(&["ada"]).await;
    let address = agent_address(&hive, "ada");
    let host = format!("Host: {address}");
    for path in ["/healthz", "/api/state"] {
        let reply = get(&address, path, &[&host]).to_lowercase();
        for header in [
            "x-content-type-options: nosniff",
            "x-frame-options: deny",
            "referrer-policy: no-referrer",
            "frame-ancestors 'none'",
            "cache-control: no-store",
        ] {
            assert!(reply.contains(header), "{path} lacks {header}: {reply}");
        }
        assert!(!reply.contains("set-cookie"), "{reply}");
    }
}

#[tokio::test]
async fn web_the_operator_sends_from_either_page() {
    let hive = hive(&["ada"]).await;
    let (dashboard, ada) = (Page::dashboard(&hive), Page::of_agent(&hive, "ada"));
    let first = ada.post(
        "/api/send",
        &json!({"body":"from the agent's page","key":"k"}),
    );
    assert_eq!(first.0, 200, "{first:?}");
    let repeated = ada.post(
        "/api/send",
        &json!({"body":"from the agent's page","key":"k"}),
    );
    assert_eq!(repeated.1["duplicate"], true);
    let second = dashboard.post(
        "/api/send",
        &json!({"to":"ada","body":"from the dashboard"}),
    );
    assert_eq!(second.0, 200, "{second:?}");
    let third = dashboard.post("/api/agents/ada/send", &json!({"body":"from its row"}));
    assert_eq!(third.0, 200, "{third:?}");
    let received = hive.peer("ada").ask(&json!({"cmd":"recv","max":9}));
    let expected = [
        "from the agent's page",
        "from the dashboard",
        "from its row",
    ];
    assert_eq!(mail(&received), expected.map(|body| (body, 1)));
    assert_eq!(received["messages"][0]["from"], "operator");
    for (path, body, expected) in [
        ("/api/send", json!({"to":"zoe","body":"x"}), 404),
        ("/api/send", json!({"body":"x"}), 400),
        ("/api/send", json!([]), 400),
        (
            "/api/send",
            json!({"to":"ada","body":"x".repeat(300_000)}),
            400,
        ),
        (
            "/api/send",
            json!({"to":"ada","body":"x".repeat(600_000)}),
            413,
        ),
        ("/api/agents/zoe/send", json!({"body":"x"}), 404),
        ("/api/agents/..%2f/send", json!({"body":"x"}), 404),
        ("/api/agents/ada/interrupt", json!({}), 409),
        ("/api/agents/zoe/interrupt", json!({}), 404),
        ("/api/agents/ada/model", json!({"name":"--evil"}), 400),
        ("/api/agents/ada/nothing", json!({}), 404),
        ("/api/state", json!({}), 405),
    ] {
        let (code, answer) = dashboard.post(path, &body);
        assert_eq!(code, expected, "{path}: {answer}");
        assert_eq!(answer["ok"], false, "{path}: {answer}");
        assert!(answer["error"]["message"].is_string(), "{path}: {answer}");
    }
}

#[tokio::test]
async fn web_state_and_statistics_are_those_of_the_admin_socket() {
    let hive = hive(&["ada"]).await;
    let (dashboard, page) = (Page::dashboard(&hive), Page::of_agent(&hive, "ada"));
    let mut ada = hive.peer("ada");
    ok(ada.ask(&json!({"cmd":"control","hello":true})));
    ok(ada.ask(&json!({"cmd":"set_status","text":"<b>bold</b>"})));
    ok(ada.ask(
        &json!({"cmd":"post_state","turn_state":"thinking","since":"2026-01-02T03:04:05Z",
        "model":"haiku","context_tokens":5,"window":10,"rehearsed":true}),
    ));
    ok(
        ada.ask(&json!({"cmd":"post_turn_counts","turn":"t","kind":"mail",
        "started_at":"2026-01-02T03:04:05Z","duration_ms":1,"outcome":"ok","output_tokens":7})),
    );
    hive.send("ada", "ada", "one");
    for state in [
        page.get("/api/state").1,
        dashboard.get("/api/agents/ada/state").1,
    ] {
        for (field, expected) in [
            ("schema", json!(1)),
            ("turn_state", json!("thinking")),
            ("turn_state_since", json!("2026-01-02T03:04:05.000Z")),
            ("status", json!("online")),
            ("model", json!("haiku")),
            ("context_tokens", json!(5)),
            ("context_window_tokens", json!(10)),
            ("unread", json!(1)),
            ("queue", json!(1)),
            ("status_text", json!("<b>bold</b>")),
            ("rehearsed", json!(true)),
        ] {
            assert_eq!(state[field], expected, "{field}: {state}");
        }
        assert!(state["position"].is_string(), "{state}");
    }
    let whole = dashboard.get("/api/state").1;
    assert_eq!(whole["agents"][0]["state"], "thinking");
    assert_eq!(whole["hive"]["agents"], 1);
    assert_eq!(page.get("/api/turns?limit=5").1["turns"][0]["turn"], "t");
    assert_eq!(
        page.get("/api/stats?days=1").1["totals"][0]["output_tokens"],
        7
    );
    assert_eq!(dashboard.get("/api/stats").1["totals"][0]["agent"], "ada");
    assert_eq!(page.get("/api/turns?limit=many").0, 400);
    assert_eq!(
        page.post("/api/lift", &json!({})).1["credential"],
        "own:ada"
    );
}

#[tokio::test]
async fn web_controls_reach_the_harness() {
    let hive = hive(&["ada"]).await;
    let page = Page::of_agent(&hive, "ada");
    let mut ada = hive.peer("ada");
    ada.say(&json!({"cmd":"control","hello":true,"wait_seconds":60}));
    ok(ada.ask(&json!({"cmd":"status","id":1})));
    let asked = std::thread::spawn(move || page.post("/api/model", &json!({"name":"opus"})));
    let request = ok(ada.hear())["requests"][0].clone();
    assert_eq!(request["action"], json!({"kind":"model","name":"opus"}));
    let done = json!([{"request_id":request["request_id"],"ok":true}]);
    ok(ada.ask(&json!({"cmd":"control","done":done})));
    let (code, answer) = asked.join().unwrap();
    assert_eq!((code, &answer["state"]), (200, &json!("done")));
    assert_eq!(answer["carried_out"], true);
}

#[tokio::test]
async fn web_guessing_codes_is_slowed() {
    let hive = hive(&[]).await;
    let (address, code) = link(&hive, &["link"]);
    let guess = |code: &str| post_to(&address, "/api/login", &[], &json!({"code":code})).0;
    for _ in 0..10 {
        assert_eq!(guess("guess"), 403);
    }
    assert_eq!(guess(&code), 429);
}

#[tokio::test]
async fn web_a_slow_head_and_a_crowd_do_not_hold_a_port() {
    let hive = hive_with("[limits]\nline_seconds = 1\n", &["ada"]).await;
    let address = agent_address(&hive, "ada");
    let mut slow = TcpStream::connect(&address).unwrap();
    slow.set_read_timeout(Some(PATIENCE)).unwrap();
    slow.write_all(b"GET /healthz HTTP/1.1\r\nHost: ").unwrap();
    let mut rest = Vec::new();
    slow.read_to_end(&mut rest).unwrap();
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.is_empty() || status(&rest) == 408, "{rest}");

    let crowd: Vec<TcpStream> = (0..128)
        .map(|_| TcpStream::connect(&address).unwrap())
        .collect();
    let mut late = TcpStream::connect(&address).unwrap();
    late.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut told = Vec::new();
    late.read_to_end(&mut told).unwrap();
    assert_eq!(status(&String::from_utf8(told).unwrap()), 503);
    drop(crowd);
}
