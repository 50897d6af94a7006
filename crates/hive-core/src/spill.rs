//! Long texts go to a file of the agent's, so that neither the database nor the model's context is
//! filled with them (M8).
//!
//! The agent can write where the file goes, so the way there is hostile: it is walked from the
//! agent's state directory by handles, no link is followed, and a file is only ever made anew.
//!
//! A file goes with a reminder that is cancelled. One that has fired is needed until its message is
//! dealt with, so that files are looked through now and then for those that nothing names any more.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::{
    fs::{
        AtFlags, CWD, Dir, Gid, Mode, OFlags, Uid, fchown, fstat, mkdirat, openat, statat, unlinkat,
    },
    io::Errno,
    process::geteuid,
};

/// From this size on, in bytes, a text goes to a file.
pub(crate) const LONG: usize = 16 * 1024;
/// How much of it is shown with the file's name, in bytes.
const HEAD: usize = 1024;
/// The directory in the agent's state.
const DIR: &str = "reminders";
/// How a text ends whose whole is in a file.
const END: &str = " in your state directory has all of it]";
/// At least as many characters as there are from the file's name to the end of such a text.
pub(crate) const NAMED_WITHIN: u32 = 120;
/// How old a file is at least before it is removed for being named nowhere.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// A file that was written and can be taken back.
#[derive(Debug)]
pub(crate) struct Spilled {
    state: PathBuf,
    name: String,
}

impl Spilled {
    /// Writes a text to a new file in `reminders/` of an agent's state directory. It is on disk
    /// when this returns.
    ///
    /// # Errors
    /// When the directory does not exist, is no directory, or cannot be written.
    pub(crate) fn write(state: &Path, text: &str) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = format!("reminder-{:016x}.md", u64::from_be_bytes(random));
        let dir = open_dir(state)?;
        let make =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file = File::from(openat(&dir, name.as_str(), make, Mode::RUSR | Mode::WUSR)?);
        let spilled = Self {
            state: state.to_owned(),
            name,
        };
        let written = hand_over(&dir, &file)
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(rustix::fs::fsync(&dir)?));
        match written {
            Ok(()) => Ok(spilled),
            Err(error) => {
                spilled.take_back();
                Err(error)
            }
        }
    }

    /// What is said in place of the text: its beginning, and where the whole of it is.
    pub(crate) fn instead_of(&self, text: &str) -> String {
        let head = &text[..text.floor_char_boundary(HEAD)];
        format!(
            "{head}\n[… {} more bytes: the file {DIR}/{}{END}",
            text.len() - head.len(),
            self.name
        )
    }

    /// Removes the file again.
    pub(crate) fn take_back(&self) {
        remove(&self.state, &self.name);
    }
}

/// The file that a text names at its end, if it is one of ours.
pub(crate) fn file_named(text: &str) -> Option<&str> {
    let (_, name) = text.strip_suffix(END)?.rsplit_once('/')?;
    is_ours(name).then_some(name)
}

/// Whether a file is named as [`Spilled`] names its files.
fn is_ours(name: &str) -> bool {
    let digits = name.strip_prefix("reminder-");
    let digits = digits.and_then(|rest| rest.strip_suffix(".md"));
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
    })
}

/// Removes a file of an agent's that is not needed; one that is gone already is no trouble.
pub(crate) fn remove(state: &Path, name: &str) {
    let removed = open_existing(state).and_then(|dir| Ok(unlinkat(&dir, name, AtFlags::empty())?));
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, file = name, "cannot remove a file that is not needed");
        }
        _ => {}
    }
}

/// The files of an agent's that are old enough to be removed, unless something names them.
pub(crate) fn old(state: &Path, now: SystemTime) -> HashSet<String> {
    let Ok(dir) = open_existing(state) else {
        return HashSet::new();
    };
    let old_before = now.checked_sub(KEPT).unwrap_or(SystemTime::UNIX_EPOCH);
    let old_before = old_before.duration_since(SystemTime::UNIX_EPOCH);
    let old_before = old_before.map_or(0, |since| since.as_secs());
    let is_old = |name: &str| {
        let found = statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| u64::try_from(found.st_mtime).is_ok_and(|at| at < old_before))
    };
    let Ok(entries) = Dir::read_from(&dir) else {
        return HashSet::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str().ok()?.to_owned()))
        .filter(|name| is_ours(name) && is_old(name))
        .collect()
}

