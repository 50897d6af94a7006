//! Which engine runs an agent's turns: pure rules over what is on this machine.

use std::{
    ffi::OsStr,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// The native engine's binary.
const NATIVE: &str = "hive-engine";
/// Claude Code's binary.
const CLAUDE: &str = "claude";

/// Where engines are looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'p> {
    /// The directory of the hive's own binaries.
    pub(crate) beside: &'p Path,
    /// The search path.
    pub(crate) path: &'p OsStr,
}

/// An engine that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// What to run: a program and its first arguments, separated by spaces.
    pub(crate) command: String,
    /// Why this one.
    pub(crate) why: String,
}

/// The engine that `wanted` means here: `auto`, `claude`, `native` or a command.
///
/// # Errors
/// With what is missing and what to do about it.
pub(crate) fn choose(wanted: &str, places: Places<'_>) -> Result<Choice, String> {
    let wanted = wanted.trim();
    match wanted {
        "" | "auto" => claude(places).or_else(|no_claude| {
            native(places).map_err(|no_native| {
                format!(
                    "there is no engine: {no_claude}; {no_native}. Install Claude Code (`npm \
                     install -g @anthropic-ai/claude-code`) or name a command as engine.default \
                     in hive.toml"
                )
            })
        }),
        CLAUDE => claude(places),
        "native" => native(places),
        command => {
            let program = command.split_whitespace().next().unwrap_or_default();
            let found = if program.contains('/') {
                Some(PathBuf::from(program)).filter(|file| is_program(file))
            } else {
                on_path(program, places.path)
            };
            match found {
                Some(_) => Ok(Choice {
                    command: command.to_owned(),
                    why: "it was asked for".to_owned(),
                }),
                None => Err(format!("the engine `{program}` is no program here")),
            }
        }
    }
}

fn claude(places: Places<'_>) -> Result<Choice, String> {
    let found = on_path(CLAUDE, places.path).ok_or("`claude` is not on PATH")?;
    Ok(Choice {
        command: word(&found, CLAUDE),
        why: format!("{} is on PATH", found.display()),
    })
}

fn native(places: Places<'_>) -> Result<Choice, String> {
    let beside = places.beside.join(NATIVE);
    if !is_program(&beside) {
        return Err(format!("there is no {}", beside.display()));
    }
    Ok(Choice {
        command: word(&beside, NATIVE),
        why: format!("{} is there", beside.display()),
    })
}

/// A path that can stand among words separated by spaces, or else the bare name: the directory of
/// either is on the agent's PATH.
fn word(path: &Path, name: &str) -> String {
    match path.to_str() {
        Some(text) if !text.contains(char::is_whitespace) => text.to_owned(),
        _ => name.to_owned(),
    }
}

/// The first program of this name on a search path.
pub(crate) fn on_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| is_program(file))
}

/// Whether this is a file that somebody may run.
pub(crate) fn is_program(file: &Path) -> bool {
    let meta = std::fs::metadata(file);
    meta.is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::OpenOptionsExt};

    use super::*;

    fn program(dir: &Path, name: &str) -> String {
        fs::create_dir_all(dir).unwrap();
        let file = dir.join(name);
        let mut options = fs::OpenOptions::new();
        options.write(true).create(true).mode(0o755);
        options.open(&file).unwrap();
        file.to_str().unwrap().to_owned()
    }

    #[test]
    fn the_engine_is_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let (bin, beside) = (dir.path().join("bin"), dir.path().join("hive"));
        let places = Places {
            beside: &beside,
            path: bin.as_os_str(),
        };
        let command = |wanted| choose(wanted, places).map(|choice| choice.command);
        let none = command("auto").unwrap_err();
        for word in ["claude", "hive-engine", "engine.default", "npm install"] {
            assert!(none.contains(word), "{none}");
        }
        assert!(command("claude").is_err() && command("native").is_err());

        let native = program(&beside, "hive-engine");
        assert_eq!(command("auto"), Ok(native.clone()));
        assert_eq!(command(""), Ok(native.clone()));
        let claude = program(&bin, "claude");
        assert_eq!(command("auto"), Ok(claude.clone()), "claude comes first");
        assert_eq!(command("claude"), Ok(claude));
        assert_eq!(command("native"), Ok(native.clone()));

        let own = format!("{native} --fast");
        assert_eq!(command(&own), Ok(own.clone()));
        assert_eq!(command("claude --x"), Ok("claude --x".into()));
        for missing in ["nothing", "/nonexistent/x", "./claude"] {
            let error = command(missing).unwrap_err();
            assert!(error.contains(missing), "{error}");
        }
        let plain = dir.path().join("plain");
        fs::write(&plain, "").unwrap();
        assert!(command(plain.to_str().unwrap()).is_err(), "not executable");
    }

    #[test]
    fn a_path_with_spaces_is_found_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("my programs");
        program(&bin, "claude");
        let places = Places {
            beside: dir.path(),
            path: bin.as_os_str(),
        };
        assert_eq!(choose("claude", places).unwrap().command, "claude");
    }
}
