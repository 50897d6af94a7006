//! Long texts go to a file of the agent's, so that they do not fill the model's context.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use hive_wire::MessageId;

use crate::whole_file;

/// The longest body that is shown whole, in bytes.
const MAX_SHOWN: usize = 48 * 1024;
/// How much of a longer one is shown, in bytes.
const HEAD: usize = 4 * 1024;
/// How many files are kept; the oldest go.
const MAX_FILES: usize = 64;

/// The directory `inbox` in an agent's state.
pub(crate) struct Spill {
    dir: PathBuf,
}

impl Spill {
    pub(crate) fn new(state_dir: &Path) -> Self {
        Self {
            dir: state_dir.join("inbox"),
        }
    }

    /// The body as it is shown, and the file with the whole of it when it is long. What cannot be
    /// written to a file is shown whole.
    pub(crate) fn keep_short(&self, id: MessageId, body: String) -> (String, Option<PathBuf>) {
        if body.len() <= MAX_SHOWN {
            return (body, None);
        }
        match self.write(id, &body) {
            Ok(path) => {
                let head = &body[..body.floor_char_boundary(HEAD)];
                let rest = body.len() - head.len();
                let shown = format!(
                    "{head}\n[… {rest} more bytes: read the file {}]",
                    path.display()
                );
                (shown, Some(path))
            }
            Err(error) => {
                tracing::warn!(%error, dir = %self.dir.display(), "cannot put a body aside");
                (body, None)
            }
        }
    }

    /// Writes the file whole or not at all.
    fn write(&self, id: MessageId, body: &str) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.dir)?;
        self.make_room()?;
        // Transient messages have negative ids and share them with those of an earlier daemon.
        let name = if id.is_transient() {
            format!("transient{id}.txt")
        } else {
            format!("message-{id}.txt")
        };
        let path = self.dir.join(name);
        whole_file::write(&path, body.as_bytes())?;
        Ok(path)
    }

    /// Removes the oldest of our own files; what the agent keeps there itself is left alone.
    fn make_room(&self) -> io::Result<()> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_file() && is_ours(&entry.file_name().to_string_lossy()) {
                files.push((metadata.modified()?, entry.path()));
            }
        }
        files.sort();
        let surplus = (files.len() + 1).saturating_sub(MAX_FILES);
        for (_, path) in files.into_iter().take(surplus) {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

/// Whether a file is named as [`Spill`] names its files.
fn is_ours(name: &str) -> bool {
    let id = name
        .strip_prefix("message-")
        .or(name.strip_prefix("transient-"));
    let id = id.and_then(|rest| rest.strip_suffix(".txt"));
    id.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_bodies_stay_and_long_ones_leave_a_path() {
        let state = tempfile::tempdir().unwrap();
        let spill = Spill::new(state.path());
        let (body, file) = spill.keep_short(MessageId(1), "hi".to_owned());
        assert_eq!((body.as_str(), file), ("hi", None));

        let long = "ä".repeat(MAX_SHOWN);
        let (body, file) = spill.keep_short(MessageId(2), long.clone());
        let file = file.unwrap();
        assert!(body.len() < HEAD + 300, "{}", body.len());
        assert!(body.contains(&file.display().to_string()));
        assert_eq!(fs::read_to_string(file).unwrap(), long);
    }

    #[test]
    fn only_so_many_files_are_kept() {
        let state = tempfile::tempdir().unwrap();
        let spill = Spill::new(state.path());
        let inbox = state.path().join("inbox");
        fs::create_dir(&inbox).unwrap();
        let own = ["notes.md", "message-1-draft.txt", "message-.txt"];
        for name in own {
            fs::write(inbox.join(name), "the agent's own").unwrap();
        }
        for id in (1..=50).chain(-50..=-1).chain(51..=100) {
            let (_, file) = spill.keep_short(MessageId(id), "x".repeat(MAX_SHOWN + 1));
            let name = file.unwrap().file_name().unwrap().to_owned();
            assert!(is_ours(name.to_str().unwrap()), "{name:?}");
        }
        let count = fs::read_dir(&inbox).unwrap().count();
        assert_eq!(count, MAX_FILES + own.len());
        for name in own {
            assert!(inbox.join(name).exists(), "{name}");
        }
        assert!(state.path().join("inbox/message-100.txt").exists());
    }

    #[test]
    fn the_docs_say_what_is_long() {
        let docs = include_str!("../../../docs/mcp.md");
        let (long, head) = (MAX_SHOWN / 1024, HEAD / 1024);
        for said in [
            format!("A body of more than {long} KiB"),
            format!("has its first {head} KiB and the path"),
            format!("The newest {MAX_FILES} such files are kept"),
        ] {
            assert!(docs.contains(&said), "docs/mcp.md does not say: {said}");
        }
    }
}
