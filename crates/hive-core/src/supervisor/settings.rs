//! What an agent may see and use beyond what every agent does.

use std::path::Path;

use hive_runtime::{Limits, Mount, Network, User};

use crate::{config::Config, paths::Paths};

/// The part of an agent's configuration that its runtime enforces (T29).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) mounts: Vec<Mount>,
    pub(super) network: Network,
    pub(super) user: User,
    pub(super) limits: Limits,
}

/// The settings of an agent.
///
/// # Errors
/// When it would see what only the host may.
pub(super) fn of(config: &Config, paths: &Paths) -> Result<Settings, String> {
    let settings = Settings {
        mounts: Vec::new(),
        network: config.agents.network,
        user: User::default(),
        limits: config.agents.limits.to_runtime(),
    };
    check_mounts(&settings.mounts, paths)?;
    Ok(settings)
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
    use hive_runtime::Access;

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
