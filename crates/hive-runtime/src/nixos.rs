//! `nixos`: an agent in a NixOS container, made from its applied flake and run by systemd (N3).
//!
//! The container's configuration is its own; what the host gives it is written into the container's
//! `.conf` file, which `nixos-container` reads at every start, because its command line has no way
//! to say it. It is rewritten as a whole before every start ([`conf`]). The environment, which may
//! hold secrets, is a file in the agent's directory of sockets that only root can read.

mod conf;

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    time::Duration,
};

use hive_wire::{AgentName, Timestamp, host};
use serde::{Deserialize, Serialize};

use self::conf::{Settings, limits_drop_in, rewritten};
use crate::{
    AgentDirs, AgentSpec, Exit, Instance, Runtime, RuntimeError, State, View, failed, kernel,
    kernel::Process,
    order::shown,
    plan::{self, check_path},
};

/// The longest name of a container: `nixos-container` makes network interfaces of it.
pub const MAX_NAME: usize = 11;
/// How long the container gets to be gone after it was killed.
const KILL_PATIENCE: Duration = Duration::from_secs(30);

/// Where NixOS keeps its things.
#[derive(Debug, Clone)]
pub struct Places {
    /// `nixos-container`, or what it is called.
    pub nixos_container: PathBuf,
    /// `systemctl`.
    pub systemctl: PathBuf,
    /// `journalctl`.
    pub journalctl: PathBuf,
    /// `/etc/nixos-containers`.
    pub conf: PathBuf,
    /// `/run/systemd/system`, for limits.
    pub units: PathBuf,
}

impl Default for Places {
    fn default() -> Self {
        let sw = |name: &str| Path::new("/run/current-system/sw/bin").join(name);
        Self {
            nixos_container: sw("nixos-container"),
            systemctl: sw("systemctl"),
            journalctl: sw("journalctl"),
            conf: "/etc/nixos-containers".into(),
            units: "/run/systemd/system".into(),
        }
    }
}

/// Runs agents as NixOS containers.
#[derive(Debug)]
pub struct NixosRuntime {
    places: Places,
    agents: PathBuf,
    /// The agents' applied repositories, each of which is a flake.
    applied: PathBuf,
}

/// What is written down of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Written {
    generation: u32,
    started_at: Timestamp,
    boot: String,
    /// The process that systemd watches.
    leader: Option<Process>,
    exit: Option<Exit>,
}

impl NixosRuntime {
    /// The runtime of the agents whose directories lie in `agents` and whose flakes lie in
    /// `applied`.
    pub fn new(places: Places, agents: PathBuf, applied: PathBuf) -> Self {
        Self {
            places,
            agents,
            applied,
        }
    }

    fn file(&self, name: &AgentName) -> PathBuf {
        let dir = self.agents.join(name.as_str()).join("runtime");
        dir.join("nixos.json")
    }

    fn read(&self, name: &AgentName) -> Result<Option<Written>, RuntimeError> {
        let file = self.file(name);
        match fs::read(&file) {
            Ok(text) => serde_json::from_slice(&text)
                .map(Some)
                .map_err(|error| failed(format!("read {}", shown(&file)))(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(format!("read {}", shown(&file)))(error)),
        }
    }

    fn write(&self, name: &AgentName, written: &Written) -> Result<(), RuntimeError> {
        let file = self.file(name);
        let write = || -> io::Result<()> {
            if let Some(dir) = file.parent() {
                DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
            }
            replace(&file, &serde_json::to_vec(written)?, 0o600)
        };
        write().map_err(failed(format!("write {}", shown(&file))))
    }

    fn call(&self, program: &Path, args: &[&str]) -> Result<Output, RuntimeError> {
        let doing = format!("run {} {}", shown(program), args.join(" "));
        let said = Command::new(program)
            .args(args)
            .current_dir("/")
            .stdin(Stdio::null())
            .output();
        said.map_err(failed(doing))
    }

    /// Calls `nixos-container`, which must succeed.
    fn container(&self, args: &[&str]) -> Result<String, RuntimeError> {
        let said = self.call(&self.places.nixos_container, args)?;
        if said.status.success() {
            return Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned());
        }
        let reason = String::from_utf8_lossy(&said.stderr).trim().to_owned();
        let doing = format!("nixos-container {}", args.join(" "));
        Err(failed(doing)(io::Error::other(reason)))
    }

