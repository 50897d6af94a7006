//! Where a path really leads.
//!
//! A path from the model is hostile. It is resolved once, with every symlink followed, and the place
//! it leads to must be permitted. Files are then opened at that place with symlinks forbidden, so
//! that swapping one in between is an error and not an escape.

use std::{
    ffi::OsStr,
    io,
    path::{Component, Path, PathBuf},
};

use crate::tool::ToolError;

/// The directories an agent works in.
#[derive(Debug, Clone)]
pub struct Workspace {
    cwd: PathBuf,
    roots: Vec<PathBuf>,
    readable: Vec<PathBuf>,
    home: PathBuf,
}

/// A path from the model and where it leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// As the model wrote it, made absolute, without `.` and `..`.
    pub lexical: PathBuf,
    /// With every symlink followed; the last parts may not exist yet.
    pub real: PathBuf,
}

/// More symlinks than this on one path are a loop.
const MAX_LINKS: usize = 40;

impl Workspace {
    /// `cwd` and `extra` are followed to their real places.
    pub fn new(cwd: &Path, extra: &[PathBuf], home: &Path) -> io::Result<Self> {
        let cwd = cwd.canonicalize()?;
        let mut roots = vec![cwd.clone()];
        for dir in extra {
            roots.push(cwd.join(dir).canonicalize()?);
        }
        let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
        Ok(Self {
            cwd,
            roots,
            readable: Vec::new(),
            home,
        })
    }

    /// Adds a directory that may be looked at and not changed. It need not exist yet.
    pub fn allow_reading(&mut self, dir: &Path) {
        self.readable.extend(follow(dir));
    }

    /// Where relative paths start.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }

    /// The agent's home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The directories that belong to it.
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Finds out where `text` leads, seen from the working directory.
    pub fn place(&self, text: &str) -> Result<Place, ToolError> {
        self.place_from(&self.cwd, text)
    }

    /// Finds out where `text` leads, seen from `base`.
    pub fn place_from(&self, base: &Path, text: &str) -> Result<Place, ToolError> {
        if text.is_empty() {
            return Err(ToolError::tell("The path is empty."));
        }
        if text.contains('\0') {
            return Err(ToolError::tell("The path contains a NUL byte."));
        }
        let expanded = match text.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(&rest[1..]),
            _ => base.join(text),
        };
        let lexical = normal(&expanded);
        // Parents are taken after links are followed, as the kernel does.
        let real = follow(&expanded)
            .map_err(|error| ToolError::tell(format!("{}: {error}", expanded.display())))?;
        Ok(Place { lexical, real })
    }

    /// Whether a place may be looked at: inside, or in a directory that is for reading only.
    pub fn is_readable(&self, place: &Place) -> bool {
        let mut dirs = self.readable.iter();
        self.contains(place) || dirs.any(|dir| place.real.starts_with(dir))
    }

    /// Whether a place is inside. Where it leads is what counts: that is what gets opened.
    pub fn contains(&self, place: &Place) -> bool {
        self.roots.iter().any(|root| place.real.starts_with(root))
    }
}

/// Removes `.` and resolves `..` in the text alone.
pub fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    out
}

/// Follows every symlink of an absolute path, also where its end does not exist.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut out = PathBuf::from("/");
    let mut todo: Vec<std::ffi::OsString> = parts(path);
    let mut links = 0;
    while let Some(part) = todo.pop() {
        if part == OsStr::new("..") {
            out.pop();
            continue;
        }
        let next = out.join(&part);
        match std::fs::read_link(&next) {
            Ok(target) => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(io::Error::other("too many levels of symbolic links"));
                }
                if target.is_absolute() {
                    out = PathBuf::from("/");
                }
                todo.extend(parts(&target));
            }
            // Not a link, or not there: taken as it is.
            Err(_) => out = next,
        }
    }
    Ok(out)
}

