//! Takes one commit out of a proposed repository.
//!
//! Nothing of it is used where it lies: loose objects are copied one by one as they are needed, and
//! packs whole, into a scratch directory of the host's own, and read there with limits on every
//! allocation. Each object must hash to the name it was asked for by. The repository's
//! configuration, hooks, attributes, index and alternates are never looked at, except to refuse the
//! last with a reason.

use std::{
    fs, io,
    path::Path,
    time::{Duration, Instant},
};

use gix_hash::ObjectId;
use gix_object::{CommitRef, Find, Kind, TreeRefIter, tree::EntryKind};
use gix_odb::Header as _;
use hive_wire::{AgentName, approval::MAX_COMMIT_REF};
use thiserror::Error;

use super::{
    hostile::{Root, Unread},
    tree::{self, File, MAX_DEPTH, MAX_FILE, MAX_FILES, Mode, Tree, check_name},
};

/// The largest loose object as it lies on disk.
const MAX_LOOSE: u64 = MAX_FILE as u64 + 64 * 1024;
/// The largest commit or directory.
const MAX_META: u64 = 256 * 1024;
/// The most bytes of all packs together.
const MAX_PACKS: u64 = 64 * 1024 * 1024;
/// The most names in the directory of packs.
const MAX_PACK_NAMES: usize = 256;
/// The longest chain of differences in a pack; git itself makes chains of 50.
const MAX_CHAIN: u32 = 256;
/// The largest file of packed references.
const MAX_PACKED_REFS: u64 = 256 * 1024;
/// How long an import may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// What was taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Imported {
    /// The commit's whole hash.
    pub(crate) commit: String,
    /// Its files.
    pub(crate) tree: Tree,
}

/// Why a commit was not taken.
#[derive(Debug, Error)]
pub(crate) enum NotImported {
    /// There is no such repository, branch or commit.
    #[error("{0}")]
    Missing(String),
    /// It breaks a rule.
    #[error("{0}")]
    Refused(String),
    /// The host's own disk.
    #[error("cannot take the commit over: {0}")]
    Host(#[source] io::Error),
}

impl NotImported {
    pub(crate) fn host(error: impl Into<io::Error>) -> Self {
        Self::Host(error.into())
    }
}

fn refused(what: impl Into<String>) -> NotImported {
    NotImported::Refused(what.into())
}

/// Takes a commit out of `proposed/<name>/config`, by way of the empty directory `scratch`.
pub(super) fn commit(
    proposed: &Path,
    name: &AgentName,
    commit_ref: &str,
    scratch: &Path,
) -> Result<Imported, NotImported> {
    let proposed =
        Root::open(proposed).map_err(|error| unread("the directory `proposed`", error))?;
    let git = format!("{name}/config/.git");
    let repo = proposed.dir(&git).map_err(|error| match error {
        Unread::Missing => NotImported::Missing(format!("`{name}` has no proposed repository")),
        Unread::NotPlain => refused(format!(
            "the proposed repository of `{name}` is no plain repository: `.git` has to be a directory"
        )),
        error => unread("the proposed repository", error),
    })?;
    if !matches!(
        repo.read("objects/info/alternates", 0),
        Err(Unread::Missing)
    ) {
        return Err(refused(
            "the proposed repository borrows objects from another one (objects/info/alternates): \
             make it whole with `git repack -a -d`, and remove that file",
        ));
    }
    let id = resolve(&repo, commit_ref)?;
    let mut objects = Objects::new(&repo, scratch)?;
    let bytes = objects.get(&id, Kind::Commit, "the commit")?;
    let tree = CommitRef::from_bytes(&bytes, gix_hash::Kind::Sha1)
        .map_err(|_| refused(format!("the commit {id} is damaged")))?
        .tree();
    let mut found = Tree::default();
    objects.collect(&tree, "", &mut found)?;
    Ok(Imported {
        commit: id.to_string(),
        tree: found,
    })
}

/// The commit that a hash or a branch means now.
fn resolve(repo: &Root, commit_ref: &str) -> Result<ObjectId, NotImported> {
    let is_hash = |text: &str| text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let parsed = |text: &str| ObjectId::from_hex(text.to_ascii_lowercase().as_bytes()).ok();
    let shown = commit_ref.escape_default().to_string();
    if is_hash(commit_ref) {
        return parsed(commit_ref).ok_or_else(|| refused("it is no hash of a commit"));
    }
    if commit_ref == "HEAD" {
        let head = text(repo, "HEAD", 1_024)?.unwrap_or_default();
        let head = head.trim();
        if is_hash(head) {
            return parsed(head).ok_or_else(|| refused("HEAD is no hash of a commit"));
        }
        let branch = head.strip_prefix("ref: refs/heads/").ok_or_else(|| {
            refused("HEAD of the proposed repository is on no branch: give a commit's whole hash")
        })?;
        check_branch(branch)?;
        return branch_tip(repo, branch, &is_hash, &parsed);
    }
    check_branch(commit_ref).map_err(|_| {
        refused(format!(
            "`{shown}` is neither a commit's whole hash (40 digits) nor the name of a branch: \
             `git rev-parse HEAD` prints the hash"
        ))
    })?;
    branch_tip(repo, commit_ref, &is_hash, &parsed)
}

fn branch_tip(
    repo: &Root,
    branch: &str,
    is_hash: &dyn Fn(&str) -> bool,
    parsed: &dyn Fn(&str) -> Option<ObjectId>,
) -> Result<ObjectId, NotImported> {
    let name = format!("refs/heads/{branch}");
    let loose = text(repo, &name, 1_024)?;
    let packed = match loose {
        Some(_) => None,
        None => text(repo, "packed-refs", MAX_PACKED_REFS)?,
    };
    let packed = packed.as_deref().and_then(|packed| {
        let mut lines = packed.lines();
        lines.find_map(|line| line.strip_suffix(&format!(" {name}")))
    });
    let tip = loose.as_deref().map(str::trim).or(packed).ok_or_else(|| {
        NotImported::Missing(format!(
            "there is no branch `{branch}` in the proposed repository; give the commit's whole hash"
        ))
    })?;
    if !is_hash(tip) {
        return Err(refused(format!(
            "the branch `{branch}` leads to no commit by its SHA-1 hash: give the commit's whole hash"
        )));
    }
    parsed(tip).ok_or_else(|| refused(format!("the branch `{branch}` leads to no commit")))
}

fn check_branch(branch: &str) -> Result<(), NotImported> {
    let is_short = (1..=MAX_COMMIT_REF).contains(&branch.len());
    if !is_short || !branch.split('/').all(|name| check_name(name).is_ok()) {
        return Err(refused("the name of the branch is not one"));
    }
    Ok(())
}

/// A small text file, if it is there.
fn text(repo: &Root, path: &str, max: u64) -> Result<Option<String>, NotImported> {
    match repo.read(path, max) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| refused(format!("`.git/{path}` is no text"))),
        Err(Unread::Missing) => Ok(None),
        Err(error) => Err(unread(&format!("`.git/{path}`"), error)),
    }
}

