//! The patterns inside a rule's brackets.

use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::{bash::Simple, paths::Place};

/// Text with `*` for anything.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else {
        return false;
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A pattern for shell commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// This and nothing else.
    Exact(String),
    /// These words, and any after them.
    Prefix(String),
    /// Text with `*` for anything.
    Glob(String),
}

impl Command {
    pub(super) fn parse(text: &str) -> Self {
        let text = text.trim();
        let prefix = text.strip_suffix(":*").or_else(|| text.strip_suffix(" *"));
        if let Some(prefix) = prefix.filter(|prefix| !prefix.contains('*')) {
            return Self::Prefix(prefix.trim_end().to_owned());
        }
        if text.contains('*') {
            Self::Glob(text.to_owned())
        } else {
            Self::Exact(text.to_owned())
        }
    }

    fn matches_text(&self, text: &str) -> bool {
        match self {
            Self::Exact(exact) => text == exact,
            Self::Prefix(prefix) => text
                .strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
            Self::Glob(pattern) => glob(pattern, text),
        }
    }

    /// For an allow rule: every word is known, and the words are those of the rule.
    pub(super) fn permits(&self, command: &Simple) -> bool {
        command.text().is_some_and(|text| self.matches_text(&text))
    }

    /// For a deny or ask rule: it may be what the rule means, also under its full path.
    pub(super) fn may_mean(&self, command: &Simple) -> bool {
        let text = command.text_with_gaps();
        if self.matches_text(&text) {
            return true;
        }
        let Some((base, name)) = command.base_name().zip(command.name()) else {
            return false;
        };
        base != name && self.matches_text(&format!("{base}{}", &text[name.len()..]))
    }
}

/// A pattern for paths, as in `.gitignore`.
#[derive(Debug, Clone)]
pub(super) struct Paths {
    root: PathBuf,
    matcher: Gitignore,
}

impl Paths {
    /// `base` is where `/x` starts; `cwd` is where `x` and `./x` start.
    pub(super) fn parse(text: &str, base: &Path, cwd: &Path, home: &Path) -> Result<Self, String> {
        let text = text.trim();
        let (root, pattern) = if let Some(absolute) = text.strip_prefix("//") {
            (Path::new("/"), format!("/{absolute}"))
        } else if let Some(rest) = text.strip_prefix("~/") {
            (home, format!("/{rest}"))
        } else if text == "~" {
            (home, "/**".to_owned())
        } else if text.starts_with('/') {
            (base, text.to_owned())
        } else if let Some(rest) = text.strip_prefix("./") {
            (cwd, format!("/{rest}"))
        } else {
            (cwd, text.to_owned())
        };
        if text.is_empty() || text.starts_with('!') || text.starts_with('#') {
            return Err(format!("{text:?} is not a path pattern"));
        }
        let mut builder = GitignoreBuilder::new(root);
        builder
            .add_line(None, &pattern)
            .map_err(|error| format!("{text:?} is not a path pattern: {error}"))?;
        let matcher = builder
            .build()
            .map_err(|error| format!("{text:?} is not a path pattern: {error}"))?;
        Ok(Self {
            root: root.to_owned(),
            matcher,
        })
    }

    fn matches(&self, path: &Path) -> bool {
        path.starts_with(&self.root)
            && path != self.root
            && self
                .matcher
                .matched_path_or_any_parents(path, false)
                .is_ignore()
    }

    /// For an allow rule: both what was written and where it leads.
    pub(super) fn permits(&self, place: &Place) -> bool {
        self.matches(&place.lexical) && self.matches(&place.real)
    }

    /// For a deny or ask rule: either.
    pub(super) fn may_mean(&self, place: &Place) -> bool {
        self.matches(&place.lexical) || self.matches(&place.real)
    }
}

