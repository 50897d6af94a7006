//! What an agent's configuration brings to its own port (T29, T32), and what the root agent hears of
//! the others (C10).

use std::fs;

use serde_json::json;

use crate::{
    approvals::{Stage, id},
    http::{get, status},
    peer::Doors,
};

const CONFIG: &str = r#"
icon = "mark.svg"
[frontend]
dist = "ui"
[frontend.extra_files.game]
source = "games/bees"
[frontend.extra_files.readme]
source = "about.txt"
target = "docs/about.txt"
"#;

#[tokio::test]
async fn t29_t32_an_agents_own_mark_and_files_are_served_in_a_sandbox() {
    let stage = Stage::new("").await;
    let dir = stage.config("ada");
    for (path, text) in [
        ("mark.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
        ("ui/index.html", "<p>my page"),
        ("games/bees/index.html", "<p>bees"),
        ("about.txt", "about me"),
    ] {
        fs::create_dir_all(dir.join(path).parent().unwrap()).unwrap();
        fs::write(dir.join(path), text).unwrap();
    }
    let port = stage.crew.agent("ada")["port"].as_u64().unwrap();
    let address = format!("127.0.0.1:{port}");
    let host = format!("Host: {address}");
    let page = |path: &str| get(&address, path, &[&host]);
    assert_eq!(status(&page("/own/index.html")), 404, "not approved yet");
    let hives = page("/icon");
    stage.commit("ada", CONFIG);
    let id = id(&stage.request("ada", "main"));
    let approved = stage.crew.hive.cli(&["approve", &id]);
    assert_eq!(approved.code, 0, "{}", approved.stderr);

    let icon = page("/icon");
    assert!(icon.ends_with("<svg xmlns=\"http://www.w3.org/2000/svg\"/>"));
    assert_ne!(icon, hives);
    for (path, text) in [
        ("/own/index.html", "<p>my page"),
        ("/own/game", "<p>bees"),
        ("/own/game/index.html", "<p>bees"),
        ("/own/docs/about.txt", "about me"),
    ] {
        let reply = page(path);
        assert_eq!(status(&reply), 200, "{path}: {reply}");
        assert!(reply.ends_with(text), "{path}: {reply}");
        let head = reply.to_lowercase();
        assert!(
            head.contains("content-security-policy: sandbox allow-scripts"),
            "{reply}"
        );
    }
    // What it approved and nothing else of the repository, nor of the host.
    for path in [
        "/own/agent.toml",
        "/own/about.txt",
        "/own/../agent.toml",
        "/own/%2e%2e/agent.toml",
        "/own/game/%2e%2e/%2e%2e/agent.toml",
        "/own/game/..%2f..%2fagent.toml",
        "/own/%2fetc/passwd",
        "/own/game%00",
    ] {
        assert_eq!(status(&page(path)), 404, "{path}");
    }
}

#[tokio::test]
async fn c10_the_root_agent_hears_what_became_of_the_others() {
    let stage = Stage::new("").await;
    stage.news();
    let hive = &stage.crew.hive;
    assert_eq!(hive.cli(&["kill", "ada"]).code, 0);
    assert_eq!(hive.cli(&["destroy", "ada", "--yes"]).code, 0);
    let news = stage.news();
    for event in ["killed", "destroyed"] {
        let expected = json!({"event": event, "agent": "ada"});
        let count = news.iter().filter(|news| **news == expected).count();
        assert_eq!(count, 1, "{event}: {news:?}");
    }
}
