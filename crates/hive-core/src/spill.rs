//! Long texts go to a file of the agent's, so that neither the database nor the model's context is
//! filled with them (M8).
//!
//! The agent can write where the file goes, so the way there is hostile: it is walked from the
//! agent's state directory by handles, no link is followed, and a file is only ever made anew.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Gid, Mode, OFlags, Uid, fchown, fstat, mkdirat, openat, unlinkat},
    process::geteuid,
};

/// From this size on, in bytes, a text goes to a file.
pub(crate) const LONG: usize = 16 * 1024;
/// How much of it is shown with the file's name, in bytes.
const HEAD: usize = 1024;
/// The directory in the agent's state.
const DIR: &str = "reminders";

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
            "{head}\n[… {} more bytes: the file {DIR}/{} in your state directory has all of it]",
            text.len() - head.len(),
            self.name
        )
    }

    /// Removes the file again.
    pub(crate) fn take_back(&self) {
        let removed = open_dir(&self.state)
            .and_then(|dir| Ok(unlinkat(&dir, self.name.as_str(), AtFlags::empty())?));
        if let Err(error) = removed {
            tracing::warn!(%error, file = self.name, "cannot remove a file that is not needed");
        }
    }
}

/// Opens the directory for reminders, which is made if need be.
fn open_dir(state: &Path) -> io::Result<OwnedFd> {
    let as_dir = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let state = openat(CWD, state, as_dir, Mode::empty())?;
    let made = match mkdirat(&state, DIR, Mode::RWXU) {
        Ok(()) => true,
        Err(rustix::io::Errno::EXIST) => false,
        Err(error) => return Err(error.into()),
    };
    let dir = openat(&state, DIR, as_dir, Mode::empty())?;
    if made {
        hand_over(&state, &dir)?;
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
