//! A whole configuration as files in memory: small, plain, and without surprises in its paths.

use std::{
    collections::{BTreeMap, btree_map},
    fs::{self, DirBuilder, OpenOptions},
    io::Write,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::Path,
};

use anyhow::Context;
use sha2::{Digest, Sha256};

/// The most files of one configuration.
pub(crate) const MAX_FILES: usize = 500;
/// The most bytes of one file.
pub(crate) const MAX_FILE: usize = 4 * 1024 * 1024;
/// The most bytes of all files together.
pub(crate) const MAX_BYTES: usize = 16 * 1024 * 1024;
/// The deepest path, in names.
pub(crate) const MAX_DEPTH: usize = 8;
/// The longest path, in bytes.
const MAX_PATH: usize = 255;

/// Files by their path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tree {
    files: BTreeMap<String, File>,
    bytes: usize,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct File {
    /// Whether it may be run.
    pub(crate) mode: Mode,
    /// What is in it.
    pub(crate) content: Vec<u8>,
}

/// Whether a file may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// It may not.
    Plain,
    /// It may.
    Executable,
}

impl Mode {
    /// As git writes it.
    pub(crate) fn octal(self) -> &'static str {
        match self {
            Self::Plain => "100644",
            Self::Executable => "100755",
        }
    }
}

impl Tree {
    /// A configuration of one file.
    pub(crate) fn of(path: &str, content: impl Into<Vec<u8>>) -> Self {
        let mut tree = Self::default();
        let file = File {
            mode: Mode::Plain,
            content: content.into(),
        };
        tree.add(path.to_owned(), file)
            .expect("a file of the host's own keeps the rules");
        tree
    }

    /// Adds a file.
    ///
    /// # Errors
    /// With the rule that it breaks.
    pub(crate) fn add(&mut self, path: String, file: File) -> Result<(), String> {
        check_path(&path)?;
        check_size(&path, file.content.len() as u64)?;
        if self.clashes(&path) {
            return Err(format!("`{path}` is a file and a directory at once"));
        }
        self.bytes += file.content.len();
        if self.bytes > MAX_BYTES {
            return Err(format!(
                "its files have more than {} MiB together",
                MAX_BYTES >> 20
            ));
        }
        if self.files.len() >= MAX_FILES {
            return Err(format!("it has more than {MAX_FILES} files"));
        }
        match self.files.insert(path, file) {
            None => Ok(()),
            Some(_) => Err("it has two files of one name".to_owned()),
        }
    }

    /// Whether a file is where this path needs a directory, or the other way round.
    fn clashes(&self, path: &str) -> bool {
        let beneath = format!("{path}/");
        let mut after = self.files.range(beneath.clone()..);
        let is_dir = after
            .next()
            .is_some_and(|(next, _)| next.starts_with(&beneath));
        let mut dirs = path.match_indices('/').map(|(at, _)| &path[..at]);
        is_dir || dirs.any(|dir| self.files.contains_key(dir))
    }

    /// One file.
    pub(crate) fn get(&self, path: &str) -> Option<&File> {
        self.files.get(path)
    }

