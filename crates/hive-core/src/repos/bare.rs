//! A bare repository of the host's own: loose objects and a few branches, as `git log` reads them.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use gix_hash::ObjectId;
use gix_object::{CommitRef, Kind, TreeRefIter, Write as _, tree::EntryKind};
use gix_odb::loose;
use hive_wire::Timestamp;

use super::{
    private_dir,
    tree::{self, Mode, Tree},
};

/// Who commits: the host.
const COMMITTER: &str = "hyperhive <hyperhive@hive.invalid>";

/// A repository that only the host writes.
pub(super) struct Bare {
    path: PathBuf,
    objects: loose::Store,
}

impl Bare {
    /// Makes a new one.
    pub(super) fn init(path: &Path) -> anyhow::Result<Self> {
        for dir in ["objects/info", "objects/pack", "refs/heads"] {
            private_dir(&path.join(dir))?;
        }
        fs::write(
            path.join("config"),
            "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
        )?;
        // Last: what has a HEAD is whole.
        fs::write(path.join("HEAD"), "ref: refs/heads/applied\n")?;
        Self::open(path)
    }

    /// Opens one that is there.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        if !path.join("HEAD").is_file() {
            bail!("{} is no repository", path.display());
        }
        let options = loose::Options {
            alloc_limit_bytes: Some(2 * tree::MAX_FILE),
            ..loose::Options::default()
        };
        Ok(Self {
            objects: loose::Store::at_opts(path.join("objects"), gix_hash::Kind::Sha1, options),
            path: path.to_path_buf(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a commit of these files; its hash.
    pub(super) fn commit(
        &self,
        files: &Tree,
        parent: Option<&str>,
        message: &str,
    ) -> anyhow::Result<String> {
        let tree = write_tree(&|kind, bytes| self.write(kind, bytes), files)?;
        let commit = encode_commit(&tree, parent, message, COMMITTER);
        Ok(self.write(Kind::Commit, commit.as_bytes())?.to_string())
    }

    /// The message and the files of a commit.
    pub(super) fn read(&self, commit: &str) -> anyhow::Result<(String, Tree)> {
        let id = ObjectId::from_hex(commit.as_bytes()).context("it is no hash of a commit")?;
        let bytes = self.get(&id, Kind::Commit)?;
        let commit = CommitRef::from_bytes(&bytes, gix_hash::Kind::Sha1)
            .map_err(|error| anyhow::anyhow!("{id} is damaged: {error}"))?;
        let mut found = Tree::default();
        self.collect(&commit.tree(), "", &mut found)?;
        let message = String::from_utf8_lossy(commit.message)
            .trim_end()
            .to_owned();
        Ok((message, found))
    }

    /// The commit before a commit.
    pub(super) fn parent(&self, commit: &str) -> anyhow::Result<Option<String>> {
        let id = ObjectId::from_hex(commit.as_bytes()).context("it is no hash of a commit")?;
        let bytes = self.get(&id, Kind::Commit)?;
        let commit = CommitRef::from_bytes(&bytes, gix_hash::Kind::Sha1)
            .map_err(|error| anyhow::anyhow!("{id} is damaged: {error}"))?;
        let parent = commit.parents().next();
        Ok(parent.map(|parent| parent.to_string()))
    }

    /// The commit that a branch is at.
    pub(super) fn get_ref(&self, name: &str) -> anyhow::Result<Option<String>> {
        match fs::read_to_string(self.path.join(name)) {
            Ok(text) => Ok(Some(text.trim().to_owned())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {name}")),
        }
    }

    /// Moves a branch.
    pub(super) fn set_ref(&self, name: &str, commit: &str) -> anyhow::Result<()> {
        let to = self.path.join(name);
        let next = to.with_extension("lock");
        fs::write(&next, format!("{commit}\n"))?;
        File::open(&next)?.sync_all()?;
        fs::rename(&next, &to).with_context(|| format!("cannot move {name}"))
    }

    /// Has everything on disk.
    pub(super) fn sync(&self) -> anyhow::Result<()> {
        let dir = File::open(&self.path)?;
        rustix::fs::syncfs(&dir).context("cannot sync the repository")
    }

    fn write(&self, kind: Kind, bytes: &[u8]) -> anyhow::Result<ObjectId> {
        let written = self.objects.write_buf(kind, bytes);
        written.map_err(|error| anyhow::anyhow!("cannot write an object: {error}"))
    }

    fn get(&self, id: &ObjectId, kind: Kind) -> anyhow::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let found = self.objects.try_find(id, &mut bytes);
        let found = found
            .map_err(|error| anyhow::anyhow!("cannot read {id}: {error}"))?
            .with_context(|| format!("{id} is not there"))?;
        let hash = gix_object::compute_hash(gix_hash::Kind::Sha1, found.kind, found.data);
        let is_whole = found.kind == kind && hash.is_ok_and(|hash| hash == *id);
        anyhow::ensure!(is_whole, "{id} is damaged");
        Ok(found.data.to_vec())
    }

    fn collect(&self, id: &ObjectId, prefix: &str, found: &mut Tree) -> anyhow::Result<()> {
        let bytes = self.get(id, Kind::Tree)?;
        for entry in TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1) {
            let entry = entry.map_err(|error| anyhow::anyhow!("{id} is damaged: {error}"))?;
            let path = format!("{prefix}{}", std::str::from_utf8(entry.filename)?);
            let id = entry.oid.to_owned();
            let mode = match entry.mode.kind() {
                EntryKind::Tree => {
                    self.collect(&id, &format!("{path}/"), found)?;
                    continue;
                }
                EntryKind::Blob => Mode::Plain,
                EntryKind::BlobExecutable => Mode::Executable,
                EntryKind::Link | EntryKind::Commit => bail!("`{path}` is no plain file"),
            };
            let content = self.get(&id, Kind::Blob)?;
            let added = found.add(path, tree::File { mode, content });
            added.map_err(anyhow::Error::msg)?;
        }
        Ok(())
    }
}

/// Writes an object; its hash.
pub(super) type WriteObject<'w> = dyn Fn(Kind, &[u8]) -> anyhow::Result<ObjectId> + 'w;

/// Writes all files and directories; the hash of the top one.
pub(super) fn write_tree(write: &WriteObject<'_>, files: &Tree) -> anyhow::Result<ObjectId> {
    let files: Vec<_> = files
        .iter()
        .map(|(path, file)| (path.as_str(), file))
        .collect();
    write_dir(write, &files, 0)
}

/// Writes a directory from its files in order, whose paths are the same up to `at`.
fn write_dir(
    write: &WriteObject<'_>,
    files: &[(&str, &tree::File)],
    at: usize,
) -> anyhow::Result<ObjectId> {
    let mut entries: Vec<(String, Vec<u8>)> = Vec::new();
    let mut rest = files;
    while let Some((path, file)) = rest.first() {
        let own = &path[at..];
        let (mode, name, id, count) = match own.split_once('/') {
            Some((dir, _)) => {
                let beneath = |(path, _): &&(&str, &tree::File)| {
                    path[at..]
                        .strip_prefix(dir)
                        .is_some_and(|rest| rest.starts_with('/'))
                };
                let count = rest.iter().take_while(beneath).count();
                let id = write_dir(write, &rest[..count], at + dir.len() + 1)?;
                ("40000", dir, id, count)
            }
            None => (file.mode.octal(), own, write(Kind::Blob, &file.content)?, 1),
        };
        let mut entry = format!("{mode} {name}\0").into_bytes();
        entry.extend_from_slice(id.as_slice());
        // Git sorts a directory as if its name ended with a slash.
        let slash = if mode == "40000" { "/" } else { "" };
        entries.push((format!("{name}{slash}"), entry));
        rest = &rest[count..];
    }
    entries.sort();
    let bytes: Vec<u8> = entries.into_iter().flat_map(|(_, entry)| entry).collect();
    write(Kind::Tree, &bytes)
}

/// A commit as git writes it.
pub(super) fn encode_commit(
    tree: &ObjectId,
    parent: Option<&str>,
    message: &str,
    who: &str,
) -> String {
    let seconds = Timestamp::now().millis() / 1_000;
    let parent = parent.map_or_else(String::new, |parent| format!("parent {parent}\n"));
    format!(
        "tree {tree}\n{parent}author {who} {seconds} +0000\ncommitter {who} {seconds} +0000\n\n\
         {message}\n"
    )
}
