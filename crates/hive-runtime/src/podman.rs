//! `podman`: an agent in a container of Podman's, with or without root, and without an image: its
//! root is made of mount points alone ([`crate::rootfs`]) and is read-only.
//!
//! Each hive has a store of its own, so that it sees no containers but its own. Podman runs in the
//! foreground below the keeper, and so does the container: Podman's own monitor stays below it.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use hive_wire::{AgentName, host};

use crate::{
    Access, AgentDirs, AgentSpec, Network, Owner, RuntimeError, System, View, failed,
    keeper::KeeperCommand,
    kept::{Kept, Launch, Tool},
    mount_point,
    nspawn::with_outer_user,
    order::{Agent, shown},
    plan::{self, Entry, MountPlan},
    rootfs,
};

/// Runs agents with Podman.
pub type PodmanRuntime = Kept<Podman>;

/// Podman on this host.
#[derive(Debug, Clone)]
pub struct Podman {
    program: PathBuf,
    system: System,
    path: OsString,
    /// Where Podman keeps what it knows of its containers.
    store: PathBuf,
    /// What makes a container, when Podman's own choice does not work on this host.
    maker: Option<&'static str>,
}

impl Podman {
    /// Podman at this place, on a host with this system, with a store of its own. `path` is where
    /// the host looks for programs.
    pub fn new(program: PathBuf, system: System, path: OsString, store: PathBuf) -> Self {
        // crun refuses hosts that have both versions of control groups; runc does not.
        let is_unified = Path::new("/sys/fs/cgroup/cgroup.controllers").exists();
        Self {
            program,
            system,
            path,
            store,
            maker: (!is_unified).then_some("runc"),
        }
    }

    /// What precedes every command.
    fn global(&self) -> Vec<String> {
        let dir = |name: &str| self.store.join(name).to_string_lossy().into_owned();
        let mut args = vec![
            format!("--root={}", dir("storage")),
            format!("--runroot={}", dir("run")),
            format!("--tmpdir={}", dir("tmp")),
            // Nothing is stored in it but what containers are called.
            "--storage-driver=vfs".to_owned(),
            "--cgroup-manager=cgroupfs".to_owned(),
            "--events-backend=file".to_owned(),
        ];
        args.extend(self.maker.map(|maker| format!("--runtime={maker}")));
        args
    }

    /// Podman's own environment; the agent's is told by name.
    fn env(&self) -> io::Result<BTreeMap<String, String>> {
        for name in ["storage", "run", "tmp", "home", "xdg"] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(self.store.join(name))?;
        }
        let config = self.store.join("containers.conf");
        fs::write(&config, containers_conf())?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        Ok(BTreeMap::from([
            ("PATH".to_owned(), self.path.to_string_lossy().into_owned()),
            ("HOME".to_owned(), text(&self.store.join("home"))),
            ("XDG_RUNTIME_DIR".to_owned(), text(&self.store.join("xdg"))),
            ("CONTAINERS_CONF".to_owned(), text(&config)),
        ]))
    }
}

/// Limits of single processes that this one may hand on: Podman's own defaults are higher than some
/// hosts allow, also to root.
fn containers_conf() -> String {
    use rustix::process::{Resource, getrlimit};
    let most = |resource, enough: u64| {
        let hard = getrlimit(resource).maximum.unwrap_or(enough);
        hard.min(enough)
    };
    format!(
        "[containers]\ndefault_ulimits = [\"nofile={0}:{0}\", \"nproc={1}:{1}\"]\n",
        most(Resource::Nofile, 1 << 16),
        most(Resource::Nproc, 1 << 14)
    )
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
        let spec = &with_outer_user(spec);
        let plan = MountPlan::new(spec, &self.system, &self.path)?;
        plan.check_program(&spec.command.program)?;
        mount_point::make(&spec.dirs.home, ".claude", spec.owner).map_err(failed(format!(
            "make a mount point in {}",
            shown(&spec.dirs.home)
        )))?;
        let root =
            rootfs::make(&plan, dir).map_err(failed(format!("make a root in {}", shown(dir))))?;
        let own = self
            .env()
            .map_err(failed(format!("make {}", shown(&self.store))))?;
        let mut args = self.global();
        args.extend(arguments(spec, &plan, &root));
        let mut env = spec.env.clone();
        env.extend(own);
        Ok(Launch {
            program: self.program.clone(),
            args,
            env,
            cwd: "/".into(),
            stage: None,
            agent: Agent::InNamespace,
        })
    }

    fn clear(&self, name: &AgentName, dir: &Path) -> Result<(), RuntimeError> {
        let doing = || failed(format!("remove the container of {name}"));
        if self.store.exists() {
            let removed = Command::new(&self.program)
                .args(self.global())
                .args(["rm", "--force", "--ignore", "--volumes", "--time=0"])
                .arg(container(name))
                .env_clear()
                .envs(self.env().map_err(doing())?)
                .current_dir("/")
                .stdin(Stdio::null())
                .output()
                .map_err(doing())?;
            if !removed.status.success() {
                let said = String::from_utf8_lossy(&removed.stderr).trim().to_owned();
                return Err(doing()(io::Error::other(said)));
            }
        }
        rootfs::remove(dir).map_err(failed(format!("remove the root in {}", shown(dir))))
    }
}

