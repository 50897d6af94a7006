//! What the tools about one child share.

use hive_wire::{AgentName, agent::ChildState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::toolbox::Failure;

/// Which child.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// The name of an agent that is directly below you, as list_agents shows it.
    name: String,
    /// Your own name for this command. Called again within a day with the same key, nothing is done
    /// twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

impl Args {
    /// The child and the key, if the name can be one.
    pub(super) fn parse(self) -> Result<(AgentName, Option<String>), Failure> {
        let name = agent_name(&self.name)?;
        Ok((name, self.key))
    }
}

/// How the child stands now.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Reply {
    /// Its name.
    name: String,
    /// Where it stands: `stopped`, `starting`, `idle`, `thinking`, `failed` and so on.
    state: &'static str,
    /// What there is to know, such as why it failed; empty when there is nothing.
    note: String,
}

impl From<ChildState> for Reply {
    fn from(child: ChildState) -> Self {
        Self {
            name: child.name.to_string(),
            state: child.state.as_str(),
            note: child.note,
        }
    }
}

/// A name as the hive knows them.
pub(super) fn agent_name(name: &str) -> Result<AgentName, Failure> {
    name.parse().map_err(|error: hive_wire::name::NameError| {
        Failure::new(error.to_string(), "look with list_agents who is there")
    })
}