    /// `up`, `down` or `gone`.
    fn status(&self, container: &str) -> Result<String, RuntimeError> {
        // It also ends with an error when there is no such container.
        let said = self.call(&self.places.nixos_container, &["status", container])?;
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }

    /// Makes everything that the host says about a container anew (C7).
    fn prepare(&self, spec: &AgentSpec, container: &str) -> Result<(), RuntimeError> {
        let flake = format!(
            "{}#default",
            self.applied.join(spec.name.as_str()).display()
        );
        if self.status(container)? == "gone" {
            self.container(&["create", container, "--flake", &flake])?;
        } else {
            self.container(&["update", container, "--flake", &flake])?;
        }
        let file = self.places.conf.join(format!("{container}.conf"));
        let doing = || failed(format!("rewrite {}", shown(&file)));
        let old = fs::read_to_string(&file).map_err(doing())?;
        let new = rewritten(&old, &Settings::of(spec)?);
        replace(&file, new.as_bytes(), 0o644).map_err(doing())?;
        let env = spec.dirs.run.join("env");
        replace(&env, conf::environment_file(&spec.env)?.as_bytes(), 0o600)
            .map_err(failed(format!("write {}", shown(&env))))?;
        self.set_limits(spec, container)
    }

    fn set_limits(&self, spec: &AgentSpec, container: &str) -> Result<(), RuntimeError> {
        let dir = self
            .places
            .units
            .join(format!("container@{container}.service.d"));
        let file = dir.join("hyperhive.conf");
        let write = || -> io::Result<()> {
            fs::create_dir_all(&dir)?;
            replace(&file, limits_drop_in(&spec.limits).as_bytes(), 0o644)
        };
        write().map_err(failed(format!("write {}", shown(&file))))?;
        let said = self.call(&self.places.systemctl, &["daemon-reload"])?;
        if said.status.success() {
            return Ok(());
        }
        let reason = String::from_utf8_lossy(&said.stderr).trim().to_owned();
        Err(failed("have systemd read its units")(io::Error::other(
            reason,
        )))
    }

    fn leader(&self, container: &str) -> Result<Option<Process>, RuntimeError> {
        let unit = format!("container@{container}.service");
        let args = ["show", "--property=MainPID", "--value", &unit];
        let said = self.call(&self.places.systemctl, &args)?;
        let pid = String::from_utf8_lossy(&said.stdout).trim().parse();
        match pid {
            Ok(0) | Err(_) => Ok(None),
            Ok(pid) => Process::of(pid).map_err(failed("look at a container's process")),
        }
    }

    /// The last run, with a handle on its leader while that is alive.
    fn look(&self, name: &AgentName) -> Result<Option<(Written, Option<OwnedFd>)>, RuntimeError> {
        let Some(written) = self.read(name)? else {
            return Ok(None);
        };
        let doing = || failed(format!("look at the container of {name}"));
        let same_boot = written.boot == kernel::boot_id().map_err(doing())?;
        let handle = match written.leader.filter(|_| same_boot) {
            Some(leader) => leader.open().map_err(doing())?,
            None => None,
        };
        Ok(Some((written, handle)))
    }
}

/// What an agent's container is called (C4).
fn container_of(name: &AgentName) -> Result<String, RuntimeError> {
    let container = format!("h-{name}");
    if container.len() > MAX_NAME {
        return Err(RuntimeError::Program {
            program: container.into(),
            reason: format!("a NixOS container's name has at most {MAX_NAME} letters"),
        });
    }
    Ok(container)
}

/// Writes a file as a whole or not at all.
fn replace(file: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    let draft = file.with_extension("new");
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    let mut draft_file = options.open(&draft)?;
    draft_file.write_all(text)?;
    draft_file.sync_all()?;
    fs::rename(draft, file)
}

