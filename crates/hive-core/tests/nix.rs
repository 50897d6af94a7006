//! The Nix files: they parse, they are formatted, and their options are those of `agent.toml` and
//! of the docs (N1, N2).
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use hive_core::agent_config::OPTIONS;
use rnix::ast::{self, AstToken, HasEntry};
use rowan::ast::AstNode;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every Nix file of the project.
fn files() -> Vec<PathBuf> {
    let mut files = vec![root().join("flake.nix")];
    let mut dirs = vec![root().join("nix")];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|extension| extension == "nix") {
                files.push(path);
            }
        }
    }
    for fixture in ["agent-flake.nix", "root-flake.nix"] {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        files.push(fixtures.join(fixture));
    }
    assert!(files.len() > 10, "{files:?}");
    files
}

#[test]
fn n1_n2_every_file_parses_and_is_formatted() {
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let parsed = rnix::Root::parse(&text);
        assert!(
            parsed.errors().is_empty(),
            "{}: {:?}",
            file.display(),
            parsed.errors()
        );
        let formatted = nixfmt_rs::format(&text).unwrap();
        assert!(
            formatted == text,
            "{} is not formatted; it should be:\n{formatted}",
            file.display()
        );
    }
}

/// The options that a file declares beneath a path such as `options.hyperhive`.
fn declared(file: &str, beneath: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let parsed = rnix::Root::parse(&text);
    let mut found = BTreeSet::new();
    for entry in parsed
        .syntax()
        .descendants()
        .filter_map(ast::AttrpathValue::cast)
    {
        let is_it = entry
            .attrpath()
            .is_some_and(|path| path.to_string() == beneath);
        if let (true, Some(ast::Expr::AttrSet(set))) = (is_it, entry.value()) {
            collect(&set, "", &mut found);
        }
    }
    assert!(
        !found.is_empty(),
        "{file} declares nothing beneath {beneath}"
    );
    found
}

fn collect(set: &ast::AttrSet, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in set.attrpath_values() {
        let name = format!("{prefix}{}", entry.attrpath().unwrap());
        match entry.value().unwrap() {
            ast::Expr::AttrSet(set) => collect(&set, &format!("{name}."), found),
            value => option(&value, &name, found),
        }
    }
}

/// One option, or those of the submodule that it is a list or a set of.
fn option(value: &ast::Expr, name: &str, found: &mut BTreeSet<String>) {
    let text = value.to_string();
    assert!(
        text.contains("description") || text.starts_with("mk"),
        "{name} has no description"
    );
    if text.contains("internal = true") {
        return;
    }
    let inner = value
        .syntax()
        .descendants()
        .filter_map(ast::AttrpathValue::cast)
        .find(|entry| {
            entry
                .attrpath()
                .is_some_and(|path| path.to_string() == "options")
        });
    match inner.and_then(|entry| entry.value()) {
        Some(ast::Expr::AttrSet(set)) => collect(&set, &format!("{name}.*."), found),
        _ if text.contains("type = types.attrsOf types.str;") => {
            found.insert(format!("{name}.*"));
        }
        _ => {
            found.insert(name.to_owned());
        }
    }
}

#[test]
fn n2_t29_agent_nix_has_the_options_of_agent_toml() {
    let nix = declared("nix/options.nix", "options.hyperhive");
    let toml: BTreeSet<String> = OPTIONS.iter().map(|option| option.nix()).collect();
    assert_eq!(nix, toml);
}

#[test]
fn n1_every_option_of_the_module_is_in_the_docs() {
    let docs = fs::read_to_string(root().join("docs/nixos.md")).unwrap();
    for option in declared(
        "nix/modules/hive-c0re.nix",
        "options.services.hyperhive.c0re",
    ) {
        assert!(
            docs.contains(&format!("| `{option}` |")),
            "docs/nixos.md lacks `{option}`"
        );
    }
}

/// No comment of ours is left that names something that is not there.
#[test]
fn n2_files_that_are_imported_are_there() {
    for file in files() {
        if file.starts_with(Path::new(env!("CARGO_MANIFEST_DIR"))) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let tokens = rnix::Root::parse(&text).syntax().descendants_with_tokens();
        for path in tokens.filter_map(|token| {
            let path = ast::PathContent::cast(token.into_token()?)?;
            Some(path.syntax().text().to_owned())
        }) {
            if path.starts_with("./") || path.starts_with("../") {
                let target = file.parent().unwrap().join(&path);
                assert!(target.exists(), "{}: {path}", file.display());
            }
        }
    }
}

/// With Nix at hand, `fromToml` is evaluated; Nix's own parser reads the rest.
#[expect(clippy::print_stderr, reason = "what is skipped is said")]
#[test]
fn n2_from_toml_gives_the_options_of_the_module() {
    if Command::new("nix-instantiate")
        .arg("--version")
        .output()
        .is_err()
    {
        eprintln!("skipped: nix-instantiate is not installed (Debian: nix-bin)");
        return;
    }
    let store = tempfile::tempdir().unwrap();
    let nix = |args: &[&str]| {
        let output = Command::new("nix-instantiate")
            .args(args)
            .args(["--store", "dummy://"])
            .env("HOME", store.path())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{args:?}: {}",
            text(&output.stderr)
        );
        text(&output.stdout)
    };
    for file in files() {
        nix(&["--parse", file.to_str().unwrap()]);
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let expression = format!(
        "(import {}/nix/lib/from-toml.nix) {}/everything.toml",
        root().canonicalize().unwrap().display(),
        dir.canonicalize().unwrap().display()
    );
    let strict = format!("builtins.attrNames ({expression}).hyperhive");
    let names = nix(&["--eval", "--strict", "--json", "-E", &strict]);
    let names: BTreeSet<String> = serde_json::from_str(&names).unwrap();
    let top: BTreeSet<String> = OPTIONS
        .iter()
        .map(|option| option.nix().split('.').next().unwrap().to_owned())
        .filter(|name| name != "runtime")
        .collect();
    assert_eq!(names, top);
    let tools = format!("({expression}).hyperhive.mcpServers.docs.allowedTools");
    assert_eq!(
        nix(&["--eval", "--strict", "--json", "-E", &tools]).trim(),
        "[\"find\"]"
    );
}
