//! The flake of an agent on NixOS (N3): generated whole at every rebuild, from what is applied.
//!
//! It extends a base configuration of the hive's own flake with the agent's configuration and with
//! who the agent is. `nixos-container` is pointed to `<applied>#default`.

use std::{fs, path::Path};

use anyhow::Context;

/// What a flake is made from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Agent<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Its address in the world, for commits.
    pub(crate) address: &'a str,
    /// Whether it is the root agent.
    pub(crate) is_root: bool,
    /// Whether its configuration has an `agent.nix`.
    pub(crate) has_nix: bool,
    /// Whether its configuration has an `agent.toml`.
    pub(crate) has_toml: bool,
    /// The host's user that its directories belong to, if it has one of its own.
    pub(crate) uid: Option<u32>,
    /// The flake that containers are built from.
    pub(crate) hyperhive: &'a str,
    /// Variables of the harness that are the host's to set.
    pub(crate) env: &'a [(&'a str, String)],
}

/// The text of its `flake.nix`.
pub(crate) fn render(agent: Agent<'_>) -> String {
    let base = if agent.is_root {
        "manager"
    } else {
        "agent-base"
    };
    let parts = [
        (
            agent.has_toml,
            "(hyperhive.lib.fromToml ./config/agent.toml)",
        ),
        (agent.has_nix, "./config/agent.nix"),
    ];
    let parts = parts.into_iter().filter(|(is_there, _)| *is_there);
    let config: String = parts
        .map(|(_, module)| format!("          {module}\n"))
        .collect();
    let url = if agent.hyperhive.starts_with('/') {
        format!("path:{}", agent.hyperhive)
    } else {
        agent.hyperhive.to_owned()
    };
    let uid = agent.uid.map_or_else(String::new, |uid| {
        format!("            hyperhive.hostUid = {uid};\n")
    });
    let mut env = String::new();
    for (name, value) in agent.env {
        env.push_str(&format!("              {name} = {};\n", quoted(value)));
    }
    format!(
        "# Written by hive-c0re for `{name}`; every rebuild writes it anew.\n\
         {{\n\
         \x20 inputs.hyperhive.url = {url};\n\
         \n\
         \x20 outputs =\n\
         \x20   {{ hyperhive, ... }}:\n\
         \x20   {{\n\
         \x20     nixosConfigurations.default = hyperhive.nixosConfigurations.{base}.extendModules {{\n\
         \x20       modules = [\n\
         {config}\
         \x20         {{\n\
         {uid}\
         \x20           programs.git.config.user = {{\n\
         \x20             name = {author};\n\
         \x20             email = {address};\n\
         \x20           }};\n\
         \x20           systemd.services.hive.environment = {{\n\
         {env}\
         \x20           }};\n\
         \x20         }}\n\
         \x20       ];\n\
         \x20     }};\n\
         \x20   }};\n\
         }}\n",
        name = agent.name,
        url = quoted(&url),
        author = quoted(agent.name),
        address = quoted(agent.address),
    )
}

/// Writes it beside the applied files, whole.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(applied: &Path, agent: Agent<'_>) -> anyhow::Result<()> {
    let (to, next) = (applied.join("flake.nix"), applied.join("flake.nix.next"));
    fs::write(&next, render(agent))
        .and_then(|()| fs::rename(&next, &to))
        .with_context(|| format!("cannot write {}", to.display()))
}

/// A text as Nix writes it: nothing in it is code.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '$' => out.push_str("\\$"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent<'a>(env: &'a [(&'a str, String)]) -> Agent<'a> {
        Agent {
            name: "ada",
            address: "ada@example.org",
            is_root: false,
            has_nix: true,
            has_toml: false,
            uid: Some(70_000),
            hyperhive: "/etc/hyperhive",
            env,
        }
    }

    #[test]
    fn n3_the_flake_of_an_agent_is_as_it_was_agreed() {
        let env = [
            ("HIVE_DASHBOARD_PORT", "7000".to_owned()),
            ("HIVE_LABEL", "ada".to_owned()),
            ("HIVE_OPERATOR_PRONOUNS", "she/her".to_owned()),
            ("HIVE_PORT", "8123".to_owned()),
        ];
        let golden = include_str!("../tests/fixtures/agent-flake.nix");
        assert_eq!(render(agent(&env)), golden);
        let root = Agent {
            name: "ruth",
            is_root: true,
            has_nix: false,
            has_toml: true,
            uid: None,
            hyperhive: "github:example/hyperhive",
            ..agent(&env)
        };
        let golden = include_str!("../tests/fixtures/root-flake.nix");
        assert_eq!(render(root), golden);
        let both = Agent {
            has_nix: true,
            ..root
        };
        let modules =
            "(hyperhive.lib.fromToml ./config/agent.toml)\n          ./config/agent.nix\n";
        assert!(render(both).contains(modules), "{}", render(both));
    }

    #[test]
    fn n3_nothing_that_is_filled_in_is_code() {
        let evil = "\"; } ${builtins.readFile /etc/shadow} \\\n".to_owned();
        let env = [("HIVE_OPERATOR_PRONOUNS", evil)];
        let text = render(agent(&env));
        assert!(
            text.contains(r#""\"; } \${builtins.readFile /etc/shadow} \\\n";"#),
            "{text}"
        );
        let parsed = rnix::Root::parse(&text);
        assert!(parsed.errors().is_empty(), "{:?}", parsed.errors());
    }
}
