//! The on-boot files (T26): what the engine is pointed to, written by the harness into its own
//! directory, whole and checked, because `claude` ignores a broken settings file without a word.

pub mod mcp_config;
pub mod settings;
pub mod tools;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use hive_mcp::groups::{Group, Groups};

use self::{mcp_config::McpConfig, tools::ToolLists};
use crate::{
    engine::EngineFiles,
    environment::Environment,
    files,
    prompt::{
        notes::{self, system_prompt},
        template::{self, Role},
    },
};

/// The file of dashboard links in the state directory.
const LINKS: &str = "hyperhive-dashboard-links.json";

/// The on-boot files of a harness.
#[derive(Debug)]
pub struct BootFiles {
    files: EngineFiles,
    groups: Groups,
    tools: ToolLists,
    /// This binary.
    hive: PathBuf,
    /// The rendered template, without the agent's notes.
    template: String,
    /// What the system prompt file holds.
    written: String,
}

/// Whether the system prompt differs from that of the turn before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptFile {
    /// It is the same.
    Same,
    /// It was written anew.
    Changed,
}

impl BootFiles {
    /// Writes all files into the harness's directory, which must exist. `hive` is this binary, which the engine starts again as its MCP server.
    ///
    /// # Errors
    /// When the harness's directory cannot be written, or the extra MCP servers make no sense.
    pub fn write(environment: &Environment, hive: &Path) -> anyhow::Result<Self> {
        let dir = &environment.places.harness;
        let mcp = McpConfig::build(environment, hive)?;
        let engine_files = EngineFiles {
            settings: dir.join("claude-settings.json"),
            system_prompt: dir.join("claude-system-prompt.md"),
            mcp_config: dir.join("claude-mcp-config.json"),
        };
        write_json(
            &engine_files.settings,
            &settings::settings(&environment.tool_groups),
        )?;
        write_json(&engine_files.mcp_config, &mcp.json())?;
        write_links(environment)?;
        let mut boot = Self {
            tools: ToolLists::new(&environment.tool_groups, &mcp),
            template: template::render(
                template::SYSTEM,
                &roles(environment),
                &environment.identity,
            ),
            written: String::new(),
            groups: environment.tool_groups.clone(),
            hive: hive.to_owned(),
            files: engine_files,
        };
        boot.refresh_prompt(&environment.places.state)?;
        Ok(boot)
    }

    /// Writes the files anew when the agent has other tool groups than they were written for (C14).
    ///
    /// # Errors
    /// Those of [`Self::write`].
    pub fn regroup(&mut self, environment: &Environment, groups: &Groups) -> anyhow::Result<()> {
        if *groups == self.groups {
            return Ok(());
        }
        tracing::info!(groups = %groups.join(), "the agent has other tool groups now");
        let environment = Environment {
            tool_groups: groups.clone(),
            ..environment.clone()
        };
        *self = Self::write(&environment, &self.hive)?;
        Ok(())
    }

    /// What the engine is pointed to.
    pub fn files(&self) -> &EngineFiles {
        &self.files
    }

    /// What the engine may use.
    pub fn tools(&self) -> &ToolLists {
        &self.tools
    }

    /// Puts the agent's notes as they are now into the system prompt (T30); called before every
    /// turn.
    ///
    /// # Errors
    /// When the file cannot be written. Notes that cannot be read are left out.
    pub fn refresh_prompt(&mut self, state: &Path) -> io::Result<PromptFile> {
        let own = match files::read_capped(&state.join("CLAUDE.md"), notes::MAX_NOTES) {
            Ok(own) => own,
            Err(error) => {
                tracing::warn!(%error, "cannot read CLAUDE.md; the turn goes without it");
                None
            }
        };
        let prompt = system_prompt(&self.template, own.as_ref());
        if prompt == self.written && self.files.system_prompt.exists() {
            return Ok(PromptFile::Same);
        }
        files::write_atomically(&self.files.system_prompt, prompt.as_bytes())?;
        self.written = prompt;
        Ok(PromptFile::Changed)
    }
}

/// The links that the host shows on the agent's card and page (T31). It reads them as it reads
/// anything that the agent can write.
fn write_links(environment: &Environment) -> anyhow::Result<()> {
    let path = environment.places.state.join(LINKS);
    match &environment.dashboard_links {
        Some(links) => files::write_atomically(&path, links.as_bytes())?,
        None => match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, "cannot remove the links of an earlier configuration");
            }
            _ => {}
        },
    }
    Ok(())
}

/// Every agent has the role `agent`; the root agent and holders of the approvals group (M17) also
/// `manager`.
fn roles(environment: &Environment) -> Vec<Role> {
    let manages = environment.identity.is_manager || environment.tool_groups.has(Group::Approvals);
    if manages {
        vec![Role::Agent, Role::Manager]
    } else {
        vec![Role::Agent]
    }
}

