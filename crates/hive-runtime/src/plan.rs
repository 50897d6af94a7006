//! The mount plan: everything that an agent in a container sees, and nothing else. One plan serves
//! every isolating runtime.
//!
//! Entries are in the order in which they are made: what lies above comes before what lies below it.
//! No entry lies below a directory that the agent can write to, except `~/.claude`, whose mount
//! point the host makes itself ([`crate::mount_point`]): a link that was planted there would lead
//! a mount elsewhere.

use std::{
    ffi::OsStr,
    fs,
    path::{Component, Path, PathBuf},
};

use crate::{
    Access, AgentDirs, AgentSpec, Network, RuntimeError, User, View,
    kept::check_program,
    programs::{Belongings, real_parent},
    system::System,
};

/// How large the small file systems in memory are that hold no more than sockets.
const SMALL: u64 = 16 * 1024 * 1024;

/// What an agent sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPlan {
    /// In the order in which they are made.
    pub entries: Vec<Entry>,
}

/// One thing that an agent sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A file or directory of the host.
    Bind {
        /// Where it lies on the host, without a link in it.
        source: PathBuf,
        /// Where the agent sees it.
        target: PathBuf,
        /// Whether it may change it.
        access: Access,
    },
    /// A link.
    Link {
        /// Where it lies.
        target: PathBuf,
        /// Where it leads.
        to: PathBuf,
    },
    /// A file that was made for the agent, read-only.
    File {
        /// Where it lies.
        target: PathBuf,
        /// What is in it.
        text: String,
    },
    /// A directory in memory that the agent can write to.
    Tmpfs {
        /// Where it lies.
        target: PathBuf,
        /// How much fits in.
        bytes: u64,
    },
    /// An empty directory that the agent can write to, in a directory in memory.
    Dir {
        /// Where it lies.
        target: PathBuf,
    },
}

impl Entry {
    /// Where the agent sees it.
    pub fn target(&self) -> &Path {
        match self {
            Self::Bind { target, .. }
            | Self::Link { target, .. }
            | Self::File { target, .. }
            | Self::Tmpfs { target, .. }
            | Self::Dir { target } => target,
        }
    }
}

/// Where every agent in a container finds its things.
pub(crate) fn view() -> View {
    View {
        dirs: AgentDirs {
            state: "/state".into(),
            harness: "/harness".into(),
            claude: "/home/agent/.claude".into(),
            home: "/home/agent".into(),
            run: "/run/hive".into(),
        },
        bash_socket: "/run/hive-bash/socket".into(),
    }
}

impl MountPlan {
    /// The plan of an agent on a host with this system. `path` is where the host looks for programs.
    ///
    /// # Errors
    /// When something that it names is not there, or may not be where it is wanted.
    pub fn new(spec: &AgentSpec, system: &System, path: &OsStr) -> Result<Self, RuntimeError> {
        let mut plan = Self {
            entries: Vec::new(),
        };
        plan.add_system(system, spec.network);
        plan.add_files(spec);
        plan.add_memory(spec);
        plan.add_dirs(&spec.dirs)?;
        plan.add_programs(spec, system, path);
        plan.add_mounts(spec)?;
        Ok(plan)
    }

    fn bind(&mut self, source: impl Into<PathBuf>, target: impl Into<PathBuf>, access: Access) {
        self.entries.push(Entry::Bind {
            source: source.into(),
            target: target.into(),
            access,
        });
    }

    fn link(&mut self, target: impl Into<PathBuf>, to: impl Into<PathBuf>) {
        self.entries.push(Entry::Link {
            target: target.into(),
            to: to.into(),
        });
    }

    fn add_system(&mut self, system: &System, network: Network) {
        for path in &system.bound {
            self.bind(path, path, Access::ReadOnly);
        }
        for (target, to) in &system.links {
            self.link(target, to);
        }
        if let (Network::Host, Some(file)) = (network, &system.resolv_conf) {
            self.bind(file, "/etc/resolv.conf", Access::ReadOnly);
        }
        self.link("/var/tmp", "/tmp");
        self.link("/var/run", "/run");
    }

    /// Files that say who the agent is, so that programs which ask get an answer.
    fn add_files(&mut self, spec: &AgentSpec) {
        let name = &spec.name;
        let User {
            name: user,
            uid,
            gid,
        } = &spec.user;
        for (target, text) in [
            (
                "/etc/passwd",
                format!(
                    "root:x:0:0:root:/:/usr/sbin/nologin\n\
                     {user}:x:{uid}:{gid}:{name}:/home/agent:/bin/sh\n\
                     nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
                ),
            ),
            (
                "/etc/group",
                format!("root:x:0:\n{user}:x:{gid}:\nnogroup:x:65534:\n"),
            ),
            (
                "/etc/hosts",
                format!("127.0.0.1 localhost {name}\n::1 localhost\n"),
            ),
            ("/etc/hostname", format!("{name}\n")),
            (
                "/etc/nsswitch.conf",
                "passwd: files\ngroup: files\nhosts: files dns\n".to_owned(),
            ),
        ] {
            self.entries.push(Entry::File {
                target: target.into(),
                text,
            });
        }
    }

    fn add_memory(&mut self, spec: &AgentSpec) {
        for (target, bytes) in [("/tmp", spec.limits.tmp_bytes), ("/run", SMALL)] {
            self.entries.push(Entry::Tmpfs {
                target: target.into(),
                bytes,
            });
        }
        let socket = view().bash_socket;
        let dir = socket.parent().unwrap_or(&socket);
        self.entries.push(Entry::Dir { target: dir.into() });
    }

