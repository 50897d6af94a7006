//! What an agent may see and use beyond what every agent does.

use std::path::{Path, PathBuf};

use hive_runtime::{Access, Limits, Mount, Network, User, runtimes::isolates};
use hive_store::sqlite::AgentRecord;
use hive_wire::host;

use crate::{
    agent_config::AgentConfig,
    config::{AgentLimits, Config},
    paths::Paths,
};

/// Where the root agent in a container sees every proposed repository (C8).
const PROPOSALS: &str = "/agents";

/// The part of an agent's configuration that its runtime enforces (T29).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) mounts: Vec<Mount>,
    pub(super) network: Network,
    pub(super) user: User,
    pub(super) limits: Limits,
    /// Where the agent finds the proposed repositories, if it may see them.
    pub(super) proposals: Option<PathBuf>,
}

/// The settings of an agent.
///
/// # Errors
/// When it would see what only the host may.
pub(super) fn of(
    agent: &AgentRecord,
    own: &AgentConfig,
    config: &Config,
    paths: &Paths,
) -> Result<Settings, String> {
    let mut mounts = Vec::new();
    for mount in &own.mounts {
        let source = Path::new(mount.source.as_str());
        mounts.push(Mount {
            source: std::fs::canonicalize(source)
                .map_err(|error| format!("cannot mount {}: {error}", source.display()))?,
            target: mount
                .target
                .as_ref()
                .unwrap_or(&mount.source)
                .as_str()
                .into(),
            access: if mount.writable {
                Access::ReadWrite
            } else {
                Access::ReadOnly
            },
        });
    }
    check_mounts(&mounts, paths)?;
    let is_root_agent = agent.name.as_str() == config.hive.root_agent;
    let proposals = is_root_agent.then(|| {
        if !isolates(agent.runtime) {
            return paths.proposed();
        }
        // The one part of the hive's own that an agent sees.
        mounts.push(Mount {
            source: paths.proposed(),
            target: PROPOSALS.into(),
            access: Access::ReadWrite,
        });
        PROPOSALS.into()
    });
    Ok(Settings {
        mounts,
        network: match config.agents.network(own.network, agent.runtime) {
            host::Network::Host => Network::Host,
            host::Network::None => Network::None,
            host::Network::Gateway | host::Network::Auto => Network::Gateway,
        },
        user: user(own),
        limits: limits(own, &config.agents.limits).to_runtime(),
        proposals,
    })
}

fn user(own: &AgentConfig) -> User {
    let default = User::default();
    let uid = own.user.uid.map_or(default.uid, |id| id.0);
    User {
        name: own
            .user
            .name
            .as_ref()
            .map_or(default.name, |name| name.to_string()),
        uid,
        gid: own.user.gid.map_or(uid, |id| id.0),
    }
}

/// What the agent's own configuration says, else what `hive.toml` says.
fn limits(own: &AgentConfig, hives: &AgentLimits) -> AgentLimits {
    let own = &own.limits;
    AgentLimits {
        memory_mib: own.memory_mib.map(|mib| mib.0.into()).or(hives.memory_mib),
        pids: own.pids.map(|pids| pids.0).or(hives.pids),
        cpu_percent: own.cpu_percent.map(|part| part.0).or(hives.cpu_percent),
        file_mib: own.file_mib.map(|mib| mib.0.into()).or(hives.file_mib),
        ..*hives
    }
}

/// Refuses mounts that would show an agent the hive itself: the database, the operator's token, the
/// admin socket, other agents.
fn check_mounts(mounts: &[Mount], paths: &Paths) -> Result<(), String> {
    for mount in mounts {
        for closed in [&paths.root, &paths.state, &paths.run] {
            let real = std::fs::canonicalize(closed).unwrap_or_else(|_| closed.clone());
            let overlaps =
                |dir: &Path| mount.source.starts_with(dir) || dir.starts_with(&mount.source);
            if overlaps(closed) || overlaps(&real) {
                return Err(format!(
                    "the mount {} would show the agent what is the hive's own in {}: mount \
                     something that does not contain it and is not in it",
                    mount.source.display(),
                    closed.display()
                ));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hive_itself_is_never_mounted() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("hive");
        std::fs::create_dir(&root).unwrap();
        let paths = Paths::find(Some(&root)).unwrap();
        let check = |source: &Path| {
            let mount = Mount {
                source: source.to_path_buf(),
                target: "/work".into(),
                access: Access::ReadOnly,
            };
            check_mounts(&[mount], &paths)
        };
        check(&dir.path().join("project")).unwrap();
        for closed in [
            Path::new("/"),
            dir.path(),
            &root,
            &root.join("state"),
            &root.join("state/operator-token"),
            &root.join("run/host.sock"),
        ] {
            let error = check(closed).unwrap_err();
            assert!(error.contains("the hive's own"), "{error}");
        }
    }
}
