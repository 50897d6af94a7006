//! What belongs to a program of the host: the file itself, the links that lead to it, what its first
//! line names as its interpreter, and the package that it is part of.

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

/// How far a first line is read.
const MAX_FIRST_LINE: u64 = 512;
/// How many links in a row are followed, and how many interpreters.
const MAX_STEPS: usize = 16;

/// What has to be bound, and what has to be linked, so that programs run elsewhere as they do here.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Belongings {
    /// Files and directories, where they lie.
    pub(crate) bound: BTreeSet<PathBuf>,
    /// Links: where they lie, and where they lead.
    pub(crate) links: BTreeSet<(PathBuf, PathBuf)>,
}

impl Belongings {
    /// What belongs to these programs. One that is not there is left out: whoever runs it says so.
    pub(crate) fn of<'p>(programs: impl IntoIterator<Item = &'p Path>, path: &OsStr) -> Self {
        let mut belongings = Self::default();
        for program in programs {
            belongings.add(program, path, MAX_STEPS);
        }
        belongings
    }

    fn add(&mut self, program: &Path, path: &OsStr, steps: usize) {
        let Some(file) = self.follow(program) else {
            return;
        };
        let new = match package(&file) {
            Some(package) => self.bound.insert(package),
            None => self.bound.insert(file.clone()),
        };
        if let Some(interpreter) = interpreter(&file, path).filter(|_| new && steps > 0) {
            self.add(&interpreter, path, steps - 1);
        }
    }

    /// Notes the links from a path to the file that it means.
    fn follow(&mut self, program: &Path) -> Option<PathBuf> {
        let mut path = program.to_path_buf();
        for _ in 0..MAX_STEPS {
            let Ok(to) = fs::read_link(&path) else {
                break;
            };
            let next = real_parent(&path.parent()?.join(&to)).ok()?;
            self.links.insert((path, to));
            path = next;
        }
        let real = fs::canonicalize(&path).ok().filter(|file| file.is_file())?;
        if real != path {
            // A link above it: the agent gets to the file by the path that it was told.
            self.links.insert((path, real.clone()));
        }
        Some(real)
    }
}

/// The same path with every link above its end resolved.
pub(crate) fn real_parent(path: &Path) -> io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(fs::canonicalize(parent)?.join(name)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The directory of Node packages that a file lies in, the outermost one: what is in it refers to
/// each other by relative paths.
fn package(file: &Path) -> Option<PathBuf> {
    let mut above: Vec<&Path> = file.ancestors().collect();
    above.reverse();
    let found = above
        .into_iter()
        .find(|dir| dir.file_name() == Some(OsStr::new("node_modules")));
    // A program of its own needs nothing beside it.
    found
        .filter(|_| first_line(file).starts_with(b"#!"))
        .map(Path::to_path_buf)
}

/// What the first line of a script names: `#!/bin/sh`, `#!/usr/bin/env node`.
fn interpreter(file: &Path, path: &OsStr) -> Option<PathBuf> {
    let line = first_line(file);
    let words = line.strip_prefix(b"#!")?;
    let mut words = words
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty())
        .map(OsStr::from_bytes);
    let program = PathBuf::from(words.next()?);
    if program.file_name() != Some(OsStr::new("env")) {
        return Some(program);
    }
    let name = words.find(|word| !word.as_bytes().starts_with(b"-"))?;
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

fn first_line(file: &Path) -> Vec<u8> {
    let mut line = Vec::new();
    if let Ok(file) = File::open(file) {
        // What cannot be read is no script.
        let read = BufReader::new(file.take(MAX_FIRST_LINE)).read_until(b'\n', &mut line);
        if read.is_err() {
            line.clear();
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn file(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn a_program_brings_its_links_its_interpreter_and_its_package() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let at = |path: &str| root.join(path);
        file(&at("node/bin/node"), "\u{7f}ELF");
        let script = at("node/lib/node_modules/@x/claude/cli.js");
        file(&script, "#!/usr/bin/env -S node --flag\n");
        symlink(
            "../lib/node_modules/@x/claude/cli.js",
            at("node/bin/claude"),
        )
        .unwrap();
        file(&at("one/versions/2"), "\u{7f}ELF");
        file(&at("bin/plain"), "#!/bin/sh\n");
        symlink(at("one/versions/2"), at("bin/native")).unwrap();
        symlink("nowhere", at("bin/broken")).unwrap();
        let path = std::env::join_paths([at("node/bin")]).unwrap();
        let of = |program: &str| Belongings::of([at(program).as_path()], &path);
        let claude = of("node/bin/claude");
        assert_eq!(
            claude.bound,
            BTreeSet::from([at("node/lib/node_modules"), at("node/bin/node")])
        );
        assert_eq!(
            claude.links,
            BTreeSet::from([(
                at("node/bin/claude"),
                "../lib/node_modules/@x/claude/cli.js".into()
            )])
        );
        let native = of("bin/native");
        assert_eq!(native.bound, BTreeSet::from([at("one/versions/2")]));
        assert_eq!(
            native.links,
            BTreeSet::from([(at("bin/native"), at("one/versions/2"))])
        );
        assert!(of("bin/plain").bound.contains(&at("bin/plain")));
        assert_eq!(of("bin/missing"), Belongings::default());
        assert_eq!(of("bin/broken").bound, BTreeSet::new());
    }

    #[test]
    fn a_link_above_a_program_is_no_obstacle() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        file(&root.join("real/hive"), "\u{7f}ELF");
        symlink("real", root.join("link")).unwrap();
        let found = Belongings::of([root.join("link/hive").as_path()], OsStr::new(""));
        assert_eq!(found.bound, BTreeSet::from([root.join("real/hive")]));
        assert_eq!(
            found.links,
            BTreeSet::from([(root.join("link/hive"), root.join("real/hive"))])
        );
    }
}
