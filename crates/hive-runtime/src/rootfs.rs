//! A root file system of nothing but mount points, links and the few files that are made for an
//! agent. It is made anew for every run, belongs to the host, and is mounted read-only.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use crate::plan::{Entry, MountPlan};

/// Directories that every container has.
const ALWAYS: [&str; 4] = ["dev", "proc", "sys", "var"];

/// Makes the root of this plan in `dir/rootfs`, in place of whatever is there; where it is. What
/// lies below something that is mounted is left to whoever mounts it.
pub(crate) fn make(plan: &MountPlan, dir: &Path) -> io::Result<PathBuf> {
    let root = dir.join("rootfs");
    remove(dir)?;
    make_dir(&root)?;
    for name in ALWAYS {
        make_dir(&root.join(name))?;
    }
    for (number, entry) in plan.entries.iter().enumerate() {
        let target = entry.target();
        let above = &plan.entries[..number];
        if above.iter().any(|one| covers(one, target)) {
            continue;
        }
        let at = below(&root, target);
        make_dir(at.parent().unwrap_or(&root))?;
        match entry {
            Entry::Bind { source, .. } => {
                if fs::metadata(source)?.is_dir() {
                    make_dir(&at)?;
                } else {
                    fs::write(&at, "")?;
                }
            }
            Entry::Link { to, .. } => symlink(to, &at)?,
            Entry::File { text, .. } => {
                fs::write(&at, text)?;
                fs::set_permissions(&at, fs::Permissions::from_mode(0o644))?;
            }
            // Some give what is mounted here the mode of the directory, whatever they were told.
            Entry::Tmpfs { .. } | Entry::Dir { .. } => {
                make_dir(&at)?;
                fs::set_permissions(&at, fs::Permissions::from_mode(0o1777))?;
            }
        }
    }
    Ok(root)
}

/// Removes it. Nothing is mounted on it outside of namespaces that are gone.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir.join("rootfs")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn covers(entry: &Entry, target: &Path) -> bool {
    match entry {
        Entry::Bind { .. } | Entry::Tmpfs { .. } => target.starts_with(entry.target()),
        Entry::Link { .. } | Entry::File { .. } | Entry::Dir { .. } => false,
    }
}

fn below(root: &Path, target: &Path) -> PathBuf {
    root.join(target.strip_prefix("/").unwrap_or(target))
}

/// Whatever our mask is: the agent has to get through.
fn make_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    if let Some(above) = dir.parent() {
        make_dir(above)?;
    }
    DirBuilder::new().mode(0o755).create(dir)?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::plan::tests::{agent, system};

    #[test]
    fn it_holds_mount_points_links_and_files_and_is_made_anew() {
        let dir = tempfile::tempdir().unwrap();
        let base = fs::canonicalize(dir.path()).unwrap();
        let spec = agent(&base);
        let plan = MountPlan::new(&spec, &system(), OsStr::new("/usr/bin")).unwrap();
        for _ in 0..2 {
            let root = make(&plan, &base).unwrap();
            fs::write(root.join("stray"), "").unwrap();
            assert_eq!(
                fs::read_link(root.join("bin")).unwrap(),
                Path::new("usr/bin")
            );
            assert!(
                fs::read_to_string(root.join("etc/passwd"))
                    .unwrap()
                    .contains("agent:x:1000")
            );
            for empty in [
                "usr",
                "state",
                "harness",
                "home/agent",
                "run",
                "tmp",
                "proc",
            ] {
                let found = fs::read_dir(root.join(empty)).unwrap().count();
                assert_eq!(found, 0, "{empty}");
            }
            for (dir, mode) in [("state", 0o755), ("tmp", 0o1777)] {
                let found = fs::metadata(root.join(dir)).unwrap().permissions();
                assert_eq!(found.mode() & 0o7777, mode, "{dir}");
            }
        }
        let root = make(&plan, &base).unwrap();
        assert!(!root.join("stray").exists());
        remove(&base).unwrap();
        remove(&base).unwrap();
        assert!(!root.exists());
    }
}
