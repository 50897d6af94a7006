//! `request-spawn NAME`: asks for a new agent, to be decided like any other request.

use std::path::PathBuf;

use clap::Args;
use hive_wire::{
    AgentName,
    approval::{RequestSpawn, RequestSpawnAsOperator},
    client::Client,
};

use super::{failure::Failure, json, out::Out};

/// Arguments of `request-spawn`.
#[derive(Debug, Args)]
pub struct RequestSpawnArgs {
    /// Its name: at most nine characters, a-z, 0-9 and `-`.
    name: String,
    /// The agent above it in the tree; without one it is a root.
    #[arg(long, value_name = "NAME")]
    parent: Option<AgentName>,
    /// Its whole `agent.toml`.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "engine"])]
    config: Option<PathBuf>,
    /// Its model, such as `haiku`.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// What runs its turns: `auto`, `claude`, `native` or a command.
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// Why.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    reason: String,
}

impl RequestSpawnArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let config = self.config.as_ref().map(std::fs::read_to_string);
        let config = config
            .transpose()
            .map_err(|error| Failure::io("read the configuration", &error))?;
        let request = RequestSpawn {
            name: self.name,
            parent: self.parent,
            config,
            model: self.model,
            engine: self.engine,
            runtime: None,
            reason: self.reason,
            key: None,
        };
        let requested = host.call(&RequestSpawnAsOperator(request)).await?;
        if out.is_json() {
            return out.json(json::Requested::from(&requested));
        }
        let id = requested.approval_id;
        out.line(id)?;
        out.note(format_args!("decide with `hive-c0re approve {id}`"));
        Ok(())
    }
}