/// A pattern for hosts.
pub(super) fn host(pattern: &str, host: &str) -> bool {
    let host = host.trim_end_matches('.').to_lowercase();
    let pattern = pattern.to_lowercase();
    if pattern == "*" {
        return true;
    }
    if let Some(suffix) = pattern.strip_prefix("*.") {
        return host.len() > suffix.len() + 1
            && host.ends_with(suffix)
            && host.as_bytes()[host.len() - suffix.len() - 1] == b'.';
    }
    // Elsewhere a star stays within one label.
    let (left, right): (Vec<_>, Vec<_>) = (pattern.split('.').collect(), host.split('.').collect());
    left.len() == right.len() && left.iter().zip(&right).all(|(p, label)| glob(p, label))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn simple(text: &str) -> Simple {
        Simple {
            argv: text.split(' ').map(|word| Some(word.to_owned())).collect(),
            ..Simple::default()
        }
    }

    #[test]
    fn commands() {
        for (pattern, command, expected) in [
            ("git *", "git status", true),
            ("git *", "git", true),
            ("git:*", "git status", true),
            ("git *", "git-evil x", false),
            ("git *", "/tmp/git status", false),
            ("npm run *", "npm run build", true),
            ("npm run *", "npm running", false),
            ("ls*", "lsof", true),
            ("* --version", "node --version", true),
            ("git * main", "git push origin main", true),
            ("git * main", "git push origin mainly", false),
            ("git status", "git status", true),
            ("git status", "git status -s", false),
        ] {
            let permits = Command::parse(pattern).permits(&simple(command));
            assert_eq!(permits, expected, "{pattern} / {command}");
        }
        let rm = Command::parse("rm *");
        for text in ["rm -rf x", "/bin/rm x", "../../bin/rm x"] {
            assert!(rm.may_mean(&simple(text)), "{text}");
        }
    }

    #[test]
    fn hosts() {
        for (pattern, name, expected) in [
            ("example.com", "example.com", true),
            ("example.com", "EXAMPLE.com.", true),
            ("example.com", "evil-example.com", false),
            ("example.com", "example.com.evil.test", false),
            ("*.example.com", "a.example.com", true),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "evilexample.com", false),
            ("api-*.example.com", "api-1.example.com", true),
            ("api-*.example.com", "api-1.x.example.com", false),
            ("*", "anything", true),
        ] {
            assert_eq!(host(pattern, name), expected, "{pattern} / {name}");
        }
    }

    #[test]
    fn paths() {
        let (base, cwd, home) = (Path::new("/base"), Path::new("/proj"), Path::new("/home/a"));
        let place = |text: &str| Place {
            lexical: text.into(),
            real: text.into(),
        };
        for (pattern, path, expected) in [
            ("./src/**", "/proj/src/a.rs", true),
            ("./src/**", "/proj/src/deep/a.rs", true),
            ("./src/**", "/proj/other/src/a.rs", false),
            ("./src/**", "/elsewhere/src/a.rs", false),
            (".env", "/proj/.env", true),
            (".env", "/proj/deep/.env", true),
            ("//etc/**", "/etc/passwd", true),
            ("//etc/**", "/proj/etc/passwd", false),
            ("~/.ssh/**", "/home/a/.ssh/id", true),
            ("~", "/home/a/x", true),
            ("/x/*", "/base/x/y", true),
            ("/x/*", "/proj/x/y", false),
            ("*.pem", "/proj/a/b.pem", true),
        ] {
            let paths = Paths::parse(pattern, base, cwd, home).unwrap();
            assert_eq!(paths.permits(&place(path)), expected, "{pattern} / {path}");
        }
        let swapped = Place {
            lexical: "/proj/src/a".into(),
            real: "/etc/passwd".into(),
        };
        let src = Paths::parse("./src/**", base, cwd, home).unwrap();
        assert!(!src.permits(&swapped) && src.may_mean(&swapped));
        for bad in ["", "!x", "# x"] {
            assert!(Paths::parse(bad, base, cwd, home).is_err(), "{bad}");
        }
    }
}
