//! T34: the quiet `cargo`, in every POSIX shell that this machine has.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use hive_bash::bash_env;

/// A directory with `bash-env.sh` and a `cargo` that says how it was called.
fn fixture(short: bool) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    bash_env::install(dir.path(), short).unwrap();
    let cargo = dir.path().join("cargo");
    fs::write(
        &cargo,
        "#!/bin/sh\nfor a in \"$@\"; do printf '<%s>' \"$a\"; done\nexit 42\n",
    )
    .unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn shells() -> Vec<Vec<&'static str>> {
    let known = [
        vec!["sh"],
        vec!["dash"],
        vec!["bash", "--posix"],
        vec!["busybox", "sh"],
    ];
    let there = |shell: &Vec<&str>| {
        let mut command = Command::new(shell[0]);
        command.args(&shell[1..]).args(["-c", ":"]).output().is_ok()
    };
    known.into_iter().filter(there).collect()
}

fn run(shell: &[&str], dir: &Path, cmd: &str) -> (String, Option<i32>) {
    let script = format!("set -eu\n. '{}'\n{cmd}", dir.join("bash-env.sh").display());
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    let output = Command::new(shell[0])
        .args(&shell[1..])
        .args(["-c", &script])
        .env("PATH", path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(wrong, "", "{shell:?}: {cmd}");
    (said, output.status.code())
}

#[test]
fn t34_the_ten_subcommands_get_short_messages() {
    let dir = fixture(true);
    for shell in shells() {
        for sub in bash_env::SUBCOMMANDS {
            let (said, code) = run(&shell, dir.path(), &format!("cargo {sub} -p x"));
            assert_eq!(said, format!("<{sub}><--message-format><short><-p><x>"));
            assert_eq!(code, Some(42), "what cargo returned is returned");
        }
    }
}

#[test]
fn t34_everything_else_passes_as_it_is() {
    let dir = fixture(true);
    for shell in shells() {
        for (cmd, called) in [
            ("cargo", ""),
            ("cargo --version", "<--version>"),
            ("cargo fmt --all", "<fmt><--all>"),
            ("cargo add build", "<add><build>"),
            ("cargo nextest run", "<nextest><run>"),
            ("cargo b", "<b>"),
            ("cargo +nightly", "<+nightly>"),
            ("cargo +nightly fmt", "<+nightly><fmt>"),
            ("cargo --explain E0001", "<--explain><E0001>"),
            ("cargo --explain build", "<--explain><build>"),
            (
                "cargo build --message-format json",
                "<build><--message-format><json>",
            ),
            (
                "cargo check --message-format=human",
                "<check><--message-format=human>",
            ),
            ("command cargo build", "<build>"),
        ] {
            assert_eq!(run(&shell, dir.path(), cmd).0, called, "{shell:?}: {cmd}");
        }
    }
}

#[test]
fn t34_toolchains_options_and_odd_arguments_stay_in_place() {
    let dir = fixture(true);
    for shell in shells() {
        for (cmd, called) in [
            (
                "cargo +1.95 test -- --nocapture",
                "<+1.95><test><--message-format><short><--><--nocapture>",
            ),
            (
                "cargo -q --color always -Z x -C dir run -- build",
                "<-q><--color><always><-Z><x><-C><dir><run><--message-format><short><--><build>",
            ),
            (
                "cargo --config 'a = \"b c\"' check",
                "<--config><a = \"b c\"><check><--message-format><short>",
            ),
            (
                "cargo test 'a b' '' '*' '$HOME'",
                "<test><--message-format><short><a b><><*><$HOME>",
            ),
            (
                // That one belongs to the program that is run.
                "cargo run -- --message-format json",
                "<run><--message-format><short><--><--message-format><json>",
            ),
        ] {
            assert_eq!(run(&shell, dir.path(), cmd).0, called, "{shell:?}: {cmd}");
        }
        // It can be used in pipes and twice, and leaves no variables behind.
        let cmd = "cargo build | cat; (cargo test || true); set | grep -c '^_hive' || true";
        let (said, _) = run(&shell, dir.path(), cmd);
        let twice = "<build><--message-format><short><test><--message-format><short>0\n";
        assert_eq!(said, twice, "{shell:?}");
    }
}

#[test]
fn t34_switched_off_nothing_is_changed() {
    let dir = fixture(false);
    for shell in shells() {
        assert_eq!(run(&shell, dir.path(), "cargo build").0, "<build>");
    }
}

/// `make lint` needs shellcheck, so it is there where this matters.
#[test]
#[expect(clippy::print_stderr, reason = "what is skipped is said")]
fn t34_shellcheck_finds_nothing() {
    if Command::new("shellcheck")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("skipped: shellcheck is not installed");
        return;
    }
    for short in [true, false] {
        let dir = fixture(short);
        let output = Command::new("shellcheck")
            .args(["--enable=all", "--exclude=SC2250"])
            .arg(dir.path().join("bash-env.sh"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}");
    }
}