const AS_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Opens the directory for reminders if there is one.
fn open_existing(state: &Path) -> io::Result<OwnedFd> {
    let above = openat(CWD, state, AS_DIR, Mode::empty())?;
    Ok(openat(&above, DIR, AS_DIR, Mode::empty())?)
}

/// Opens the directory for reminders, which is made if need be.
fn open_dir(state: &Path) -> io::Result<OwnedFd> {
    let above = openat(CWD, state, AS_DIR, Mode::empty())?;
    let is_new = match mkdirat(&above, DIR, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(error) => return Err(error.into()),
    };
    let dir = openat(&above, DIR, AS_DIR, Mode::empty())?;
    if is_new {
        hand_over(&above, &dir)?;
    }
    Ok(dir)
}

/// Gives what was made to whoever owns the directory it lies in: the agent may have a user of its
/// own.
fn hand_over(dir: &OwnedFd, made: impl std::os::fd::AsFd) -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let owner = fstat(dir)?;
    let (user, group) = (Uid::from_raw(owner.st_uid), Gid::from_raw(owner.st_gid));
    Ok(fchown(made, Some(user), Some(group))?)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn m8_a_long_text_is_in_a_file_that_the_reminder_names() {
        let dir = tempfile::tempdir().unwrap();
        let long = "ä".repeat(LONG);
        let spilled = Spilled::write(dir.path(), &long).unwrap();
        let said = spilled.instead_of(&long);
        assert!(said.len() < 2 * HEAD, "{said}");
        let name = said.split("the file ").nth(1).unwrap();
        let name = name.split(' ').next().unwrap();
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), long);
        let second = Spilled::write(dir.path(), "other").unwrap();
        assert_ne!(second.name, spilled.name);
        second.take_back();
        assert_eq!(fs::read_dir(dir.path().join(DIR)).unwrap().count(), 1);
    }

    #[test]
    fn m8_a_file_is_old_or_not_and_others_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        assert!(old(dir.path(), now).is_empty(), "there is no directory");
        let spilled = Spilled::write(dir.path(), "long").unwrap();
        let said = spilled.instead_of("long");
        let end = said.char_indices().rev().nth(NAMED_WITHIN as usize - 1);
        let end = &said[end.map_or(0, |(at, _)| at)..];
        assert_eq!(file_named(end), Some(spilled.name.as_str()));
        let own = dir.path().join(DIR).join("reminder-of-mine.md");
        fs::write(&own, "").unwrap();
        assert!(old(dir.path(), now).is_empty(), "it is new");
        let later = now + KEPT + Duration::from_secs(5);
        assert_eq!(old(dir.path(), later), [spilled.name.clone()].into());
        remove(dir.path(), &spilled.name);
        remove(dir.path(), &spilled.name);
        assert!(old(dir.path(), later).is_empty() && own.exists());
        for text in [
            "",
            "plain",
            "the file reminders/../../x in your state directory has all of it]",
            "the file reminders/reminder-00.md in your state directory has all of it]",
            "the file reminders/reminder-000000000000000g.md in your state directory has all of it]",
        ] {
            assert_eq!(file_named(text), None, "{text}");
        }
    }

    #[test]
    fn m8_no_link_of_the_agents_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        let state = dir.path().join("state");
        fs::create_dir(&state).unwrap();
        symlink(&elsewhere, state.join(DIR)).unwrap();
        assert!(
            Spilled::write(&state, "x").is_err(),
            "a link to a directory"
        );
        assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);
        fs::remove_file(state.join(DIR)).unwrap();
        fs::write(state.join(DIR), "a file").unwrap();
        assert!(Spilled::write(&state, "x").is_err(), "no directory");
        let link = dir.path().join("link");
        symlink(&state, &link).unwrap();
        assert!(Spilled::write(&link, "x").is_err(), "the state itself");
        assert!(Spilled::write(&dir.path().join("none"), "x").is_err());
    }
}
