//! Checks of the daemon, by what it says and by what it leaves in the root directory.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use super::{Facts, Finding};

/// The first SQLite without the WAL-reset bug.
const MIN_SQLITE: [u32; 3] = [3, 51, 3];
/// The name of the daemon's process.
const PROCESS: &str = "hive-c0re";

/// The daemon answers.
pub(super) fn reachable(facts: &Facts) -> Finding {
    let measured = match &facts.daemon {
        Ok(info) => format!("pid {}", info.pid),
        Err(why) => why.clone(),
    };
    Finding::expect(
        facts.daemon.is_ok(),
        measured,
        "answers on its admin socket",
        "start it with `hive-c0re serve` or `hive-c0re up`",
    )
}

/// The daemon and this command are the same build.
pub(super) fn version(facts: &Facts) -> Finding {
    let Ok(info) = &facts.daemon else {
        return Finding::skipped("the daemon does not answer");
    };
    let own = env!("CARGO_PKG_VERSION");
    Finding::expect(
        info.version == own,
        info.version.clone(),
        own,
        "restart the daemon after an upgrade: agents go on running meanwhile",
    )
}

/// One daemon holds the root, and it is the one that answers.
pub(super) fn lock(facts: &Facts) -> Finding {
    let path = &facts.places.lock;
    let answering = facts.daemon.as_ref().ok().map(|info| info.pid);
    let holder = match holder(path) {
        Ok(pid) => pid,
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Finding::skipped(format!("{}: {error}", path.display())),
    };
    judge(holder, answering, is_daemon)
}

/// Compares the pid in the lock file with that of the daemon that answers.
fn judge(
    holder: Option<u32>,
    answering: Option<u32>,
    is_daemon: impl FnOnce(u32) -> bool,
) -> Finding {
    match (holder, answering) {
        (holder, Some(answering)) => Finding::expect(
            holder == Some(answering),
            holder.map_or("no pid".to_owned(), |pid| format!("pid {pid}")),
            format!("pid {answering}"),
            format!(
                "the daemon that answers (pid {answering}) does not hold this root; restart it"
            ),
        ),
        (None, None) => Finding::expect(true, "not held", "not held", ""),
        (Some(holder), None) => Finding::expect(
            !is_daemon(holder),
            format!("pid {holder}"),
            "a daemon that answers, or none",
            format!(
                "pid {holder} holds this root and does not answer: look at its log, or stop it"
            ),
        ),
    }
}

/// The pid in the lock file. It stays there after the daemon has gone; only the lock goes.
fn holder(path: &Path) -> io::Result<Option<u32>> {
    let mut text = String::new();
    File::open(path)?.take(64).read_to_string(&mut text)?;
    let digits = text
        .split(|c: char| !c.is_ascii_digit())
        .find(|digits| !digits.is_empty());
    Ok(digits.and_then(|digits| digits.parse().ok()))
}

/// Whether this process is a daemon now, and not another that got its pid.
fn is_daemon(pid: u32) -> bool {
    let comm = std::fs::read_to_string(format!("/proc/{pid}/comm"));
    comm.is_ok_and(|comm| comm.trim_end() == PROCESS)
}

/// The SQLite inside keeps what it promises.
pub(super) fn sqlite(facts: &Facts) -> Finding {
    let Ok(info) = &facts.daemon else {
        return Finding::skipped("the daemon does not answer");
    };
    let [major, minor, patch] = MIN_SQLITE;
    let parts: Option<Vec<u32>> = info
        .sqlite
        .split('.')
        .map(|part| part.parse().ok())
        .collect();
    Finding::expect(
        parts.is_some_and(|parts| parts.as_slice() >= MIN_SQLITE.as_slice()),
        info.sqlite.clone(),
        format!("at least {major}.{minor}.{patch}"),
        "build with the SQLite that comes with this repository",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_compared_with_who_answers() {
        let good = |holder, answering, alive| {
            let finding = judge(holder, answering, |_| alive);
            finding.remedy.is_empty()
        };
        assert!(good(Some(7), Some(7), true));
        assert!(!good(Some(7), Some(8), true));
        assert!(!good(None, Some(8), true));
        assert!(good(None, None, false));
        assert!(
            good(Some(7), None, false),
            "left behind by one that has gone"
        );
        assert!(!good(Some(7), None, true), "alive and silent");
    }

    #[test]
    fn the_pid_is_found_in_the_lock_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        for (text, pid) in [("42\n", Some(42)), ("pid 7", Some(7)), ("", None)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(holder(&path).unwrap(), pid);
        }
    }
}
