//! What other sites, other pages and other programs of this machine try on the ports. Every route is
//! tried, as the OpenAPI document lists them: a new one is covered from its first day.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use hive_testkit::hive::{Options, TestHive};
use serde_json::{Value, json};

use crate::{
    approvals::{Stage, id},
    crew::Crew,
    http::{get, status},
    peer::{Doors, PATIENCE, hive, ok},
    web::{Page, link, post_raw, post_to},
};

/// A method and a path that it can be tried on.
type Route = (String, String);

/// Every route of a page, and some that are none.
fn routes(page: &Page) -> Vec<Route> {
    let document = page.get("/api/openapi.json").1;
    let mut routes = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let real = [("{name}", "ada"), ("{id}", "1"), ("{*path}", "x")]
            .iter()
            .fold(path.clone(), |path, (part, value)| {
                path.replace(part, value)
            });
        let methods = item.as_object().unwrap().keys();
        routes.extend(methods.map(|method| (method.to_uppercase(), real.clone())));
    }
    assert!(routes.len() > 20, "{routes:?}");
    for method in ["GET", "POST", "PUT", "OPTIONS"] {
        routes.push((method.to_owned(), "/nothing".to_owned()));
    }
    routes
}

/// The head of the answer, in small letters; what follows may have no end.
fn head_of(page: &Page, (method, path): &Route, headers: &[String]) -> String {
    let mut stream = TcpStream::connect(&page.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let headers: String = headers
        .iter()
        .map(|header| format!("{header}\r\n"))
        .collect();
    let body = if method == "GET" { "" } else { "{}" };
    let request = format!(
        "{method} {path} HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{headers}\r\n{body}",
        page.token,
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = String::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if line.is_empty() {
            break;
        }
        head.push_str(&line.to_lowercase());
        head.push('\n');
    }
    head
}

/// What every answer says to browsers, and what none says.
fn is_guarded(head: &str, about: &str) {
    for header in [
        "x-content-type-options: nosniff",
        "x-frame-options: deny",
        "referrer-policy: no-referrer",
    ] {
        assert!(head.contains(header), "{about} lacks {header}: {head}");
    }
    let policies: Vec<&str> = head
        .lines()
        .filter(|line| line.starts_with("content-security-policy:"))
        .collect();
    assert!(
        policies.len() == 1 && policies[0].contains("frame-ancestors 'none'"),
        "{about} may be framed: {head}"
    );
    for header in ["set-cookie", "access-control"] {
        assert!(!head.contains(header), "{about} has {header}: {head}");
    }
}

/// How far the hive's own record of what happened has come.
fn position(dashboard: &Page) -> String {
    let state = dashboard.get("/api/state").1;
    state["position"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn web_no_route_answers_to_another_name_or_another_site() {
    let hive = hive(&["ada"]).await;
    let (dashboard, ada) = (Page::dashboard(&hive), Page::of_agent(&hive, "ada"));
    let before = position(&dashboard);
    for (page, other) in [(&dashboard, &ada), (&ada, &dashboard)] {
        let own = format!("Host: {}", page.address);
        let port = page.address.rsplit(':').next().unwrap();
        let names = [
            vec!["Host: evil.test".to_owned()],
            vec![format!("Host: evil.test:{port}")],
            vec![format!("Host: {}", other.address)],
            vec![own.clone(), own.clone()],
            vec![
                "Host: evil.test".to_owned(),
                format!("X-Forwarded-Host: {}", page.address),
                format!("Origin: http://{}", page.address),
            ],
        ];
        let origins = [
            "http://evil.test".to_owned(),
            "null".to_owned(),
            "file://".to_owned(),
            format!("http://{}", other.address),
            format!("http://{}.evil.test", page.address),
            format!("http://evil.test/{}", page.address),
            format!("http://evil.test@{}", page.address),
            format!("http://x{}", page.address),
            format!("http://{}/", page.address),
        ];
        for route in routes(page) {
            for headers in &names {
                let about = format!("{route:?} {headers:?}");
                let head = head_of(page, &route, headers);
                assert_eq!(status(&head), 421, "{about}: {head}");
                is_guarded(&head, &about);
            }
            for origin in &origins {
                let headers = [own.clone(), format!("Origin: {origin}")];
                let about = format!("{route:?} {origin}");
                let head = head_of(page, &route, &headers);
                assert_eq!(status(&head), 403, "{about}: {head}");
                is_guarded(&head, &about);
            }
        }
    }
    assert_eq!(position(&dashboard), before, "nothing of it was done");
}

#[tokio::test]
async fn web_every_answer_is_guarded_and_no_read_changes_anything() {
    let hive = hive(&["ada"]).await;
    let (dashboard, ada) = (Page::dashboard(&hive), Page::of_agent(&hive, "ada"));
    let before = position(&dashboard);
    let tempting = "?cmd=stop_all&to=ada&body=x&approval_id=1&question_id=1&answer=x&name=ada&n=1";
    for page in [&dashboard, &ada] {
        let own = [
            format!("Host: {}", page.address),
            format!("Origin: http://{}", page.address),
        ];
        let stranger = Page {
            address: page.address.clone(),
            token: "0".repeat(64),
        };
        for (method, path) in routes(page) {
            let read = ("GET".to_owned(), format!("{path}{tempting}"));
            let preflight = ("OPTIONS".to_owned(), path.clone());
            let head = ("HEAD".to_owned(), path.clone());
            for route in [&read, &preflight, &head] {
                is_guarded(&head_of(page, route, &own), &format!("{route:?}"));
            }
            // Whoever has no token changes nothing either, whatever the method.
            let route = (method, path);
            is_guarded(&head_of(&stranger, &route, &own), &format!("{route:?}"));
        }
    }
    assert_eq!(position(&dashboard), before, "nothing of it did anything");
}

/// One approval that waits, and the dashboard.
async fn waiting() -> (Stage, Page, i64, String) {
    let stage = Stage::new("").await;
    stage.commit("ada", "model = \"opus\"\n");
    let id = id(&stage.request("ada", "main"));
    let hash = stage.pending()[0]["hash"].as_str().unwrap().to_owned();
    let page = Page::dashboard(&stage.crew.hive);
    (stage, page, id.parse().unwrap(), hash)
}

#[tokio::test]
async fn web_a_decision_is_made_by_the_operators_own_page_about_what_it_showed() {
    let (stage, page, id, hash) = waiting().await;
    let agents = Page::of_agent(&stage.crew.hive, "ada");
    let bearer = |page: &Page| format!("Authorization: Bearer {}", page.token);
    let (token, theirs) = (bearer(&page), bearer(&agents));
    let cookie = format!("Cookie: token={0}; hive-token={0}", page.token);
    let body = json!({"cmd":"approve","approval_id":id,"hash":hash});
    let blind = json!({"cmd":"approve","approval_id":id});
    let stale = json!({"cmd":"approve","approval_id":id,"hash":"0".repeat(64)});
    const JSON: &str = "Content-Type: application/json";
    const FORM: &str = "Content-Type: application/x-www-form-urlencoded";
    for (about, headers, body, expected) in [
        ("a form", vec![FORM, &token], &body, 415),
        ("text", vec!["Content-Type: text/plain", &token], &body, 415),
        (
            "text that speaks of JSON",
            vec!["Content-Type: text/plain; x=application/json", &token],
            &body,
            415,
        ),
        (
            "a file",
            vec!["Content-Type: multipart/form-data", &token],
            &body,
            415,
        ),
        ("no kind", vec![&token], &body, 415),
        ("no token", vec![JSON], &body, 401),
        ("a cookie", vec![JSON, &cookie], &body, 401),
        ("an agent's page", vec![JSON, &theirs], &body, 401),
        ("two tokens", vec![JSON, &theirs, &token], &body, 401),
        (
            "another site",
            vec![JSON, &token, "Origin: http://evil.test"],
            &body,
            403,
        ),
        ("a sandbox", vec![JSON, &token, "Origin: null"], &body, 403),
        ("not looked at", vec![JSON, &token], &blind, 400),
        (
            "something else was looked at",
            vec![JSON, &token],
            &stale,
            409,
        ),
    ] {
        let text = body.to_string();
        let (code, answer) = post_raw(&page.address, "/api/call", &headers, text.as_bytes());
        assert_eq!(code, expected, "{about}: {answer}");
        assert_eq!(
            stage.approval(&id.to_string())["state"],
            "pending",
            "{about}"
        );
    }
    let decided = post_to(&page.address, "/api/call", &[&token], &body);
    assert_eq!((decided.0, &decided.1["state"]), (200, &json!("approved")));
}

#[tokio::test]
async fn web_a_login_makes_a_token_of_its_own() {
    let hive = hive(&[]).await;
    let chosen = "f".repeat(64);
    let mut seen = vec![chosen.clone()];
    for _ in 0..2 {
        let (address, code) = link(&hive, &["link"]);
        let headers = [
            format!("Authorization: Bearer {}", seen[0]),
            format!("Cookie: token={chosen}; hive-token={chosen}"),
        ];
        let headers = headers.each_ref().map(String::as_str);
        let wish = json!({"code":code,"token":chosen,"session":chosen});
        let (status, answer) = post_to(&address, "/api/login", &headers, &wish);
        assert_eq!(status, 200, "{answer}");
        let token = answer["token"].as_str().unwrap().to_owned();
        assert!(!seen.contains(&token), "a token is made anew");
        seen.push(token);
    }
    let admitted = |token: &String| {
        let address = Page::dashboard(&hive).address;
        let token = token.clone();
        Page { address, token }.get("/api/state").0
    };
    assert_eq!(
        seen.iter().map(admitted).collect::<Vec<_>>(),
        [401, 200, 200]
    );
    let (_, code) = link(&hive, &["link"]);
    let query = format!("/api/login?code={code}");
    let page = Page::dashboard(&hive);
    assert_eq!(
        page.post(&query, &json!({})).0,
        400,
        "no code in an address"
    );
}

#[tokio::test]
async fn web_no_secret_of_a_request_reaches_a_log() {
    let mut hive = TestHive::start_with(Options {
        config: "[hive]\nroot_agent = \"\"\n".into(),
        env: vec![("RUST_LOG".into(), "trace".into())],
    })
    .await
    .unwrap();
    let page = Page::dashboard(&hive);
    let (_, code) = link(&hive, &["link"]);
    let host = format!("Host: {}", page.address);
    let (query, wrong) = ("in-a-query-7f3a", "a-wrong-token-7f3a");
    get(&page.address, &format!("/metrics?token={query}"), &[&host]);
    get(&page.address, &format!("/{query}?code={query}"), &[&host]);
    let bearer = format!("Authorization: Bearer {wrong}");
    get(&page.address, "/api/state", &[&host, &bearer]);
    let wrong_code = json!({"code":"a-wrong-code-7f3a"});
    post_to(&page.address, "/api/login", &[], &wrong_code);
    let login = post_to(&page.address, "/api/login", &[], &json!({"code":code}));
    let session = login.1["token"].as_str().unwrap().to_owned();
    let log = page.get("/api/log").1.to_string();
    hive.terminate().await.unwrap();
    let written = fs::read(hive.root().join("daemon.log")).unwrap();
    let written = String::from_utf8_lossy(&written);
    assert!(
        written.contains("stopping"),
        "it is the daemon's: {written}"
    );
    for secret in ["7f3a", &code, &session, &page.token] {
        assert!(!written.contains(secret), "{secret} is in the daemon's log");
        assert!(!log.contains(secret), "{secret} is in the log of events");
    }
}

#[tokio::test]
async fn web_nothing_of_a_request_becomes_a_header() {
    let hive = hive(&["ada"]).await;
    let evil = "%0d%0aX-Evil:%201%0d%0a%0d%0a%3Cscript%3Ealert(1)%3C/script%3E";
    let own = |page: &Page| [format!("Host: {}", page.address)];
    for (page, paths) in [
        (
            Page::dashboard(&hive),
            &[
                "/api/log?about=EVIL",
                "/api/log?format=csv&contains=EVIL&about=ada",
                "/api/agents/EVIL/state",
                "/api/agents/EVIL/files",
                "/api/agents/ada/files?path=EVIL",
                "/api/agents/ada/tasks/EVIL",
                "/assets/EVIL",
                "/icon?of=EVIL",
                "/EVIL",
            ][..],
        ),
        (
            Page::of_agent(&hive, "ada"),
            &["/own/EVIL", "/api/EVIL"][..],
        ),
    ] {
        for path in paths {
            let route = ("GET".to_owned(), path.replace("EVIL", evil));
            let head = head_of(&page, &route, &own(&page));
            assert!(!head.contains("x-evil"), "{path}: {head}");
            assert!(!head.contains("text/html"), "{path}: {head}");
            is_guarded(&head, path);
        }
    }
}

/// Whether a terminal would take something of this for an order.
fn steers(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let is_order = |c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r');
    text.chars().any(is_order)
}

#[tokio::test]
async fn web_what_an_agent_writes_steers_no_terminal() {
    const CLEAR: &str =
        "\u{1b}[2J\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]8;;http://evil.test\u{1b}\\x\u{9b}31m";
    let crew = Crew::new("[agents]\nrestarts = 0\n[limits]\ndeliveries_before_dead = 1\n").await;
    let last_words = r"printf 'out of bees \033[2J\033]52;c;ZXZpbA==\007\302\233x\n' >&2; exit 3";
    crew.script("ada", last_words);
    crew.hive.cli(&["spawn", "ada", "--runtime", "process"]);
    crew.becomes("ada", "failed");
    let mut ada = crew.hive.peer("ada");
    ok(ada.ask(&json!({"cmd":"send","to":"operator","body":CLEAR})));
    ok(ada.ask(&json!({"cmd":"send","to":"ada","body":CLEAR})));
    ok(ada.ask(&json!({"cmd":"ask","question":CLEAR,"options":[CLEAR]})));
    ok(ada.ask(&json!({"cmd":"recv","turn":"t"})));
    ok(ada.ask(&json!({"cmd":"requeue_inflight","turn":"t","reason":"failed"})));
    let events: Vec<Value> = [("note", json!({"text":CLEAR})), ("stream", json!({"value":CLEAR}))]
        .into_iter()
        .zip(1..)
        .map(|((kind, data), seq)| {
            json!({"seq":seq,"at":"2026-01-02T03:04:05Z","kind":kind,"data":data})
        })
        .collect();
    ok(ada.ask(&json!({"cmd":"post_events","epoch":"e","events":events})));
    for args in [
        &["list"][..],
        &["inbox"],
        &["history"],
        &["dead"],
        &["questions"],
        &["logs", "ada"],
        &["logs", "ada", "--output"],
    ] {
        let said = crew.hive.cli(args);
        let shown = [said.stdout.as_bytes(), said.stderr.as_bytes()].concat();
        assert!(
            !steers(&shown),
            "{args:?}: {:?}",
            String::from_utf8_lossy(&shown)
        );
        assert!(!shown.is_empty(), "{args:?}");
    }
    let daemon = fs::read(crew.hive.root().join("daemon.log")).unwrap();
    assert!(String::from_utf8_lossy(&daemon).contains("out of bees"));
    assert!(!steers(&daemon), "{}", crew.hive.log_tail());
}