fn instance(name: &AgentName, written: &Written, is_running: bool) -> Instance {
    let state = match written.leader.filter(|_| is_running) {
        Some(leader) => State::Running { pid: leader.pid },
        None => State::Ended(written.exit.unwrap_or(Exit::Unseen)),
    };
    Instance {
        name: name.clone(),
        generation: written.generation,
        started_at: written.started_at,
        state,
        unbounded: Vec::new(),
    }
}

impl Runtime for NixosRuntime {
    fn kind(&self) -> host::Runtime {
        host::Runtime::Nixos
    }

    fn view(&self, _: &AgentDirs) -> View {
        plan::view()
    }

    fn start(&self, spec: &AgentSpec) -> Result<Instance, RuntimeError> {
        let (name, container) = (&spec.name, container_of(&spec.name)?);
        if let Some((written, Some(_))) = self.look(name)? {
            return Ok(instance(name, &written, true));
        }
        for mount in &spec.mounts {
            check_path(&mount.source, &mount.target)?;
        }
        if self.status(&container)? == "up" {
            // Nobody wrote down what it was started with.
            self.container(&["stop", &container])?;
        }
        self.prepare(spec, &container)?;
        let mut written = Written {
            generation: spec.generation,
            started_at: Timestamp::now(),
            boot: kernel::boot_id().map_err(failed("tell this boot"))?,
            leader: None,
            exit: None,
        };
        // Before there is anything to lose.
        self.write(name, &written)?;
        self.container(&["start", &container])?;
        written.leader = self.leader(&container)?;
        self.write(name, &written)?;
        Ok(instance(name, &written, true))
    }

    fn stop(&self, name: &AgentName, grace: Duration) -> Result<(), RuntimeError> {
        let container = container_of(name)?;
        let Some((mut written, handle)) = self.look(name)? else {
            return Ok(());
        };
        if self.status(&container)? == "up" {
            let verb = if grace.is_zero() { "terminate" } else { "stop" };
            self.container(&[verb, &container])?;
        }
        if let Some(leader) = handle {
            let doing = || failed(format!("wait for the container of {name}"));
            if !kernel::ends_within(&leader, grace.max(KILL_PATIENCE)).map_err(doing())? {
                self.container(&["terminate", &container])?;
                if !kernel::ends_within(&leader, KILL_PATIENCE).map_err(doing())? {
                    return Err(RuntimeError::Stuck(name.clone()));
                }
            }
            written.exit.get_or_insert(Exit::Code(0));
            self.write(name, &written)?;
        }
        Ok(())
    }

    fn list(&self) -> Result<Vec<Instance>, RuntimeError> {
        let Ok(entries) = fs::read_dir(&self.agents) else {
            return Ok(Vec::new());
        };
        let mut running = Vec::new();
        for entry in entries.flatten() {
            let entry = entry.file_name();
            let Some(Ok(name)) = entry.to_str().map(str::parse::<AgentName>) else {
                continue;
            };
            let instance = self.inspect(&name)?;
            running.extend(instance.filter(|instance| instance.pid().is_some()));
        }
        running.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(running)
    }

    fn inspect(&self, name: &AgentName) -> Result<Option<Instance>, RuntimeError> {
        let found = self.look(name)?;
        Ok(found.map(|(written, handle)| instance(name, &written, handle.is_some())))
    }

    fn watch(&self, name: &AgentName) -> Result<Option<OwnedFd>, RuntimeError> {
        Ok(self.look(name)?.and_then(|(_, handle)| handle))
    }

    fn output(&self, name: &AgentName, max: usize) -> Result<Vec<u8>, RuntimeError> {
        let Ok(container) = container_of(name) else {
            return Ok(Vec::new());
        };
        let machine = format!("--machine={container}");
        let args = [
            machine.as_str(),
            "--output=cat",
            "--lines=1000",
            "--no-pager",
        ];
        let said = self.call(&self.places.journalctl, &args)?;
        let newest = said.stdout.len().saturating_sub(max);
        let mut output = said.stdout[newest..].to_vec();
        if newest > 0 {
            let line = output.iter().position(|byte| *byte == b'\n');
            output.drain(..line.map_or(0, |end| end + 1));
        }
        Ok(output)
    }
}
