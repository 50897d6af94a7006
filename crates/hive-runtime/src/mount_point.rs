//! Making a mount point in a directory that belongs to an agent, without following anything that it
//! left there.

use std::{io, path::Path};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, fchown, mkdirat, openat, openat2, unlinkat},
    io::Errno,
    process::{Gid, Uid},
};

use crate::Owner;

/// Makes sure that `dir/name` is a directory. Whatever else is there under this name is removed:
/// the agent put it in the way of its own mount.
pub(crate) fn make(dir: &Path, name: &str, owner: Owner) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let parent = openat(CWD, dir, flags, Mode::empty())?;
    loop {
        match mkdirat(&parent, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match openat2(&parent, name, flags, Mode::empty(), within) {
            Ok(made) => {
                if let Owner::Own { uid } = owner {
                    fchown(&made, Some(Uid::from_raw(uid)), Some(Gid::from_raw(uid)))?;
                }
                return Ok(());
            }
            Err(Errno::LOOP | Errno::NOTDIR) => {
                unlinkat(&parent, name, AtFlags::empty())?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn what_was_planted_is_removed_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "").unwrap();
        let home = dir.path().join("home");
        fs::create_dir(&home).unwrap();
        let point = home.join(".claude");
        for plant in [
            &|| symlink(&outside, &point).unwrap() as (),
            &|| symlink("nowhere", &point).unwrap(),
            &|| fs::write(&point, "a file").unwrap(),
            &|| fs::create_dir(&point).unwrap(),
        ] as [&dyn Fn(); 4]
        {
            plant();
            make(&home, ".claude", Owner::Daemon).unwrap();
            assert!(fs::symlink_metadata(&point).unwrap().is_dir());
            fs::remove_dir(&point).unwrap();
        }
        assert!(outside.join("kept").exists());
        symlink(&home, dir.path().join("link")).unwrap();
        let through = make(&dir.path().join("link"), ".claude", Owner::Daemon);
        assert!(through.is_err(), "nor is a link in its place");
    }
}
