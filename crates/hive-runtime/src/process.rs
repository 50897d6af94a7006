//! `process`: an agent as a plain process of the host. No isolation whatsoever: it can do what the
//! daemon's user can do.
//!
//! Every agent has a [`crate::keeper`] above it and a directory `runtime/` beside its other ones
//! with the keeper's record, its lock and the output. Whoever can read the record can tell, stop
//! and adopt the agent: the daemon that started it, the next one, or a test.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::DirBuilderExt,
    },
    path::PathBuf,
    process::Child,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use hive_wire::{AgentName, host};
use rustix::process::Signal;

use crate::{
    AgentDirs, AgentSpec, Instance, Runtime, RuntimeError, State, failed,
    keeper::{KeeperCommand, read_output},
    kernel,
    order::{Lifetime, Order, Reply, hand_over, shown},
    record::{Exit, Record},
};

/// How long the keeper gets to kill everything that is below it.
const KILL_PATIENCE: Duration = Duration::from_secs(5);
/// How often leftovers are looked for before they are called stuck.
const MAX_ROUNDS: u32 = 500;
/// A pause between two rounds: a killed process needs a moment to be gone.
const ROUND: Duration = Duration::from_millis(4);

/// Runs agents as plain processes.
#[derive(Debug)]
pub struct ProcessRuntime {
    agents: PathBuf,
    keeper: KeeperCommand,
    /// The keepers that are our own children, for us to collect when they end.
    children: Mutex<BTreeMap<AgentName, Child>>,
}

impl ProcessRuntime {
    /// The runtime of the agents whose directories lie in `agents`.
    pub fn new(agents: PathBuf, keeper: KeeperCommand) -> Self {
        Self {
            agents,
            keeper,
            children: Mutex::new(BTreeMap::new()),
        }
    }

    fn dir(&self, name: &AgentName) -> PathBuf {
        self.agents.join(name.as_str()).join("runtime")
    }

    fn record(&self, name: &AgentName) -> Result<Option<Record>, RuntimeError> {
        let dir = self.dir(name);
        Record::read(&dir).map_err(failed(format!("read the record in {}", shown(&dir))))
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

    fn order(&self, spec: &AgentSpec) -> Order {
        Order {
            dir: self.dir(&spec.name),
            generation: spec.generation,
            program: spec.command.program.clone(),
            args: spec.command.args.clone(),
            env: spec.env.clone(),
            cwd: spec.dirs.state.clone(),
            output_bytes: spec.limits.output_bytes,
            lifetime: Lifetime::OfItsOwn,
        }
    }
}

impl Runtime for ProcessRuntime {
    fn kind(&self) -> host::Runtime {
        host::Runtime::Process
    }

    fn view(&self, dirs: &AgentDirs) -> AgentDirs {
        dirs.clone()
    }

    fn start(&self, spec: &AgentSpec) -> Result<Instance, RuntimeError> {
        let name = &spec.name;
        match self.look(name)? {
            Some((record, Some(_))) => return Ok(instance(name, &record, true)),
            Some((record, None)) => self.sweep(name, &record)?,
            None => {}
        }
        let order = self.order(spec);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&order.dir)
            .map_err(failed(format!("make {}", shown(&order.dir))))?;
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
                    Some((record, _)) => self.sweep(name, &record),
                    None => Ok(()),
                };
            }
            tracing::warn!(%name, "its keeper does not react and is killed");
        }
        self.sweep(name, &record)?;
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
        state,
    }
}
