//! Names that a write never passes silently: what they hold decides which code runs later.

use globset::Glob;

/// Directories of that kind.
const PROTECTED_DIRS: &[&str] = &[
    ".git",
    ".vscode",
    ".idea",
    ".husky",
    ".cargo",
    ".devcontainer",
    ".yarn",
    ".mvn",
    ".claude",
];
/// Files of that kind.
const PROTECTED_FILES: &[&str] = &[
    ".gitconfig",
    ".gitmodules",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_aliases",
    ".bash_logout",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".zlogout",
    ".profile",
    ".envrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    ".pnpmfile.cjs",
    "bunfig.toml",
    ".bunfig.toml",
    ".bazelrc",
    ".bazelversion",
    ".bazeliskrc",
    ".pre-commit-config.yaml",
    "lefthook.yml",
    "lefthook.yaml",
    ".lefthook.yml",
    ".lefthook.yaml",
    "gradle-wrapper.properties",
    "maven-wrapper.properties",
    ".devcontainer.json",
    ".ripgreprc",
    "pyrightconfig.json",
    ".mcp.json",
    ".claude.json",
];

/// Whether a file or directory of this name is of that kind.
pub(super) fn is_protected(name: &str) -> bool {
    let name = name.to_lowercase();
    PROTECTED_DIRS.contains(&name.as_str()) || PROTECTED_FILES.contains(&name.as_str())
}

/// Whether a pattern of the shell may stand for such a name. What it does not understand may.
pub(super) fn may_be_protected(pattern: &str) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return is_protected(pattern);
    }
    let Ok(glob) = Glob::new(&pattern.to_lowercase()) else {
        return true;
    };
    let matcher = glob.compile_matcher();
    let names = PROTECTED_DIRS.iter().chain(PROTECTED_FILES);
    // A star stands for no name that begins with a dot.
    let mut seen = names.filter(|name| !name.starts_with('.') || pattern.starts_with('.'));
    seen.any(|name| matcher.is_match(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_what_may_become_one() {
        for (name, is, may_be) in [
            (".git", true, true),
            (".GIT", true, true),
            ("lefthook.yml", true, true),
            ("main.rs", false, false),
            ("*.rs", false, false),
            ("*", false, true),
            (".*", false, true),
            (".g?t", false, true),
            ("?git", false, false),
            ("[", false, true),
        ] {
            assert_eq!(is_protected(name), is, "{name}");
            assert_eq!(may_be_protected(name), may_be, "{name}");
        }
    }
}
