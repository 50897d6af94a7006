//! `spawn NAME`: creates an agent. The operator's own spawn needs no approval.

use clap::{Args, ValueEnum};
use hive_wire::{
    AgentName,
    client::Client,
    host::{Runtime, Spawn},
};

use super::{failure::Failure, json, lifecycle, out::Out};

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
    /// What runs its turns: `auto`, `claude`, `native` or a command.
    #[arg(long, value_name = "ENGINE")]
    engine: Option<String>,
    /// Its model, such as `haiku`.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
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
            engine: self.engine,
            model: self.model,
        };
        let agent = lifecycle::ask(host, &spawn).await?;
        if out.is_json() {
            return out.json(json::Spawned::from(&agent));
        }
        lifecycle::show(&agent, out)?;
        out.note(format_args!(
            "write to it with `hive-c0re send {} BODY`",
            agent.name
        ));
        Ok(())
    }
}
