//! Checks of the machine.

use hive_wire::Timestamp;
use rustix::process::{Resource, getrlimit};

use super::{Facts, Finding};

/// 2024-01-01T00:00:00Z: before this program was written.
const WRITTEN_MILLIS: i64 = 1_704_067_200_000;
/// The fewest open files with which a hive of some size works.
const MIN_OPEN_FILES: u64 = 1024;

/// The clock is not obviously wrong.
pub(super) fn clock(_: &Facts) -> Finding {
    let now = Timestamp::now();
    Finding::expect(
        now.millis() >= WRITTEN_MILLIS,
        now.to_string(),
        "2024 or later",
        "set the clock: reminders, expiry and retention go by it",
    )
}

/// A process may open enough files.
pub(super) fn open_files(_: &Facts) -> Finding {
    let soft = getrlimit(Resource::Nofile).current;
    Finding::expect(
        soft.is_none_or(|limit| limit >= MIN_OPEN_FILES),
        soft.map_or("no limit".to_owned(), |limit| limit.to_string()),
        format!("at least {MIN_OPEN_FILES}"),
        format!("`ulimit -n {MIN_OPEN_FILES}`, or LimitNOFILE= in the unit"),
    )
}

/// Agents can be isolated without root.
pub(super) fn user_namespaces(_: &Facts) -> Finding {
    let setting = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok()
    };
    let forbids = [
        ("/proc/sys/user/max_user_namespaces", Some(0)),
        ("/proc/sys/kernel/unprivileged_userns_clone", Some(0)),
        (
            "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
            Some(1),
        ),
    ]
    .into_iter()
    .find(|(path, forbidding)| setting(path) == *forbidding);
    let measured = match forbids {
        None => "available".to_owned(),
        Some((path, _)) => format!("forbidden by {path}"),
    };
    Finding::expect(
        forbids.is_none(),
        measured,
        "available",
        "without them agents of a plain user run as bare processes, without isolation",
    )
    .as_note()
}
