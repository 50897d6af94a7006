//! Nix's evaluator, for the tests of the Nix files. Nothing is built and nothing is written: the
//! store is a dummy, and what a home holds is in a directory that is thrown away.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::Value;

/// An evaluator with a home of its own.
#[derive(Debug)]
pub struct Nix {
    home: tempfile::TempDir,
}

/// The evaluator; none where it is not installed, and then standard error says so.
///
/// # Panics
/// When there is no place for its home.
#[expect(
    clippy::print_stderr,
    reason = "a test that did not run says so, wherever it is run"
)]
pub fn find() -> Option<Nix> {
    let version = Command::new("nix-instantiate").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        eprintln!(
            "SKIPPED: nix-instantiate is not installed; `scripts/setup.sh test` installs it (Debian: nix-bin)"
        );
        return None;
    }
    let home = tempfile::tempdir().expect("a directory for the home of Nix");
    Some(Nix { home })
}

/// The directory of the whole project.
pub fn project() -> PathBuf {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    project.canonicalize().unwrap_or(project)
}

/// A path as an expression, whatever it is called.
pub fn path(path: &Path) -> String {
    let text = path.display().to_string();
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    format!("(/. + \"{}\")", text.replace('$', "\\$"))
}

impl Nix {
    /// Parses a file.
    ///
    /// # Errors
    /// What Nix says of it.
    pub fn parse(&self, file: &Path) -> Result<(), String> {
        self.run(&["--parse".as_ref(), file.as_os_str()]).map(drop)
    }

    /// The value of an expression, in which everything of `nix/tests/default.nix` is at hand.
    ///
    /// # Errors
    /// What Nix says of it.
    pub fn eval(&self, expression: &str) -> Result<Value, String> {
        let tests = path(&project().join("nix/tests"));
        let expression = format!("with import {tests}; {expression}");
        let args = ["--eval", "--strict", "--json", "--expr", &expression];
        let json = self.run(&args.map(AsRef::as_ref))?;
        serde_json::from_str(&json).map_err(|error| format!("{error}: {json}"))
    }

    /// Nothing of the environment or of the machine's configuration comes along but the path.
    fn run(&self, args: &[&std::ffi::OsStr]) -> Result<String, String> {
        let output = Command::new("nix-instantiate")
            .args(args)
            .args(["--store", "dummy://"])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("NIX_CONF_DIR", self.home.path())
            .env("NIX_STATE_DIR", self.home.path().join("var"))
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("nix-instantiate: {error}"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() {
            return Ok(text(&output.stdout));
        }
        Err(text(&output.stderr))
    }
}
