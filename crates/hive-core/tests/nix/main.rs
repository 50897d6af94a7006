//! The Nix files: they parse, they are formatted, and what they come to is as it should be (N1–N5).
//!
//! Modules are evaluated by Nix itself against `nix/tests/nixpkgs`, a small stand-in of nixpkgs.
//! That agent.toml and agent.nix say the same is tested where agent.toml is parsed, in
//! `src/agent_config/tests/nix.rs`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod agents;
mod files;
mod host;
mod options;
mod stand_in;

use std::{fs, path::Path};

use serde_json::Value;

/// A file of `tests/fixtures`.
fn fixture(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name);
    fs::read_to_string(&file).unwrap_or_default()
}

/// Compares with a file of `tests/fixtures`, without what depends on contents and places.
#[track_caller]
fn assert_golden(name: &str, actual: &Value, dir: &Path) {
    let text = serde_json::to_string_pretty(actual).unwrap() + "\n";
    let text = without_hashes(&text).replace(dir.to_str().unwrap(), "DIR");
    assert!(
        text == fixture(name),
        "tests/fixtures/{name} should be:\n{text}"
    );
}

fn without_hashes(text: &str) -> String {
    let mut parts = text.split("/nix/store/");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("/nix/store/");
        out.push_str(part.split_once('-').map_or(part, |(_, name)| name));
    }
    out
}

/// How many assertions a Nix file declares.
fn assertions_in(file: &str) -> usize {
    let text = fs::read_to_string(hive_testkit::nix::project().join(file)).unwrap();
    text.matches(" assertion =").count()
}
