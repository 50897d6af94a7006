//! The pages' API from outside: answers that can be asked for again, pages of the past, an agent's
//! files, and what a browser must never be talked into.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::{
    http::{exchange, get, metrics, status},
    peer::{Doors, Peer, hive, hive_with, ok},
    web::{Page, parse, post_to},
};

fn head(reply: &str) -> String {
    let head = reply.split("\r\n\r\n").next().unwrap_or_default();
    head.to_lowercase()
}

impl Page {
    /// The whole reply, with further headers.
    fn raw(&self, path: &str, headers: &[&str]) -> String {
        let host = format!("Host: {}", self.address);
        let bearer = format!("Authorization: Bearer {}", self.token);
        let own = [host.as_str(), bearer.as_str()];
        get(&self.address, path, &[&own, headers].concat())
    }

    fn keyed(&self, key: &str, path: &str, body: &Value) -> (u16, Value) {
        let bearer = format!("Authorization: Bearer {}", self.token);
        let key = format!("Idempotency-Key: {key}");
        post_to(&self.address, path, &[&bearer, &key], body)
    }
}

/// Posts notes `from..to` as an agent's harness.
fn post_notes(peer: &mut Peer, from: u64, to: u64) {
    let events: Vec<Value> = (from..to)
        .map(|seq| {
            json!({"seq":seq,"at":"2026-01-02T03:04:05Z","kind":"note",
                   "data":{"text":format!("note {seq}")}})
        })
        .collect();
    ok(peer.ask(&json!({"cmd":"post_events","epoch":"e1","events":events})));
}

#[tokio::test]
async fn web_a_post_with_a_key_is_done_once() {
    let hive = hive(&["ada"]).await;
    let page = Page::dashboard(&hive);
    let body = json!({"to":"ada","body":"once"});
    let first = page.keyed("k1", "/api/send", &body);
    assert_eq!(first.0, 200, "{first:?}");
    assert_eq!(
        page.keyed("k1", "/api/send", &body),
        first,
        "the same answer"
    );
    let inbox = || ok(hive.peer("ada").ask(&json!({"cmd":"status"})))["unread"].clone();
    assert_eq!(inbox(), 1);
    let other = page.keyed("k1", "/api/send", &json!({"to":"ada","body":"twice"}));
    assert_eq!(other.0, 422, "{other:?}");
    assert_eq!(page.keyed("k2", "/api/send", &body).0, 200);
    assert_eq!(inbox(), 2);
    // A key is a caller's own, and for one path.
    let own = Page::of_agent(&hive, "ada");
    assert_eq!(own.keyed("k1", "/api/send", &json!({"body":"mine"})).0, 200);
    assert_eq!(inbox(), 3);
    assert_eq!(page.keyed(&"x".repeat(200), "/api/send", &body).0, 400);
    assert_eq!(inbox(), 3);
}

#[tokio::test]
async fn web_a_long_answer_comes_whole_with_a_key_too() {
    let hive = hive(&["ada"]).await;
    let page = Page::dashboard(&hive);
    let body = "x".repeat(100_000);
    hive.send("ada", "operator", &body);
    for _ in 0..2 {
        let (code, inbox) = page.keyed("k", "/api/call", &json!({"cmd":"inbox"}));
        assert_eq!(code, 200, "{inbox}");
        assert_eq!(inbox["messages"][0]["body"], json!(body), "it is there");
    }
}

#[tokio::test]
async fn web_errors_are_problem_documents() {
    let hive = hive(&["ada"]).await;
    let page = Page::dashboard(&hive);
    let reply = page.raw("/api/agents/zoe/state", &[]);
    assert!(
        head(&reply).contains("content-type: application/problem+json"),
        "{reply}"
    );
    let (code, problem) = parse(&reply);
    assert_eq!((code, &problem["status"]), (404, &json!(404)));
    assert_eq!(problem["type"], "urn:hyperhive:error:not_found");
    assert_eq!(problem["title"], problem["error"]["message"]);
    assert_eq!(problem["ok"], false, "and the wire's own shape");
}

