//! The directories of an agent, private to whoever it runs as.
//!
//! A daemon of root gives every agent in a container a user of its own. Which one is written down
//! where it matters: it is the owner of the agent's state directory, so that an agent that comes
//! back finds its files and they are still its own.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder},
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    },
    path::Path,
};

use anyhow::{Context, bail};
use hive_runtime::{
    AgentDirs, Owner,
    runtimes::{FIRST_UID, LAST_UID, isolates},
};
use hive_wire::{AgentName, host::Runtime};
use rustix::{
    fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chownat, fchown, openat, statat},
    process::{Gid, Uid, geteuid},
};

use crate::paths::Paths;

/// How deep an agent's directories are followed.
const MAX_DEPTH: usize = 200;

/// Makes what is missing and refuses what is not as it should be.
pub(super) fn prepare(
    paths: &Paths,
    name: &AgentName,
    runtime: Runtime,
) -> anyhow::Result<(AgentDirs, Owner)> {
    let owner = claim(paths, name, runtime)?;
    let dirs = paths.agent_dirs(name);
    for dir in [&dirs.state, &dirs.harness, &dirs.claude, &dirs.home] {
        make(dir, owner)?;
    }
    open_to(&dirs.run, owner)?;
    Ok((dirs, owner))
}

/// The user that an agent runs as. One that never ran gets one that no other has.
///
/// # Errors
/// When its directory cannot be made or looked at, or no user is left.
pub(crate) fn claim(paths: &Paths, name: &AgentName, runtime: Runtime) -> anyhow::Result<Owner> {
    make(&paths.agents(), Owner::Daemon)?;
    make(&paths.agent(name), Owner::Daemon)?;
    if !isolates(runtime) || !geteuid().is_root() {
        return Ok(Owner::Daemon);
    }
    let state = paths.agent_dirs(name).state;
    if let Some(uid) = agents_uid(&state) {
        return Ok(Owner::Own { uid });
    }
    let taken: BTreeSet<u32> = fs::read_dir(paths.agents())
        .with_context(|| format!("cannot look into {}", paths.agents().display()))?
        .filter_map(|entry| agents_uid(&entry.ok()?.path().join("state")))
        .collect();
    let uid = (FIRST_UID..=LAST_UID).find(|uid| !taken.contains(uid));
    let uid = uid.with_context(|| {
        format!("every user from {FIRST_UID} to {LAST_UID} is an agent; purge some of them")
    })?;
    make(&state, Owner::Own { uid })?;
    Ok(Owner::Own { uid })
}

/// Lets an agent into the directory of its sockets, and nobody else.
///
/// # Errors
/// Those of the system.
pub(crate) fn open_to(run: &Path, owner: Owner) -> std::io::Result<()> {
    let (gid, mode) = match owner {
        Owner::Daemon => (rustix::process::getegid().as_raw(), 0o700),
        Owner::Own { uid } => (uid, 0o750),
    };
    chown(run, None, Some(gid))?;
    fs::set_permissions(run, fs::Permissions::from_mode(mode))
}

/// Gives the proposed repositories to the agent that writes them, if it has a user of its own.
///
/// # Errors
/// Those of the system.
pub(super) fn hand_over(proposed: &Path, owner: Owner) -> std::io::Result<()> {
    match owner {
        Owner::Daemon => Ok(()),
        Owner::Own { uid } => give(proposed, uid),
    }
}

/// Gives a new proposed repository to the agent that the others belong to.
///
/// # Errors
/// Those of the system.
pub(crate) fn hand_on(proposed: &Path, repository: &Path) -> std::io::Result<()> {
    agents_uid(proposed).map_or(Ok(()), |uid| give(repository, uid))
}

/// The owner of a directory, if that is the user of an agent.
fn agents_uid(dir: &Path) -> Option<u32> {
    let uid = fs::symlink_metadata(dir).ok()?.uid();
    (FIRST_UID..=LAST_UID).contains(&uid).then_some(uid)
}

/// One directory that is there, real, its owner's, and closed to others.
fn make(dir: &Path, owner: Owner) -> anyhow::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("cannot make {}", dir.display()));
        }
        _ => {}
    }
    let found =
        fs::symlink_metadata(dir).with_context(|| format!("cannot look at {}", dir.display()))?;
    if !found.is_dir() {
        bail!("{} is no directory: move it out of the way", dir.display());
    }
    let own = geteuid().as_raw();
    let wanted = match owner {
        Owner::Daemon => own,
        Owner::Own { uid } => uid,
    };
    if found.uid() != wanted && own == 0 {
        give(dir, wanted)
            .with_context(|| format!("cannot give {} to uid {wanted}", dir.display()))?;
    } else if found.uid() != wanted {
        bail!(
            "{0} belongs to uid {1}, and this daemon runs as uid {own}: `chown -R {own} {0}`",
            dir.display(),
            found.uid()
        );
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("cannot make {} private", dir.display()))?;
    }
    Ok(())
}

