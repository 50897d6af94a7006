//! `podman`: an agent in a container of Podman's, with or without root, and without an image: its
//! root is made of mount points alone ([`crate::rootfs`]) and is read-only.
//!
//! Each agent has a store of its own, so that nothing of one is in the way of another, and what Podman
//! knows of a run goes with it. Podman runs in the foreground below the keeper, and so does the
//! container: Podman's own monitor stays below it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use hive_wire::{AgentName, host};
use rustix::process::{Resource, geteuid, getrlimit};

use crate::{
    Access, AgentDirs, AgentSpec, Limits, Network, Owner, RuntimeError, System, View, failed,
    keeper::KeeperCommand,
    kept::{Kept, Launch, Tool, short_hash},
    mount_point,
    nspawn::with_outer_user,
    order::{Agent, shown},
    plan::{self, Entry, MountPlan},
    rootfs,
};

/// Processes and threads, where nothing else is said.
const PIDS: u64 = 1 << 14;
/// Open files of one process.
const FILES: u64 = 1 << 16;

/// What a single user or process may have at most.
#[derive(Debug, Clone, Copy)]
struct Most {
    nproc: u64,
    nofile: u64,
}

/// Runs agents with Podman.
pub type PodmanRuntime = Kept<Podman>;

/// Podman on this host.
#[derive(Debug, Clone)]
pub struct Podman {
    program: PathBuf,
    system: System,
    path: OsString,
    /// Where Podman keeps what is short-lived: it takes no longer paths than this makes them.
    run: PathBuf,
    /// Whether the host has control groups of the second version alone.
    is_unified: bool,
}

impl Podman {
    /// Podman at this place, on a host with this system. `path` is where the host looks for
    /// programs.
    pub fn new(program: PathBuf, system: System, path: OsString) -> Self {
        Self {
            program,
            system,
            path,
            run: short_dir(),
            is_unified: Path::new("/sys/fs/cgroup/cgroup.controllers").exists(),
        }
    }

    /// What precedes every command about the agent with this directory.
    fn global(&self, dir: &Path) -> Vec<String> {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let mut args = vec![
            format!("--root={}", text(dir.join("podman/storage"))),
            format!("--runroot={}", text(self.runroot(dir))),
            format!("--tmpdir={}", text(dir.join("podman/tmp"))),
            // Nothing is stored in it but what containers are called.
            "--storage-driver=vfs".to_owned(),
            "--cgroup-manager=cgroupfs".to_owned(),
            "--events-backend=file".to_owned(),
            "--log-level=error".to_owned(),
        ];
        if !self.is_unified {
            // crun refuses hosts that have both versions of control groups; runc does not.
            args.push("--runtime=runc".to_owned());
        }
        args
    }

    fn runroot(&self, dir: &Path) -> PathBuf {
        self.run.join(short_hash(dir))
    }

    /// Takes limits away that Podman cannot set here, and complains of; which those were.
    fn give_up_limits(&self, spec: &mut AgentSpec) -> Vec<String> {
        if self.is_unified || spec.owner != Owner::Daemon {
            return Vec::new();
        }
        let limits = &mut spec.limits;
        let wanted = [
            ("memory", limits.memory_bytes.take().is_some()),
            ("processor time", limits.cpu_percent.take().is_some()),
        ];
        let reason = "without root podman sets none where control groups are of the first version";
        let given_up = wanted.iter().filter(|(_, is_wanted)| *is_wanted);
        given_up
            .map(|(what, _)| format!("{what}: {reason}"))
            .collect()
    }

