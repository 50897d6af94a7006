//! Defaults, what is taken, what is refused, and that the docs list what there is.

use std::collections::BTreeSet;

use super::*;

fn read(pairs: &[(&str, &str)]) -> Result<Environment, EnvironmentError> {
    let pairs = pairs.iter();
    Environment::read(
        pairs
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
    )
}

#[test]
fn t16_nothing_set_is_the_container_of_the_interfaces() {
    let env = read(&[]).unwrap();
    assert_eq!(env.socket, PathBuf::from("/run/hive/mcp.sock"));
    assert_eq!(env.places.state, PathBuf::from("/state"));
    assert_eq!(
        env.places.model_file,
        PathBuf::from("/harness/hyperhive-model")
    );
    assert_eq!(env.places.bash_socket, PathBuf::from("/harness/bash.sock"));
    assert_eq!(env.identity.label, "hive");
    assert_eq!(env.identity.operator_pronouns, "she/her");
    assert_eq!(env.engine.command, ["claude"]);
    assert_eq!(env.default_model, "haiku");
    assert_eq!(env.windows.tokens("anything"), 200_000);
    assert_eq!(env.watermarks.compact, Watermark::Share(75));
    assert_eq!(env.watermarks.reset, Watermark::Share(50));
    assert_eq!(env.pace.rate_limit_sleep, Duration::from_secs(300));
}

#[test]
fn t16_what_is_set_counts_and_empty_is_unset() {
    let env = read(&[
        ("HIVE_LABEL", "ada"),
        ("HIVE_NAME", ""),
        ("HIVE_ROLE", "manager"),
        ("HIVE_ENGINE", "/opt/claude --flag"),
        ("HIVE_ENGINE_ENV_A_B", "c d"),
        ("HIVE_COMPACT_WATERMARK_TOKENS", "0"),
        ("HIVE_AUTO_RESET_WATERMARK_TOKENS", "5000"),
        ("HIVE_CONTEXT_WINDOW_TOKENS_SONNET", "1000000"),
        ("HYPERHIVE_MODEL_FILE", "/tmp/model"),
        ("CLAUDE_CONFIG_DIR", "/claude"),
        ("HOME", "/home/ada"),
    ])
    .unwrap();
    assert_eq!(env.identity.label, "ada");
    assert_eq!(env.identity.hive_name, None);
    assert!(env.identity.is_manager);
    assert_eq!(env.engine.command, ["/opt/claude", "--flag"]);
    assert_eq!(env.engine.env, [("A_B".to_owned(), "c d".to_owned())]);
    assert_eq!(
        env.login_command,
        ["/opt/claude", "--flag", "auth", "login"]
    );
    assert_eq!(env.watermarks.compact, Watermark::Off);
    assert_eq!(env.watermarks.reset, Watermark::Tokens(5_000));
    assert_eq!(env.windows.tokens("claude-Sonnet-4-5"), 1_000_000);
    assert_eq!(env.places.model_file, PathBuf::from("/tmp/model"));
    assert_eq!(env.places.credentials, PathBuf::from("/claude"));
}

#[test]
fn t16_what_makes_no_sense_is_refused_by_name() {
    let cases = [
        ("HIVE_PORT", "0"),
        ("HIVE_PORT", "80a"),
        ("HIVE_PORT", "70000"),
        ("HIVE_CACHE_TTL_SECS", "-1"),
        ("HIVE_POLL_MS", "1.5"),
        ("HIVE_ENGINE", "  "),
        ("HIVE_LABEL", "a\nb"),
        ("HIVE_ROLE", "boss"),
        ("HIVE_DEFAULT_MODEL", "--dangerously"),
        ("HIVE_TOOL_GROUPS", "messaging,rocketry"),
        ("HIVE_CONTEXT_WINDOW_TOKENS_", "200000"),
        ("HIVE_CONTEXT_WINDOW_TOKENS_OPUS", "lots"),
        ("HIVE_ENGINE_SILENCE_SECS", "0"),
        ("HIVE_ENGINE_ENV_", "x"),
    ];
    for (name, value) in cases {
        let error = read(&[(name, value)]).expect_err(name);
        assert_eq!(error.name, name, "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn t16_the_docs_list_every_variable_with_its_default_and_no_other() {
    let docs = include_str!("../../../../docs/environment.md");
    let mut rows = BTreeSet::new();
    for line in docs
        .lines()
        .filter(|line| line.starts_with("| `H") || line.starts_with("| `C"))
    {
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        let bare = |cell: &str| cell.trim_matches('`').to_owned();
        rows.insert((bare(cells[1]), bare(cells[2]), cells[3].to_owned()));
    }
    let table: BTreeSet<_> = VARIABLES
        .iter()
        .map(|v| {
            (
                v.name.to_owned(),
                v.default.to_owned(),
                v.meaning.to_owned(),
            )
        })
        .collect();
    assert_eq!(rows, table);
}