    fn add_dirs(&mut self, dirs: &AgentDirs) -> Result<(), RuntimeError> {
        use Access::{ReadOnly, ReadWrite};
        let inside = view().dirs;
        for (source, target, access) in [
            (&dirs.state, inside.state, ReadWrite),
            (&dirs.harness, inside.harness, ReadWrite),
            (&dirs.home, inside.home, ReadWrite),
            (&dirs.claude, inside.claude, ReadWrite),
            (&dirs.run, inside.run, ReadOnly),
        ] {
            // The way there is the host's own and may have links in it; the end must be none.
            let source = real_parent(source).map_err(|source_error| RuntimeError::Io {
                doing: format!("find {}", source.display()),
                source: source_error,
            })?;
            self.bind(source, target, access);
        }
        Ok(())
    }

    fn add_programs(&mut self, spec: &AgentSpec, system: &System, path: &OsStr) {
        let found = Belongings::of(spec.programs.iter().map(PathBuf::as_path), path);
        for file in found.bound.iter().filter(|file| !system.holds(file)) {
            self.bind(file, file, Access::ReadOnly);
        }
        for (link, to) in &found.links {
            let dir = link.parent().unwrap_or(link);
            let dir = fs::canonicalize(dir).unwrap_or_else(|_| dir.to_path_buf());
            if !system.holds(&dir) {
                self.link(link, to);
            }
        }
    }

    fn add_mounts(&mut self, spec: &AgentSpec) -> Result<(), RuntimeError> {
        let mut mounts: Vec<_> = spec.mounts.iter().collect();
        mounts.sort_by(|one, other| one.target.cmp(&other.target));
        for mount in mounts {
            let refuse = |reason: &str| RuntimeError::Mount {
                mount: mount.target.clone(),
                reason: reason.to_owned(),
            };
            check_path(&mount.source, &mount.target)?;
            if let Some(taken) = self.taken(&mount.target) {
                return Err(refuse(&format!("{} is the hive's own", taken.display())));
            }
            match fs::canonicalize(&mount.source) {
                Ok(real) if real == mount.source => {}
                Ok(real) => {
                    return Err(refuse(&format!(
                        "{} is a link; name {} instead",
                        mount.source.display(),
                        real.display()
                    )));
                }
                Err(error) => {
                    return Err(refuse(&format!("{}: {error}", mount.source.display())));
                }
            }
            self.bind(&mount.source, &mount.target, mount.access);
        }
        Ok(())
    }

    /// The part of the hive's own view that a mount at this place would cover or lie in.
    fn taken(&self, target: &Path) -> Option<PathBuf> {
        let inside = view().dirs;
        let closed = ["/etc", "/proc", "/dev", "/sys", "/run", "/tmp", "/var"].map(PathBuf::from);
        let own = [inside.state, inside.harness, inside.home];
        let system = self.entries.iter().filter_map(|entry| match entry {
            Entry::Bind { target, .. } | Entry::Link { target, .. } => Some(target.clone()),
            Entry::File { .. } | Entry::Tmpfs { .. } | Entry::Dir { .. } => None,
        });
        closed
            .into_iter()
            .chain(own)
            .chain(system.filter(|path| path.parent() == Some(Path::new("/"))))
            .find(|taken| target.starts_with(taken) || taken.starts_with(target))
    }

    /// Refuses a program that the agent would not find, before anything is started.
    pub(crate) fn check_program(&self, program: &Path) -> Result<(), RuntimeError> {
        match self.on_host(program) {
            Some(file) => check_program(program, &file),
            None => Err(RuntimeError::Program {
                program: program.to_path_buf(),
                reason: "the agent does not see such a file".to_owned(),
            }),
        }
    }

    /// Where on the host something lies that the agent sees under this path; links are followed.
    pub(crate) fn on_host(&self, path: &Path) -> Option<PathBuf> {
        let mut path = path.to_path_buf();
        for _ in 0..16 {
            let entry = self
                .entries
                .iter()
                .rfind(|entry| path.starts_with(entry.target()))?;
            let rest = path.strip_prefix(entry.target()).ok()?;
            match entry {
                Entry::Bind { source, .. } if rest.as_os_str().is_empty() => {
                    return Some(source.clone());
                }
                Entry::Bind { source, .. } => return Some(source.join(rest)),
                Entry::Link { target, to } => {
                    let above = target.parent().unwrap_or(Path::new("/"));
                    path = above.join(to).join(rest);
                }
                Entry::File { .. } | Entry::Tmpfs { .. } | Entry::Dir { .. } => return None,
            }
        }
        None
    }
}

/// Refuses a mount between paths that are not plain.
pub(crate) fn check_path(source: &Path, target: &Path) -> Result<(), RuntimeError> {
    for path in [target, source] {
        check_plain(path).map_err(|reason| RuntimeError::Mount {
            mount: target.to_path_buf(),
            reason: reason.to_owned(),
        })?;
    }
    Ok(())
}

fn check_plain(path: &Path) -> Result<(), &'static str> {
    let mut parts = path.components();
    if parts.next() != Some(Component::RootDir) {
        return Err("it must be an absolute path");
    }
    if path
        .to_str()
        .is_none_or(|text| text.contains([':', '\\', '\n', '\0']))
    {
        return Err("a path of a mount has no `:`, `\\` or line break, and is UTF-8");
    }
    if parts.clone().next().is_none() {
        return Err("the root directory cannot be mounted");
    }
    let is_plain = parts.all(|part| matches!(part, Component::Normal(_)));
    if is_plain {
        Ok(())
    } else {
        Err("it must not contain `..`")
    }
}

#[cfg(test)]
pub(crate) mod tests;
