//! A new user pastes what docs/mcp.md says into their own `claude`, and it has the hive's tools: the
//! page's own commands and configuration are run, with nothing but their places filled in.

use std::{ffi::OsString, fs, path::Path, process::Output};

use hive_rehearsal::{Rehearsal, Scenario};
use hive_testkit::hive::TestHive;
use serde_json::Value;
use tokio::process::Command;

const PAGE: &str = include_str!("../../../../docs/mcp.md");
const SCENARIO: &str = r#"
    [[rule]]
    when = { step = 0 }
    answer.tools = [{ name = "mcp__hyperhive__list_peers", input = {} }]
    [[rule]]
    when = { tool_result = "bob" }
    answer.text = "bob is there"
    [[rule]]
    answer.text = "I cannot see anybody"
"#;

/// The blocks of a language in the chapter about one's own `claude`.
fn blocks(language: &str) -> Vec<&'static str> {
    let chapter = PAGE.split("\n## In your own `claude`\n").nth(1).unwrap();
    let chapter = chapter.split("\n## ").next().unwrap();
    let fence = format!("```{language}\n");
    let found = chapter.split(fence.as_str()).skip(1);
    found
        .map(|block| block.split("```").next().unwrap())
        .collect()
}

/// A user with a hive, a model and the binaries on their path.
struct User {
    hive: TestHive,
    model: Rehearsal,
    claude: std::path::PathBuf,
    home: tempfile::TempDir,
}

impl User {
    /// None where there is no `claude`.
    async fn new() -> Option<Self> {
        let claude = hive_testkit::claude::claude()?;
        let scenario = Scenario::parse("own.toml", SCENARIO).unwrap();
        let model = Rehearsal::start(scenario).await.unwrap();
        let hive = TestHive::start().await.unwrap();
        hive.spawn_agent("bob").await.unwrap();
        Some(Self {
            hive,
            model,
            claude,
            home: tempfile::tempdir().unwrap(),
        })
    }

    async fn run(&self, program: &Path, args: &[&str]) -> Output {
        let bin = Path::new(env!("CARGO_BIN_EXE_hive")).parent().unwrap();
        let mut path = OsString::from(bin);
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap());
        let output = Command::new(program)
            .args(args)
            .current_dir(self.home.path())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home.path())
            .env("HIVE_ROOT", self.hive.root())
            .env("ANTHROPIC_API_KEY", "sk-ant-dummy")
            .env("ANTHROPIC_BASE_URL", self.model.url())
            .env("CLAUDE_CODE_MAX_RETRIES", "0")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .kill_on_drop(true)
            .output();
        let patience = std::time::Duration::from_secs(90);
        let output = tokio::time::timeout(patience, output).await;
        output.expect("it ends in time").unwrap()
    }

    /// What a command line prints.
    async fn shell(&self, line: &str) -> String {
        let output = self.run(Path::new("/bin/sh"), &["-c", line]).await;
        assert!(output.status.success(), "{line}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Puts a configuration into a file, and asks.
    async fn ask(&self, config: &str) -> String {
        let file = self.home.path().join("mcp.json");
        fs::write(&file, config).unwrap();
        let args = [
            "-p",
            "who is there?",
            "--mcp-config",
            file.to_str().unwrap(),
            "--allowedTools",
            "mcp__hyperhive__list_peers",
        ];
        let output = self.run(&self.claude, &args).await;
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

#[tokio::test]
async fn m2_the_configuration_of_the_docs_works_in_ones_own_claude() {
    let Some(user) = User::new().await else {
        return;
    };
    let (commands, configs) = (blocks("sh"), blocks("json"));
    let [spawn, login] = commands[..] else {
        panic!("{commands:?}");
    };
    let [stdio, http] = configs[..] else {
        panic!("{configs:?}");
    };
    let fill = |text: &str, parts: &[(&str, &str)]| {
        let mut text = text.to_owned();
        for (placeholder, value) in parts {
            assert!(text.contains(placeholder), "{placeholder}: {text}");
            text = text.replace(placeholder, value);
        }
        text
    };

    let spawned = user.shell(spawn).await;
    let mut words = spawned.split_whitespace();
    let socket = words.find(|word| word.ends_with("mcp.sock"));
    let socket = socket.unwrap_or_else(|| panic!("no socket is named: {spawned}"));
    let config = fill(stdio, &[("/path/to/run/agents/ada/mcp.sock", socket)]);
    assert_eq!(user.ask(&config).await, "bob is there");

    let link = user.shell("hive-c0re link ada").await;
    let mut links = link.split_whitespace();
    let link = links.find_map(|word| word.strip_prefix("http://127.0.0.1:"));
    let (port, code) = link.unwrap().split_once("/#code=").unwrap();
    let login = fill(login, &[("8100", port), ("…", code)]);
    let token: Value = serde_json::from_str(&user.shell(&login).await).unwrap();
    let token = token["token"].as_str().unwrap();
    let config = fill(http, &[("8100", port), ("…", token)]);
    assert_eq!(user.ask(&config).await, "bob is there");
}
