//! Waiting for somebody to log in (T7, T8): the sentinel, and what the credentials looked like.
//!
//! A login is known by what it leaves in the credentials directory. The snapshot of the moment when
//! the credentials failed is kept in the sentinel itself, so that a restart neither resumes on the
//! credentials that failed nor overlooks a login that happened meanwhile.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use hive_wire::Timestamp;
use serde::{Deserialize, Serialize};

use crate::files;

/// The most bytes of a sentinel that are read.
const MAX_SENTINEL: u64 = 4096;

/// What a directory looked like: either number moving means that something was written there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirSnapshot {
    /// When its newest file was changed, in nanoseconds since 1970.
    pub newest: u64,
    /// How many files it holds. It counts alone where the file system tells no times.
    pub files: u64,
}

impl DirSnapshot {
    /// Looks at the files right in a directory. One that is not there is an empty one.
    pub fn take(dir: &Path) -> Self {
        let mut snapshot = Self::default();
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            // Following links: credentials may be a link to where they really are.
            let Ok(metadata) = fs::metadata(entry.path()) else {
                continue;
            };
            if !metadata.is_file() {
                continue;
            }
            snapshot.files += 1;
            let modified = metadata.modified().ok();
            let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let nanos = since.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
            snapshot.newest = snapshot.newest.max(nanos);
        }
        snapshot
    }
}

/// `hyperhive-needs-login` in the agent's state directory: there while the agent waits for a login.
#[derive(Debug, Clone)]
pub struct LoginSentinel {
    file: PathBuf,
    credentials: PathBuf,
}

/// What the sentinel holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    since: Timestamp,
    why: String,
    credentials: DirSnapshot,
}

impl LoginSentinel {
    /// The sentinel of an agent.
    pub fn new(state: &Path, credentials: &Path) -> Self {
        Self {
            file: state.join("hyperhive-needs-login"),
            credentials: credentials.to_path_buf(),
        }
    }

    /// Notes that the credentials as they are now do not work.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn set(&self, why: &str) -> io::Result<()> {
        let note = Note {
            since: Timestamp::now(),
            why: hive_wire::text::shorten(why, 500),
            credentials: DirSnapshot::take(&self.credentials),
        };
        files::write_atomically(&self.file, &serde_json::to_vec(&note)?)
    }

    /// Whether the agent waits for a login.
    pub fn is_set(&self) -> bool {
        self.file.exists()
    }

    /// Whether the credentials have changed since they failed. A sentinel that cannot be read says
    /// nothing of them, and one try is cheaper than waiting for ever.
    pub fn credentials_moved(&self) -> bool {
        let note = files::read_capped(&self.file, MAX_SENTINEL).ok().flatten();
        let note = note.and_then(|text| serde_json::from_str::<Note>(&text.text).ok());
        match note {
            Some(note) => DirSnapshot::take(&self.credentials) != note.credentials,
            None => true,
        }
    }

    /// Takes the sentinel away.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn clear(&self) -> io::Result<()> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    fn touch(path: &Path, at: u64) {
        let file = fs::File::create(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(at))
            .unwrap();
    }

    #[test]
    fn t8_either_axis_moves_it_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let (state, claude) = (dir.path().join("state"), dir.path().join("claude"));
        fs::create_dir(&state).unwrap();
        fs::create_dir(&claude).unwrap();
        touch(&claude.join(".credentials.json"), 1_000);
        let sentinel = LoginSentinel::new(&state, &claude);
        sentinel.set("401").unwrap();
        assert!(sentinel.is_set());
        assert!(
            !sentinel.credentials_moved(),
            "stale credentials never resume"
        );

        fs::create_dir(claude.join("projects")).unwrap();
        touch(&claude.join("projects/session.jsonl"), 9_000);
        assert!(!sentinel.credentials_moved(), "a session is no credential");

        touch(&claude.join("older"), 10);
        assert!(sentinel.credentials_moved(), "the count moved");
        fs::remove_file(claude.join("older")).unwrap();
        assert!(!sentinel.credentials_moved());

        touch(&claude.join(".credentials.json"), 2_000);
        assert!(sentinel.credentials_moved(), "the time moved");
        sentinel.clear().unwrap();
        sentinel.clear().unwrap();
        assert!(!sentinel.is_set());
    }

    #[test]
    fn t8_credentials_that_come_into_being_or_vanish_move_it() {
        let dir = tempfile::tempdir().unwrap();
        let claude = dir.path().join("claude");
        let sentinel = LoginSentinel::new(dir.path(), &claude);
        sentinel.set("no key").unwrap();
        assert!(!sentinel.credentials_moved());
        fs::create_dir(&claude).unwrap();
        assert!(
            !sentinel.credentials_moved(),
            "an empty directory logs nobody in"
        );
        touch(&claude.join(".credentials.json"), 5);
        assert!(sentinel.credentials_moved());
    }

    #[test]
    fn t8_a_sentinel_of_another_make_lets_one_turn_try() {
        let dir = tempfile::tempdir().unwrap();
        let sentinel = LoginSentinel::new(dir.path(), &dir.path().join("claude"));
        fs::write(dir.path().join("hyperhive-needs-login"), "").unwrap();
        assert!(sentinel.is_set() && sentinel.credentials_moved());
    }
}