#[tokio::test]
async fn web_an_answer_that_is_known_is_not_sent_again() {
    let hive = hive(&["ada"]).await;
    let page = Page::dashboard(&hive);
    for path in ["/api/openapi.json", "/", "/icon"] {
        let reply = page.raw(path, &[]);
        let tag = head(&reply);
        let tag = tag
            .lines()
            .find_map(|line| line.strip_prefix("etag: "))
            .unwrap()
            .to_owned();
        let again = page.raw(path, &[&format!("If-None-Match: {tag}")]);
        assert_eq!(status(&again), 304, "{path}");
        assert!(again.ends_with("\r\n\r\n"), "no body: {again}");
        assert_eq!(
            status(&page.raw(path, &["If-None-Match: \"other\""])),
            200,
            "{path}"
        );
    }
    assert_eq!(status(&page.raw("/readyz", &[])), 200);
}

#[tokio::test]
async fn web_the_past_comes_page_by_page_and_each_event_once() {
    let hive = hive(&["ada", "bob"]).await;
    let page = Page::dashboard(&hive);
    post_notes(&mut hive.peer("ada"), 1, 41);
    post_notes(&mut hive.peer("bob"), 1, 11);
    let mut found: Vec<String> = Vec::new();
    let mut path = "/api/agents/ada/past?limit=7".to_owned();
    loop {
        let (code, past) = page.get(&path);
        assert_eq!(code, 200, "{past}");
        let notes = past["events"].as_array().unwrap().iter();
        let notes = notes.filter(|event| event["kind"] == "note");
        let texts = notes.map(|event| event["data"]["text"].as_str().unwrap().to_owned());
        found.splice(0..0, texts);
        match past["before"].as_str() {
            Some(before) => path = format!("/api/agents/ada/past?limit=7&before={before}"),
            None => break,
        }
    }
    let expected: Vec<String> = (1..41).map(|note| format!("note {note}")).collect();
    assert_eq!(found, expected);
    assert_eq!(page.get("/api/agents/ada/past?before=x").0, 400);
    assert_eq!(page.get("/api/agents/zoe/past").0, 404);
}

#[tokio::test]
async fn web_files_and_tasks_stay_in_the_agents_own_directories() {
    let hive = hive(&["ada"]).await;
    let page = Page::dashboard(&hive);
    let own = hive.root().join("state/agents/ada");
    fs::create_dir_all(own.join("state/notes")).unwrap();
    fs::create_dir_all(own.join("harness/bash-tasks")).unwrap();
    fs::write(own.join("state/notes/a.md"), "# hello").unwrap();
    fs::write(own.join("state/binary"), [0_u8, 1]).unwrap();
    symlink("../../../operator-token", own.join("state/token")).unwrap();
    symlink("/etc", own.join("state/etc")).unwrap();
    fs::hard_link(
        hive.root().join("state/operator-token"),
        own.join("state/hard"),
    )
    .unwrap();
    let record = json!({"id":7,"cmd":"make","state":"done","timeout_secs":null,
        "created_at":"2026-01-02T03:04:05Z","ended_at":null,"duration_ms":5,"exit_code":0,
        "signal":null,"note":null,"seen":true});
    fs::write(own.join("harness/bash-tasks/7.json"), record.to_string()).unwrap();
    fs::write(own.join("harness/bash-tasks/8.json"), "{").unwrap();
    fs::write(own.join("harness/bash-tasks/7.out"), "built\n").unwrap();
    symlink("/etc/passwd", own.join("harness/bash-tasks/7.err")).unwrap();

    let file = page.get("/api/agents/ada/files?path=notes/a.md").1;
    assert_eq!(
        (&file["kind"], &file["text"]),
        (&json!("file"), &json!("# hello"))
    );
    assert_eq!(
        page.get("/api/agents/ada/files?path=binary").1["is_binary"],
        true
    );
    let listed = page.get("/api/agents/ada/files").1;
    let names: Vec<_> = listed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| &row["name"])
        .collect();
    assert_eq!(names, ["notes", "binary", "hard"], "no links");
    for path in [
        "token",
        "etc/passwd",
        "hard",
        "../../operator-token",
        "..%2f..%2foperator-token",
        "%2fetc%2fpasswd",
        "notes/%00",
        "%5c..%5c..",
        "notes/a.md/x",
    ] {
        let (code, answer) = page.get(&format!("/api/agents/ada/files?path={path}"));
        assert_eq!(code, 404, "{path}: {answer}");
    }
    let tasks = page.get("/api/agents/ada/tasks").1;
    assert_eq!(tasks["tasks"].as_array().unwrap().len(), 1, "{tasks}");
    assert_eq!(tasks["tasks"][0]["cmd"], "make");
    assert_eq!(page.get("/api/agents/ada/tasks/7").1["text"], "built\n");
    assert_eq!(
        page.get("/api/agents/ada/tasks/7?from=2").1["text"],
        "ilt\n"
    );
    for path in ["7?stream=err", "8", "x", "..%2f7", "-1"] {
        assert_eq!(
            page.get(&format!("/api/agents/ada/tasks/{path}")).0,
            404,
            "{path}"
        );
    }
}

