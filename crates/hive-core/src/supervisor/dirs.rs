//! The directories of an agent, private to the daemon's user.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::Path,
};

use anyhow::{Context, bail};
use hive_runtime::AgentDirs;
use hive_wire::AgentName;

use crate::paths::Paths;

/// Makes what is missing and refuses what is not as it should be.
pub(super) fn prepare(paths: &Paths, name: &AgentName) -> anyhow::Result<AgentDirs> {
    let dirs = paths.agent_dirs(name);
    make(&paths.agents())?;
    make(&paths.agent(name))?;
    for dir in [&dirs.state, &dirs.harness, &dirs.claude, &dirs.home] {
        make(dir)?;
    }
    Ok(dirs)
}

/// One directory that is there, real, ours, and closed to others.
fn make(dir: &Path) -> anyhow::Result<()> {
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
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c12_directories_are_made_private_and_what_is_in_them_stays() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::find(Some(root.path())).unwrap();
        paths.prepare().unwrap();
        let name: AgentName = "ada".parse().unwrap();
        let dirs = prepare(&paths, &name).unwrap();
        let notes = dirs.state.join("notes.md");
        fs::write(&notes, "kept").unwrap();
        fs::set_permissions(&dirs.claude, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(prepare(&paths, &name).unwrap(), dirs);
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
        let dirs = prepare(&paths, &name).unwrap();
        fs::remove_dir(&dirs.state).unwrap();
        std::os::unix::fs::symlink("/etc", &dirs.state).unwrap();
        let error = prepare(&paths, &name).unwrap_err().to_string();
        assert!(error.contains("ada/state is no directory"), "{error}");
    }
}
