//! `nspawn`: an agent in a container of systemd's, without systemd inside it and without machined
//! outside. Only root can make one.
//!
//! The agent is a user without privileges, the same inside and outside. Its root is made of mount
//! points alone ([`crate::rootfs`]) and is read-only.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use hive_wire::{AgentName, host};

use crate::{
    Access, AgentDirs, AgentSpec, Network, Owner, RuntimeError, System, View, failed,
    keeper::KeeperCommand,
    kept::{Kept, Launch, Tool, short_hash},
    mount_point,
    order::{Agent, shown},
    plan::{self, Entry, MountPlan},
    rootfs,
    stage::{Mounts, Stage, Staged, staged},
};

/// Runs agents with systemd-nspawn.
pub type NspawnRuntime = Kept<Nspawn>;

/// systemd-nspawn on this host.
#[derive(Debug, Clone)]
pub struct Nspawn {
    program: PathBuf,
    system: System,
    path: OsString,
}

impl Nspawn {
    /// systemd-nspawn at this place, on a host with this system. `path` is where the host looks for
    /// programs.
    pub fn new(program: PathBuf, system: System, path: OsString) -> Self {
        Self {
            program,
            system,
            path,
        }
    }
}

impl NspawnRuntime {
    /// The runtime of the agents whose directories lie in `agents`.
    pub fn new(tool: Nspawn, agents: PathBuf, keeper: KeeperCommand) -> Self {
        Self::with(tool, agents, keeper)
    }
}

impl Tool for Nspawn {
    fn kind(&self) -> host::Runtime {
        host::Runtime::Nspawn
    }

    fn view(&self, _: &AgentDirs) -> View {
        plan::view()
    }

    fn launch(&self, spec: &AgentSpec, dir: &Path) -> Result<Launch, RuntimeError> {
        let spec = &with_outer_user(spec);
        let plan = MountPlan::new(spec, &self.system, &self.path)?;
        plan.check_program(&spec.command.program)?;
        mount_point::make(&spec.dirs.home, ".claude", spec.owner).map_err(failed(format!(
            "make a mount point in {}",
            shown(&spec.dirs.home)
        )))?;
        let root =
            rootfs::make(&plan, dir).map_err(failed(format!("make a root in {}", shown(dir))))?;
        Ok(Launch {
            program: self.program.clone(),
            args: arguments(spec, &plan),
            env: spec.env.clone(),
            cwd: "/".into(),
            stage: Some(Stage {
                mounts: Some(mounts(&plan, root)),
                file_bytes: spec.limits.file_bytes,
                // It drops the rights of root itself, when all is set up.
                ..Stage::plain(Owner::Daemon)
            }),
            agent: Agent::InNamespace,
        })
    }

    fn clear(&self, _: &AgentName, dir: &Path) -> Result<(), RuntimeError> {
        rootfs::remove(dir).map_err(failed(format!("remove the root in {}", shown(dir))))
    }
}

/// The same agent, as the user inside that it is outside: there is no mapping between the two.
pub(crate) fn with_outer_user(spec: &AgentSpec) -> AgentSpec {
    let mut spec = spec.clone();
    let uid = match spec.owner {
        Owner::Daemon => rustix::process::getuid().as_raw(),
        Owner::Own { uid } => uid,
    };
    (spec.user.uid, spec.user.gid) = (uid, uid);
    spec
}

fn mounts(plan: &MountPlan, root: PathBuf) -> Mounts {
    let binds = plan.entries.iter().enumerate();
    let binds = binds.filter_map(|(number, entry)| match entry {
        Entry::Bind { source, .. } => Some((number, Staged::Source(source.clone()))),
        Entry::File { .. } | Entry::Link { .. } | Entry::Tmpfs { .. } | Entry::Dir { .. } => None,
    });
    let root = (plan.entries.len(), Staged::Source(root));
    Mounts {
        staged: binds.chain([root]).collect(),
        // Where it keeps what others could hand to a running container, and complains if that is
        // on a disk.
        covered: Some("/run/systemd/nspawn".into()),
    }
}

