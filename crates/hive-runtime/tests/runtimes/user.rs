//! The same tests as an ordinary user, when they are run by root.

use std::process::Command;

/// A user that nobody is.
const UID: &str = "76543";

/// Runs the tests whose names begin so as an ordinary user. Does nothing for one.
pub(crate) fn run_as_user(tests: &str) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let own = std::env::current_exe().unwrap();
    let said = Command::new("setpriv")
        .args(["--reuid", UID, "--regid", UID, "--clear-groups", "--"])
        .arg(own)
        .args([
            tests,
            "--skip",
            "as_an_ordinary_user",
            "--test-threads",
            "2",
        ])
        .env_clear()
        .env("PATH", "/usr/bin:/bin:/usr/sbin:/sbin")
        .current_dir("/")
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&said.stdout),
        String::from_utf8_lossy(&said.stderr)
    );
    eprintln!("{text}");
    if text.contains("Permission denied (os error 13)") && !text.contains("running") {
        eprintln!("SKIPPED: an ordinary user may not run the tests where they were built");
        return;
    }
    assert!(said.status.success(), "{text}");
    assert!(!text.contains(" 0 passed"), "{text}");
}
