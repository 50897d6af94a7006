//! The checks against made-up hives.

use std::{os::unix::fs::PermissionsExt, path::Path};

use hive_wire::Timestamp;

use super::*;

fn info() -> HiveInfo {
    HiveInfo {
        paused: None,
        spent_today: None,
        version: env!("CARGO_PKG_VERSION").into(),
        pid: 42,
        started_at: Timestamp::from_millis(0),
        hive: None,
        swarm: None,
        root: "/r".into(),
        dashboard: String::new(),
        sqlite: "3.51.3".into(),
        agents: 0,
        undelivered: 0,
        dead: 0,
        defaults: hive_wire::host::Defaults::default(),
    }
}

fn facts(root: &Path, daemon: Result<HiveInfo, String>) -> Facts {
    Facts {
        places: Places {
            root: root.to_owned(),
            lock: root.join("lock"),
            host_socket: root.join("run/host.sock"),
            database: root.join("hive.db"),
        },
        daemon,
        runtimes: None,
    }
}

fn verdict(id: &str, facts: &Facts) -> Verdict {
    let check = CHECKS.iter().find(|check| check.id == id).unwrap();
    let Examined { finding, .. } = examine(check, facts);
    let needs_remedy = matches!(finding.verdict, Verdict::Failed | Verdict::Note);
    assert_eq!(
        needs_remedy,
        !finding.remedy.is_empty(),
        "{id}: {finding:?}"
    );
    finding.verdict
}

#[test]
fn ids_are_unique_and_stable() {
    let ids: Vec<&str> = CHECKS.iter().map(|check| check.id).collect();
    assert_eq!(
        ids,
        [
            "root-dir",
            "root-owner",
            "root-mode",
            "disk-space",
            "socket-path",
            "database",
            "daemon",
            "daemon-version",
            "lock",
            "sqlite",
            "clock",
            "open-files",
            "user-namespaces",
            "claude",
            "runtime",
            "other-runtimes",
            "engine",
            "model",
            "config-mode",
        ]
    );
}

#[test]
fn a_healthy_hive_passes() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("lock"), "42\n").unwrap();
    let facts = facts(dir.path(), Ok(info()));
    for id in [
        "root-dir",
        "root-owner",
        "root-mode",
        "disk-space",
        "socket-path",
        "daemon",
        "daemon-version",
        "lock",
        "sqlite",
        "clock",
    ] {
        assert_eq!(verdict(id, &facts), Verdict::Ok, "{id}");
    }
}

#[test]
fn a_damaged_database_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let facts = facts(dir.path(), Ok(info()));
    assert_eq!(
        verdict("database", &facts),
        Verdict::Skipped,
        "there is none"
    );
    let path = dir.path().join("hive.db");
    let (store, _) = hive_store::sqlite::open(&path, &hive_store::Options::default()).unwrap();
    store.close().unwrap();
    assert_eq!(verdict("database", &facts), Verdict::Ok);
    std::fs::write(&path, vec![7; 64 * 1024]).unwrap();
    assert_eq!(verdict("database", &facts), Verdict::Failed);
}

#[test]
fn a_missing_root_fails_once() {
    let facts = facts(
        Path::new("/nonexistent/hive"),
        Err("cannot reach it".into()),
    );
    assert_eq!(verdict("root-dir", &facts), Verdict::Failed);
    assert_eq!(verdict("root-owner", &facts), Verdict::Skipped);
    assert_eq!(verdict("root-mode", &facts), Verdict::Skipped);
    assert_eq!(verdict("daemon", &facts), Verdict::Failed);
    assert_eq!(verdict("daemon-version", &facts), Verdict::Skipped);
    assert_eq!(verdict("sqlite", &facts), Verdict::Skipped);
    assert_eq!(verdict("lock", &facts), Verdict::Ok);
}

#[test]
fn a_root_that_others_can_write_to_fails() {
    let dir = tempfile::tempdir().unwrap();
    let facts = facts(dir.path(), Ok(info()));
    for (mode, expected) in [
        (0o700, Verdict::Ok),
        (0o755, Verdict::Ok),
        (0o777, Verdict::Failed),
    ] {
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(mode)).unwrap();
        assert_eq!(verdict("root-mode", &facts), expected, "{mode:o}");
    }
}

