//! The browser: a real Chromium on a page of this test's own.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::support::{Engine, Run, Stage};

/// Serves a page with a link and a button, and says which paths were asked for.
struct Site {
    port: u16,
    asked: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Site {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let paths = std::sync::Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                let first = lines.next().and_then(Result::ok).unwrap_or_default();
                while lines
                    .next()
                    .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
                {}
                let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
                paths.lock().unwrap().push(path.clone());
                let body = match path.as_str() {
                    "/" => {
                        "<title>Herons</title><p>The heron stands.</p><a href='/two'>Fly on</a>\
                        <button id=b onclick=\"document.querySelector('p').innerText = 'It dives.'\">Dive</button>\
                        <script>try { new WebSocket('ws://' + location.host + '/ws') } catch {}</script>"
                    }
                    "/two" => "<title>Two</title><p>It flies.</p>",
                    "/away" => "<title>Away</title><img src='http://localhost:1/stolen'><p>x</p>",
                    _ => "",
                };
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                    body.len()
                )
                .ok();
            }
        });
        Self { port, asked }
    }
}

/// Calls these tools one after another; none where there is no browser.
async fn browse(steps: &[(&str, Value)], allowed: &str) -> Option<(Run, Vec<String>)> {
    let path = std::env::var("PATH").unwrap_or_default();
    if !hive_engine::browser::is_installed(Some(&path)) {
        eprintln!("SKIPPED: there is no chromium; `apt-get install chromium` installs it");
        return None;
    }
    let rules: String = steps
        .iter()
        .enumerate()
        .map(|(step, (name, input))| {
            let input = input.to_string();
            format!(
                "[[rule]]\nwhen.step = {step}\n[[rule.answer.tools]]\nname = '{name}'\ninput = {}\n",
                toml_of(&input)
            )
        })
        .collect();
    let stage = Stage::new(
        Engine::Native,
        &format!("{rules}\n[[rule]]\nanswer.text = 'done'"),
    )
    .await;
    let flags = ["--tools", "browser_*", "--allowedTools", allowed];
    let run = stage.turn("go", &flags).await;
    let results = run.tool_results();
    let profiles = stage.dir.path().join("home/.claude/hive-engine/browser");
    let left = std::fs::read_dir(profiles).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the profile is gone");
    Some((run, results))
}

/// A flat JSON object as an inline table.
fn toml_of(json: &str) -> String {
    let object: serde_json::Map<String, Value> = serde_json::from_str(json).unwrap();
    let pairs = object.iter().map(|(key, value)| format!("{key} = {value}"));
    format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_read_clicked_and_seen() {
    let site = Site::start();
    let url = format!("http://127.0.0.1:{}/", site.port);
    let steps = [
        ("browser_navigate", json!({"url": url})),
        ("browser_click", json!({"target": "#b"})),
        ("browser_screenshot", json!({})),
        ("browser_click", json!({"target": "fly on"})),
        ("browser_click", json!({"target": "no such thing"})),
    ];
    let allowed = "WebFetch(domain:127.0.0.1),browser_click,browser_screenshot";
    let Some((run, results)) = browse(&steps, allowed).await else {
        return;
    };
    for (result, needle) in
        results
            .iter()
            .zip(["Herons", "It dives.", "", "It flies.", "nothing to click"])
    {
        assert!(
            result.contains(needle),
            "{needle}: {result}\n{}",
            run.stderr
        );
    }
    assert!(results[0].contains("The heron stands.") && results[0].contains("Fly on"));
    let lines = Value::from(run.lines.clone()).to_string();
    assert!(lines.contains("image/png"), "a picture was taken");
    let asked = site.asked.lock().unwrap().clone();
    assert!(!asked.contains(&"/ws".to_owned()), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_browser_reaches_only_what_rules_permit() {
    let site = Site::start();
    let away = format!("http://127.0.0.1:{}/away", site.port);
    let hidden = format!("http://localhost:{}/", site.port);
    let steps = [
        ("browser_navigate", json!({"url": away})),
        ("browser_navigate", json!({"url": hidden})),
        ("browser_navigate", json!({"url": "file:///etc/passwd"})),
    ];
    let Some((_, results)) = browse(&steps, "WebFetch(domain:127.0.0.1)").await else {
        return;
    };
    assert!(results[0].contains("Away"), "{}", results[0]);
    assert!(results[1].contains("permission"), "{}", results[1]);
    assert!(results[2].contains("Invalid URL"), "{}", results[2]);
    // Allowed as a tool, but the host is private and no rule names it.
    let steps = [("browser_navigate", json!({"url": hidden}))];
    let Some((_, results)) = browse(&steps, "browser_navigate").await else {
        return;
    };
    assert!(results[0].contains("private network"), "{}", results[0]);
    let asked = site.asked.lock().unwrap().clone();
    assert_eq!(
        asked.iter().filter(|path| *path == "/").count(),
        0,
        "{asked:?}"
    );
}
