//! The configurations that are applied, as the daemon uses them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use hive_wire::AgentName;

use super::AgentConfig;
use crate::repos::Repos;

/// Every agent's applied configuration, read once and again when it changes.
#[derive(Debug)]
pub(crate) struct Configs {
    repos: Repos,
    /// The hive's own directory.
    root: PathBuf,
    loaded: Mutex<BTreeMap<AgentName, Arc<AgentConfig>>>,
}

impl Configs {
    /// Those of a hive.
    pub(crate) fn new(repos: Repos, root: &Path) -> Self {
        Self {
            repos,
            root: root.to_path_buf(),
            loaded: Mutex::default(),
        }
    }

    /// Where they come from.
    pub(crate) fn repos(&self) -> &Repos {
        &self.repos
    }

    /// An agent's configuration; the defaults for one that has none.
    pub(crate) fn get(&self, name: &AgentName) -> Arc<AgentConfig> {
        if let Some(config) = self.lock().get(name) {
            return Arc::clone(config);
        }
        self.reload(name)
    }

    /// Reads it again.
    pub(crate) fn reload(&self, name: &AgentName) -> Arc<AgentConfig> {
        let config = Arc::new(self.read(name));
        self.lock().insert(name.clone(), Arc::clone(&config));
        config
    }

    /// Forgets one that is gone.
    pub(crate) fn forget(&self, name: &AgentName) {
        self.lock().remove(name);
    }

    fn read(&self, name: &AgentName) -> AgentConfig {
        let read = self.repos.applied(name).and_then(|applied| {
            let Some(applied) = applied else {
                return Ok(AgentConfig::default());
            };
            super::read(&applied.tree, &self.root).map(|declared| declared.config())
        });
        // What was applied was checked; an older rule may have allowed what a newer one does not.
        read.unwrap_or_else(|error| {
            tracing::error!(agent = %name, error = %format!("{error:#}"), "its applied configuration cannot be read; it gets the model, its parent and the operator, and nobody else");
            AgentConfig::closed()
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<AgentName, Arc<AgentConfig>>> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
