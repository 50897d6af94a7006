//! Has the flake of an agent written before its container is built (C7, N3).

use hive_runtime::{AgentSpec, Owner};
use hive_store::sqlite::AgentRecord;

use super::Parts;
use crate::{
    agent_config::{AGENT_NIX, AGENT_TOML},
    nix_flake,
};

/// The variables of the harness that the host sets, whatever the container's own configuration.
const OF_THE_HOST: [&str; 7] = [
    "HIVE_DASHBOARD_PORT",
    "HIVE_DOMAIN",
    "HIVE_LABEL",
    "HIVE_NAME",
    "HIVE_OPERATOR_PRONOUNS",
    "HIVE_PORT",
    "HIVE_SWARM",
];

/// Writes it from what is applied and from what the harness is told.
pub(super) fn write(parts: &Parts, agent: &AgentRecord, spec: &AgentSpec) -> anyhow::Result<()> {
    let windows = spec
        .env
        .iter()
        .filter(|(name, _)| name.starts_with("HIVE_CONTEXT_WINDOW_TOKENS_"));
    let of_the_host = OF_THE_HOST
        .iter()
        .filter_map(|name| spec.env.get_key_value(*name));
    let env: Vec<(&str, String)> = of_the_host
        .chain(windows)
        .map(|(name, value)| (name.as_str(), value.clone()))
        .collect();
    let hive = &parts.config.hive;
    let domain = hive.domain.as_deref().unwrap_or("hive.invalid");
    let repos = parts.configs.repos();
    let files = repos.files(&agent.name);
    let flake = std::env::var("HYPERHIVE_FLAKE").unwrap_or_else(|_| "/etc/hyperhive".to_owned());
    let uid = match spec.owner {
        Owner::Daemon => None,
        Owner::Own { uid } => Some(uid),
    };
    nix_flake::write(
        &repos.applied_dir(&agent.name),
        nix_flake::Agent {
            name: agent.name.as_str(),
            address: &format!("{}@{domain}", agent.name),
            is_root: agent.name.as_str() == hive.root_agent,
            has_nix: files.join(AGENT_NIX).is_file(),
            has_toml: files.join(AGENT_TOML).is_file(),
            uid,
            hyperhive: &flake,
            env: &env,
        },
    )
}
