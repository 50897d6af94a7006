//! What decides which code `git` runs later: remembered before a command, put back after it.
//!
//! A cage keeps a command from much, but a directory that does not exist yet cannot be made
//! read-only, and Landlock knows no exceptions. Hooks that run while the command does run in its
//! cage; those that it leaves behind would not.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::{self, Permissions},
    os::unix::{
        ffi::OsStrExt as _,
        fs::{PermissionsExt as _, symlink},
    },
    path::{Path, PathBuf},
};

use rustix::fs::FileType;

/// More than this is nobody's hook.
const MAX_BYTES: u64 = 1024 * 1024;
const MAX_FILES: usize = 256;

/// The files as they were.
#[derive(Debug, PartialEq, Eq)]
pub struct Hooks {
    roots: Vec<PathBuf>,
    files: BTreeMap<PathBuf, File>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    content: Vec<u8>,
    mode: u32,
}

impl Hooks {
    /// Looks at the repositories of a workspace.
    pub fn remember(roots: &[PathBuf]) -> Self {
        Self {
            roots: roots.to_vec(),
            files: files_of(roots),
        }
    }

    /// Puts back what was changed; says what that was.
    pub fn restore(&self) -> Vec<PathBuf> {
        let now = files_of(&self.roots);
        let added = now.keys().filter(|path| !self.files.contains_key(*path));
        let changed = self
            .files
            .iter()
            .filter(|(path, file)| now.get(*path) != Some(file));
        let mut touched = Vec::new();
        for path in added {
            touched.push(path.clone());
            // Whatever cannot be undone is named all the same.
            fs::remove_file(path).ok();
        }
        for (path, file) in changed {
            touched.push(path.clone());
            put_back(path, file).ok();
        }
        touched
    }
}

fn put_back(path: &Path, file: &File) -> std::io::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_dir()) {
        fs::remove_file(path)?;
    }
    if let Some(dir) = path.parent().filter(|dir| !leads_elsewhere(dir)) {
        fs::create_dir_all(dir)?;
        if FileType::from_raw_mode(file.mode) == FileType::Symlink {
            return symlink(OsStr::from_bytes(&file.content), path);
        }
        fs::write(path, &file.content)?;
        fs::set_permissions(path, Permissions::from_mode(file.mode & 0o7777))?;
    }
    Ok(())
}

/// Whether a directory of a repository has become a link.
fn leads_elsewhere(dir: &Path) -> bool {
    dir.ancestors()
        .take(2)
        .any(|dir| fs::symlink_metadata(dir).is_ok_and(|meta| meta.is_symlink()))
}

fn files_of(roots: &[PathBuf]) -> BTreeMap<PathBuf, File> {
    let mut files = BTreeMap::new();
    for root in roots {
        let git = root.join(".git");
        if leads_elsewhere(&git.join("hooks")) {
            continue;
        }
        let hooks = fs::read_dir(git.join("hooks")).into_iter().flatten();
        let hooks = hooks.take(MAX_FILES).flatten().map(|entry| entry.path());
        for path in hooks.chain([git.join("config")]) {
            files.extend(read(&path).map(|file| (path, file)));
        }
    }
    files
}

fn read(path: &Path) -> Option<File> {
    let meta = fs::symlink_metadata(path).ok()?;
    if meta.is_dir() || meta.len() > MAX_BYTES {
        return None;
    }
    // A link is known by where it leads.
    let content = match meta.is_symlink() {
        true => fs::read_link(path).ok()?.as_os_str().as_bytes().to_vec(),
        false if meta.is_file() => fs::read(path).ok()?,
        false => Vec::new(),
    };
    Some(File {
        content,
        mode: meta.permissions().mode(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_changed_is_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let git = dir.path().join(".git");
        fs::create_dir_all(git.join("hooks")).unwrap();
        fs::write(git.join("config"), "[core]\n").unwrap();
        fs::write(git.join("hooks/pre-push"), "good").unwrap();
        fs::write(git.join("hooks/update"), "good").unwrap();
        let hooks = Hooks::remember(&[dir.path().to_owned()]);
        assert_eq!(hooks.restore(), [""; 0].map(PathBuf::from));

        fs::write(git.join("config"), "[core]\nfsmonitor = evil\n").unwrap();
        fs::write(git.join("hooks/pre-commit"), "evil").unwrap();
        fs::remove_file(git.join("hooks/update")).unwrap();
        symlink("/bin/sh", git.join("hooks/post-merge")).unwrap();
        let mode = Permissions::from_mode(0o755);
        fs::set_permissions(git.join("hooks/pre-push"), mode).unwrap();
        let mut touched = hooks.restore();
        touched.sort();
        let names = [
            "config",
            "hooks/post-merge",
            "hooks/pre-commit",
            "hooks/pre-push",
            "hooks/update",
        ];
        assert_eq!(touched, names.map(|name| git.join(name)));
        assert_eq!(Hooks::remember(&[dir.path().to_owned()]), hooks);
    }

    #[test]
    fn a_repository_that_became_a_link_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let (git, other) = (dir.path().join(".git"), dir.path().join("other"));
        fs::create_dir_all(git.join("hooks")).unwrap();
        fs::write(git.join("hooks/pre-push"), "good").unwrap();
        let hooks = Hooks::remember(&[dir.path().to_owned()]);
        fs::rename(&git, dir.path().join("away")).unwrap();
        fs::create_dir_all(other.join("hooks")).unwrap();
        symlink(&other, &git).unwrap();
        assert_eq!(hooks.restore(), [git.join("hooks/pre-push")]);
        assert_eq!(fs::read_dir(other.join("hooks")).unwrap().count(), 0);
    }
}
