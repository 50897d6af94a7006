//! The repositories of agents' configuration (C6), and the only code that touches them.
//!
//! An agent has two. The *proposed* one is the root agent's to write and hostile to us: it is read
//! beneath a directory handle, without following a link, with every size capped, and no program of
//! git ever runs in it. What is asked for is copied out of it object by object into a bare
//! repository of the host's own, once, when the request is made. The *applied* one is the host's
//! alone; its history has one commit for each approval that was carried out.
//!
//! What always holds: a [`Tree`] that exists keeps the rules of paths and sizes, and nothing in here
//! runs code, reads git configuration, or looks outside the directory it was given.

mod bare;
mod diff;
mod fresh;
mod hostile;
mod import;
mod tree;

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use hive_wire::AgentName;

pub(crate) use diff::readable as diff;
pub(crate) use fresh::InTheWay;
pub(crate) use import::{Imported, NotImported};
pub(crate) use tree::{File, Mode, Tree};

/// A small plain file in a directory of which everything inside may be hostile.
pub(crate) fn read_hostile(dir: &Path, name: &str, max: u64) -> Option<Vec<u8>> {
    hostile::Root::open(dir).ok()?.read(name, max).ok()
}

use bare::Bare;

/// The branch that says what is applied.
const APPLIED: &str = "refs/heads/applied";
/// What a request's repository holds it under.
const REQUESTED: &str = "refs/heads/requested";

/// Where the repositories of a hive lie.
#[derive(Debug, Clone)]
pub(crate) struct Repos {
    state: PathBuf,
}

/// A commit of the applied repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    /// Its hash.
    pub(crate) commit: String,
    /// What the host wrote about it.
    pub(crate) message: String,
    /// What it holds.
    pub(crate) tree: Tree,
}

impl Repos {
    /// Those under a hive's directory of durable state.
    pub(crate) fn new(state: &Path) -> Self {
        Self {
            state: state.to_path_buf(),
        }
    }

    /// What the root agent sees at `/agents`.
    pub(crate) fn proposed(&self) -> PathBuf {
        self.state.join("proposed")
    }

    /// The files of an agent's applied configuration.
    pub(crate) fn files(&self, name: &AgentName) -> PathBuf {
        self.applied_dir(name).join("config")
    }

    /// Everything of an agent that is applied.
    pub(crate) fn applied_dir(&self, name: &AgentName) -> PathBuf {
        self.state.join("applied").join(name.as_str())
    }

    fn history(&self, name: &AgentName) -> PathBuf {
        self.applied_dir(name).join("repo.git")
    }

    /// Where a request's content is kept until it is settled.
    fn request(&self, hash: &str) -> PathBuf {
        self.state.join("requests").join(format!("{hash}.git"))
    }