#[tokio::test]
async fn web_what_is_rendered_holds_no_markup() {
    let hive = hive(&[]).await;
    let page = Page::dashboard(&hive);
    let pieces = json!([
        {"kind":"markdown","text":"**b** <script>x</script> [l](javascript:x)"},
        {"kind":"terminal","text":"\u{1b}[31mred\u{1b}]52;c;eA==\u{7}"},
        {"kind":"change","path":"a","before":"one\n","after":"two\u{202e}\n"},
        {"kind":"patch","text":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"},
    ]);
    let (code, answer) = page.post("/api/render", &json!({"pieces":pieces}));
    assert_eq!(code, 200, "{answer}");
    let text = answer["pieces"][0].to_string();
    assert!(
        text.contains("<script>x</script>") && !text.contains("href"),
        "text: {text}"
    );
    assert_eq!(
        answer["pieces"][1]["nodes"][0]["inside"][0]["class"],
        "ink-1"
    );
    assert!(
        answer["pieces"][2].to_string().contains("U+202E"),
        "{answer}"
    );
    assert_eq!(answer["pieces"][3]["files"][0]["path"], "x");
    let many = vec![json!({"kind":"markdown","text":""}); 65];
    assert_eq!(page.post("/api/render", &json!({"pieces":many})).0, 400);
    assert_eq!(
        page.post(
            "/api/render",
            &json!({"pieces":[{"kind":"html","text":""}]})
        )
        .0,
        400
    );
}

#[tokio::test]
async fn web_the_log_is_a_file_that_nothing_runs() {
    let hive = hive(&["ada"]).await;
    let page = Page::dashboard(&hive);
    let mut ada = hive.peer("ada");
    let text = "=cmd|' /C calc'!A0 <script>alert(1)</script>";
    let event = json!({"seq":1,"at":"2026-01-02T03:04:05Z","kind":"note","data":{"text":text}});
    ok(ada.ask(&json!({"cmd":"post_events","epoch":"e1","events":[event]})));
    for (format, name) in [("jsonl", "hive-events.jsonl"), ("csv", "hive-events.csv")] {
        let reply = page.raw(&format!("/api/log?format={format}&about=ada"), &[]);
        let head = head(&reply);
        assert!(
            head.contains(&format!(
                "content-disposition: attachment; filename=\"{name}\""
            )),
            "{head}"
        );
        assert!(
            head.contains("content-type: text/plain") && head.contains("nosniff"),
            "{head}"
        );
        assert!(reply.contains("calc"), "{reply}");
    }
    let filtered = page.raw("/api/log?contains=nothing-has-this", &[]);
    assert!(!filtered.contains("calc"), "{filtered}");
    assert_eq!(page.get("/api/log?format=exe").0, 400);
}

#[tokio::test]
async fn web_a_read_changes_nothing_and_other_sites_get_no_leave() {
    let hive = hive(&["ada"]).await;
    let page = Page::dashboard(&hive);
    let document = page.get("/api/openapi.json").1;
    let mut posts = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let real = path.replace("{name}", "ada").replace("{id}", "1");
        if item.get("post").is_some() {
            posts += 1;
            let query = "?to=ada&body=x&cmd=stop_all&name=ada&approval_id=1";
            let reply = page.raw(&format!("{real}{query}"), &[]);
            assert_eq!(status(&reply), 405, "GET {real}");
        }
        let preflight = exchange(
            &page.address,
            &format!(
                "OPTIONS {real} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nOrigin: http://evil.test\r\n\
                 Access-Control-Request-Method: POST\r\n\
                 Access-Control-Request-Headers: authorization, content-type\r\n\r\n",
                page.address
            ),
        );
        assert_eq!(status(&preflight), 403, "{real}");
        assert!(
            !preflight.to_lowercase().contains("access-control"),
            "{preflight}"
        );
    }
    assert!(posts > 15, "{posts}");
    assert_eq!(
        ok(hive.peer("ada").ask(&json!({"cmd":"status"})))["unread"],
        0
    );
}

