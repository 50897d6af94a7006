//! Settings files, in layers, and what an agent may not change with them.
//!
//! From weak to strong: user, project, local, `--settings`, managed. Lists add up and single values
//! are those of the strongest layer. The project's files belong to the agent, so they may forbid
//! and ask for more but never permit, and their other keys count only where they narrow.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use hive_providers::{ModelInfo, Models};
use serde::Deserialize;
use thiserror::Error;

use crate::{
    permission::{Effect, Mode, Origin, Role, Rule, RuleError, Rules},
    sandbox::SandboxSettings,
};

/// The largest file that is read.
const MAX_FILE: u64 = 2 * 1024 * 1024;

/// A settings file that cannot be used.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// There is no such file.
    #[error("Error: Settings file not found: {0}")]
    NotFound(PathBuf),
    /// It is too large.
    #[error("Error: Settings file exceeds the 2MiB limit: {0}")]
    TooLarge(PathBuf),
    /// It is not what it should be.
    #[error("Error: {path}:{line}: {problem}")]
    Bad {
        /// The file.
        path: String,
        /// Where in it.
        line: usize,
        /// What is wrong.
        problem: String,
    },
    /// A rule makes no sense.
    #[error("Error: {0}")]
    Rule(#[from] RuleError),
    /// An example of a rule does not hold.
    #[error("Error: {0}")]
    Example(String),
}

/// Which files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sources {
    /// The user's.
    pub user: bool,
    /// The project's.
    pub project: bool,
    /// The project's, not shared.
    pub local: bool,
}

impl Sources {
    /// From `--setting-sources user,project,local`.
    pub fn parse(text: Option<&str>) -> Self {
        match text {
            None => Self {
                user: true,
                project: true,
                local: true,
            },
            Some(list) => {
                let has = |name: &str| list.split(',').any(|part| part.trim() == name);
                Self {
                    user: has("user"),
                    project: has("project"),
                    local: has("local"),
                }
            }
        }
    }
}

/// Where files are looked for.
#[derive(Debug)]
pub struct Places<'a> {
    /// `~/.claude` or what replaces it.
    pub config_dir: &'a Path,
    /// The working directory.
    pub cwd: &'a Path,
    /// The home.
    pub home: &'a Path,
    /// `--settings`: a file, or JSON itself.
    pub flag: Option<&'a str>,
    /// Which of the others are read.
    pub sources: Sources,
}

/// All layers in one.
#[derive(Debug, Default)]
pub struct Settings {
    /// Rules for permissions.
    pub rules: Rules,
    /// The mode to start in.
    pub mode: Option<Mode>,
    /// The agent's standing.
    pub role: Option<Role>,
    /// Further directories of the workspace.
    pub directories: Vec<PathBuf>,
    /// The model.
    pub model: Option<String>,
    /// Variables for tools and servers.
    pub env: BTreeMap<String, String>,
    /// Whether a full context is compacted without being asked.
    pub auto_compact: Option<bool>,
    /// The cage for commands.
    pub sandbox: SandboxSettings,
    /// What is known about models.
    pub models: Models,
    /// How many calls run at once.
    pub max_parallel: Option<usize>,
    /// Things to tell the user.
    pub warnings: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    permissions: Permissions,
    model: Option<String>,
    env: BTreeMap<String, String>,
    auto_compact_enabled: Option<bool>,
    sandbox: Option<SandboxSettings>,
    models: BTreeMap<String, ModelInfo>,
    max_parallel: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Permissions {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    default_mode: Option<String>,
    additional_directories: Vec<PathBuf>,
    role: Option<RoleSetting>,
    examples: Vec<Example>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum RoleSetting {
    Name(String),
    Own(Role),
}

/// Commands that a rule must or must not match.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Example {
    rule: String,
    #[serde(default, rename = "match")]
    matches: Vec<String>,
    #[serde(default)]
    not_match: Vec<String>,
}

/// Who can write a layer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    /// The operator or the user.
    Trusted,
    /// The agent: it may narrow and nothing else.
    Agent,
}

impl Settings {
    /// Reads all layers.
    pub fn load(places: &Places<'_>) -> Result<Self, SettingsError> {
        let mut settings = Self::default();
        let project = places.cwd.join(".claude");
        let layers = [
            (
                places.sources.user,
                places.config_dir.join("settings.json"),
                Trust::Trusted,
            ),
            (
                places.sources.project,
                project.join("settings.json"),
                Trust::Agent,
            ),
            (
                places.sources.local,
                project.join("settings.local.json"),
                Trust::Agent,
            ),
        ];
        for (is_read, path, trust) in layers {
            if is_read && path.is_file() {
                let text = read(&path)?;
                settings.add(
                    &text,
                    &path.display().to_string(),
                    path.parent(),
                    trust,
                    places,
                )?;
            }
        }
        if let Some(flag) = places.flag {
            if flag.trim_start().starts_with('{') {
                settings.add(flag, "--settings", Some(places.cwd), Trust::Trusted, places)?;
            } else {
                let path = places.cwd.join(flag);
                let text = read(&path)?;
                settings.add(
                    &text,
                    &path.display().to_string(),
                    path.parent(),
                    Trust::Trusted,
                    places,
                )?;
            }
        }
        let managed = Path::new("/etc/claude-code/managed-settings.json");
        if managed.is_file() {
            let text = read(managed)?;
            settings.add(
                &text,
                &managed.display().to_string(),
                managed.parent(),
                Trust::Trusted,
                places,
            )?;
        }
        Ok(settings)
    }

