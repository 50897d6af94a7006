//! Where sessions are, and how one is opened.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{Read as _, Seek as _, SeekFrom},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use rustix::fs::{FlockOperation, flock};

use super::{Record, Session, SessionError, Totals, backwards::Backwards};
use crate::ids;

const FORMAT: u32 = 1;

/// All sessions of one home.
#[derive(Debug, Clone)]
pub struct Sessions {
    root: PathBuf,
    cwd: PathBuf,
}

/// A directory's name for its working directory, as `claude` builds it.
pub fn slug(cwd: &Path) -> String {
    let text = cwd.to_string_lossy();
    let slug: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    if slug.len() <= 200 {
        return slug;
    }
    // Cut names stay apart by a checksum of the whole path.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{}-{hash:016x}", &slug[..200])
}

impl Sessions {
    /// The sessions under `root` that were started in `cwd`.
    pub fn new(root: PathBuf, cwd: PathBuf) -> Self {
        Self { root, cwd }
    }

    fn dir(&self) -> PathBuf {
        self.root.join(slug(&self.cwd))
    }

    /// A new session, with the given id or a fresh one.
    pub fn create(&self, id: Option<&str>) -> Result<Session, SessionError> {
        let id = match id {
            Some(id) if !ids::is_uuid(id) => return Err(SessionError::BadId(id.to_owned())),
            Some(id) if self.find(id)?.is_some() => return Err(SessionError::Taken(id.to_owned())),
            Some(id) => id.to_owned(),
            None => ids::uuid(),
        };
        self.create_file(&id, None)
    }

    fn create_file(&self, id: &str, forked_from: Option<&str>) -> Result<Session, SessionError> {
        let dir = self.dir();
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(SessionError::io(&dir))?;
        let path = dir.join(format!("{id}.jsonl"));
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(|source| match source.kind() {
                std::io::ErrorKind::AlreadyExists => SessionError::Taken(id.to_owned()),
                _ => SessionError::Io {
                    path: path.clone(),
                    source,
                },
            })?;
        lock(&file, id)?;
        let mut session = Session {
            id: id.to_owned(),
            messages: Vec::new(),
            totals: Totals::default(),
            context_tokens: 0,
            seen: Vec::new(),
            files: BTreeMap::new(),
            file: Some(file),
            path,
        };
        session.append(&Record::Session {
            id: id.to_owned(),
            cwd: self.cwd.to_string_lossy().into_owned(),
            at: ids::now(),
            format: FORMAT,
            forked_from: forked_from.map(str::to_owned),
        })?;
        Ok(session)
    }

    /// A session that leaves nothing on disk.
    pub fn transient(id: Option<&str>) -> Result<Session, SessionError> {
        match id {
            Some(id) if !ids::is_uuid(id) => Err(SessionError::BadId(id.to_owned())),
            _ => Ok(Session {
                id: id.map_or_else(ids::uuid, str::to_owned),
                messages: Vec::new(),
                totals: Totals::default(),
                context_tokens: 0,
                seen: Vec::new(),
                files: BTreeMap::new(),
                file: None,
                path: PathBuf::new(),
            }),
        }
    }

