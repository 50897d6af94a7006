//! Updates of the hive reach its agents (C11): those that were made with another revision are made
//! anew, one at a time, between two turns, until one of them does not come up.

use std::{fs, path::Path, sync::Arc};

use hive_wire::{
    AgentName, ErrorCode, WireError,
    host::{AgentState, Runtime, StopFailure, Updated},
};
use serde_json::json;

use crate::{
    agent_config::Configs,
    approvals::{self, Outcome},
    host_commands::Host,
    supervisor::Wish,
};

/// What agents are made with now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Revision {
    /// This build; an agent in a NixOS container is made from a flake instead.
    build: String,
    /// The canonical path of the hive's flake; none for one that lies elsewhere.
    flake: Option<String>,
}

impl Revision {
    /// That of the running daemon. `flake` is what containers are built from on NixOS.
    pub(crate) fn now(program: &Path, flake: Option<&str>) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        // Two builds of one version differ in the program itself.
        let built = fs::metadata(program).and_then(|meta| meta.modified());
        let built = built
            .ok()
            .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
        let build = match built {
            Some(built) => format!("{version}+{}", built.as_secs()),
            None => version.to_owned(),
        };
        let flake = flake.and_then(|flake| {
            let path = fs::canonicalize(flake.strip_prefix("path:").unwrap_or(flake)).ok()?;
            path.to_str().map(str::to_owned)
        });
        Self { build, flake }
    }

    /// The revision that an agent of this runtime is made with; none when nobody can tell.
    pub(crate) fn of(&self, runtime: Runtime) -> Option<&str> {
        match runtime {
            Runtime::None => None,
            Runtime::Nixos => self.flake.as_deref(),
            Runtime::Auto
            | Runtime::Process
            | Runtime::Bwrap
            | Runtime::Nspawn
            | Runtime::Podman => Some(&self.build),
        }
    }

    /// Notes that an agent was made with this.
    pub(crate) fn note(&self, configs: &Configs, name: &AgentName, runtime: Runtime) {
        let Some(revision) = self.of(runtime) else {
            return;
        };
        if let Err(error) = configs.repos().note_revision(name, revision) {
            tracing::warn!(agent = %name, %error, "cannot note what it was made with");
        }
    }

    /// Whether an agent was made with another one.
    pub(crate) fn is_stale(&self, configs: &Configs, name: &AgentName, runtime: Runtime) -> bool {
        let Some(now) = self.of(runtime) else {
            return false;
        };
        configs
            .repos()
            .revision(name)
            .is_some_and(|noted| noted != now)
    }
}

/// Makes every stale agent anew that should run, and says how far it came.
///
/// # Errors
/// The store's refusal.
pub(crate) async fn update_all(host: &Arc<Host>) -> Result<Updated, WireError> {
    let _alone = host.updating.lock().await;
    let mut outcome = Updated::default();
    let mut stale = stale(host).await?.into_iter();
    for name in stale.by_ref() {
        // Cancel-safe: it only waits.
        tokio::select! {
            () = host.harnesses.between_turns(&name) => {}
            () = host.stop.cancelled() => {
                return Err(WireError::new(ErrorCode::ShuttingDown, "the daemon is stopping"));
            }
        }
        match update(host, &name).await {
            Ok(()) => outcome.updated.push(name),
            Err(reason) => {
                tracing::error!(agent = %name, reason, "the update stops here");
                outcome.failed = Some(StopFailure { name, reason });
                break;
            }
        }
    }
    outcome.left = stale.collect();
    Ok(outcome)
}

async fn stale(host: &Arc<Host>) -> Result<Vec<AgentName>, WireError> {
    let agents = host
        .broker
        .run(|desk| Ok(desk.roster.iter().cloned().collect::<Vec<_>>()))
        .await?;
    let revision = host.supervisor.revision();
    let stale = agents.into_iter().filter(|agent| {
        agent.run.wanted == hive_store::sqlite::Wanted::Running
            && revision.is_stale(&host.approvals.configs, &agent.name, agent.runtime)
    });
    Ok(stale.map(|agent| agent.name).collect())
}

async fn update(host: &Arc<Host>, name: &AgentName) -> Result<(), String> {
    let rebuilt = host.wish(name, Wish::Rebuild).await;
    let result = match rebuilt {
        Ok(row) if row.state == AgentState::Failed => Err(row.note),
        Ok(_) => approvals::comes_up(host, name).await,
        Err(error) => Err(error.to_string()),
    };
    let (agent, told) = (name.clone(), result.clone());
    let tell = host.broker.run(move |desk| {
        let data = json!({"ok": told.is_ok(), "note": told.as_ref().err()});
        desk.report_agent(&agent, "agent_updated", &data);
        approvals::happened(desk, &agent, &Outcome::Rebuilt(told));
        Ok(())
    });
    if let Err(error) = tell.await {
        tracing::warn!(%error, "cannot tell of the update");
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repos::Repos;

    #[test]
    fn c11_what_an_agent_was_made_with_is_noted_and_compared() {
        let dir = tempfile::tempdir().unwrap();
        let repos = Repos::new(dir.path());
        repos.prepare().unwrap();
        let configs = Configs::new(repos, dir.path());
        let name: AgentName = "ada".parse().unwrap();
        let program = dir.path().join("program");
        fs::write(&program, "").unwrap();
        let now = Revision::now(&program, None);
        let (process, nixos) = (Runtime::Process, Runtime::Nixos);
        assert!(!now.is_stale(&configs, &name, process), "it never ran");
        now.note(&configs, &name, process);
        assert!(!now.is_stale(&configs, &name, process));
        let later = Revision {
            build: "9.9.9".to_owned(),
            flake: None,
        };
        assert!(later.is_stale(&configs, &name, process));
        assert!(
            !later.is_stale(&configs, &name, nixos),
            "a remote flake says nothing"
        );
        assert!(!later.is_stale(&configs, &name, Runtime::None));
        let flake = dir.path().join("flake");
        fs::create_dir(&flake).unwrap();
        let local = Revision::now(&program, flake.to_str());
        assert_eq!(local.of(nixos), fs::canonicalize(&flake).unwrap().to_str());
        assert!(local.is_stale(&configs, &name, nixos));
        let remote = Revision::now(&program, Some("github:example/hyperhive"));
        assert_eq!(remote.of(nixos), None);
        let marker = dir.path().join("applied/.ada.hyperhive-rev");
        assert!(marker.is_file());
    }
}
