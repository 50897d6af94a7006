//! The runtimes of one hive, and which of them work on this machine.
//!
//! Whether one works is found out by running something in it, because there are too many reasons
//! why it might not: a missing tool, a kernel or a policy that forbids namespaces, a mount that
//! fails. What works is remembered; what does not is tried again when somebody asks later.

use std::{
    collections::HashMap,
    ffi::OsString,
    fmt, fs, io,
    os::unix::fs::{DirBuilderExt, chown},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use hive_wire::host;

use crate::{
    AgentDirs, AgentSpec, BwrapRuntime, Command, Exit, Limits, Network, NixosRuntime,
    NspawnRuntime, Owner, PodmanRuntime, ProcessRuntime, Runtime, RuntimeError, State, System,
    User, bwrap::Bwrap, keeper::KeeperCommand, kernel, nixos, nspawn::Nspawn, podman::Podman,
};

/// The first number that is given to a user that is an agent. Between those of people and system
/// services and those that containers map, where nobody else takes any.
pub const FIRST_UID: u32 = 70_000;
/// The last one.
pub const LAST_UID: u32 = 79_998;
/// The user that runtimes are tried out as.
const TRIAL_UID: u32 = 79_999;
/// How long a runtime may take to run nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// For how long a failure is remembered.
const FORGET: Duration = Duration::from_secs(10);
/// How much of what was said is quoted.
const QUOTED: usize = 400;

/// Those that isolate, best first: what `auto` tries.
pub const ISOLATING: [host::Runtime; 3] = [
    host::Runtime::Bwrap,
    host::Runtime::Nspawn,
    host::Runtime::Podman,
];

/// Whether a runtime sets an agent apart from the host.
pub fn isolates(kind: host::Runtime) -> bool {
    match kind {
        host::Runtime::Bwrap
        | host::Runtime::Nspawn
        | host::Runtime::Podman
        | host::Runtime::Nixos => true,
        host::Runtime::Auto | host::Runtime::None | host::Runtime::Process => false,
    }
}

/// What runtimes are made from.
#[derive(Debug, Clone)]
pub struct Machine {
    /// How a keeper is called.
    pub keeper: KeeperCommand,
    /// What agents see of the system.
    pub system: System,
    /// Where programs are looked for.
    pub path: OsString,
}

/// Why a runtime does not work here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailable {
    /// What happened.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

/// How a trial ended.
#[derive(Debug)]
struct Tried {
    at: Instant,
    outcome: Result<(), Unavailable>,
}

/// The runtimes of the agents of one hive.
#[derive(Debug)]
pub struct Runtimes {
    machine: Machine,
    all: Vec<Arc<dyn Runtime>>,
    /// Where they are tried out.
    trial: PathBuf,
    tried: Mutex<HashMap<host::Runtime, Tried>>,
}

impl Runtimes {
    /// The runtimes of the agents whose directories lie in `agents`. Nothing is tried yet. `trial`
    /// is a directory for that, which nothing else uses.
    pub fn new(machine: Machine, agents: &Path, trial: PathBuf) -> Self {
        let kinds = [host::Runtime::Process].into_iter().chain(ISOLATING);
        // On NixOS alone, and there only when it is named: its agents have a configuration of
        // another kind.
        let kinds = kinds.chain([host::Runtime::Nixos]);
        let all = kinds.filter_map(|kind| make(&machine, kind, agents));
        Self {
            all: all.collect(),
            machine,
            trial,
            tried: Mutex::default(),
        }
    }

    /// All of them, also those that do not work here: what they once started is still theirs.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Runtime>> {
        self.all.iter()
    }

    /// The runtime of this kind, if there is one.
    pub fn get(&self, kind: host::Runtime) -> Option<&Arc<dyn Runtime>> {
        self.all.iter().find(|runtime| runtime.kind() == kind)
    }

    /// The best one that isolates and works. Blocks.
    pub fn best(&self) -> Option<host::Runtime> {
        ISOLATING.into_iter().find(|kind| self.check(*kind).is_ok())
    }

    /// Finds out whether a runtime works here, unless that is known. Blocks.
    ///
    /// # Errors
    /// With why it does not, and what to do about it.
    pub fn check(&self, kind: host::Runtime) -> Result<(), Unavailable> {
        // Held throughout: two trials at once would disturb each other.
        let mut tried = self.tried.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tried.get(&kind)
            && (known.outcome.is_ok() || known.at.elapsed() < FORGET)
        {
            return known.outcome.clone();
        }
        let outcome = self.try_out(kind);
        tried.insert(
            kind,
            Tried {
                at: Instant::now(),
                outcome: outcome.clone(),
            },
        );
        outcome
    }

    fn try_out(&self, kind: host::Runtime) -> Result<(), Unavailable> {
        if kind == host::Runtime::Process {
            return Ok(());
        }
        if kind == host::Runtime::Nixos {
            return try_nixos();
        }
        let (tool, package) = tool(kind);
        if find(tool, &self.machine.path).is_none() {
            return Err(Unavailable {
                why: format!("`{tool}` is not installed"),
                remedy: format!("install it: `apt-get install {package}` on Debian and Ubuntu"),
            });
        }
        let unavailable = |why: String| Unavailable {
            why,
            remedy: remedy(kind).to_owned(),
        };
        let dir = self.trial.join(kind.as_str());
        let Some(runtime) = make(&self.machine, kind, &dir) else {
            return Err(unavailable(format!(
                "this build has no `{}`",
                kind.as_str()
            )));
        };
        run_nothing(&*runtime, &dir).map_err(unavailable)
    }
}

