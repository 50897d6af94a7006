//! Checks of what the hive has to run agents with.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use hive_runtime::runtimes::isolates;
use hive_wire::host::{Runtime, RuntimeState};

use super::{Facts, Finding};
use crate::engine::{is_program, on_path};

/// How long an engine may take to say its version.
const PATIENCE: Duration = Duration::from_secs(15);
/// The newest Claude Code that the hive is tested with.
pub(super) const TESTED_CLAUDE: &str = "2.1.325";

/// Agents can be run, and are isolated.
pub(super) fn runtime(facts: &Facts) -> Finding {
    let Some(states) = &facts.runtimes else {
        return Finding::skipped("the daemon does not answer");
    };
    let mut remedies: Vec<String> = Vec::new();
    match states.best {
        Runtime::None => remedies.push("build or install `hive` beside `hive-c0re`".to_owned()),
        _ => {
            remedies.push(
                "give agents without isolation nothing that your user must not lose".to_owned(),
            );
            remedies.extend(states.runtimes.iter().map(how_to_get));
        }
    }
    Finding::expect(
        isolates(states.best),
        format!("{}: {}", states.best.as_str(), states.note),
        "a runtime that isolates",
        remedies.join("\n  "),
    )
    .as_note()
}

/// Why the other runtimes were not taken, and how to get them.
pub(super) fn other_runtimes(facts: &Facts) -> Finding {
    let Some(states) = &facts.runtimes else {
        return Finding::skipped("the daemon does not answer");
    };
    let (missing, working): (Vec<_>, Vec<_>) = states
        .runtimes
        .iter()
        .partition(|state| !state.problem.is_empty());
    let mut measured: Vec<String> = working
        .iter()
        .map(|state| format!("{} works", state.runtime.as_str()))
        .collect();
    measured.extend(
        missing
            .iter()
            .map(|state| format!("{}: {}", state.runtime.as_str(), state.problem)),
    );
    let remedies: Vec<String> = missing.into_iter().map(how_to_get).collect();
    Finding::expect(
        // One that isolates is enough.
        remedies.is_empty() || isolates(states.best),
        measured.join("; "),
        "one of them is enough",
        remedies.join("\n  "),
    )
    .as_note()
}

fn how_to_get(state: &RuntimeState) -> String {
    format!("{}: {}", state.runtime.as_str(), state.remedy)
}

/// There is something that runs turns.
pub(super) fn engine(facts: &Facts) -> Finding {
    let Ok(info) = &facts.daemon else {
        return Finding::skipped("the daemon does not answer");
    };
    let defaults = &info.defaults;
    let found = !defaults.engine.is_empty();
    Finding::expect(
        found || defaults.runtime == Runtime::None,
        if found {
            format!("{} ({})", defaults.engine, defaults.engine_note)
        } else {
            defaults.engine_note.clone()
        },
        "an engine",
        "install Claude Code (`npm install -g @anthropic-ai/claude-code`), or name a command as \
         engine.default in hive.toml",
    )
}

/// A real model answers.
pub(super) fn model(facts: &Facts) -> Finding {
    let Ok(info) = &facts.daemon else {
        return Finding::skipped("the daemon does not answer");
    };
    let rehearsed = info.defaults.rehearsed;
    Finding::expect(
        !rehearsed,
        if rehearsed {
            "rehearsed: a script answers instead of a model"
        } else {
            "real"
        },
        "real",
        "set ANTHROPIC_API_KEY in the environment of `hive-c0re` or under [engine.env] in \
         hive.toml, and start the hive again",
    )
    .as_note()
}

/// Claude Code is installed, and is one that the hive is tested with.
pub(super) fn claude(_: &Facts) -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(found) = on_path("claude", &path) else {
        return Finding::expect(
            false,
            "not on PATH",
            format!("{TESTED_CLAUDE} on PATH"),
            "only agents that run `claude` need it",
        )
        .as_note();
    };
    let version = version_of(&found);
    let shown = version.as_deref().unwrap_or("it does not say its version");
    Finding::expect(
        version.as_deref().is_some_and(is_tested),
        format!("{}: {shown}", found.display()),
        format!("{TESTED_CLAUDE} or newer of the same line"),
        format!("the hive is tested with `claude` {TESTED_CLAUDE}; others may work"),
    )
    .as_note()
}

/// The first word that a program says to `--version`, if it says so in time.
fn version_of(program: &Path) -> Option<String> {
    if !is_program(program) {
        return None;
    }
    let mut child = Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let stdout = child.stdout.take()?;
    let (send, receive) = mpsc::sync_channel(1);
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let mut stdout = std::io::Read::take(stdout, 4_096);
        let read = std::io::Read::read_to_string(&mut stdout, &mut text);
        // Whoever asked has given up.
        drop(send.send(read.map(|_| text)));
    });
    let said = receive.recv_timeout(PATIENCE);
    // It has said it, or it will not; either way it is of no more use.
    child.kill().ok()?;
    child.wait().ok()?;
    reader.join().ok()?;
    let text = said.ok()?.ok()?;
    text.split_whitespace().next().map(str::to_owned)
}

/// Whether this is the tested version, or a later one with the same first two numbers.
fn is_tested(version: &str) -> bool {
    let numbers = |text: &str| -> Option<Vec<u32>> {
        text.split('.').map(|part| part.parse().ok()).collect()
    };
    match (numbers(version), numbers(TESTED_CLAUDE)) {
        (Some(version), Some(tested)) => version.get(..2) == tested.get(..2) && version >= tested,
        _ => false,
    }
}

/// The configuration is as private as what is in it.
pub(super) fn config_mode(facts: &Facts) -> Finding {
    use std::os::unix::fs::PermissionsExt;
    let path: PathBuf = facts.places.root.join("hive.toml");
    let mode = match std::fs::metadata(&path) {
        Ok(meta) => meta.permissions().mode() & 0o7777,
        Err(_) => return Finding::skipped("there is no hive.toml"),
    };
    let holds_keys = std::fs::read_to_string(&path).is_ok_and(|text| text.contains("[engine.env]"));
    Finding::expect(
        !holds_keys || mode & 0o077 == 0,
        format!("{mode:04o}"),
        "0600 when it holds keys",
        format!("`chmod 600 {}`", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, expected) in [
            ("2.1.325", true),
            ("2.1.1000", true),
            ("2.1.99", false),
            ("2.2.0", false),
            ("3.0.0", false),
            ("", false),
            ("claude", false),
        ] {
            assert_eq!(is_tested(version), expected, "{version}");
        }
    }

    #[test]
    fn a_program_says_its_version() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("claude");
        std::fs::write(&program, "#!/bin/sh\necho '2.1.325 (Claude Code)'\n").unwrap();
        assert_eq!(version_of(&program), None, "not executable");
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(version_of(&program).as_deref(), Some("2.1.325"));
    }
}