    fn add(
        &mut self,
        text: &str,
        source: &str,
        base: Option<&Path>,
        trust: Trust,
        places: &Places<'_>,
    ) -> Result<(), SettingsError> {
        let file: File = serde_json::from_str(text).map_err(|error| SettingsError::Bad {
            path: source.to_owned(),
            line: error.line(),
            problem: error.to_string(),
        })?;
        let base = match base {
            // `/x` in a project's file starts at the project.
            Some(base) if trust == Trust::Agent => base.parent().unwrap_or(base),
            Some(base) => base,
            None => places.cwd,
        };
        let permissions = file.permissions;
        let reader = crate::permission::RuleReader {
            cwd: places.cwd,
            home: places.home,
        };
        for (effect, list) in [
            (Effect::Deny, &permissions.deny),
            (Effect::Ask, &permissions.ask),
            (Effect::Allow, &permissions.allow),
        ] {
            if effect == Effect::Allow && trust == Trust::Agent && !list.is_empty() {
                self.warnings.push(format!(
                    "Ignoring {} permissions.allow entries from {source}: the agent can write this file",
                    list.len()
                ));
                continue;
            }
            for rule in list {
                let origin = Origin {
                    source: source.to_owned(),
                    line: line_of(text, rule),
                    base: base.to_owned(),
                };
                self.rules
                    .push(Rule::parse(rule, effect, &origin, &reader)?);
            }
        }
        for example in &permissions.examples {
            check(example, source, text, base, &reader)?;
        }
        if trust == Trust::Agent {
            self.narrow(file.sandbox);
            return Ok(());
        }
        self.rank(&permissions, source, text)?;
        self.directories.extend(permissions.additional_directories);
        self.model = file.model.or(self.model.take());
        self.env.extend(file.env);
        self.auto_compact = file.auto_compact_enabled.or(self.auto_compact);
        self.max_parallel = file.max_parallel.or(self.max_parallel);
        if let Some(sandbox) = file.sandbox {
            self.sandbox = sandbox;
        }
        for (name, info) in file.models {
            self.models.set(&name, info);
        }
        Ok(())
    }

    /// The mode to start in and the agent's standing.
    fn rank(
        &mut self,
        permissions: &Permissions,
        source: &str,
        text: &str,
    ) -> Result<(), SettingsError> {
        let bad = |value: &str, problem: String| SettingsError::Bad {
            path: source.to_owned(),
            line: line_of(text, value).unwrap_or(1),
            problem,
        };
        if let Some(name) = &permissions.default_mode {
            self.mode = Some(Mode::parse(name).map_err(|problem| bad(name, problem))?);
        }
        match &permissions.role {
            None => {}
            Some(RoleSetting::Own(role)) => self.role = Some(role.clone()),
            Some(RoleSetting::Name(name)) => {
                let role = Role::built_in(name).ok_or_else(|| {
                    let known = "use developer, senior, admin or an object";
                    bad(name, format!("unknown role {name:?}: {known}"))
                })?;
                self.role = Some(role);
            }
        }
        Ok(())
    }

    /// The agent's own files may put it into a cage, never out of one.
    fn narrow(&mut self, sandbox: Option<SandboxSettings>) {
        if let Some(sandbox) = sandbox {
            self.sandbox.enabled |= sandbox.enabled;
            self.sandbox.fail_if_unavailable |= sandbox.fail_if_unavailable;
        }
    }
}

fn read(path: &Path) -> Result<String, SettingsError> {
    let meta = std::fs::metadata(path).map_err(|_| SettingsError::NotFound(path.to_owned()))?;
    if !meta.is_file() {
        return Err(SettingsError::NotFound(path.to_owned()));
    }
    if meta.len() > MAX_FILE {
        return Err(SettingsError::TooLarge(path.to_owned()));
    }
    std::fs::read_to_string(path).map_err(|error| SettingsError::Bad {
        path: path.display().to_string(),
        line: 1,
        problem: error.to_string(),
    })
}

/// The line on which a string stands.
fn line_of(text: &str, value: &str) -> Option<usize> {
    let quoted = serde_json::to_string(value).ok()?;
    text.lines()
        .position(|line| line.contains(&quoted))
        .map(|line| line + 1)
}

