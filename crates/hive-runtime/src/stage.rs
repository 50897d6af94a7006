//! The stage: what happens between the keeper and the program that it starts, in a process of its
//! own that has one thread and becomes the program.
//!
//! It goes into the agent's control groups, sets its limits, and puts what the agent is to see under
//! [`BASE`] in a mount namespace that nobody else sees. Each source is opened once, without
//! following a link, and mounted by its descriptor: what is swapped meanwhile is not mounted. Only
//! then is the uid dropped, so that the way to a source may be closed to the agent.

use std::{
    fs,
    io::{self, Write},
    os::{fd::OwnedFd, unix::process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2},
    mount::{
        MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_change,
        move_mount, open_tree,
    },
    process::{Resource, Rlimit, getgid, getuid, setrlimit},
    thread::UnshareFlags,
};
use serde::{Deserialize, Serialize};

use crate::Owner;

/// Where sources are staged: a directory that every host has. In the stage's namespace it is empty
/// but for them.
pub(crate) const BASE: &str = "/tmp";

/// What is done before a program begins.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Stage {
    /// What is put under [`BASE`], and whose it is to be; `None` for nothing.
    pub(crate) mounts: Option<Mounts>,
    /// Whom the program runs as.
    pub(crate) owner: Owner,
    /// The files of control groups that this process writes itself into.
    pub(crate) groups: Vec<PathBuf>,
    /// The most processes and threads of this user.
    pub(crate) pids: Option<u64>,
    /// The largest file.
    pub(crate) file_bytes: Option<u64>,
}

impl Stage {
    /// Nothing but what is set later.
    pub(crate) fn plain(owner: Owner) -> Self {
        Self {
            mounts: None,
            owner,
            groups: Vec::new(),
            pids: None,
            file_bytes: None,
        }
    }
}

/// What is put under [`BASE`]: each under its number.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mounts {
    pub(crate) staged: Vec<(usize, Staged)>,
    /// A directory of the host that the program writes to, covered by an empty one.
    pub(crate) covered: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Staged {
    /// A file or directory of the host.
    Source(PathBuf),
    /// A file with this text.
    Text(String),
}

/// What a stage is told: one line on its stdin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StageOrder {
    pub(crate) stage: Stage,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) cwd: PathBuf,
}

/// Where a thing with this number is staged.
pub(crate) fn staged(number: usize) -> String {
    format!("{BASE}/{number}")
}

/// Becomes the program, or says why it cannot.
pub(crate) fn run(order: &StageOrder) -> io::Error {
    match prepare(&order.stage) {
        Ok(()) => {}
        Err(error) => return error,
    }
    let mut command = Command::new(&order.program);
    command
        .args(&order.args)
        .current_dir(&order.cwd)
        .stdin(Stdio::null());
    if let Owner::Own { uid } = order.stage.owner {
        // This leaves every group of the daemon's, too.
        command.uid(uid).gid(uid);
    }
    let error = command.exec();
    explained(error, &format!("run {}", order.program.display()))
}

fn prepare(stage: &Stage) -> io::Result<()> {
    for file in &stage.groups {
        fs::write(file, "0")
            .map_err(|error| explained(error, &format!("enter {}", file.display())))?;
    }
    // The kernel takes agents first when memory ends, whoever used it up.
    fs::write("/proc/self/oom_score_adj", "500").ok();
    if let Some(mounts) = &stage.mounts {
        let own = match stage.owner {
            Owner::Daemon if !getuid().is_root() => UnshareFlags::NEWUSER | UnshareFlags::NEWNS,
            Owner::Daemon | Owner::Own { .. } => UnshareFlags::NEWNS,
        };
        set_mounts(mounts, own)?;
    }
    // Counted in the user namespace that is entered above, or for a user that nobody else is.
    limit(Resource::Nproc, stage.pids)?;
    limit(Resource::Fsize, stage.file_bytes)
}

fn limit(resource: Resource, most: Option<u64>) -> io::Result<()> {
    let Some(most) = most else { return Ok(()) };
    let now = rustix::process::getrlimit(resource);
    // One that is lower already stays, and a hard one cannot be raised.
    let most = now.maximum.map_or(most, |hard| hard.min(most));
    let limit = Rlimit {
        current: Some(now.current.map_or(most, |soft| soft.min(most))),
        maximum: Some(most),
    };
    Ok(setrlimit(resource, limit)?)
}

fn set_mounts(mounts: &Mounts, namespaces: UnshareFlags) -> io::Result<()> {
    let (uid, gid) = (getuid().as_raw(), getgid().as_raw());
    #[expect(
        deprecated,
        reason = "only sharing descriptors differently is unsafe, and this does not"
    )]
    rustix::thread::unshare(namespaces)
        .map_err(|error| explained(error.into(), "make namespaces"))?;
    if namespaces.contains(UnshareFlags::NEWUSER) {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    }
    let private = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    mount_change("/", private).map_err(|error| explained(error.into(), "make mounts private"))?;
    // All are opened before anything is covered.
    let mut trees: Vec<(PathBuf, Tree)> = Vec::new();
    for (number, staged_thing) in &mounts.staged {
        let tree = match staged_thing {
            Staged::Source(source) => Tree::Mount(
                open(source)
                    .map_err(|error| explained(error, &format!("mount {}", source.display())))?,
            ),
            Staged::Text(text) => Tree::Text(text),
        };
        trees.push((PathBuf::from(staged(*number)), tree));
    }
    mount_empty(Path::new(BASE))?;
    if let Some(covered) = &mounts.covered {
        fs::create_dir_all(covered)?;
        mount_empty(covered)?;
    }
    for (at, tree) in trees {
        tree.place(&at)
            .map_err(|error| explained(error, &format!("stage {}", at.display())))?;
    }
    Ok(())
}

fn mount_empty(at: &Path) -> io::Result<()> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = c"mode=0755,size=4m,nr_inodes=8192";
    mount("hive-stage", at, "tmpfs", flags, options)
        .map_err(|error| explained(error.into(), &format!("mount over {}", at.display())))
}

enum Tree<'t> {
    Mount(Source),
    Text(&'t str),
}

struct Source {
    tree: OwnedFd,
    is_dir: bool,
}

fn open(source: &Path) -> io::Result<Source> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let found = openat2(CWD, source, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?;
    let is_dir = rustix::fs::FileType::from_raw_mode(rustix::fs::fstat(&found)?.st_mode).is_dir();
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(found, "", flags)?;
    Ok(Source { tree, is_dir })
}

impl Tree<'_> {
    fn place(self, at: &Path) -> io::Result<()> {
        match self {
            Self::Text(text) => fs::write(at, text),
            Self::Mount(Source { tree, is_dir }) => {
                if is_dir {
                    fs::create_dir(at)?;
                } else {
                    fs::write(at, "")?;
                }
                let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
                Ok(move_mount(tree, "", CWD, at, flags)?)
            }
        }
    }
}

/// The same error, with what was attempted.
fn explained(error: io::Error, doing: &str) -> io::Error {
    io::Error::new(error.kind(), format!("cannot {doing}: {error}"))
}

/// Says on stderr, which is the agent's output, why there is no agent.
pub(crate) fn complain(error: &io::Error) {
    // If that fails too, nobody is left to tell.
    writeln!(io::stderr(), "hive: {error}").ok();
}
