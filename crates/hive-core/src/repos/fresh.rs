//! The first commit of a proposed repository, made by the host: the last time it writes there.
//!
//! It is made whole in a directory of the host's own and then moved into its place, so that nothing
//! an agent has put there is ever written through.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use gix_hash::ObjectId;
use gix_object::{Kind, Write as _};
use gix_odb::loose;
use hive_wire::AgentName;
use rustix::fs::{Mode as FileMode, OFlags, RenameFlags};
use thiserror::Error;

use super::{
    bare::{encode_commit, write_tree},
    hostile::Root,
    private_dir,
    tree::{File, Tree},
};

/// The branch that a proposed repository begins with.
const BRANCH: &str = "main";
/// Who made the first commit.
const AUTHOR: &str = "hyperhive <hyperhive@hive.invalid>";

/// The root agent has put something else where a repository belongs.
#[derive(Debug, Error)]
#[error("{} is in the way of a new repository: move it elsewhere", .0.display())]
pub(crate) struct InTheWay(PathBuf);

/// Puts a repository with one commit to `proposed/<name>/config`, unless one is there.
pub(super) fn place(
    proposed: &Path,
    name: &AgentName,
    files: &Tree,
    scratch: &Path,
) -> anyhow::Result<()> {
    let root = Root::open(proposed).map_err(|error| anyhow::anyhow!("{error:?}"))?;
    if root.is_dir(&format!("{name}/config/.git")) {
        return Ok(());
    }
    let made = scratch.join(name.as_str());
    make(&made.join("config"), files)?;
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let to = rustix::fs::open(proposed, flags, FileMode::empty())?;
    let from = rustix::fs::open(scratch, flags, FileMode::empty())?;
    let moved = rustix::fs::renameat_with(
        &from,
        name.as_str(),
        &to,
        name.as_str(),
        RenameFlags::NOREPLACE,
    );
    match moved.map_err(io::Error::from) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(InTheWay(proposed.join(name.as_str())).into())
        }
        Err(error) => Err(error).context("cannot put the repository into its place"),
    }
}

/// Makes a repository with one commit, checked out.
fn make(dir: &Path, files: &Tree) -> anyhow::Result<()> {
    files.write_to(dir)?;
    let git = dir.join(".git");
    for part in ["objects/info", "objects/pack", "refs/heads", "refs/tags"] {
        private_dir(&git.join(part))?;
    }
    fs::write(
        git.join("config"),
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\t\
         logallrefupdates = true\n",
    )?;
    let objects = loose::Store::at(git.join("objects"), gix_hash::Kind::Sha1);
    let write = |kind: Kind, bytes: &[u8]| {
        let written = objects.write_buf(kind, bytes);
        written.map_err(|error| anyhow::anyhow!("cannot write an object: {error}"))
    };
    let tree = write_tree(&write, files)?;
    let commit = encode_commit(&tree, None, "first configuration", AUTHOR);
    let commit = write(Kind::Commit, commit.as_bytes())?;
    fs::write(git.join("index"), index(files)?)?;
    fs::write(git.join("refs/heads").join(BRANCH), format!("{commit}\n"))?;
    fs::write(git.join("HEAD"), format!("ref: refs/heads/{BRANCH}\n"))?;
    Ok(())
}

/// Git's list of what is checked out (version 2), without the times and sizes that it fills in
/// when it first looks.
fn index(files: &Tree) -> anyhow::Result<Vec<u8>> {
    let mut bytes = b"DIRC\0\0\0\x02".to_vec();
    bytes.extend(u32::try_from(files.iter().count())?.to_be_bytes());
    for (path, file) in files.iter() {
        let mut entry = vec![0_u8; 40];
        let mode = u32::from_str_radix(file.mode.octal(), 8)?;
        entry[24..28].copy_from_slice(&mode.to_be_bytes());
        entry.extend_from_slice(blob_id(file)?.as_slice());
        entry.extend(u16::try_from(path.len())?.to_be_bytes());
        entry.extend_from_slice(path.as_bytes());
        // At least one zero byte, up to a multiple of eight.
        entry.resize(entry.len() / 8 * 8 + 8, 0);
        bytes.extend(entry);
    }
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(&bytes);
    let checksum = hasher
        .try_finalize()
        .map_err(|error| anyhow::anyhow!("cannot hash the index: {error}"))?;
    bytes.extend_from_slice(checksum.as_slice());
    Ok(bytes)
}

fn blob_id(file: &File) -> anyhow::Result<ObjectId> {
    gix_object::compute_hash(gix_hash::Kind::Sha1, Kind::Blob, &file.content)
        .map_err(|error| anyhow::anyhow!("cannot hash a file: {error}"))
}