/// Gives a directory and all that is in it to a user, following no link.
fn give(dir: &Path, uid: u32) -> std::io::Result<()> {
    let top = openat(CWD, dir, AS_DIR, Mode::empty())?;
    give_all(&top, uid, MAX_DEPTH)
}

const AS_DIR: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn give_all(dir: &OwnedFd, uid: u32, depth: usize) -> std::io::Result<()> {
    let (user, group) = (Uid::from_raw(uid), Gid::from_raw(uid));
    if depth == 0 {
        return Err(std::io::Error::other("it is too deep"));
    }
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let found = statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode).is_dir() {
            give_all(&openat(dir, name, AS_DIR, Mode::empty())?, uid, depth - 1)?;
        } else {
            chownat(
                dir.as_fd(),
                name,
                Some(user),
                Some(group),
                AtFlags::SYMLINK_NOFOLLOW,
            )?;
        }
    }
    // Last: a crash before this begins anew.
    Ok(fchown(dir, Some(user), Some(group))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c12_directories_are_made_private_and_what_is_in_them_stays() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::find(Some(root.path())).unwrap();
        paths.prepare().unwrap();
        let name: AgentName = "ada".parse().unwrap();
        fs::create_dir_all(paths.agent_run(&name)).unwrap();
        let (dirs, _) = prepare(&paths, &name, Runtime::Process).unwrap();
        let notes = dirs.state.join("notes.md");
        fs::write(&notes, "kept").unwrap();
        fs::set_permissions(&dirs.claude, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(prepare(&paths, &name, Runtime::Process).unwrap().0, dirs);
        for dir in [&dirs.state, &dirs.harness, &dirs.claude, &dirs.home] {
            let mode = fs::metadata(dir).unwrap().mode() & 0o777;
            assert_eq!(mode, 0o700, "{}", dir.display());
        }
        assert_eq!(fs::read_to_string(notes).unwrap(), "kept");
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::find(Some(root.path())).unwrap();
        paths.prepare().unwrap();
        let name: AgentName = "ada".parse().unwrap();
        fs::create_dir_all(paths.agent_run(&name)).unwrap();
        let (dirs, _) = prepare(&paths, &name, Runtime::Process).unwrap();
        fs::remove_dir(&dirs.state).unwrap();
        std::os::unix::fs::symlink("/etc", &dirs.state).unwrap();
        let error = prepare(&paths, &name, Runtime::Process)
            .unwrap_err()
            .to_string();
        assert!(error.contains("ada/state is no directory"), "{error}");
    }

    #[test]
    fn c12_an_agent_of_root_keeps_its_user_and_no_other_has_it() {
        if !geteuid().is_root() {
            eprintln!("SKIPPED: only root gives agents users of their own");
            return;
        }
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::find(Some(root.path())).unwrap();
        paths.prepare().unwrap();
        let prepare = |name: &str, runtime| {
            let name: AgentName = name.parse().unwrap();
            fs::create_dir_all(paths.agent_run(&name)).unwrap();
            prepare(&paths, &name, runtime).unwrap()
        };
        let (ada, owner) = prepare("ada", Runtime::Bwrap);
        assert_eq!(owner, Owner::Own { uid: FIRST_UID });
        let (_, other) = prepare("bob", Runtime::Bwrap);
        assert_eq!(other, Owner::Own { uid: FIRST_UID + 1 });
        let outside = root.path().join("outside");
        fs::write(&outside, "the host's").unwrap();
        fs::create_dir(ada.state.join("deep")).unwrap();
        fs::write(ada.state.join("deep/file"), "").unwrap();
        std::os::unix::fs::symlink(&outside, ada.state.join("deep/link")).unwrap();
        let uids = || {
            let of = |path: &Path| fs::symlink_metadata(path).unwrap().uid();
            [
                of(&ada.state.join("deep/file")),
                of(&ada.state.join("deep/link")),
                of(&ada.claude),
                of(&outside),
            ]
        };
        // As a plain process it is root, and what it wrote belongs to it again afterwards.
        assert_eq!(prepare("ada", Runtime::Process).1, Owner::Daemon);
        assert_eq!(uids(), [0, 0, 0, 0]);
        assert_eq!(prepare("ada", Runtime::Bwrap).1, owner);
        assert_eq!(uids(), [FIRST_UID, FIRST_UID, FIRST_UID, 0]);
        let run = fs::metadata(&ada.run).unwrap();
        assert_eq!(
            (run.uid(), run.gid(), run.mode() & 0o777),
            (0, FIRST_UID, 0o750)
        );
    }
}
