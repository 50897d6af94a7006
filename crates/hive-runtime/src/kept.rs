//! Agents under a keeper: all that a runtime has to do but the arguments.
//!
//! Every agent has a [`crate::keeper`] above it and a directory `runtime/` beside its other ones
//! with the keeper's record, its lock and the output. Whoever can read the record can tell, stop
//! and adopt the agent: the daemon that started it, the next one, or a test. What differs between
//! runtimes is a [`Tool`].

use std::{
    collections::BTreeMap,
    fmt,
    fs::{self, DirBuilder},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{DirBuilderExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    process::Child,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use hive_wire::{AgentName, host};
use rustix::process::Signal;

use crate::{
    AgentDirs, AgentSpec, Groups, Instance, Runtime, RuntimeError, State, View, failed,
    groups::{self, RunGroups},
    keeper::{KeeperCommand, read_output},
    kernel,
    order::{Agent, Lifetime, Order, Reply, hand_over, shown},
    record::{Exit, Record},
    stage::Stage,
};

/// How long the keeper gets to kill everything that is below it.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// How often leftovers are looked for before they are called stuck.
const MAX_ROUNDS: u32 = 500;
/// A pause between two rounds: a killed process needs a moment to be gone.
const ROUND: Duration = Duration::from_millis(4);

/// What sets an agent apart from the host, if anything does.
pub trait Tool: fmt::Debug + Send + Sync {
    /// Which runtime it makes.
    fn kind(&self) -> host::Runtime;

    /// Where an agent finds its things.
    fn view(&self, dirs: &AgentDirs) -> View;

    /// What the keeper is to run for this agent. `dir` is the runtime's own directory of it, which
    /// exists and is private.
    ///
    /// # Errors
    /// When the agent cannot be run.
    fn launch(&self, spec: &AgentSpec, dir: &Path) -> Result<Launch, RuntimeError>;

    /// Removes what a run may have left that is no process. Nothing of the agent runs. Idempotent.
    ///
    /// # Errors
    /// When something is still there.
    fn clear(&self, name: &AgentName, dir: &Path) -> Result<(), RuntimeError>;
}

/// What a keeper is to run.
#[derive(Debug)]
pub struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: PathBuf,
    /// What is done before; the agent's control groups are entered there. `None` for a tool that
    /// sets limits itself.
    pub(crate) stage: Option<Stage>,
    pub(crate) agent: Agent,
}

/// Runs agents with a tool, each under a keeper.
#[derive(Debug)]
pub struct Kept<T> {
    tool: T,
    agents: PathBuf,
    keeper: KeeperCommand,
    groups: Groups,
    /// The keepers that are our own children, for us to collect when they end.
    children: Mutex<BTreeMap<AgentName, Child>>,
}

impl<T: Tool> Kept<T> {
    /// The runtime of the agents whose directories lie in `agents`.
    pub fn with(tool: T, agents: PathBuf, keeper: KeeperCommand) -> Self {
        Self {
            tool,
            agents,
            keeper,
            groups: Groups::of_host(),
            children: Mutex::new(BTreeMap::new()),
        }
    }

    /// What an agent's control groups are called: the same name in another hive is another one.
    fn group_name(&self, name: &AgentName) -> String {
        format!("hive-{}-{name}", short_hash(&self.agents))
    }

    fn dir(&self, name: &AgentName) -> PathBuf {
        self.agents.join(name.as_str()).join("runtime")
    }

    /// What is written down of an agent, if it was this runtime that ran it.
    fn record(&self, name: &AgentName) -> Result<Option<Record>, RuntimeError> {
        let dir = self.dir(name);
        let record = Record::read(&dir);
        let record = record.map_err(failed(format!("read the record in {}", shown(&dir))))?;
        Ok(record.filter(|record| record.runtime == self.tool.kind()))
    }

    /// Collects keepers that have ended, so that they do not stay as zombies.
    fn collect(&self) {
        let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
        children.retain(|_, child| matches!(child.try_wait(), Ok(None)));
    }

    /// The last run of an agent, with a handle on its keeper while that is alive.
    fn look(&self, name: &AgentName) -> Result<Option<(Record, Option<OwnedFd>)>, RuntimeError> {
        self.collect();
        let Some(record) = self.record(name)? else {
            return Ok(None);
        };
        let handle = record
            .keeper_handle()
            .map_err(failed(format!("look at the keeper of {name}")))?;
        if handle.is_some() {
            return Ok(Some((record, handle)));
        }
        // It may have ended between the two looks, and then wrote down how.
        Ok(self.record(name)?.map(|record| (record, None)))
    }

    /// Kills everything of a run whose keeper did not see to it.
    fn sweep(&self, name: &AgentName, record: &Record) -> Result<(), RuntimeError> {
        let doing = || failed(format!("kill what is left of {name}"));
        let is_over = || -> io::Result<bool> {
            Ok(record.exit.is_some() || record.boot != kernel::boot_id()?)
        };
        if is_over().map_err(doing())? {
            return Ok(());
        }
        for _ in 0..MAX_ROUNDS {
            let mut none_left = kernel::kill_marked(&record.mark).map_err(doing())?;
            // Also what cleaned its environment, as long as it is below one that is known.
            for known in [Some(record.keeper), record.program].into_iter().flatten() {
                if let Some(handle) = known.open().map_err(doing())? {
                    none_left = false;
                    kernel::kill_descendants(known.pid).map_err(doing())?;
                    kernel::signal(handle, Signal::KILL).map_err(doing())?;
                }
            }
            if none_left {
                return Ok(());
            }
            std::thread::sleep(ROUND);
        }
        Err(RuntimeError::Stuck(name.clone()))
    }

    fn order(&self, spec: &AgentSpec) -> Result<Order, RuntimeError> {
        let dir = self.dir(&spec.name);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(failed(format!("make {}", shown(&dir))))?;
        let mut launch = self.tool.launch(spec, &dir)?;
        let (groups, unbounded) = match &mut launch.stage {
            // It sets its limits itself.
            None => (RunGroups::default(), Vec::new()),
            Some(stage) => {
                let groups = self.groups.make(&self.group_name(&spec.name), &spec.limits);
                stage.groups = groups.entrances();
                let unbounded = unbounded(&groups, stage);
                (groups, unbounded)
            }
        };
        Ok(Order {
            runtime: self.tool.kind(),
            generation: spec.generation,
            program: launch.program,
            args: launch.args,
            env: launch.env,
            cwd: launch.cwd,
            stage: launch.stage,
            agent: launch.agent,
            output_bytes: spec.limits.output_bytes,
            unbounded,
            groups: groups.dirs,
            lifetime: Lifetime::OfItsOwn,
            dir,
        })
    }

    /// Kills what is left of a run, and removes what is no process.
    fn clear(&self, name: &AgentName, record: &Record) -> Result<(), RuntimeError> {
        self.sweep(name, record)?;
        groups::remove(&record.groups)
            .map_err(failed(format!("remove the control groups of {name}")))?;
        self.tool.clear(name, &self.dir(name))
    }
}

impl<T: Tool> Runtime for Kept<T> {
    fn kind(&self) -> host::Runtime {
        self.tool.kind()
    }

    fn view(&self, dirs: &AgentDirs) -> View {
        self.tool.view(dirs)
    }

    fn start(&self, spec: &AgentSpec) -> Result<Instance, RuntimeError> {
        let name = &spec.name;
        match self.look(name)? {
            Some((record, Some(_))) => return Ok(instance(name, &record, true)),
            Some((record, None)) => self.clear(name, &record)?,
            None => {}
        }
        let order = self.order(spec)?;
        let (mut child, _, reply) = hand_over(&self.keeper, name.as_str(), &order)
            .map_err(failed(format!("start {}", shown(&self.keeper.program))))?;
        let error = match reply {
            Reply::Started { .. } => {
                let mut children = self.children.lock().unwrap_or_else(PoisonError::into_inner);
                children.insert(name.clone(), child);
                drop(children);
                let record = self.record(name)?;
                let record = record.ok_or_else(|| missing(name))?;
                return Ok(instance(name, &record, true));
            }
            Reply::Unrunnable { reason } => RuntimeError::Program {
                program: order.program,
                reason,
            },
            Reply::Busy => RuntimeError::Busy(name.clone()),
            Reply::Failed { reason } => failed(format!("start {name}"))(io::Error::other(reason)),
        };
        // It ends by itself after any reply but the first.
        child
            .wait()
            .map_err(failed(format!("wait for the keeper of {name}")))?;
        Err(error)
    }

    fn stop(&self, name: &AgentName, grace: Duration) -> Result<(), RuntimeError> {
        let Some((record, handle)) = self.look(name)? else {
            return Ok(());
        };
        if let Some(keeper) = handle {
            let ended = stop_keeper(keeper, grace);
            if ended.map_err(failed(format!("stop the keeper of {name}")))? {
                // Its own record says whether it left something.
                return match self.look(name)? {
                    Some((record, _)) => self.clear(name, &record),
                    None => Ok(()),
                };
            }
            tracing::warn!(%name, "its keeper does not react and is killed");
        }
        self.clear(name, &record)?;
        self.collect();
        Ok(())
    }

    fn list(&self) -> Result<Vec<Instance>, RuntimeError> {
        let doing = || failed(format!("list {}", shown(&self.agents)));
        let entries = match fs::read_dir(&self.agents) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(doing()(error)),
        };
        let mut running = Vec::new();
        for entry in entries {
            let entry = entry.map_err(doing())?.file_name();
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
        Ok(found.map(|(record, handle)| instance(name, &record, handle.is_some())))
    }

    fn watch(&self, name: &AgentName) -> Result<Option<OwnedFd>, RuntimeError> {
        Ok(self.look(name)?.and_then(|(_, handle)| handle))
    }

    fn output(&self, name: &AgentName, max: usize) -> Result<Vec<u8>, RuntimeError> {
        read_output(&self.dir(name), max).map_err(failed(format!("read the output of {name}")))
    }
}

fn missing(name: &AgentName) -> RuntimeError {
    failed(format!("find the record of {name}"))(io::ErrorKind::NotFound.into())
}

/// Asks, waits, then has everything killed; false when the keeper itself does not react.
fn stop_keeper(keeper: impl AsFd, grace: Duration) -> io::Result<bool> {
    if !grace.is_zero() {
        kernel::signal(&keeper, Signal::TERM)?;
        if kernel::ends_within(&keeper, grace)? {
            return Ok(true);
        }
    }
    kernel::signal(&keeper, Signal::USR1)?;
    kernel::ends_within(&keeper, KILL_PATIENCE)
}

fn instance(name: &AgentName, record: &Record, is_running: bool) -> Instance {
    let state = if is_running {
        // Between the keeper's start and the program's, the keeper stands for it.
        let process = record.program.unwrap_or(record.keeper);
        State::Running { pid: process.pid }
    } else {
        State::Ended(record.exit.clone().unwrap_or(Exit::Unseen))
    };
    Instance {
        name: name.clone(),
        generation: record.generation,
        started_at: record.started_at,
        unbounded: record.unbounded.clone(),
        state,
    }
}

/// What of an agent's limits nothing enforces.
fn unbounded(groups: &RunGroups, stage: &Stage) -> Vec<String> {
    let has_pids = stage.pids.is_some();
    let unbounded = groups.unbounded.iter();
    // What no group bounds, the limits of a user may.
    unbounded
        .filter(|problem| !(has_pids && problem.starts_with("processes: ")))
        .cloned()
        .collect()
}

/// Refuses a program that cannot be run, before anything is started. It lies in `file` on the host.
pub(crate) fn check_program(program: &Path, file: &Path) -> Result<(), RuntimeError> {
    let reason = match fs::metadata(file) {
        Err(error) => error.to_string(),
        Ok(found) if !found.is_file() => "it is no file".to_owned(),
        Ok(found) if found.permissions().mode() & 0o111 == 0 => "it is not executable".to_owned(),
        Ok(_) => return Ok(()),
    };
    Err(RuntimeError::Program {
        program: program.to_path_buf(),
        reason,
    })
}

/// Tells things of the same name in different hives apart: FNV-1a of where they lie.
pub(crate) fn short_hash(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes().iter();
    let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    format!("{hash:08x}")
}