fn unread(what: &str, error: Unread) -> NotImported {
    match error {
        Unread::Missing => NotImported::Missing(format!("{what} is not there")),
        Unread::NotPlain => refused(format!(
            "{what} is no plain file, or a link is on the way to it"
        )),
        Unread::TooLarge => refused(format!("{what} is too large")),
        Unread::Io(error) => NotImported::Host(error),
    }
}

/// The objects of a repository, as far as they have been asked for.
struct Objects<'r> {
    repo: &'r Root,
    scratch: &'r Path,
    database: gix_odb::Handle,
    has_packs: bool,
    until: Instant,
}

impl<'r> Objects<'r> {
    fn new(repo: &'r Root, scratch: &'r Path) -> Result<Self, NotImported> {
        let objects = scratch.join("objects");
        fs::create_dir_all(objects.join("pack")).map_err(NotImported::host)?;
        Ok(Self {
            database: open(&objects).map_err(NotImported::host)?,
            repo,
            scratch,
            has_packs: false,
            until: Instant::now() + PATIENCE,
        })
    }

    /// The bytes of an object, which has to be of this kind and to hash to its name.
    fn get(&mut self, id: &ObjectId, kind: Kind, what: &str) -> Result<Vec<u8>, NotImported> {
        if Instant::now() > self.until {
            return Err(refused(
                "it takes too long to read: make the repository smaller",
            ));
        }
        self.fetch(id, what)?;
        let damaged = || refused(format!("{what} ({id}) is damaged"));
        let max = match kind {
            Kind::Blob => MAX_FILE as u64,
            Kind::Commit | Kind::Tree | Kind::Tag => MAX_META,
        };
        let header = self.database.try_header(id).map_err(|_| damaged())?;
        let header = header.ok_or_else(|| {
            NotImported::Missing(format!("{what} {id} is not in the proposed repository"))
        })?;
        if header.kind() != kind {
            return Err(refused(format!(
                "{id} is a {}, and no {kind}",
                header.kind()
            )));
        }
        if header.size() > max {
            return Err(refused(format!(
                "{what} has {} bytes, and {max} is the most",
                header.size()
            )));
        }
        if header.num_deltas().is_some_and(|deltas| deltas > MAX_CHAIN) {
            return Err(refused(format!(
                "{what} lies in a pack behind more than {MAX_CHAIN} differences: `git gc` mends that"
            )));
        }
        let mut bytes = Vec::new();
        let found = self.database.try_find(id, &mut bytes);
        let found = found.map_err(|_| damaged())?.ok_or_else(damaged)?;
        let hash = gix_object::compute_hash(gix_hash::Kind::Sha1, found.kind, found.data);
        if found.kind != kind || hash.map_err(|_| damaged())? != *id {
            return Err(damaged());
        }
        Ok(found.data.to_vec())
    }

