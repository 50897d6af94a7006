//! Where everything of one hive lies, and making sure that nobody else can reach into it.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use hive_runtime::AgentDirs;
use hive_wire::{AgentName, socket};

use crate::cli::Places;

/// The directories of one hive.
#[derive(Debug, Clone)]
pub struct Paths {
    /// What the operator named or the default; errors name it.
    pub root: PathBuf,
    /// Durable state.
    pub state: PathBuf,
    /// Sockets.
    pub run: PathBuf,
}

impl Paths {
    /// The layout under `root`, or the default one of this user.
    ///
    /// # Errors
    /// When neither a root nor a home directory is to be had.
    pub fn find(root: Option<&Path>) -> anyhow::Result<Self> {
        if let Some(root) = root {
            let root = std::path::absolute(root)
                .with_context(|| format!("cannot tell where {} is", root.display()))?;
            return Ok(Self {
                state: root.join("state"),
                run: root.join("run"),
                root,
            });
        }
        if rustix::process::geteuid().is_root() {
            return Ok(Self {
                root: "/var/lib/hyperhive".into(),
                state: "/var/lib/hyperhive/state".into(),
                run: "/run/hyperhive".into(),
            });
        }
        let var = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        let home = || var("HOME").context("set HOME, or name a directory with --root");
        let root = match var("XDG_STATE_HOME") {
            Some(dir) => dir.join("hyperhive"),
            None => home()?.join(".local/state/hyperhive"),
        };
        let run = match var("XDG_RUNTIME_DIR") {
            Some(dir) => dir.join("hyperhive"),
            None => root.join("run"),
        };
        Ok(Self {
            state: root.join("state"),
            run,
            root,
        })
    }

    /// What the command line needs to know.
    pub fn places(&self) -> Places {
        Places {
            root: self.root.clone(),
            lock: self.lock(),
            host_socket: self.host_socket(),
            database: self.database(),
        }
    }

    /// The optional configuration.
    pub fn config(&self) -> PathBuf {
        self.root.join("hive.toml")
    }

    /// The file whose lock means "a daemon runs here".
    pub fn lock(&self) -> PathBuf {
        self.state.join("hive.lock")
    }

    /// Durable state.
    pub fn database(&self) -> PathBuf {
        self.state.join("hive.db")
    }

    /// The event log.
    pub fn events(&self) -> PathBuf {
        self.state.join("events.db")
    }

    /// The operator's token.
    pub fn operator_token(&self) -> PathBuf {
        self.state.join("operator-token")
    }

    /// Who has logged in to which page.
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions.json")
    }

    /// The operator's admin socket.
    pub fn host_socket(&self) -> PathBuf {
        self.run.join("host.sock")
    }

    /// The directory that is bound into an agent's container as `/run/hive`.
    pub fn agent_run(&self, name: &AgentName) -> PathBuf {
        self.run.join("agents").join(name.as_str())
    }

    /// Where the agents' directories lie.
    pub fn agents(&self) -> PathBuf {
        self.state.join("agents")
    }

    /// Everything that one agent owns, and its runtime's record of it.
    pub fn agent(&self, name: &AgentName) -> PathBuf {
        self.agents().join(name.as_str())
    }

    /// The directories that an agent sees.
    pub fn agent_dirs(&self, name: &AgentName) -> AgentDirs {
        let own = self.agent(name);
        AgentDirs {
            state: own.join("state"),
            harness: own.join("harness"),
            claude: own.join("claude"),
            home: own.join("home"),
            run: self.agent_run(name),
        }
    }

    /// The proposed repositories, which the root agent sees at `/agents`.
    pub fn proposed(&self) -> PathBuf {
        self.state.join("proposed")
    }

    /// Where runtimes are tried out.
    pub fn trial(&self) -> PathBuf {
        self.state.join("trial")
    }

    /// What the rehearsed model of a demo keeps.
    pub fn rehearsal(&self) -> PathBuf {
        self.state.join("rehearsal")
    }

    /// An agent's own socket.
    pub fn agent_socket(&self, name: &AgentName) -> PathBuf {
        self.agent_run(name).join("mcp.sock")
    }

    /// An agent's way to its model and the world.
    pub fn gateway_socket(&self, name: &AgentName) -> PathBuf {
        self.agent_run(name).join("gateway.sock")
    }

    /// Makes the directories, private to this user, and refuses those that are not.
    ///
    /// # Errors
    /// When a directory cannot be made, or belongs to somebody else, or can be written by others.
    pub fn prepare(&self) -> anyhow::Result<()> {
        make_dir(&self.root, 0o755)?;
        check_owner(&self.root)?;
        make_dir(&self.state, 0o700)?;
        check_private(&self.state)?;
        self.prepare_run()?;
        make_dir(&self.run.join("agents"), 0o700)
    }

    /// The sockets' directory: a link to a short private one when the paths would be too long for
    /// the kernel.
    fn prepare_run(&self) -> anyhow::Result<()> {
        let longest = self.run.join("agents/nine-char/gateway.sock");
        if socket::fits(&longest) {
            make_dir(&self.run, 0o700)?;
            return check_private(&self.run);
        }
        if let Ok(target) = fs::read_link(&self.run) {
            // Made by an earlier start; running agents hold on to it.
            if check_private(&target).is_ok() {
                return Ok(());
            }
            fs::remove_file(&self.run).context("cannot replace a stale link to the sockets")?;
        }
        let short = short_private_dir()?;
        match fs::remove_dir(&self.run) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("{} is in the way", self.run.display()));
            }
            _ => {}
        }
        symlink(&short, &self.run)
            .with_context(|| format!("cannot link {} to {}", self.run.display(), short.display()))
    }
}

fn make_dir(path: &Path, mode: u32) -> anyhow::Result<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .with_context(|| {
            format!(
                "cannot make the directory {}: choose another one with --root",
                path.display()
            )
        })
}

fn check_owner(path: &Path) -> anyhow::Result<()> {
    let found = fs::metadata(path).with_context(|| format!("cannot look at {}", path.display()))?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        bail!(
            "{} belongs to uid {}, and this daemon runs as uid {own}: run it as that user, chown \
             the directory, or choose another one with --root",
            path.display(),
            found.uid()
        );
    }
    if found.mode() & 0o002 != 0 {
        bail!(
            "{0} can be written by everybody: run `chmod o-w {0}`",
            path.display()
        );
    }
    Ok(())
}

fn check_private(path: &Path) -> anyhow::Result<()> {
    check_owner(path)?;
    let mode = fs::symlink_metadata(path)?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("cannot make {} private", path.display()))?;
    }
    Ok(())
}

/// A new directory with an unguessable name that only this user can enter.
fn short_private_dir() -> anyhow::Result<PathBuf> {
    let base = std::env::var_os("XDG_RUNTIME_DIR")
        .map(PathBuf::from)
        .filter(|dir| dir.is_absolute() && dir.as_os_str().len() < 40)
        .unwrap_or_else(|| "/tmp".into());
    let mut random = [0_u8; 6];
    getrandom::fill(&mut random).context("the kernel gives no random bytes")?;
    let name: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    let dir = base.join(format!("hive-{name}"));
    // Not recursive: a directory that is there already was planted by somebody.
    DirBuilder::new()
        .mode(0o700)
        .create(&dir)
        .with_context(|| format!("cannot make {}", dir.display()))?;
    Ok(dir)
}