/// A container of NixOS takes minutes to build: whether there is the tool has to do.
fn try_nixos() -> Result<(), Unavailable> {
    if !rustix::process::geteuid().is_root() {
        return Err(Unavailable {
            why: "only root can run NixOS containers".to_owned(),
            remedy: "run hive-c0re as root".to_owned(),
        });
    }
    let tool = nixos::Places::default().nixos_container;
    if tool.is_file() {
        return Ok(());
    }
    Err(Unavailable {
        why: format!("there is no {}", tool.display()),
        remedy: "it is part of NixOS: set `boot.enableContainers = true`".to_owned(),
    })
}

/// A runtime of this kind.
fn make(machine: &Machine, kind: host::Runtime, agents: &Path) -> Option<Arc<dyn Runtime>> {
    let (agents, keeper) = (agents.to_path_buf(), machine.keeper.clone());
    let program = || {
        let name = tool(kind).0;
        find(name, &machine.path).unwrap_or_else(|| Path::new("/usr/bin").join(name))
    };
    match kind {
        host::Runtime::Process => Some(Arc::new(ProcessRuntime::new(agents, keeper))),
        host::Runtime::Bwrap => {
            let tool = Bwrap::new(program(), machine.system.clone(), machine.path.clone());
            Some(Arc::new(BwrapRuntime::new(tool, agents, keeper)))
        }
        host::Runtime::Nspawn => {
            let tool = Nspawn::new(program(), machine.system.clone(), machine.path.clone());
            Some(Arc::new(NspawnRuntime::new(tool, agents, keeper)))
        }
        host::Runtime::Podman => {
            // Beside the agents, and out of their way.
            let store = agents.with_file_name("podman");
            let (system, path) = (machine.system.clone(), machine.path.clone());
            let tool = Podman::new(program(), system, path, store);
            Some(Arc::new(PodmanRuntime::new(tool, agents, keeper)))
        }
        host::Runtime::Nixos => {
            let applied = agents.with_file_name("applied");
            let places = nixos::Places::default();
            Some(Arc::new(NixosRuntime::new(places, agents, applied)))
        }
        host::Runtime::Auto | host::Runtime::None => None,
    }
}

/// The program that a runtime needs, and Debian's package with it.
fn tool(kind: host::Runtime) -> (&'static str, &'static str) {
    match kind {
        host::Runtime::Nspawn => ("systemd-nspawn", "systemd-container"),
        host::Runtime::Podman => ("podman", "podman"),
        host::Runtime::Nixos => ("nixos-container", "nixos-container"),
        host::Runtime::Auto
        | host::Runtime::None
        | host::Runtime::Process
        | host::Runtime::Bwrap => ("bwrap", "bubblewrap"),
    }
}

