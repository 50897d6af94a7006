//! The operating system's cage around commands, with each kind of it that works here.

use serde_json::json;

use crate::support::{Engine, Run, Stage};

/// A model that runs what it is told to.
const CALL: &str = r#"
[[rule]]
when.step = 0
answer.tools = [{ name = "Bash", input = { command = "{{body}}" } }]
[[rule]]
answer.text = "{{tool_result}}"
"#;

/// A stage with a repository.
async fn stage() -> Stage {
    let stage = Stage::new(Engine::Native, CALL).await;
    std::fs::create_dir_all(stage.work().join(".git/hooks")).unwrap();
    stage.write(".git/config", "[core]\n");
    stage
}

async fn run(stage: &Stage, kind: &str, network: bool, command: &str) -> Run {
    let settings = json!({"sandbox": {"enabled": true, "failIfUnavailable": true, "kind": kind,
        "allowNetwork": network}});
    let settings = settings.to_string();
    stage
        .turn(
            command,
            &["--allowedTools", "Bash", "--settings", &settings],
        )
        .await
}

/// Runs a case in every kind of cage that this machine has; says which it has not.
async fn in_each(case: impl AsyncFn(&Stage, &str)) {
    let mut count = 0;
    for kind in ["bubblewrap", "landlock"] {
        let stage = stage().await;
        let tried = run(&stage, kind, false, "true").await;
        if tried.stderr.contains("commands are refused") {
            eprintln!("SKIPPED {kind}: {}", tried.stderr.trim());
            continue;
        }
        case(&stage, kind).await;
        count += 1;
    }
    if count == 0 {
        eprintln!("SKIPPED: this machine has no sandbox; install bubblewrap");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_workspace_is_writable_and_nothing_else_is() {
    in_each(async |stage, kind| {
        let outside = stage.dir.path().join("home/outside");
        let command = format!(
            "mkdir sub && echo in > sub/file; echo temp > \"${{TMPDIR:-/tmp}}/t\" && echo made; \
             echo out > {}; cat /etc/hostname > /dev/null && echo read",
            outside.display()
        );
        let said = &run(stage, kind, false, &command).await.tool_results()[0];
        assert!(
            said.contains("made") && said.contains("read"),
            "{kind}: {said}"
        );
        let inside = std::fs::read_to_string(stage.work().join("sub/file")).unwrap();
        assert_eq!(inside, "in\n", "{kind}: {said}");
        assert!(!outside.exists(), "{kind}: {said}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_git_runs_later_stays_as_it_is() {
    in_each(async |stage, kind| {
        let command =
            "echo evil > .git/hooks/pre-commit; echo evil >> .git/config; echo x > .git/HEAD";
        let said = &run(stage, kind, false, command).await.tool_results()[0];
        let git = stage.work().join(".git");
        assert!(!git.join("hooks/pre-commit").exists(), "{kind}: {said}");
        let config = std::fs::read_to_string(git.join("config")).unwrap();
        assert_eq!(config, "[core]\n", "{kind}: {said}");
        assert!(
            git.join("HEAD").exists(),
            "{kind}: the rest is writable: {said}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_network_is_closed_unless_it_is_allowed() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let command = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo through");
    in_each(async |stage, kind| {
        for allowed in [false, true] {
            let said = &run(stage, kind, allowed, &command).await.tool_results()[0];
            assert_eq!(said.contains("through"), allowed, "{kind}: {said}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cage_that_is_missing_is_said_and_refuses_where_it_must() {
    let mut stage = stage().await;
    stage.env.push(("PATH", "/nonexistent"));
    let refused = run(&stage, "bubblewrap", false, "echo ran").await;
    assert!(
        refused.stderr.contains("commands are refused"),
        "{}",
        refused.stderr
    );
    let said = &refused.tool_results()[0];
    assert!(said.contains("none is available"), "{said}");
}