    /// Podman's own environment; the agent's is told by name.
    fn env(&self, dir: &Path) -> io::Result<BTreeMap<String, String>> {
        make_private(&self.run)?;
        let own = dir.join("podman");
        for name in ["storage", "tmp", "home", "xdg"] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(own.join(name))?;
        }
        // Not the host's, and not the user's.
        let config = own.join("containers.conf");
        fs::write(&config, "[containers]\npids_limit = 0\n")?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        Ok(BTreeMap::from([
            ("PATH".to_owned(), self.path.to_string_lossy().into_owned()),
            ("HOME".to_owned(), text(&own.join("home"))),
            ("XDG_RUNTIME_DIR".to_owned(), text(&own.join("xdg"))),
            ("CONTAINERS_CONF".to_owned(), text(&config)),
        ]))
    }

    /// Has Podman undo what it did for a container.
    fn remove(&self, name: &AgentName, dir: &Path) -> io::Result<()> {
        let removed = Command::new(&self.program)
            .args(self.global(dir))
            .args(["rm", "--force", "--ignore", "--volumes", "--time=0"])
            .arg(container(name))
            .env_clear()
            .envs(self.env(dir)?)
            .current_dir("/")
            .stdin(Stdio::null())
            .output()?;
        // Without root all that it did is in namespaces, which are gone; that it misses them is no
        // reason to keep what it wrote down.
        if removed.status.success() || !geteuid().is_root() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&removed.stderr).trim().to_owned();
        Err(io::Error::other(said))
    }
}

/// A short directory that this user has for itself.
fn short_dir() -> PathBuf {
    if geteuid().is_root() {
        return "/run/hive-podman".into();
    }
    let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    match own.filter(|dir| dir.is_absolute() && dir.as_os_str().len() < 25) {
        Some(dir) => dir.join("hive-podman"),
        None => format!("/tmp/hive-podman-{}", geteuid().as_raw()).into(),
    }
}