    /// Makes the directories, and removes what a crash left half done. Once, before all else.
    ///
    /// # Errors
    /// When one cannot be made or read.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        for dir in ["proposed", "applied", "requests"] {
            private_dir(&self.state.join(dir))?;
        }
        for entry in fs::read_dir(self.state.join("requests"))? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "git") {
                remove(&path);
            }
        }
        Ok(())
    }

    /// Takes one commit out of an agent's proposed repository.
    ///
    /// # Errors
    /// With what is wrong with it.
    pub(crate) fn import(
        &self,
        name: &AgentName,
        commit_ref: &str,
    ) -> Result<Imported, NotImported> {
        let scratch = tempfile::Builder::new()
            .prefix("import-")
            .tempdir_in(self.state.join("requests"))
            .map_err(NotImported::host)?;
        import::commit(&self.proposed(), name, commit_ref, scratch.path())
    }

    /// Keeps what a request asks for, durably, under the hash of its content.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn keep_request(&self, hash: &str, tree: &Tree) -> anyhow::Result<()> {
        let path = self.request(hash);
        if path.exists() {
            return Ok(());
        }
        let scratch = tempfile::Builder::new()
            .prefix("request-")
            .tempdir_in(self.state.join("requests"))?;
        let bare = Bare::init(&scratch.path().join("repo"))?;
        let commit = bare.commit(tree, None, "requested")?;
        bare.set_ref(REQUESTED, &commit)?;
        bare.sync()?;
        match fs::rename(bare.path(), &path) {
            // Somebody else asked for the same at the same time.
            Err(_) if path.exists() => Ok(()),
            renamed => renamed.with_context(|| format!("cannot keep {}", path.display())),
        }
    }

    /// What a request asks for.
    ///
    /// # Errors
    /// When it is not there any more, or not as it was written.
    pub(crate) fn requested(&self, hash: &str) -> anyhow::Result<Tree> {
        let bare = Bare::open(&self.request(hash))?;
        let commit = bare.get_ref(REQUESTED)?.context("it was never finished")?;
        bare.read(&commit).map(|(_, tree)| tree)
    }

    /// Forgets what a settled request asked for.
    pub(crate) fn drop_request(&self, hash: &str) {
        remove(&self.request(hash));
    }

    /// The hashes of all requests that are kept.
    pub(crate) fn kept_requests(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.state.join("requests")) else {
            return Vec::new();
        };
        let names = entries.flatten().filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".git").map(str::to_owned)
        });
        names.collect()
    }

    /// What is applied; `None` before the first time.
    ///
    /// # Errors
    /// When the repository is damaged.
    pub(crate) fn applied(&self, name: &AgentName) -> anyhow::Result<Option<Applied>> {
        let path = self.history(name);
        if !path.exists() {
            return Ok(None);
        }
        let bare = Bare::open(&path)?;
        let Some(commit) = bare.get_ref(APPLIED)? else {
            return Ok(None);
        };
        let (message, tree) = bare.read(&commit)?;
        Ok(Some(Applied {
            commit,
            message,
            tree,
        }))
    }

    /// What was applied before the newest commit.
    ///
    /// # Errors
    /// When the repository is damaged.
    pub(crate) fn before(&self, name: &AgentName) -> anyhow::Result<Option<Applied>> {
        let bare = Bare::open(&self.history(name))?;
        let Some(head) = bare.get_ref(APPLIED)? else {
            return Ok(None);
        };
        let Some(commit) = bare.parent(&head)? else {
            return Ok(None);
        };
        let (message, tree) = bare.read(&commit)?;
        Ok(Some(Applied {
            commit,
            message,
            tree,
        }))
    }

    /// Makes a tree what is applied: a commit with this message, and the files in their place. The
    /// same message again changes nothing, so that it can be repeated after a crash.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn apply(
        &self,
        name: &AgentName,
        tree: &Tree,
        message: &str,
    ) -> anyhow::Result<String> {
        private_dir(&self.applied_dir(name))?;
        let path = self.history(name);
        let bare = if path.exists() {
            Bare::open(&path)?
        } else {
            Bare::init(&path)?
        };
        let head = bare.get_ref(APPLIED)?;
        let is_there = match &head {
            Some(head) => bare.read(head)? == (message.to_owned(), tree.clone()),
            None => false,
        };
        let commit = match head {
            Some(head) if is_there => head,
            head => {
                let commit = bare.commit(tree, head.as_deref(), message)?;
                bare.sync()?;
                bare.set_ref(APPLIED, &commit)?;
                bare.sync()?;
                commit
            }
        };
        hive_store::failpoint!("repos::committed");
        self.check_out(name, tree)?;
        Ok(commit)
    }

    /// Has the files of what is applied in their place, whatever a crash left there.
    ///
    /// # Errors
    /// When they cannot be written.
    pub(crate) fn put_right(&self, name: &AgentName, tree: &Tree) -> anyhow::Result<()> {
        if tree.is_at(&self.files(name)) {
            return Ok(());
        }
        self.check_out(name, tree)
    }

    /// Puts the files of what is applied into their place, as they are in its history.
    fn check_out(&self, name: &AgentName, tree: &Tree) -> anyhow::Result<()> {
        let dir = self.applied_dir(name);
        let (files, next, old) = (
            dir.join("config"),
            dir.join("config.next"),
            dir.join("config.old"),
        );
        remove(&next);
        remove(&old);
        tree.write_to(&next)?;
        match fs::rename(&files, &old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot replace {}", files.display()));
            }
            _ => {}
        }
        fs::rename(&next, &files)
            .with_context(|| format!("cannot put {} into its place", files.display()))?;
        remove(&old);
        Ok(())
    }

    /// Gives an agent its proposed repository with a first commit, unless it has one.
    ///
    /// # Errors
    /// When it cannot be made, or when something else lies in its place.
    pub(crate) fn first_proposal(&self, name: &AgentName, tree: &Tree) -> anyhow::Result<()> {
        let scratch = tempfile::Builder::new()
            .prefix("first-")
            .tempdir_in(self.state.join("requests"))?;
        fresh::place(&self.proposed(), name, tree, scratch.path())
    }

    /// The revision of the hive that an agent was last made with (C11).
    pub(crate) fn revision(&self, name: &AgentName) -> Option<String> {
        let text = fs::read_to_string(self.revision_file(name)).ok()?;
        Some(text.trim().to_owned())
    }

    /// Notes the revision of the hive that an agent is made with.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn note_revision(&self, name: &AgentName, revision: &str) -> io::Result<()> {
        let to = self.revision_file(name);
        let next = to.with_extension("next");
        fs::write(&next, format!("{revision}\n"))?;
        fs::rename(&next, &to)
    }

    fn revision_file(&self, name: &AgentName) -> PathBuf {
        self.state
            .join("applied")
            .join(format!(".{name}.hyperhive-rev"))
    }

    /// Whether the agent's proposed repository is still there.
    pub(crate) fn has_proposal(&self, name: &AgentName) -> bool {
        hostile::Root::open(&self.proposed())
            .is_ok_and(|root| root.is_dir(&format!("{name}/config/.git")))
    }
}

fn private_dir(dir: &Path) -> anyhow::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .with_context(|| format!("cannot make {}", dir.display()))
}

/// Removes a directory of the host's own; what cannot be removed is only said.
fn remove(dir: &Path) {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(%error, dir = %dir.display(), "cannot remove what is left");
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
