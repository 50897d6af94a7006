//! `bwrap`: an agent in namespaces of its own, made by bubblewrap. The default where the kernel lets
//! it: it needs no daemon, no image and no privileges.
//!
//! The [`crate::stage`] goes first: it stages the binds and drops the uid, so that bubblewrap itself
//! has no rights that the agent must not have. The environment goes through the environment, not
//! through arguments, which everybody on the machine can read.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use hive_wire::{AgentName, host};

use crate::{
    Access, AgentDirs, AgentSpec, Network, RuntimeError, System, View, failed,
    keeper::KeeperCommand,
    kept::{Kept, Launch, Tool},
    mount_point,
    order::{Agent, shown},
    plan::{self, Entry, MountPlan},
    stage::{Mounts, Stage, Staged, staged},
};

/// How much fits into `/dev/shm`, in bytes.
const SHARED_MEMORY: u64 = 256 * 1024 * 1024;

/// Runs agents with bubblewrap.
pub type BwrapRuntime = Kept<Bwrap>;

/// Bubblewrap on this host.
#[derive(Debug, Clone)]
pub struct Bwrap {
    program: PathBuf,
    system: System,
    path: OsString,
}

impl Bwrap {
    /// Bubblewrap at this place, on a host with this system. `path` is where the host looks for
    /// programs.
    pub fn new(program: PathBuf, system: System, path: OsString) -> Self {
        Self {
            program,
            system,
            path,
        }
    }
}

impl BwrapRuntime {
    /// The runtime of the agents whose directories lie in `agents`.
    pub fn new(tool: Bwrap, agents: PathBuf, keeper: KeeperCommand) -> Self {
        Self::with(tool, agents, keeper)
    }
}

impl Tool for Bwrap {
    fn kind(&self) -> host::Runtime {
        host::Runtime::Bwrap
    }

    fn view(&self, _: &AgentDirs) -> View {
        plan::view()
    }

    fn launch(&self, spec: &AgentSpec, _: &Path) -> Result<Launch, RuntimeError> {
        let plan = MountPlan::new(spec, &self.system, &self.path)?;
        plan.check_program(&spec.command.program)?;
        mount_point::make(&spec.dirs.home, ".claude", spec.owner).map_err(failed(format!(
            "make a mount point in {}",
            shown(&spec.dirs.home)
        )))?;
        Ok(Launch {
            program: self.program.clone(),
            args: arguments(spec, &plan),
            env: spec.env.clone(),
            cwd: "/".into(),
            stage: Some(Stage {
                mounts: Some(mounts(&plan)),
                owner: spec.owner,
                groups: Vec::new(),
                pids: spec.limits.pids.map(u64::from),
                file_bytes: spec.limits.file_bytes,
            }),
            agent: Agent::InNamespace,
        })
    }

    fn clear(&self, _: &AgentName, _: &Path) -> Result<(), RuntimeError> {
        // Its mounts went with its namespaces.
        Ok(())
    }
}

/// What the stage puts where the arguments expect it.
fn mounts(plan: &MountPlan) -> Mounts {
    let staged = plan.entries.iter().enumerate();
    let staged = staged.filter_map(|(number, entry)| match entry {
        Entry::Bind { source, .. } => Some((number, Staged::Source(source.clone()))),
        Entry::File { text, .. } => Some((number, Staged::Text(text.clone()))),
        Entry::Link { .. } | Entry::Tmpfs { .. } | Entry::Dir { .. } => None,
    });
    Mounts {
        staged: staged.collect(),
        covered: None,
    }
}

/// The whole command line of bubblewrap, without its name.
fn arguments(spec: &AgentSpec, plan: &MountPlan) -> Vec<String> {
    let mut args = Args::default();
    args.add(["--unshare-user", "--unshare-pid", "--unshare-ipc"]);
    args.add(["--unshare-uts", "--unshare-cgroup-try"]);
    match spec.network {
        Network::Gateway | Network::None => args.add(["--unshare-net"]),
        Network::Host => {}
    }
    let (uid, gid) = (spec.user.uid.to_string(), spec.user.gid.to_string());
    args.add(["--uid", &uid, "--gid", &gid]);
    args.add(["--hostname", spec.name.as_str()]);
    // With its keeper, not with the daemon: the keeper outlives that.
    args.add(["--die-with-parent", "--new-session", "--cap-drop", "ALL"]);
    args.add(["--proc", "/proc", "--dev", "/dev"]);
    args.add(["--size", &SHARED_MEMORY.to_string(), "--tmpfs", "/dev/shm"]);
    for (number, entry) in plan.entries.iter().enumerate() {
        let target = entry.target().to_string_lossy();
        match entry {
            Entry::Bind { access, .. } => {
                let option = match access {
                    Access::ReadOnly => "--ro-bind",
                    Access::ReadWrite => "--bind",
                };
                args.add([option, &staged(number), &target]);
            }
            Entry::File { .. } => args.add(["--ro-bind", &staged(number), &target]),
            Entry::Link { to, .. } => args.add(["--symlink", &to.to_string_lossy(), &target]),
            Entry::Tmpfs { bytes, .. } => {
                args.add(["--size", &bytes.to_string(), "--tmpfs", &target]);
            }
            Entry::Dir { .. } => args.add(["--perms", "0700", "--dir", &target]),
        }
    }
    // What is left to write to is the agent's own, and bounded.
    args.add(["--remount-ro", "/dev", "--remount-ro", "/"]);
    args.add(["--chdir", "/state", "--"]);
    args.add([&*spec.command.program.to_string_lossy()]);
    args.0.extend(spec.command.args.iter().cloned());
    args.0
}

#[derive(Default)]
struct Args(Vec<String>);

impl Args {
    fn add<const N: usize>(&mut self, args: [&str; N]) {
        self.0.extend(args.map(str::to_owned));
    }
}

#[cfg(test)]
mod tests;