    /// Copies an object to where it can be read; whether it is there turns out later.
    fn fetch(&mut self, id: &ObjectId, what: &str) -> Result<(), NotImported> {
        let hex = id.to_string();
        let path = format!("objects/{}/{}", &hex[..2], &hex[2..]);
        match self.repo.read(&path, MAX_LOOSE) {
            Ok(bytes) => {
                let to = self.scratch.join(&path);
                let dir = to.parent().unwrap_or(self.scratch);
                let copied = fs::create_dir_all(dir).and_then(|()| fs::write(&to, bytes));
                copied.map_err(NotImported::host)
            }
            Err(Unread::Missing) if self.has_packs => Ok(()),
            Err(Unread::Missing) => self.fetch_packs(),
            Err(Unread::TooLarge) => Err(refused(format!(
                "{what} is larger than {} MiB",
                MAX_FILE >> 20
            ))),
            Err(error) => Err(unread(what, error)),
        }
    }

    fn fetch_packs(&mut self) -> Result<(), NotImported> {
        self.has_packs = true;
        let packs = match self.repo.dir("objects/pack") {
            Err(Unread::Missing) => return Ok(()),
            packs => packs.map_err(|error| unread("`.git/objects/pack`", error))?,
        };
        let names = packs
            .names(MAX_PACK_NAMES)
            .map_err(|error| unread("the directory of packs", error))?;
        let mut left = MAX_PACKS;
        for name in names.iter().filter(|name| is_pack(name)) {
            let bytes = packs.read(name, left).map_err(|error| match error {
                Unread::TooLarge => refused(format!(
                    "the packs of the proposed repository have more than {} MiB",
                    MAX_PACKS >> 20
                )),
                error => unread(&format!("`.git/objects/pack/{name}`"), error),
            })?;
            left -= bytes.len() as u64;
            let to = self.scratch.join("objects/pack").join(name);
            fs::write(to, bytes).map_err(NotImported::host)?;
        }
        self.database = open(&self.scratch.join("objects")).map_err(NotImported::host)?;
        Ok(())
    }

    /// Adds the files of a directory and of those in it.
    fn collect(
        &mut self,
        id: &ObjectId,
        prefix: &str,
        found: &mut Tree,
    ) -> Result<(), NotImported> {
        if prefix.split('/').count() > MAX_DEPTH {
            return Err(refused(format!(
                "`{prefix}` is deeper than {MAX_DEPTH} names"
            )));
        }
        let what = if prefix.is_empty() {
            "the top directory".to_owned()
        } else {
            format!("the directory `{prefix}`")
        };
        let bytes = self.get(id, Kind::Tree, &what)?;
        let entries = TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1);
        for (count, entry) in entries.enumerate() {
            if count >= MAX_FILES {
                return Err(refused(format!("{what} has more than {MAX_FILES} files")));
            }
            let entry = entry.map_err(|_| refused(format!("{what} is damaged")))?;
            let name = std::str::from_utf8(entry.filename)
                .map_err(|_| refused(format!("{what} has a name that is no text")))?;
            check_name(name).map_err(refused)?;
            let path = format!("{prefix}{name}");
            let id = entry.oid.to_owned();
            let mode = match entry.mode.kind() {
                EntryKind::Tree => {
                    self.collect(&id, &format!("{path}/"), found)?;
                    continue;
                }
                EntryKind::Blob => Mode::Plain,
                EntryKind::BlobExecutable => Mode::Executable,
                EntryKind::Link => {
                    return Err(refused(format!(
                        "`{path}` is a symbolic link: a configuration has plain files only"
                    )));
                }
                EntryKind::Commit => {
                    return Err(refused(format!(
                        "`{path}` is a submodule: a configuration has plain files only"
                    )));
                }
            };
            tree::check_path(&path).map_err(refused)?;
            let content = self.get(&id, Kind::Blob, &format!("the file `{path}`"))?;
            found.add(path, File { mode, content }).map_err(refused)?;
        }
        Ok(())
    }
}

fn open(objects: &Path) -> io::Result<gix_odb::Handle> {
    let options = gix_odb::store::init::Options {
        use_multi_pack_index: false,
        alloc_limit_bytes: Some(2 * MAX_FILE),
        current_dir: Some(objects.to_path_buf()),
        ..gix_odb::store::init::Options::default()
    };
    gix_odb::at_opts(objects, gix_hash::Kind::Sha1, None, options)
}

fn is_pack(name: &str) -> bool {
    let stem = name.strip_suffix(".pack").or(name.strip_suffix(".idx"));
    stem.and_then(|stem| stem.strip_prefix("pack-"))
        .is_some_and(|hash| hash.len() == 40 && hash.bytes().all(|b| b.is_ascii_hexdigit()))
}
