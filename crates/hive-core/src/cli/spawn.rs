//! `spawn NAME`: creates an agent. The operator's own spawn needs no approval.

use clap::{Args, ValueEnum};
use hive_wire::{
    AgentName,
    client::Client,
    host::{Runtime, Spawn},
};

use super::{failure::Failure, json, out::Out, table::one_line};

/// Arguments of `spawn`.
#[derive(Debug, Args)]
pub struct SpawnArgs {
    /// Its name: at most nine characters, a-z, 0-9 and `-`.
    name: AgentName,
    /// The agent above it in the tree; without one it is a root.
    #[arg(long, value_name = "NAME")]
    parent: Option<AgentName>,
    /// Where it runs.
    #[arg(long, value_enum, default_value_t)]
    runtime: RuntimeArg,
}

/// Where an agent runs, as the operator writes it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum RuntimeArg {
    /// The best one that works on this machine.
    #[default]
    Auto,
    /// Elsewhere: it gets a socket and an inbox here.
    None,
    /// A plain process, without isolation.
    Process,
    /// Bubblewrap.
    Bwrap,
    /// systemd-nspawn.
    Nspawn,
    /// Podman.
    Podman,
    /// A NixOS container.
    Nixos,
}

impl From<RuntimeArg> for Runtime {
    fn from(runtime: RuntimeArg) -> Self {
        match runtime {
            RuntimeArg::Auto => Self::Auto,
            RuntimeArg::None => Self::None,
            RuntimeArg::Process => Self::Process,
            RuntimeArg::Bwrap => Self::Bwrap,
            RuntimeArg::Nspawn => Self::Nspawn,
            RuntimeArg::Podman => Self::Podman,
            RuntimeArg::Nixos => Self::Nixos,
        }
    }
}

impl SpawnArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let spawn = Spawn {
            name: self.name,
            parent: self.parent,
            runtime: self.runtime.into(),
        };
        let agent = host.call(&spawn).await?;
        if out.is_json() {
            return out.json(json::Spawned::from(&agent));
        }
        out.fields(&[
            ("name", agent.name.to_string()),
            ("state", json::agent_state(agent.state).to_owned()),
            ("runtime", agent.runtime.as_str().to_owned()),
            ("socket", one_line(&agent.socket)),
        ])?;
        out.note(format_args!(
            "write to it with `hive-c0re send {} BODY`",
            agent.name
        ));
        Ok(())
    }
}
