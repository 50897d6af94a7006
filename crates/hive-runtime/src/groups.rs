//! Control groups: what bounds an agent's memory, processes and processor time as a whole.
//!
//! A group is made for a run and removed after it. Which hierarchies there are, of the second
//! version or the first, and where we may make groups in them, is found out by trying. What cannot
//! be bounded is said, never silently dropped.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::Limits;

/// The length of one period of processor time, in microseconds.
const PERIOD: u64 = 100_000;
/// How often a group that is being emptied is looked at.
const MAX_ROUNDS: u32 = 200;
/// How deep groups in groups are removed.
const MAX_DEPTH: u32 = 32;
/// A pause between two looks.
const ROUND: std::time::Duration = std::time::Duration::from_millis(5);

/// Where this process may make groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Groups {
    /// In the hierarchy of the second version.
    unified: Option<Unified>,
    /// In those of the first, by controller.
    legacy: Vec<(Controller, PathBuf)>,
    /// In that of the first which bounds nothing and is systemd's: what nspawn makes for itself
    /// would otherwise lie beside the host's own.
    named: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Unified {
    dir: PathBuf,
    controllers: Vec<Controller>,
}

/// What a group can bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Controller {
    Memory,
    Pids,
    Cpu,
}

impl Controller {
    const ALL: [Self; 3] = [Self::Memory, Self::Pids, Self::Cpu];

    fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Pids => "pids",
            Self::Cpu => "cpu",
        }
    }
}

/// The groups of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RunGroups {
    /// Their directories.
    pub(crate) dirs: Vec<PathBuf>,
    /// What could not be bounded, in words for the operator.
    pub(crate) unbounded: Vec<String>,
}

impl Groups {
    /// Looks where this process may make groups.
    pub fn of_host() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::find(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
    }

    /// The same from what the kernel says about mounts and about the groups of this process.
    fn find(mounts: &str, own: &str) -> Self {
        let mut groups = Self::default();
        for mount in mounts.lines().filter_map(Mount::parse) {
            match mount.kind {
                "cgroup2" => groups.add_unified(&mount, own),
                "cgroup" => groups.add_legacy(&mount, own),
                _ => {}
            }
        }
        groups
    }

    fn add_unified(&mut self, mount: &Mount<'_>, own: &str) {
        let path = own.lines().find_map(|line| line.strip_prefix("0::"));
        let dir = mount.dir(path.unwrap_or("/"));
        // Beside other processes a group cannot hand its controllers on; the root's can.
        let candidates = [dir, mount.point.to_path_buf()];
        for dir in candidates {
            if can_write(&dir) {
                let controllers = hand_on(&dir);
                self.unified = Some(Unified { dir, controllers });
                return;
            }
        }
    }

    fn add_legacy(&mut self, mount: &Mount<'_>, own: &str) {
        if mount.options.split(',').any(|name| name == "name=systemd") {
            let dir = mount.dir(legacy_path(own, |name| name == "name=systemd"));
            self.named = can_write(&dir).then_some(dir);
        }
        for controller in Controller::ALL {
            let named = |names: &str| names.split(',').any(|name| name == controller.name());
            if !named(mount.options) {
                continue;
            }
            let dir = mount.dir(legacy_path(own, |name| name == controller.name()));
            if can_write(&dir) {
                self.legacy.push((controller, dir));
            }
        }
    }

    /// Makes the groups of a run under this name, with its limits. Those of an earlier run of the
    /// same name are used again.
    pub(crate) fn make(&self, name: &str, limits: &Limits) -> RunGroups {
        let mut made = RunGroups::default();
        if let Some(unified) = &self.unified {
            // It also kills everything in it at once.
            made.add(&unified.dir.join(name)).ok();
        }
        if let Some(named) = &self.named {
            made.add(&named.join(name)).ok();
        }
        for controller in Controller::ALL {
            let Some(wanted) = setting(controller, limits) else {
                continue;
            };
            if let Err(problem) = self.bound(controller, name, &wanted, &mut made) {
                made.unbounded.push(format!("{}: {problem}", wanted.what));
            }
        }
        made
    }

    fn bound(
        &self,
        controller: Controller,
        name: &str,
        wanted: &Setting,
        made: &mut RunGroups,
    ) -> Result<(), String> {
        let unified = self.unified.as_ref();
        let unified = unified.filter(|one| one.controllers.contains(&controller));
        let (dir, files) = match unified {
            Some(unified) => (unified.dir.join(name), &wanted.unified),
            None => match self.legacy.iter().find(|(one, _)| *one == controller) {
                Some((_, dir)) => (dir.join(name), &wanted.legacy),
                None => return Err("this host gives us no control group for it".to_owned()),
            },
        };
        made.add(&dir)
            .map_err(|error| format!("cannot make {}: {error}", dir.display()))?;
        for (file, value) in files {
            let path = dir.join(file);
            fs::write(&path, value)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
        Ok(())
    }
}

impl RunGroups {
    fn add(&mut self, dir: &Path) -> io::Result<()> {
        match fs::create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        if !self.dirs.iter().any(|known| known == dir) {
            self.dirs.push(dir.to_path_buf());
        }
        Ok(())
    }