/// Writes a JSON file and reads it back: what the engine will see is what was meant.
fn write_json(path: &Path, value: &serde_json::Value) -> anyhow::Result<()> {
    let text = serde_json::to_vec_pretty(value)?;
    files::write_atomically(path, &text)?;
    let back: serde_json::Value = serde_json::from_slice(&fs::read(path)?)?;
    anyhow::ensure!(
        back == *value,
        "{} does not hold what was written to it",
        path.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn environment(dir: &Path, more: &[(&str, &str)]) -> Environment {
        let at = |name: &str| dir.join(name).into_os_string();
        let mut pairs = vec![
            ("HIVE_STATE_DIR".into(), at("state")),
            ("HIVE_HARNESS_DIR".into(), at("harness")),
            ("HIVE_BASH_MCP".into(), at("no-such-binary")),
            ("HIVE_LABEL".into(), "ada".into()),
        ];
        for name in ["state", "harness"] {
            fs::create_dir_all(dir.join(name)).unwrap();
        }
        pairs.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
        Environment::read(pairs).unwrap()
    }

    fn read(path: &Path) -> Value {
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    }

    #[test]
    fn c14_other_tool_groups_are_in_the_files_of_the_next_turn() {
        let dir = tempfile::tempdir().unwrap();
        let environment = environment(dir.path(), &[]);
        let mut boot = BootFiles::write(&environment, Path::new("/usr/bin/hive")).unwrap();
        let groups = |boot: &BootFiles| {
            let mcp = read(&boot.files().mcp_config);
            mcp["mcpServers"]["hyperhive"]["env"]["HIVE_TOOL_GROUPS"].clone()
        };
        assert_eq!(groups(&boot), "messaging,meta,inbox,execution");
        let granted: Groups = [Group::Meta, Group::WebTools, Group::Approvals]
            .into_iter()
            .collect();
        boot.regroup(&environment, &granted).unwrap();
        assert_eq!(groups(&boot), "meta,approvals,web_tools");
        assert!(boot.tools().built_in().contains(&"WebFetch".to_owned()));
        let prompt = fs::read_to_string(&boot.files().system_prompt).unwrap();
        assert!(prompt.contains("look after this hive"), "M17");
        boot.regroup(&environment, &Groups::default()).unwrap();
        assert_eq!(groups(&boot), "messaging,meta,inbox,execution");
        assert!(!boot.tools().built_in().contains(&"WebFetch".to_owned()));
    }

    #[test]
    fn t26_three_files_in_the_harness_directory() {
        let dir = tempfile::tempdir().unwrap();
        let environment = environment(dir.path(), &[]);
        let boot = BootFiles::write(&environment, Path::new("/usr/bin/hive")).unwrap();
        let files = boot.files();
        assert_eq!(
            files.settings,
            dir.path().join("harness/claude-settings.json")
        );
        let settings = read(&files.settings);
        assert_eq!(settings["autoCompactEnabled"], false);
        assert_eq!(settings["autoMemoryEnabled"], false);
        assert_eq!(settings["effortLevel"], "medium");
        assert_eq!(
            settings["permissions"]["deny"],
            json!([
                "Bash",
                "Task",
                "NotebookEdit",
                "TodoWrite",
                "WebFetch",
                "WebSearch"
            ])
        );
        let mcp = read(&files.mcp_config);
        assert_eq!(mcp["mcpServers"]["hyperhive"]["command"], "/usr/bin/hive");
        assert_eq!(mcp["mcpServers"]["hyperhive"]["args"], json!(["mcp"]));
        assert_eq!(mcp["mcpServers"].get("bash"), None);
        let prompt = fs::read_to_string(&files.system_prompt).unwrap();
        assert!(prompt.starts_with("You are `ada`"));
        assert!(!prompt.contains("look after this hive"));
    }

    #[test]
    fn t27_m17_managers_and_holders_of_approvals_get_the_policy() {
        for (name, value) in [
            ("HIVE_ROLE", "manager"),
            ("HIVE_TOOL_GROUPS", "meta,approvals"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let environment = environment(dir.path(), &[(name, value)]);
            let boot = BootFiles::write(&environment, Path::new("/hive")).unwrap();
            let prompt = fs::read_to_string(&boot.files().system_prompt).unwrap();
            assert!(prompt.contains("look after this hive"), "{name}");
        }
    }

    #[test]
    fn t30_notes_are_taken_up_before_each_turn_and_a_lost_file_is_written_again() {
        let dir = tempfile::tempdir().unwrap();
        let environment = environment(dir.path(), &[]);
        let state = &environment.places.state;
        let mut boot = BootFiles::write(&environment, Path::new("/hive")).unwrap();
        let prompt_file = boot.files().system_prompt.clone();
        assert_eq!(boot.refresh_prompt(state).unwrap(), PromptFile::Same);

        fs::write(state.join("CLAUDE.md"), "Prefer tabs.").unwrap();
        assert_eq!(boot.refresh_prompt(state).unwrap(), PromptFile::Changed);
        assert!(
            fs::read_to_string(&prompt_file)
                .unwrap()
                .contains("Prefer tabs.")
        );
        assert_eq!(boot.refresh_prompt(state).unwrap(), PromptFile::Same);

        fs::remove_file(&prompt_file).unwrap();
        assert_eq!(boot.refresh_prompt(state).unwrap(), PromptFile::Changed);
        assert!(prompt_file.exists());

        fs::remove_file(state.join("CLAUDE.md")).unwrap();
        fs::create_dir(state.join("CLAUDE.md")).unwrap();
        assert_eq!(boot.refresh_prompt(state).unwrap(), PromptFile::Changed);
        assert!(
            !fs::read_to_string(&prompt_file)
                .unwrap()
                .contains("Prefer tabs.")
        );
    }
}