/// The whole command line of systemd-nspawn, without its name.
fn arguments(spec: &AgentSpec, plan: &MountPlan) -> Vec<String> {
    let user = &spec.user;
    let mut args: Vec<String> = [
        "--quiet",
        "--register=no",
        "--keep-unit",
        "--settings=no",
        "--console=pipe",
        "--as-pid2",
        "--resolv-conf=off",
        "--timezone=off",
        "--link-journal=no",
        "--read-only",
        "--no-new-privileges=yes",
        "--drop-capability=all",
        "--chdir=/state",
    ]
    .map(str::to_owned)
    .to_vec();
    args.push(format!("--directory={}", staged(plan.entries.len())));
    // No other on this host may have the name, nor in another hive.
    args.push(format!(
        "--machine=h-{}-{}",
        spec.name,
        short_hash(&spec.dirs.state)
    ));
    args.push(format!("--hostname={}", spec.name));
    args.push(format!("--user={}", user.name));
    match spec.network {
        Network::Gateway | Network::None => args.push("--private-network".to_owned()),
        Network::Host => {}
    }
    for (number, entry) in plan.entries.iter().enumerate() {
        let target = escaped(entry.target());
        match entry {
            Entry::Bind { access, .. } => {
                let option = match access {
                    Access::ReadOnly => "--bind-ro",
                    Access::ReadWrite => "--bind",
                };
                args.push(format!("{option}={}:{target}", staged(number)));
            }
            // It has one of its own there, with things in it.
            Entry::Tmpfs { target, .. } if target == Path::new("/run") => {}
            Entry::Tmpfs { bytes, .. } => {
                args.push(format!("--tmpfs={target}:mode=1777,size={bytes}"));
            }
            Entry::Dir { .. } => args.push(format!(
                "--tmpfs={target}:mode=0700,size=1m,uid={},gid={}",
                user.uid, user.gid
            )),
            // They are part of the root.
            Entry::File { .. } | Entry::Link { .. } => {}
        }
    }
    // By name: the values are in the environment, where nobody else can read them.
    args.extend(spec.env.keys().map(|name| format!("--setenv={name}")));
    args.push("--".to_owned());
    args.push(spec.command.program.to_string_lossy().into_owned());
    args.extend(spec.command.args.iter().cloned());
    args
}

fn escaped(path: &Path) -> String {
    let text = path.to_string_lossy();
    text.replace('\\', "\\\\").replace(':', "\\:")
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, fs};

    use super::*;
    use crate::plan::tests::{agent, system};

    #[test]
    fn the_whole_command_line() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let mut spec = agent(&root);
        spec.owner = Owner::Own { uid: 70_007 };
        let line = |spec: &AgentSpec| {
            let spec = with_outer_user(spec);
            let plan = MountPlan::new(&spec, &system(), OsStr::new("/usr/bin")).unwrap();
            arguments(&spec, &plan)
                .join(" ")
                .replace(root.to_str().unwrap(), "DIR")
                .replace(&short_hash(&spec.dirs.state), "HASH")
        };
        let expected = "--quiet --register=no --keep-unit --settings=no --console=pipe --as-pid2 \
            --resolv-conf=off --timezone=off --link-journal=no --read-only --no-new-privileges=yes \
            --drop-capability=all --chdir=/state --directory=/tmp/19 --machine=h-ada-HASH \
            --hostname=ada --user=agent --private-network --bind-ro=/tmp/0:/usr \
            --bind-ro=/tmp/1:/etc/ssl/certs --tmpfs=/tmp:mode=1777,size=64 \
            --tmpfs=/run/hive-bash:mode=0700,size=1m,uid=70007,gid=70007 --bind=/tmp/13:/state \
            --bind=/tmp/14:/harness --bind=/tmp/15:/home/agent \
            --bind=/tmp/16:/home/agent/.claude --bind-ro=/tmp/17:/run/hive \
            --bind-ro=/tmp/18:DIR/bin/hive --setenv=KEY -- DIR/bin/hive serve";
        assert_eq!(line(&spec), expected);
        spec.network = Network::Host;
        assert!(!line(&spec).contains("--private-network"));
    }

    #[test]
    fn its_separators_are_escaped() {
        for (path, expected) in [("/a b", "/a b"), ("/a:b", "/a\\:b"), ("/a\\b", "/a\\\\b")] {
            assert_eq!(escaped(Path::new(path)), expected);
        }
    }
}
