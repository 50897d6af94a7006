//! The same tests as an ordinary user, when they are run by root.

use std::process::Command;

/// A user that nobody is.
const UID: &str = "76543";

/// Runs the tests of this executable whose names hold this as an ordinary user. Does nothing for
/// one. The test that calls it has `as_an_ordinary_user` in its name, and is not among them.
///
/// # Panics
/// When one of them fails.
#[expect(
    clippy::print_stderr,
    reason = "a test that did not run says so, wherever it is run"
)]
pub fn run_as_user(tests: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let own = std::env::current_exe().expect("a test has a program");
    let probe = as_user().arg("test").arg("-x").arg(&own).status();
    if !probe.expect("setpriv is part of the system").success() {
        eprintln!(
            "SKIPPED: an ordinary user may not run what was built at {}",
            own.display()
        );
        return;
    }
    let said = as_user()
        .arg(own)
        .args([
            tests,
            "--skip",
            "as_an_ordinary_user",
            "--test-threads",
            "2",
        ])
        .output()
        .expect("setpriv is part of the system");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    );
    eprintln!("{text}");
    assert!(said.status.success(), "{text}");
    assert!(!text.contains(" 0 passed"), "{text}");
}

fn as_user() -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", UID, "--regid", UID, "--clear-groups", "--"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .current_dir("/");
    command
}