    /// The files by which a process enters them.
    pub(crate) fn entrances(&self) -> Vec<PathBuf> {
        let entrance = |dir: &PathBuf| dir.join("cgroup.procs");
        self.dirs.iter().map(entrance).collect()
    }
}

/// Kills what is in groups, where the kernel can do that, and removes them.
pub(crate) fn remove(dirs: &[PathBuf]) -> io::Result<()> {
    for dir in dirs {
        // Only groups of the second version have this.
        fs::write(dir.join("cgroup.kill"), "1").ok();
        remove_tree(dir, MAX_DEPTH)?;
    }
    Ok(())
}

/// Removes a group and those that were made in it.
fn remove_tree(dir: &Path, depth: u32) -> io::Result<()> {
    let inner = match fs::read_dir(dir) {
        Ok(inner) => inner,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in inner {
        let entry = entry?;
        if entry.file_type()?.is_dir() && depth > 0 {
            remove_tree(&entry.path(), depth - 1)?;
        }
    }
    for _ in 0..MAX_ROUNDS {
        match fs::remove_dir(dir) {
            // A process that was killed is there for a moment.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(ROUND),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => return Ok(()),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// What is written where to bound something.
struct Setting {
    what: &'static str,
    unified: Vec<(&'static str, String)>,
    legacy: Vec<(&'static str, String)>,
}

fn setting(controller: Controller, limits: &Limits) -> Option<Setting> {
    match controller {
        Controller::Memory => limits.memory_bytes.map(|bytes| Setting {
            what: "memory",
            unified: vec![
                ("memory.max", bytes.to_string()),
                ("memory.oom.group", "1".to_owned()),
            ],
            legacy: vec![("memory.limit_in_bytes", bytes.to_string())],
        }),
        Controller::Pids => limits.pids.map(|pids| Setting {
            what: "processes",
            unified: vec![("pids.max", pids.to_string())],
            legacy: vec![("pids.max", pids.to_string())],
        }),
        Controller::Cpu => limits.cpu_percent.map(|percent| {
            let quota = PERIOD * u64::from(percent) / 100;
            Setting {
                what: "processor time",
                unified: vec![("cpu.max", format!("{quota} {PERIOD}"))],
                legacy: vec![
                    ("cpu.cfs_period_us", PERIOD.to_string()),
                    ("cpu.cfs_quota_us", quota.to_string()),
                ],
            }
        }),
    }
}

/// Makes a group's controllers available below it, as far as it has them and may; which those are.
fn hand_on(dir: &Path) -> Vec<Controller> {
    let read = |file: &str| fs::read_to_string(dir.join(file)).unwrap_or_default();
    let has = |text: &str, one: Controller| text.split_whitespace().any(|name| name == one.name());
    let there = read("cgroup.controllers");
    for controller in Controller::ALL.into_iter().filter(|one| has(&there, *one)) {
        // Whether it worked is seen below.
        let line = format!("+{}", controller.name());
        fs::write(dir.join("cgroup.subtree_control"), line).ok();
    }
    let handed = read("cgroup.subtree_control");
    let handed_on = Controller::ALL.into_iter();
    handed_on.filter(|one| has(&handed, *one)).collect()
}

/// Our own group in a hierarchy of the first version that has something of this name.
fn legacy_path(own: &str, is_named: impl Fn(&str) -> bool) -> &str {
    let path = own.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let names = parts.next()?;
        names.split(',').any(&is_named).then(|| parts.next())?
    });
    path.unwrap_or("/")
}

/// Whether we may make groups here.
fn can_write(dir: &Path) -> bool {
    rustix::fs::access(dir, rustix::fs::Access::WRITE_OK).is_ok()
        && rustix::fs::access(dir.join("cgroup.procs"), rustix::fs::Access::WRITE_OK).is_ok()
}

/// One mounted hierarchy.
struct Mount<'m> {
    kind: &'m str,
    /// Which part of the hierarchy is seen.
    root: &'m str,
    point: &'m Path,
    options: &'m str,
}

impl<'m> Mount<'m> {
    /// From a line of `/proc/self/mountinfo`.
    fn parse(line: &'m str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let mut after = after.split(' ');
        let (root, point) = (before.next()?, before.next()?);
        let kind = after.next()?;
        let options = after.nth(1)?;
        Some(Self {
            kind,
            root,
            point: Path::new(point),
            options,
        })
    }

    /// Where a group of the hierarchy is seen.
    fn dir(&self, path: &str) -> PathBuf {
        let below = path.strip_prefix(self.root.trim_end_matches('/'));
        let below = below.unwrap_or(path).trim_start_matches('/');
        if below.is_empty() {
            return self.point.to_path_buf();
        }
        self.point.join(below)
    }
}

#[cfg(test)]
mod tests;