fn container(name: &AgentName) -> String {
    format!("h-{name}")
}

/// The command line of `podman run`, without what precedes every command.
fn arguments(spec: &AgentSpec, plan: &MountPlan, root: &Path) -> Vec<String> {
    let (user, limits) = (&spec.user, &spec.limits);
    let mut args: Vec<String> = [
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
    ]
    .map(str::to_owned)
    .to_vec();
    args.push(format!("--name={}", container(&spec.name)));
    args.push(format!("--hostname={}", spec.name));
    match spec.owner {
        Owner::Daemon => args.push("--userns=keep-id".to_owned()),
        Owner::Own { .. } => args.push(format!("--user={}:{}", user.uid, user.gid)),
    }
    args.push(match spec.network {
        Network::Gateway | Network::None => "--network=none".to_owned(),
        Network::Host => "--network=host".to_owned(),
    });
    args.extend(
        limits
            .memory_bytes
            .map(|bytes| format!("--memory={bytes}b")),
    );
    args.extend(limits.pids.map(|pids| format!("--pids-limit={pids}")));
    args.extend(
        limits
            .cpu_percent
            .map(|percent| format!("--cpus={}.{:02}", percent / 100, percent % 100)),
    );
    for entry in &plan.entries {
        let target = entry.target().to_string_lossy();
        match entry {
            Entry::Bind { source, access, .. } => {
                let access = match access {
                    Access::ReadOnly => "ro",
                    Access::ReadWrite => "rw",
                };
                let source = source.to_string_lossy();
                args.push(format!(
                    "--volume={source}:{target}:{access},rbind,rprivate"
                ));
            }
            Entry::Tmpfs { bytes, .. } => {
                args.push(format!(
                    "--tmpfs={target}:rw,nosuid,nodev,mode=1777,size={bytes}"
                ));
            }
            Entry::Dir { .. } => {
                args.push(format!(
                    "--tmpfs={target}:rw,nosuid,nodev,mode=1777,size=1m"
                ));
            }
            // They are part of the root.
            Entry::File { .. } | Entry::Link { .. } => {}
        }
    }
    for (name, value) in &spec.env {
        // By name, so that nobody reads the value in the arguments. Where Podman would take it for
        // its own, it is none that anybody must not read.
        if is_podmans(name) {
            args.push(format!("--env={name}={value}"));
        } else {
            args.push(format!("--env={name}"));
        }
    }
    args.push("--rootfs".to_owned());
    args.push(root.to_string_lossy().into_owned());
    // Both outputs in one: Podman would mix them as it reads them.
    args.extend(["/bin/sh", "-c", "exec \"$@\" 2>&1", "sh"].map(str::to_owned));
    args.push(spec.command.program.to_string_lossy().into_owned());
    args.extend(spec.command.args.iter().cloned());
    args
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
            arguments(&spec, &plan, Path::new("/rootfs"))
                .join(" ")
                .replace(root.to_str().unwrap(), "DIR")
        };
        let expected = "run --rm --replace --init --read-only --read-only-tmpfs=false \
            --cap-drop=all --security-opt=no-new-privileges --http-proxy=false --log-driver=none \
            --no-hosts --image-volume=ignore --workdir=/state --env=container=podman --name=h-ada \
            --hostname=ada --user=70007:70007 --network=none --memory=536870912b \
            --pids-limit=4096 --cpus=1.50 --volume=/usr:/usr:ro,rbind,rprivate \
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