    /// The session of this directory that was written last, if there is one.
    pub fn latest(&self) -> Result<Option<String>, SessionError> {
        let dir = self.dir();
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SessionError::io(&dir)(error)),
        };
        let mut latest: Option<(SystemTime, String)> = None;
        for entry in entries {
            let entry = entry.map_err(SessionError::io(&dir))?;
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".jsonl")) else {
                continue;
            };
            let Ok(written) = entry.metadata().and_then(|meta| meta.modified()) else {
                continue;
            };
            if ids::is_uuid(id) && latest.as_ref().is_none_or(|(at, _)| written > *at) {
                latest = Some((written, id.to_owned()));
            }
        }
        Ok(latest.map(|(_, id)| id))
    }

    /// Opens a session to continue it, wherever it was started.
    pub fn resume(&self, id: &str) -> Result<Session, SessionError> {
        let not_found = || SessionError::NotFound(id.to_owned());
        if !ids::is_uuid(id) {
            return Err(not_found());
        }
        let path = self.find(id)?.ok_or_else(not_found)?;
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .open(&path)
            .map_err(SessionError::io(&path))?;
        lock(&file, id)?;
        let end = repair(&file, &path)?;
        let mut session = read(&file, &path, end)?;
        id.clone_into(&mut session.id);
        session.file = Some(file);
        Ok(session)
    }

    /// A new session with the history of another one, which stays as it is.
    pub fn fork(&self, id: &str, new_id: Option<&str>) -> Result<Session, SessionError> {
        let not_found = || SessionError::NotFound(id.to_owned());
        if !ids::is_uuid(id) {
            return Err(not_found());
        }
        let path = self.find(id)?.ok_or_else(not_found)?;
        let file = File::open(&path).map_err(SessionError::io(&path))?;
        let end = whole_lines(&file, &path)?;
        let source = read(&file, &path, end)?;
        let new_id = match new_id {
            Some(new) if !ids::is_uuid(new) => return Err(SessionError::BadId(new.to_owned())),
            Some(new) if self.find(new)?.is_some() => {
                return Err(SessionError::Taken(new.to_owned()));
            }
            Some(new) => new.to_owned(),
            None => ids::uuid(),
        };
        let mut session = self.create_file(&new_id, Some(id))?;
        session.totals = source.totals;
        session.compact("fork", source.messages)?;
        session.context_tokens = source.context_tokens;
        Ok(session)
    }

    fn find(&self, id: &str) -> Result<Option<PathBuf>, SessionError> {
        let name = format!("{id}.jsonl");
        let own = self.dir().join(&name);
        if own.is_file() {
            return Ok(Some(own));
        }
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(SessionError::io(&self.root)(error)),
        };
        for entry in entries {
            let path = entry
                .map_err(SessionError::io(&self.root))?
                .path()
                .join(&name);
            if path.is_file() {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}

fn lock(file: &File, id: &str) -> Result<(), SessionError> {
    flock(file, FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| SessionError::Busy(id.to_owned()))
}

/// The length up to the last newline.
fn whole_lines(file: &File, path: &Path) -> Result<u64, SessionError> {
    let length = file.metadata().map_err(SessionError::io(path))?.len();
    let mut end = length;
    let mut file = file;
    let mut chunk = vec![0; 64 * 1024];
    while end > 0 {
        let step = end.min(chunk.len() as u64);
        let piece = &mut chunk[..usize::try_from(step).unwrap_or_default()];
        file.seek(SeekFrom::Start(end - step))
            .map_err(SessionError::io(path))?;
        file.read_exact(piece).map_err(SessionError::io(path))?;
        if let Some(at) = piece.iter().rposition(|&byte| byte == b'\n') {
            return Ok(end - step + at as u64 + 1);
        }
        end -= step;
    }
    Ok(0)
}

/// Cuts off a line that a crash left unfinished.
fn repair(file: &File, path: &Path) -> Result<u64, SessionError> {
    let end = whole_lines(file, path)?;
    if end < file.metadata().map_err(SessionError::io(path))?.len() {
        file.set_len(end).map_err(SessionError::io(path))?;
    }
    Ok(end)
}

/// Reads from the end back to the last compaction.
fn read(file: &File, path: &Path, end: u64) -> Result<Session, SessionError> {
    let mut session = Session {
        id: String::new(),
        messages: Vec::new(),
        totals: Totals::default(),
        context_tokens: 0,
        seen: Vec::new(),
        files: BTreeMap::new(),
        file: None,
        path: path.to_owned(),
    };
    let mut lines = Backwards::new(file, end);
    let (mut has_totals, mut has_context) = (false, false);
    while let Some(line) = lines.next_line().map_err(SessionError::io(path))? {
        // A line that makes no sense, say after a disk error, is left out rather than fatal.
        let Ok(record) = serde_json::from_slice::<Record>(&line) else {
            continue;
        };
        match record {
            Record::Message {
                message,
                context_tokens,
                ..
            } => {
                if let Some(tokens) = context_tokens.filter(|_| !has_context) {
                    session.context_tokens = tokens;
                    has_context = true;
                }
                session.messages.push(message);
            }
            Record::TurnEnd {
                totals,
                prompts,
                files,
                ..
            } => {
                if !has_totals {
                    session.totals = totals;
                    session.files = files;
                    has_totals = true;
                }
                session.seen.extend(prompts.into_iter().rev());
            }
            Record::Compaction {
                messages,
                totals,
                seen,
                ..
            } => {
                if !has_totals {
                    session.totals = totals;
                }
                session.seen.extend(seen.into_iter().rev());
                session.messages.extend(messages.into_iter().rev());
                break;
            }
            Record::Session { format, .. } => {
                if format > FORMAT {
                    return Err(SessionError::Damaged {
                        path: path.to_owned(),
                        reason: format!("format {format} is newer than this program"),
                    });
                }
                break;
            }
        }
    }
    session.messages.reverse();
    session.seen.reverse();
    let excess = session.seen.len().saturating_sub(super::MAX_SEEN);
    session.seen.drain(..excess);
    Ok(session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn_end::EndReason;
    use hive_providers::{Message, Usage};
    use proptest::prelude::*;
    use std::io::Write as _;

    fn sessions(dir: &Path) -> Sessions {
        Sessions::new(dir.join("sessions"), dir.join("work"))
    }

    fn talk(session: &mut Session, text: &str) {
        session.say("u", Message::user(text), None).unwrap();
        session.say("a", Message::assistant("ok"), Some(7)).unwrap();
        session.totals.add(
            "m",
            &Usage {
                input_tokens: 1,
                ..Usage::default()
            },
            0.5,
        );
        session
            .end_turn(
                EndReason::EndTurn,
                vec![format!("p-{text}")],
                BTreeMap::new(),
            )
            .unwrap();
    }

    #[test]
    fn a_session_is_continued_with_its_totals() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = sessions(dir.path());
        assert_eq!(sessions.latest().unwrap(), None);
        let mut first = sessions.create(None).unwrap();
        talk(&mut first, "one");
        talk(&mut first, "two");
        let id = first.id.clone();
        drop(first);
        assert_eq!(sessions.latest().unwrap(), Some(id.clone()));
        let again = sessions.resume(&id).unwrap();
        let texts: Vec<_> = again.messages.iter().map(Message::text).collect();
        assert_eq!(texts, ["one", "ok", "two", "ok"]);
        assert_eq!(again.totals.cost_usd(), 1.0);
        assert_eq!(again.context_tokens, 7);
        assert_eq!(again.seen, ["p-one", "p-two"]);
    }

    #[test]
    fn it_is_found_from_another_directory_but_not_taken_for_the_latest_there() {
        let dir = tempfile::tempdir().unwrap();
        let here = sessions(dir.path());
        let mut session = here.create(None).unwrap();
        talk(&mut session, "x");
        let id = session.id.clone();
        drop(session);
        let there = Sessions::new(dir.path().join("sessions"), dir.path().join("other"));
        assert_eq!(there.latest().unwrap(), None);
        assert_eq!(there.resume(&id).unwrap().messages.len(), 2);
        assert!(matches!(
            here.create(Some(&id)),
            Err(SessionError::Taken(_))
        ));
        assert!(matches!(
            there.create(Some(&id)),
            Err(SessionError::Taken(_))
        ));
    }

    #[test]
    fn a_second_writer_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = sessions(dir.path());
        let session = sessions.create(None).unwrap();
        assert!(matches!(
            sessions.resume(&session.id),
            Err(SessionError::Busy(_))
        ));
        let id = session.id.clone();
        drop(session);
        sessions.resume(&id).unwrap();
    }

    #[test]
    fn strange_ids_name_no_files() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = sessions(dir.path());
        drop(sessions.create(None).unwrap());
        fs::write(dir.path().join("sessions/evil.jsonl"), "{}").unwrap();
        for id in ["../evil", "..", "", "/etc/passwd"] {
            assert!(
                matches!(sessions.resume(id), Err(SessionError::NotFound(_))),
                "{id}"
            );
            assert!(
                matches!(sessions.fork(id, None), Err(SessionError::NotFound(_))),
                "{id}"
            );
            assert!(
                matches!(sessions.create(Some(id)), Err(SessionError::BadId(_))),
                "{id}"
            );
        }
    }

    #[test]
    fn a_torn_line_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = sessions(dir.path());
        let mut session = sessions.create(None).unwrap();
        talk(&mut session, "one");
        let (id, path) = (session.id.clone(), session.path().to_owned());
        drop(session);
        let whole = fs::read(&path).unwrap();
        for torn in ["{", "{\"kind\":\"message\",\"uuid\":\"x", "\u{0}\u{0}"] {
            fs::write(&path, &whole).unwrap();
            OpenOptions::new()
                .append(true)
                .open(&path)
                .unwrap()
                .write_all(torn.as_bytes())
                .unwrap();
            let mut again = sessions.resume(&id).unwrap();
            assert_eq!(again.messages.len(), 2);
            talk(&mut again, "two");
            drop(again);
            assert_eq!(
                sessions.resume(&id).unwrap().messages.len(),
                4,
                "after {torn:?}"
            );
        }
    }

    #[test]
    fn only_what_follows_the_last_compaction_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = sessions(dir.path());
        let mut session = sessions.create(None).unwrap();
        talk(&mut session, "old");
        session
            .compact("manual", vec![Message::user("summary")])
            .unwrap();
        talk(&mut session, "new");
        let id = session.id.clone();
        drop(session);
        let again = sessions.resume(&id).unwrap();
        let texts: Vec<_> = again.messages.iter().map(Message::text).collect();
        assert_eq!(texts, ["summary", "new", "ok"]);
        assert_eq!(again.totals.cost_usd(), 1.0);
        assert_eq!(again.seen, ["p-old", "p-new"]);
    }

    /// What lies before the last compaction is never read: here it is a hole of a terabyte.
    #[test]
    fn a_huge_session_is_resumed_from_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = sessions(dir.path());
        let mut session = sessions.create(None).unwrap();
        talk(&mut session, "old");
        let (id, path) = (session.id.clone(), session.path().to_owned());
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        let Ok(()) = file.set_len(1 << 40) else {
            return; // a file system without holes
        };
        session
            .append(&Record::TurnEnd {
                at: String::new(),
                reason: EndReason::EndTurn,
                totals: Totals::default(),
                prompts: Vec::new(),
                files: BTreeMap::new(),
            })
            .unwrap();
        session
            .compact("manual", vec![Message::user("summary")])
            .unwrap();
        talk(&mut session, "new");
        drop(session);
        assert_eq!(sessions.resume(&id).unwrap().messages.len(), 3);
    }

    #[test]
    fn a_fork_leaves_the_original_alone() {
        let dir = tempfile::tempdir().unwrap();
        let sessions = sessions(dir.path());
        let mut session = sessions.create(None).unwrap();
        talk(&mut session, "one");
        let mut fork = sessions.fork(&session.id, None).unwrap();
        assert_ne!(fork.id, session.id);
        talk(&mut fork, "two");
        let (id, fork_id) = (session.id.clone(), fork.id.clone());
        drop((session, fork));
        assert_eq!(sessions.resume(&id).unwrap().messages.len(), 2);
        assert_eq!(sessions.resume(&fork_id).unwrap().messages.len(), 4);
    }

    #[test]
    fn directories_of_different_paths_differ() {
        assert_eq!(slug(Path::new("/state")), "-state");
        assert_eq!(slug(Path::new("/a.b/c d")), "-a-b-c-d");
        let long = |end: &str| slug(Path::new(&format!("/{}{end}", "x".repeat(300))));
        assert_ne!(long("a"), long("b"));
        assert!(long("a").len() < 255);
    }

    proptest! {
        #[test]
        fn fuzz_any_file_is_read_without_a_panic(
            bytes in proptest::collection::vec(any::<u8>(), 0..2000)
        ) {
            let dir = tempfile::tempdir().unwrap();
            let sessions = sessions(dir.path());
            let session = sessions.create(None).unwrap();
            let (id, path) = (session.id.clone(), session.path().to_owned());
            drop(session);
            fs::write(&path, &bytes).unwrap();
            // Whatever is in the file, a new turn can be appended and is found again.
            let mut again = sessions.resume(&id).unwrap();
            let before = again.messages.len();
            talk(&mut again, "x");
            drop(again);
            prop_assert_eq!(sessions.resume(&id).unwrap().messages.len(), before + 2);
        }
    }
}