fn remedy(kind: host::Runtime) -> &'static str {
    match kind {
        host::Runtime::Bwrap => {
            "let ordinary users make user namespaces: `sysctl -w \
             kernel.unprivileged_userns_clone=1 user.max_user_namespaces=10000`, on Ubuntu also \
             `kernel.apparmor_restrict_unprivileged_userns=0`"
        }
        host::Runtime::Nspawn => "run hive-c0re as root",
        host::Runtime::Podman => "see that `podman run` works for this user",
        host::Runtime::Auto
        | host::Runtime::None
        | host::Runtime::Process
        | host::Runtime::Nixos => "choose another runtime",
    }
}

fn find(name: &str, path: &OsString) -> Option<PathBuf> {
    std::env::split_paths(path)
        .filter(|dir| dir.is_absolute())
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Starts an agent that does nothing but look around, and sees whether it could.
fn run_nothing(runtime: &dyn Runtime, dir: &Path) -> Result<(), String> {
    let outcome = try_spec(dir)
        .map_err(|error| format!("cannot prepare a trial in {}: {error}", dir.display()))
        .and_then(|spec| attend(runtime, &spec));
    // What it left is of no use to anybody, and the next trial begins anew.
    if let Err(error) = fs::remove_dir_all(dir) {
        tracing::debug!(%error, dir = %dir.display(), "cannot remove a trial");
    }
    outcome
}

fn attend(runtime: &dyn Runtime, spec: &AgentSpec) -> Result<(), String> {
    let outcome = run_to_end(runtime, spec).map_err(|error| crate::with_causes(&error));
    if let Err(error) = runtime.stop(&spec.name, Duration::ZERO) {
        tracing::warn!(error = crate::with_causes(&error), "cannot end a trial");
    }
    match outcome? {
        State::Ended(Exit::Code(0)) if spec.dirs.state.join("seen").exists() => Ok(()),
        State::Ended(exit) => {
            let output = runtime.output(&spec.name, QUOTED).unwrap_or_default();
            let output = String::from_utf8_lossy(&output);
            Err(match output.trim() {
                "" => exit.to_string(),
                output => output.replace('\n', "; "),
            })
        }
        State::Running { .. } => Err("it does not end".to_owned()),
    }
}

fn run_to_end(runtime: &dyn Runtime, spec: &AgentSpec) -> Result<State, RuntimeError> {
    runtime.start(spec)?;
    if let Some(end) = runtime.watch(&spec.name)? {
        kernel::ends_within(end, PATIENCE).map_err(crate::failed("wait for a trial"))?;
    }
    let ended = runtime.inspect(&spec.name)?;
    Ok(ended.map_or(State::Ended(Exit::Unseen), |instance| instance.state))
}

/// An agent that finds its directories where they should be, and none of the host's.
fn try_spec(dir: &Path) -> io::Result<AgentSpec> {
    let owner = if rustix::process::geteuid().is_root() {
        Owner::Own { uid: TRIAL_UID }
    } else {
        Owner::Daemon
    };
    let base = dir.join("trial");
    let make = |part: &str| -> io::Result<PathBuf> {
        let part = base.join(part);
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&part)?;
        if let Owner::Own { uid } = owner {
            chown(&part, Some(uid), Some(uid))?;
        }
        Ok(part)
    };
    let outside = base.display().to_string().replace('\'', "'\\''");
    let script = format!("[ ! -e '{outside}' ] && cd /state && : > seen");
    Ok(AgentSpec {
        name: "trial".parse().map_err(io::Error::other)?,
        generation: 0,
        dirs: AgentDirs {
            state: make("state")?,
            harness: make("harness")?,
            claude: make("claude")?,
            home: make("home")?,
            run: make("run")?,
        },
        command: Command {
            program: "/bin/sh".into(),
            args: vec!["-c".into(), script],
        },
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        programs: Vec::new(),
        mounts: Vec::new(),
        network: Network::None,
        owner,
        user: User::default(),
        limits: Limits::default(),
    })
}
