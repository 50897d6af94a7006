//! Every Nix file is one, and is formatted.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hive_testkit::nix::{self, project};
use rnix::ast::{self, AstToken};

/// Every Nix file of the project.
fn files() -> Vec<PathBuf> {
    let mut files = vec![project().join("flake.nix")];
    let mut dirs = vec![project().join("nix")];
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
    for fixture in ["agent-flake.nix", "root-flake.nix", "nixos-host.nix"] {
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

#[test]
fn n1_n2_nix_itself_parses_every_file() {
    let Some(nix) = nix::find() else { return };
    for file in files() {
        let parsed = nix.parse(&file);
        assert_eq!(parsed, Ok(()), "{}", file.display());
    }
}

#[test]
fn n1_the_flake_has_its_outputs() {
    let Some(nix) = nix::find() else { return };
    let outputs = nix.eval(
        r#"{
          names = builtins.attrNames flake;
          systems = builtins.attrNames flake.packages;
          packages = plain flake.packages.x86_64-linux;
          formatter = plain flake.formatter.aarch64-linux;
          modules = builtins.attrNames flake.nixosModules;
          containers = builtins.mapAttrs (
            _: system: (checked system).systemd.services.hive.environment.HIVE_ROLE
          ) flake.nixosConfigurations;
          sources = map (package: builtins.pathExists package.made.src) (
            builtins.attrValues flake.packages.x86_64-linux
          );
          lock = builtins.pathExists flake.packages.x86_64-linux.hyperhive.made.cargoLock.lockFile;
        }"#,
    );
    let expected = serde_json::json!({
        "names": ["formatter", "lib", "nixosConfigurations", "nixosModules", "overlays", "packages"],
        "systems": ["aarch64-linux", "x86_64-linux"],
        "packages": {
            "default": "hyperhive",
            "hyperhive": "hyperhive",
            "hyperhive-frontend": "hyperhive-frontend",
        },
        "formatter": "nixfmt",
        "modules": ["default", "hive-c0re"],
        "containers": {"agent-base": "agent", "manager": "manager"},
        "sources": [true, true, true],
        "lock": true,
    });
    assert_eq!(outputs, Ok(expected));
}