    /// All files, by path.
    pub(crate) fn iter(&self) -> btree_map::Iter<'_, String, File> {
        self.files.iter()
    }

    /// Whether something lies at this path or beneath it.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let beneath = format!("{path}/");
        let mut files = self.files.keys();
        files.any(|file| file == path || file.starts_with(&beneath))
    }

    /// The hash of everything in it, with whatever else a decision is about.
    pub(crate) fn hash(&self, about: &[&str]) -> String {
        let mut hasher = Sha256::new();
        let mut part = |bytes: &[u8]| {
            // Lengths keep two different lists of parts from looking the same.
            hasher.update((bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        part(b"hyperhive approval 1");
        part(&(about.len() as u64).to_be_bytes());
        about.iter().for_each(|word| part(word.as_bytes()));
        for (path, file) in &self.files {
            part(path.as_bytes());
            part(file.mode.octal().as_bytes());
            part(&file.content);
        }
        hex(&hasher.finalize())
    }

    /// Whether these files and no others lie in a directory of the host's own.
    pub(crate) fn is_at(&self, dir: &Path) -> bool {
        let mut count = 0;
        let mut dirs = vec![dir.to_path_buf()];
        while let Some(dir) = dirs.pop() {
            let Ok(entries) = fs::read_dir(dir) else {
                return false;
            };
            for entry in entries {
                match entry.and_then(|entry| Ok((entry.file_type()?, entry.path()))) {
                    Ok((kind, path)) if kind.is_dir() => dirs.push(path),
                    Ok(_) => count += 1,
                    Err(_) => return false,
                }
            }
        }
        count == self.files.len()
            && self.files.iter().all(|(path, file)| {
                let path = dir.join(path);
                let is_run = fs::metadata(&path).is_ok_and(|found| found.mode() & 0o100 != 0);
                is_run == (file.mode == Mode::Executable)
                    && fs::read(&path).is_ok_and(|content| content == file.content)
            })
    }

    /// Writes the files into a directory that is not there yet.
    ///
    /// # Errors
    /// When one cannot be written.
    pub(crate) fn write_to(&self, dir: &Path) -> anyhow::Result<()> {
        let make = |dir: &Path| {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .with_context(|| format!("cannot make {}", dir.display()))
        };
        make(dir)?;
        for (path, file) in &self.files {
            let to = dir.join(path);
            if let Some(parent) = to.parent() {
                make(parent)?;
            }
            let mode = match file.mode {
                Mode::Plain => 0o600,
                Mode::Executable => 0o700,
            };
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(mode);
            let written = options
                .open(&to)
                .and_then(|mut out| out.write_all(&file.content).and_then(|()| out.sync_all()));
            written.with_context(|| format!("cannot write {}", to.display()))?;
        }
        Ok(())
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Refuses a file that is too large, before it is read.
pub(crate) fn check_size(path: &str, size: u64) -> Result<(), String> {
    if size > MAX_FILE as u64 {
        return Err(format!(
            "`{path}` has {size} bytes, and {} MiB is the most for a file",
            MAX_FILE >> 20
        ));
    }
    Ok(())
}

/// Refuses a path that is not plainly a file beneath the repository.
pub(crate) fn check_path(path: &str) -> Result<(), String> {
    let shown = path.escape_default();
    if path.len() > MAX_PATH {
        return Err(format!("a path in it has more than {MAX_PATH} bytes"));
    }
    let names: Vec<&str> = path.split('/').collect();
    if names.len() > MAX_DEPTH {
        return Err(format!("`{shown}` is deeper than {MAX_DEPTH} names"));
    }
    names.into_iter().try_for_each(check_name)
}

/// Refuses a name that means something else than itself anywhere.
pub(crate) fn check_name(name: &str) -> Result<(), String> {
    let shown = name.escape_default();
    let legal = |c: char| c.is_ascii_alphanumeric() || "._-+@".contains(c);
    if name.is_empty() || !name.chars().all(legal) {
        return Err(format!(
            "`{shown}` is no name for a file here: use letters, digits and `._-+@`"
        ));
    }
    let is_special = name == "." || name == ".." || name.starts_with('-');
    // A file system that knows no case would take `.GIT` for git's own directory.
    if is_special || name.eq_ignore_ascii_case(".git") || name.eq_ignore_ascii_case(".gitmodules") {
        return Err(format!("a file may not be named `{shown}`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c6_paths_are_plain() {
        for good in [
            "agent.toml",
            "a/b/c.svg",
            ".gitignore",
            "x-1_2+3@4",
            "1/2/3/4/5/6/7/8",
        ] {
            assert_eq!(check_path(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "/etc/passwd",
            "a//b",
            "a/",
            "..",
            "a/../b",
            ".",
            ".git",
            ".GIT/config",
            "a/.Git/hooks/x",
            ".gitmodules",
            "-rf",
            "a b",
            "a\nb",
            "a\u{1b}[2J",
            "ä",
            "a\\b",
            "1/2/3/4/5/6/7/8/9",
        ] {
            assert!(check_path(bad).is_err(), "{bad:?}");
        }
        assert!(check_path(&"x".repeat(256)).is_err());
    }

    #[test]
    fn c5_every_byte_counts_in_the_hash() {
        let tree = |path: &str, content: &str| Tree::of(path, content);
        let base = tree("a", "b").hash(&["apply", "ada"]);
        assert_eq!(base.len(), 64);
        assert_eq!(base, tree("a", "b").hash(&["apply", "ada"]));
        let mut executable = tree("a", "b");
        if let Some(file) = executable.files.get_mut("a") {
            file.mode = Mode::Executable;
        }
        for other in [
            tree("a", "c").hash(&["apply", "ada"]),
            tree("b", "b").hash(&["apply", "ada"]),
            tree("a", "b").hash(&["spawn", "ada"]),
            tree("a", "b").hash(&["applyada"]),
            tree("a", "b").hash(&["apply", "ada", ""]),
            Tree::default().hash(&["apply", "ada"]),
            executable.hash(&["apply", "ada"]),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn c6_no_path_is_a_file_and_a_directory_at_once() {
        let file = || File {
            mode: Mode::Plain,
            content: Vec::new(),
        };
        for (one, other, clash) in [
            ("a", "a/b", true),
            ("a/b", "a", true),
            ("a/b/c/d", "a/b", true),
            ("a/b", "a/b/c/d", true),
            ("a", "a-b/c", false),
            ("a-b/c", "a", false),
            ("a/b", "a/c", false),
            ("b/a", "a", false),
        ] {
            let mut tree = Tree::default();
            tree.add(one.into(), file()).unwrap();
            let added = tree.add(other.into(), file());
            assert_eq!(added.is_err(), clash, "{one} {other}: {added:?}");
        }
    }

    #[test]
    fn c6_a_tree_is_bounded() {
        let file = |bytes: usize| File {
            mode: Mode::Plain,
            content: vec![0; bytes],
        };
        let mut tree = Tree::default();
        assert!(tree.add("big".into(), file(MAX_FILE + 1)).is_err());
        let added = (0..5).try_for_each(|n| tree.add(format!("f{n}"), file(MAX_FILE)));
        assert!(added.unwrap_err().contains("16 MiB"));
        let mut tree = Tree::default();
        let added = (0..=MAX_FILES).try_for_each(|n| tree.add(format!("f{n}"), file(0)));
        assert!(added.unwrap_err().contains("500 files"));
    }
}