#[test]
fn another_build_and_an_old_sqlite_fail() {
    let dir = tempfile::tempdir().unwrap();
    let of = |version: &str, sqlite: &str| {
        let daemon = HiveInfo {
            version: version.into(),
            sqlite: sqlite.into(),
            ..info()
        };
        facts(dir.path(), Ok(daemon))
    };
    assert_eq!(
        verdict("daemon-version", &of("0.0.9", "3.51.3")),
        Verdict::Failed
    );
    for (sqlite, expected) in [
        ("3.51.2", Verdict::Failed),
        ("3.9.9", Verdict::Failed),
        ("3.53.0", Verdict::Ok),
        ("odd", Verdict::Failed),
    ] {
        assert_eq!(verdict("sqlite", &of("x", sqlite)), expected, "{sqlite}");
    }
}

#[test]
fn a_deep_root_is_a_note() {
    let deep = Path::new("/tmp").join("d".repeat(110));
    assert_eq!(
        verdict("socket-path", &facts(&deep, Ok(info()))),
        Verdict::Note
    );
}

#[test]
fn a_finding_in_json() {
    let examined = Examined {
        id: "clock",
        finding: Finding::expect(false, "1970", "2024 or later", "set it"),
    };
    assert_eq!(
        serde_json::to_string(&examined).unwrap(),
        r#"{"id":"clock","status":"failed","measured":"1970","expected":"2024 or later","remedy":"set it"}"#
    );
}

#[test]
fn what_runs_agents_is_looked_at() {
    use hive_wire::host::{
        Runtime::{Bwrap, None, Nspawn, Process},
        RuntimeState, RuntimeStates,
    };
    let dir = tempfile::tempdir().unwrap();
    let with = |runtime, engine: &str, rehearsed| {
        let defaults = hive_wire::host::Defaults {
            runtime,
            engine: engine.into(),
            engine_note: "why".into(),
            runtime_note: "why".into(),
            rehearsed,
        };
        let mut facts = facts(dir.path(), Ok(HiveInfo { defaults, ..info() }));
        facts.runtimes = Some(RuntimeStates {
            best: runtime,
            note: "why".into(),
            runtimes: vec![RuntimeState {
                runtime: Bwrap,
                problem: "`bwrap` is not installed".into(),
                remedy: "install it".into(),
            }],
        });
        facts
    };
    assert_eq!(
        verdict("runtime", &with(Process, "x", false)),
        Verdict::Note
    );
    assert_eq!(verdict("runtime", &with(None, "", false)), Verdict::Note);
    assert_eq!(verdict("runtime", &with(Nspawn, "x", false)), Verdict::Ok);
    let loud = agents::runtime(&with(Process, "x", false));
    assert!(loud.remedy.contains("bwrap: install it"), "{}", loud.remedy);
    for (best, expected) in [(Nspawn, Verdict::Ok), (Process, Verdict::Note)] {
        let facts = with(best, "x", false);
        assert_eq!(verdict("other-runtimes", &facts), expected);
        let found = agents::other_runtimes(&facts);
        assert!(
            found.measured.contains("not installed"),
            "{}",
            found.measured
        );
    }
    assert_eq!(verdict("engine", &with(Process, "x", false)), Verdict::Ok);
    assert_eq!(
        verdict("engine", &with(Process, "", false)),
        Verdict::Failed
    );
    assert_eq!(verdict("engine", &with(None, "", false)), Verdict::Ok);
    assert_eq!(verdict("model", &with(Process, "x", true)), Verdict::Note);
    assert_eq!(verdict("model", &with(Process, "x", false)), Verdict::Ok);
}

#[test]
fn a_configuration_with_keys_is_private() {
    let dir = tempfile::tempdir().unwrap();
    let facts = facts(dir.path(), Err("gone".into()));
    assert_eq!(verdict("config-mode", &facts), Verdict::Skipped);
    let config = dir.path().join("hive.toml");
    let set = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&config, mode).unwrap();
    };
    std::fs::write(&config, "[hive]\nname = \"x\"\n").unwrap();
    set(0o644);
    assert_eq!(verdict("config-mode", &facts), Verdict::Ok);
    std::fs::write(&config, "[engine.env]\nA = \"x\"\n").unwrap();
    assert_eq!(verdict("config-mode", &facts), Verdict::Failed);
    set(0o600);
    assert_eq!(verdict("config-mode", &facts), Verdict::Ok);
}