fn check(
    example: &Example,
    source: &str,
    text: &str,
    base: &Path,
    reader: &crate::permission::RuleReader<'_>,
) -> Result<(), SettingsError> {
    let origin = Origin {
        source: source.to_owned(),
        line: line_of(text, &example.rule),
        base: base.to_owned(),
    };
    let rule = Rule::parse(&example.rule, Effect::Allow, &origin, reader)?;
    let hit = |command: &str| {
        let judgement = crate::bash::judge(command, reader.cwd);
        let all = judgement
            .commands
            .iter()
            .all(|simple| rule.matches_command(simple));
        judgement.doubts.is_empty() && !judgement.commands.is_empty() && all
    };
    let wrong = |command: &String, verb: &str| {
        SettingsError::Example(format!(
            "{origin}: {:?} {verb} match `{command}`",
            example.rule
        ))
    };
    if let Some(command) = example.matches.iter().find(|command| !hit(command)) {
        return Err(wrong(command, "does not"));
    }
    if let Some(command) = example.not_match.iter().find(|command| hit(command)) {
        return Err(wrong(command, "does"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn load(user: &str, project: &str, flag: Option<&str>) -> Result<Settings, SettingsError> {
        let dir = tempfile::tempdir().unwrap();
        let (config, cwd) = (dir.path().join("config"), dir.path().join("work"));
        fs::create_dir_all(&config).unwrap();
        fs::create_dir_all(cwd.join(".claude")).unwrap();
        if !user.is_empty() {
            fs::write(config.join("settings.json"), user).unwrap();
        }
        if !project.is_empty() {
            fs::write(cwd.join(".claude/settings.json"), project).unwrap();
        }
        Settings::load(&Places {
            config_dir: &config,
            cwd: &cwd,
            home: dir.path(),
            flag,
            sources: Sources::parse(None),
        })
    }

    #[test]
    fn the_agents_own_file_never_widens() {
        let project = r#"{"permissions":{"allow":["Bash"],"deny":["Read(./secret)"],"defaultMode":"auto","role":"admin","additionalDirectories":["/"]},"env":{"PATH":"/evil"},"sandbox":{"enabled":false},"model":"evil"}"#;
        let user = r#"{"sandbox":{"enabled":true},"model":"good"}"#;
        let settings = load(user, project, None).unwrap();
        assert_eq!(settings.rules.with(Effect::Allow).count(), 0);
        assert_eq!(settings.rules.with(Effect::Deny).count(), 1);
        assert_eq!((settings.mode, settings.role), (None, None));
        assert!(settings.env.is_empty() && settings.directories.is_empty());
        assert!(settings.sandbox.enabled);
        assert_eq!(settings.model.as_deref(), Some("good"));
        assert!(settings.warnings[0].contains("Ignoring 1"));
    }

    #[test]
    fn the_flag_wins() {
        let settings = load(
            r#"{"model":"a","permissions":{"allow":["Read"]}}"#,
            "",
            Some(r#"{"model":"b","permissions":{"allow":["Edit"]}}"#),
        )
        .unwrap();
        assert_eq!(settings.model.as_deref(), Some("b"));
        assert_eq!(
            settings.rules.with(Effect::Allow).count(),
            2,
            "lists add up"
        );
    }

    #[test]
    fn mistakes_name_file_and_line() {
        for (text, needles) in [
            (
                "{\n\"permissions\": {\n\"allow\": [\n\"Bsah\"]}}",
                &["settings.json:4", "did you mean Bash"][..],
            ),
            ("{\n\"model\": 7}", &["settings.json:2"]),
            ("{\n oops", &["settings.json:2"]),
            (
                "{\"permissions\":{\"defaultMode\":\"yolo\"}}",
                &["yolo", "acceptEdits"],
            ),
            ("{\"permissions\":{\"role\":\"king\"}}", &["king", "senior"]),
        ] {
            let error = load(text, "", None).unwrap_err().to_string();
            for needle in needles {
                assert!(error.contains(needle), "{error}");
            }
        }
        let error = load("", "", Some("/no/such.json")).unwrap_err().to_string();
        assert!(
            error.starts_with("Error: Settings file not found:"),
            "{error}"
        );
    }

    #[test]
    fn examples_are_checked_at_load() {
        let with = |matches: &str, not: &str| {
            load(
                "",
                "",
                Some(&format!(
                    r#"{{"permissions":{{"allow":["Bash(git *)"],"examples":[{{"rule":"Bash(git *)","match":[{matches}],"notMatch":[{not}]}}]}}}}"#
                )),
            )
        };
        with(r#""git status""#, r#""git-evil", "git status; rm x""#).unwrap();
        assert!(
            with(r#""gti status""#, "")
                .unwrap_err()
                .to_string()
                .contains("does not match")
        );
        assert!(
            with("", r#""git push""#)
                .unwrap_err()
                .to_string()
                .contains("does match")
        );
    }
}