/// Makes a directory that is ours and closed to others, and refuses one that somebody else made.
fn make_private(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = fs::symlink_metadata(dir)?;
    let is_ours = found.is_dir() && found.uid() == geteuid().as_raw() && found.mode() & 0o022 == 0;
    if is_ours {
        return Ok(());
    }
    let problem = format!("{} is not ours: remove it", dir.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

fn remove_dir(dir: &Path) -> io::Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The most that this process may hand on of what a single process may have: what Podman would ask
/// for is more than some hosts allow, also to root.
fn most(resource: Resource, enough: u64) -> u64 {
    getrlimit(resource).maximum.unwrap_or(enough).min(enough)
}

impl PodmanRuntime {
    /// The runtime of the agents whose directories lie in `agents`.
    pub fn new(tool: Podman, agents: PathBuf, keeper: KeeperCommand) -> Self {
        Self::with(tool, agents, keeper)
    }
}

impl Tool for Podman {
    fn kind(&self) -> host::Runtime {
        host::Runtime::Podman
    }

    fn view(&self, _: &AgentDirs) -> View {
        plan::view()
    }

    fn launch(&self, spec: &AgentSpec, dir: &Path) -> Result<Launch, RuntimeError> {
        let mut spec = with_outer_user(spec);
        let unbounded = self.give_up_limits(&mut spec);
        let spec = &spec;
        let plan = MountPlan::new(spec, &self.system, &self.path)?;
        check_colons(&plan)?;
        plan.check_program(&spec.command.program)?;
        mount_point::make(&spec.dirs.home, ".claude", spec.owner).map_err(failed(format!(
            "make a mount point in {}",
            shown(&spec.dirs.home)
        )))?;
        let root =
            rootfs::make(&plan, dir).map_err(failed(format!("make a root in {}", shown(dir))))?;
        let own = self
            .env(dir)
            .map_err(failed(format!("make a store in {}", shown(dir))))?;
        let mut args = self.global(dir);
        let most = Most {
            nproc: most(Resource::Nproc, PIDS),
            nofile: most(Resource::Nofile, FILES),
        };
        args.extend(arguments(spec, &plan, &root, most));
        let mut env = spec.env.clone();
        env.extend(own);
        Ok(Launch {
            program: self.program.clone(),
            args,
            env,
            cwd: "/".into(),
            stage: None,
            unbounded,
            agent: Agent::InNamespace,
        })
    }

    fn clear(&self, name: &AgentName, dir: &Path) -> Result<(), RuntimeError> {
        let doing = || failed(format!("remove the container of {name}"));
        if dir.join("podman").exists() {
            self.remove(name, dir).map_err(doing())?;
            for leftover in [dir.join("podman"), self.runroot(dir)] {
                remove_dir(&leftover).map_err(doing())?;
            }
        }
        rootfs::remove(dir).map_err(failed(format!("remove the root in {}", shown(dir))))
    }
}

fn container(name: &AgentName) -> String {
    format!("h-{name}")
}

/// What every container is made with.
const ALWAYS: [&str; 14] = [
    "run",
    "--rm",
    "--replace",
    "--init",
    "--read-only",
    "--read-only-tmpfs=false",
    "--cap-drop=all",
    "--security-opt=no-new-privileges",
    "--http-proxy=false",
    "--log-driver=none",
    "--no-hosts",
    "--image-volume=ignore",
    "--workdir=/state",
    "--env=container=podman",
];

/// The command line of `podman run`, without what precedes every command.
fn arguments(spec: &AgentSpec, plan: &MountPlan, root: &Path, most: Most) -> Vec<String> {
    let user = &spec.user;
    let mut args = ALWAYS.map(str::to_owned).to_vec();
    args.push(format!("--name={}", container(&spec.name)));
    args.push(format!("--hostname={}", spec.name));
    args.push(match spec.owner {
        Owner::Daemon => "--userns=keep-id".to_owned(),
        Owner::Own { .. } => format!("--user={}:{}", user.uid, user.gid),
    });
    args.push(match spec.network {
        Network::Gateway | Network::None => "--network=none".to_owned(),
        Network::Host => "--network=host".to_owned(),
    });
    args.extend(limits(&spec.limits, most));
    args.extend(plan.entries.iter().filter_map(mount));
    args.extend(spec.env.iter().map(variable));
    args.push("--rootfs".to_owned());
    args.push(root.to_string_lossy().into_owned());
    // Both outputs in one: Podman would mix them as it reads them.
    args.extend(["/bin/sh", "-c", "exec \"$@\" 2>&1", "sh"].map(str::to_owned));
    args.push(spec.command.program.to_string_lossy().into_owned());
    args.extend(spec.command.args.iter().cloned());
    args
}

fn limits(limits: &Limits, Most { nproc, nofile }: Most) -> Vec<String> {
    let memory = limits
        .memory_bytes
        .map(|bytes| format!("--memory={bytes}b"));
    // In place of Podman's own, which is a control group's and may not be had.
    let pids = limits.pids.map_or(PIDS, u64::from).min(nproc);
    let mut args: Vec<String> = memory.into_iter().collect();
    args.push(format!("--ulimit=nproc={pids}:{pids}"));
    args.push(format!("--ulimit=nofile={nofile}:{nofile}"));
    if let Some(percent) = limits.cpu_percent {
        args.push(format!("--cpus={}.{:02}", percent / 100, percent % 100));
    }
    args
}

fn mount(entry: &Entry) -> Option<String> {
    let target = entry.target().to_string_lossy();
    match entry {
        Entry::Bind { source, access, .. } => {
            let access = match access {
                Access::ReadOnly => "ro",
                Access::ReadWrite => "rw",
            };
            let source = source.to_string_lossy();
            Some(format!(
                "--volume={source}:{target}:{access},rbind,rprivate"
            ))
        }
        Entry::Tmpfs { bytes, .. } => Some(format!(
            "--tmpfs={target}:rw,nosuid,nodev,mode=1777,size={bytes}"
        )),
        Entry::Dir { .. } => Some(format!(
            "--tmpfs={target}:rw,nosuid,nodev,mode=1777,size=1m"
        )),
        // They are part of the root.
        Entry::File { .. } | Entry::Link { .. } => None,
    }
}

/// By name, so that nobody reads the value in the arguments. Where Podman would take it for its own,
/// it is none that anybody must not read.
fn variable((name, value): (&String, &String)) -> String {
    if is_podmans(name) {
        format!("--env={name}={value}")
    } else {
        format!("--env={name}")
    }
}

/// Podman separates the parts of a mount by colons, and has no way to say one.
fn check_colons(plan: &MountPlan) -> Result<(), RuntimeError> {
    for entry in &plan.entries {
        if let Entry::Bind { source, target, .. } = entry
            && [source, target]
                .iter()
                .any(|path| path.to_string_lossy().contains(':'))
        {
            return Err(RuntimeError::Mount {
                mount: target.clone(),
                reason: format!(
                    "podman mounts nothing with a colon in it: {}",
                    shown(source)
                ),
            });
        }
    }
    Ok(())
}

/// Whether Podman reads a variable of this name for itself.
fn is_podmans(name: &str) -> bool {
    ["PATH", "HOME", "TMPDIR", "USER", "LOGNAME", "NOTIFY_SOCKET"].contains(&name)
        || [
            "XDG_",
            "CONTAINER",
            "PODMAN",
            "STORAGE_",
            "REGISTRY_",
            "DBUS_",
            "LISTEN_",
            "LD_",
        ]
        .iter()
        .any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::plan::tests::{agent, system};

    #[test]
    fn the_whole_command_line() {
        let dir = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(dir.path()).unwrap();
        let mut spec = agent(&root);
        spec.owner = Owner::Own { uid: 70_007 };
        spec.env.insert("HOME".into(), "/home/agent".into());
        spec.limits.memory_bytes = Some(512 << 20);
        spec.limits.cpu_percent = Some(150);
        let line = |spec: &AgentSpec| {
            let spec = with_outer_user(spec);
            let plan = MountPlan::new(&spec, &system(), OsStr::new("/usr/bin")).unwrap();
            let most = Most {
                nproc: 3000,
                nofile: 1024,
            };
            arguments(&spec, &plan, Path::new("/rootfs"), most)
                .join(" ")
                .replace(root.to_str().unwrap(), "DIR")
        };
        let expected = "run --rm --replace --init --read-only --read-only-tmpfs=false \
            --cap-drop=all --security-opt=no-new-privileges --http-proxy=false --log-driver=none \
            --no-hosts --image-volume=ignore --workdir=/state --env=container=podman --name=h-ada \
            --hostname=ada --user=70007:70007 --network=none --memory=536870912b \
            --ulimit=nproc=3000:3000 --ulimit=nofile=1024:1024 --cpus=1.50 \
            --volume=/usr:/usr:ro,rbind,rprivate \
            --volume=/etc/ssl/certs:/etc/ssl/certs:ro,rbind,rprivate \
            --tmpfs=/tmp:rw,nosuid,nodev,mode=1777,size=64 \
            --tmpfs=/run:rw,nosuid,nodev,mode=1777,size=16777216 \
            --tmpfs=/run/hive-bash:rw,nosuid,nodev,mode=1777,size=1m \
            --volume=DIR/agents/ada/state:/state:rw,rbind,rprivate \
            --volume=DIR/agents/ada/harness:/harness:rw,rbind,rprivate \
            --volume=DIR/agents/ada/home:/home/agent:rw,rbind,rprivate \
            --volume=DIR/agents/ada/claude:/home/agent/.claude:rw,rbind,rprivate \
            --volume=DIR/agents/ada/run:/run/hive:ro,rbind,rprivate \
            --volume=DIR/bin/hive:DIR/bin/hive:ro,rbind,rprivate \
            --env=HOME=/home/agent --env=KEY --rootfs /rootfs \
            /bin/sh -c exec \"$@\" 2>&1 sh DIR/bin/hive serve";
        assert_eq!(line(&spec), expected);
        spec.network = Network::Host;
        spec.owner = Owner::Daemon;
        let user = line(&spec);
        assert!(user.contains(" --userns=keep-id --network=host "), "{user}");
        assert!(!user.contains("sk-secret"), "{user}");
    }
}