/// The parts of a path, last first, `..` kept.
fn parts(path: &Path) -> Vec<std::ffi::OsString> {
    let mut parts: Vec<_> = path
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        })
        .collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::{fs, os::unix::fs::symlink};

    struct Scene {
        _dir: tempfile::TempDir,
        outside: PathBuf,
        workspace: Workspace,
    }

    fn scene() -> Scene {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let work = root.join("tree");
        let outside = root.join("outside");
        fs::create_dir_all(work.join("src")).unwrap();
        fs::create_dir_all(&outside).unwrap();
        fs::write(outside.join("secret"), "s").unwrap();
        fs::write(work.join("src/a.rs"), "a").unwrap();
        symlink(&outside, work.join("link-dir")).unwrap();
        symlink(outside.join("secret"), work.join("link-file")).unwrap();
        symlink("../outside/new", work.join("dangling")).unwrap();
        symlink("src", work.join("inner")).unwrap();
        symlink("loop-b", work.join("loop-a")).unwrap();
        symlink("loop-a", work.join("loop-b")).unwrap();
        symlink(&work, outside.join("back")).unwrap();
        let workspace = Workspace::new(&work, &[], &root.join("home")).unwrap();
        Scene {
            _dir: dir,
            outside,
            workspace,
        }
    }

    /// Every case of attacks on paths and symlinks: none of them is inside.
    #[test]
    fn escapes_are_seen() {
        let scene = scene();
        let out = scene.outside.display();
        for (path, inside) in [
            ("src/a.rs".to_owned(), true),
            ("./src/../src/a.rs".into(), true),
            ("inner/a.rs".into(), true),
            ("src/new/deep/file".into(), true),
            ("%2e%2e/outside/secret".into(), true), // a strange name, but a name in here
            ("..\\outside\\secret".into(), true),   // backslashes are no separators
            ("../outside/secret".into(), false),
            ("src/../../outside/secret".into(), false),
            (format!("{out}/secret"), false),
            ("link-dir/secret".into(), false),
            ("link-dir/new".into(), false),
            ("link-file".into(), false),
            ("dangling".into(), false),
            ("link-dir/../tree/src/a.rs".into(), true), // leads back inside, as the kernel sees it
            ("inner/../../outside/secret".into(), false),
            (format!("{out}/back/src/a.rs"), true), // leads inside, and there it is opened
            ("~/x".into(), false),
            ("/etc/passwd".into(), false),
            ("/proc/self/root/etc/passwd".into(), false),
            ("/proc/self/cwd/x".into(), false),
            ("/dev/fd/0".into(), false),
            ("..".into(), false),
            (".".into(), true),
            ("src/a.rs\u{200b}".into(), true), // another file, not a way out
        ] {
            let place = scene.workspace.place(&path).unwrap();
            assert_eq!(
                scene.workspace.contains(&place),
                inside,
                "{path} → {place:?}"
            );
        }
    }

    #[test]
    fn nonsense_is_an_error() {
        let scene = scene();
        for path in ["", "a\0b", "loop-a"] {
            assert!(scene.workspace.place(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_symlinked_working_directory_is_its_target() {
        let scene = scene();
        let workspace =
            Workspace::new(&scene.outside.join("back"), &[], Path::new("/root")).unwrap();
        assert!(workspace.contains(&workspace.place("src/a.rs").unwrap()));
    }

    proptest! {
        /// Canonical spellings of a path get one verdict.
        #[test]
        fn prop_spellings_of_a_path_agree(
            parts in proptest::collection::vec(
                proptest::sample::select(vec!["src", "link-dir", "inner", "x", "a.rs"]), 1..5),
            noise in proptest::collection::vec(0u8..3, 5),
        ) {
            let scene = scene();
            let plain = parts.join("/");
            let noisy: String = parts
                .iter()
                .zip(noise.iter().cycle())
                .map(|(part, noise)| match noise {
                    0 => format!("./{part}"),
                    1 => format!("/{part}"),
                    _ => (*part).to_owned(),
                })
                .collect::<Vec<_>>()
                .join("/");
            let noisy = noisy.trim_start_matches('/').to_owned();
            let absolute = format!("{}/{plain}", scene.workspace.cwd().display());
            let verdict = |text: &str| {
                let place = scene.workspace.place(text).unwrap();
                (scene.workspace.contains(&place), place.real)
            };
            prop_assert_eq!(verdict(&plain), verdict(&noisy));
            prop_assert_eq!(verdict(&plain), verdict(&absolute));
        }
    }
}