#[tokio::test]
async fn web_reminders_are_shown_and_deleted() {
    let hive = hive(&["ada"]).await;
    let page = Page::dashboard(&hive);
    let mut ada = hive.peer("ada");
    let set = ok(ada.ask(&json!({"cmd":"remind","message":"stretch","delay_seconds":900})));
    let listed = page.get("/api/reminders").1;
    assert_eq!(listed["reminders"][0]["message"], "stretch");
    let which = json!({"agent":"ada","reminder_id":set["reminder_id"]});
    assert_eq!(page.post("/api/reminders/cancel", &which).0, 200);
    assert_eq!(page.post("/api/reminders/cancel", &which).0, 404);
    assert_eq!(page.get("/api/reminders").1["reminders"], json!([]));
}

#[tokio::test]
async fn web_metrics_have_the_names_that_people_look_for() {
    let hive = hive(&["ada"]).await;
    Page::dashboard(&hive).get("/api/state");
    let text = metrics(&hive);
    for line in [
        "hive_agents{state=\"external\"} 1",
        "hive_agents{state=\"failed\"} 0",
        "hive_inbox_messages{agent=\"ada\"} 0",
        "hive_dead_letters 0",
        "http_requests_total{method=\"GET\",route=\"/api/state\",status=\"200\"} 1",
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
        "hive_build_info{version=\"",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
    assert!(text.trim_end().ends_with("# EOF"), "{text}");
    assert_eq!(text.matches("# EOF").count(), 1);
}

#[tokio::test]
async fn web_the_notifier_tells_once_and_without_content() {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        sync::mpsc,
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, posted) = mpsc::sync_channel(16);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut bytes = Vec::new();
            let mut piece = [0_u8; 4096];
            // The body is one JSON object: the request is whole when it ends.
            while !bytes.ends_with(b"}") {
                let read = stream.read(&mut piece).unwrap();
                if read == 0 {
                    break;
                }
                bytes.extend_from_slice(&piece[..read]);
            }
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            stream.write_all(answer).unwrap();
            sender.send(String::from_utf8(bytes).unwrap()).unwrap();
        }
    });
    let config =
        format!("[notify]\nurl = \"http://127.0.0.1:{port}/hook-secret\"\nmin_interval_secs = 1\n");
    let hive = hive_with(&config, &["ada"]).await;
    let page = Page::dashboard(&hive);
    let shown = page.get("/api/notifier").1;
    assert_eq!(shown["is_on"], true);
    assert!(!shown.to_string().contains("hook-secret"), "{shown}");
    ok(hive
        .peer("ada")
        .ask(&json!({"cmd":"ask","question":"the secret plan?"})));
    let told = posted
        .recv_timeout(std::time::Duration::from_secs(60))
        .unwrap();
    assert!(
        told.contains("1 question") && !told.contains("secret plan"),
        "{told}"
    );
    assert_eq!(page.post("/api/notifier/test", &json!({})).0, 200);
    let test = posted
        .recv_timeout(std::time::Duration::from_secs(60))
        .unwrap();
    assert!(
        test.contains("This is a test"),
        "the question is not told twice: {test}"
    );
}
