//! The engines: how each is installed, told to use the scripted model, and given a turn.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use hive_testkit::{claude, engine::native_engine};
use tempfile::TempDir;
use tokio::process::Command;

use super::{
    measure::{self, Job, Run},
    model::{ANSWER, Model, NOTE},
};

/// Which engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Native,
    Claude,
    Codex,
    Gemini,
}

/// An engine with a home and a directory of its own, and a session to go on with.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) kind: Kind,
    program: PathBuf,
    url: String,
    dir: TempDir,
}

/// Every engine that is installed and can do the task; why the others are left out.
pub(super) async fn all(model: &Model) -> Result<(Vec<Contender>, Vec<String>)> {
    let native = Contender::new(Kind::Native, native_engine()?, model)?;
    native.first_turn().await.context("hive-engine")?;
    let mut contenders = vec![native];
    let mut notes = Vec::new();
    for (kind, program) in [
        (Kind::Claude, claude::claude()),
        (Kind::Codex, installed("codex")),
        (Kind::Gemini, installed("gemini")),
    ] {
        let Some(program) = program else {
            notes.push(format!(
                "{} is not installed: scripts/setup.sh bench",
                kind.name()
            ));
            continue;
        };
        let contender = Contender::new(kind, program, model)?;
        match contender.first_turn().await {
            Ok(()) => contenders.push(contender),
            Err(error) => notes.push(format!("{} is left out: {error:#}", kind.name())),
        }
    }
    Ok((contenders, notes))
}

/// What `scripts/setup.sh bench` installed from npm.
fn installed(name: &str) -> Option<PathBuf> {
    let this = std::env::current_exe().ok()?;
    let below = Path::new("engines/node_modules/.bin").join(name);
    let mut places = this.ancestors().map(|dir| dir.join(&below));
    places.find(|place| place.exists())
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Native => "hive-engine",
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
        }
    }
}

impl Contender {
    fn new(kind: Kind, program: PathBuf, model: &Model) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        for name in ["home", "work"] {
            fs::create_dir(dir.path().join(name))?;
        }
        let url = match kind {
            Kind::Native | Kind::Claude => model.messages_url(),
            Kind::Codex | Kind::Gemini => model.other_url(),
        };
        let contender = Self {
            kind,
            program,
            url,
            dir,
        };
        fs::write(contender.work().join("note.txt"), NOTE)?;
        match kind {
            Kind::Native | Kind::Claude => {}
            Kind::Codex => contender.set_up_codex()?,
            Kind::Gemini => contender.set_up_gemini()?,
        }
        Ok(contender)
    }

    /// Another of the same, with a home of its own.
    pub(super) fn again(&self) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        for name in ["home", "work"] {
            fs::create_dir(dir.path().join(name))?;
        }
        let again = Self {
            kind: self.kind,
            program: self.program.clone(),
            url: self.url.clone(),
            dir,
        };
        fs::write(again.work().join("note.txt"), NOTE)?;
        Ok(again)
    }

    pub(super) fn name(&self) -> &'static str {
        self.kind.name()
    }

    pub(super) fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// How many bytes are installed: the program, or the packages it is made of.
    pub(super) fn installed_bytes(&self) -> u64 {
        let program = fs::canonicalize(&self.program).unwrap_or_default();
        let package = match self.kind {
            Kind::Native | Kind::Claude => return size(&program),
            Kind::Codex => "@openai",
            Kind::Gemini => "@google",
        };
        let mut dirs = program.ancestors();
        dirs.find(|dir| dir.ends_with(package)).map_or(0, size)
    }

    /// A start that does nothing else.
    pub(super) fn version(&self) -> Job {
        self.job(&["--version"], "")
    }

    /// A turn that begins a session.
    pub(super) async fn first_turn(&self) -> Result<()> {
        self.checked(self.task(false)).await.map(drop)
    }

    /// A turn that goes on with it.
    pub(super) async fn turn(&self) -> Result<Run> {
        self.checked(self.task(true)).await
    }

    /// Runs the native engine with a prompt of its own.
    pub(super) async fn say(&self, prompt: &str) -> Result<Run> {
        let mut args = MESSAGES.to_vec();
        args.push("--continue");
        measure::run(self.job(&args, prompt)).await
    }

    async fn checked(&self, job: Job) -> Result<Run> {
        let run = measure::run(job).await?;
        ensure!(
            run.output.contains(ANSWER),
            "it did not do the task: {}",
            run.output
        );
        Ok(run)
    }

    /// The task.
    pub(super) fn task(&self, goes_on: bool) -> Job {
        let prompt = "What is in note.txt?";
        match self.kind {
            Kind::Native | Kind::Claude => {
                let mut args = MESSAGES.to_vec();
                args.extend(goes_on.then_some("--continue"));
                self.job(&args, prompt)
            }
            Kind::Codex => {
                let mut args = vec!["exec", "--skip-git-repo-check"];
                args.extend(
                    goes_on
                        .then_some(["resume", "--last"])
                        .into_iter()
                        .flatten(),
                );
                args.push("-");
                self.job(&args, prompt)
            }
            Kind::Gemini => {
                let mut args = vec!["--approval-mode", "yolo", "--model", "gemini-2.5-pro"];
                args.extend(
                    goes_on
                        .then_some(["--resume", "latest"])
                        .into_iter()
                        .flatten(),
                );
                args.extend(["--prompt", prompt]);
                self.job(&args, "")
            }
        }
    }

    fn job(&self, args: &[&str], stdin: &str) -> Job {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .current_dir(self.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("TERM", "dumb");
        match self.kind {
            Kind::Native | Kind::Claude => command
                .env("ANTHROPIC_BASE_URL", &self.url)
                .env("ANTHROPIC_API_KEY", "dummy")
                .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
                .env("DISABLE_AUTOUPDATER", "1"),
            Kind::Codex => command
                .env("OPENAI_API_KEY", "dummy")
                .env("CODEX_HOME", self.home().join(".codex")),
            Kind::Gemini => command
                .env("GEMINI_API_KEY", "dummy")
                .env("GOOGLE_GEMINI_BASE_URL", &self.url)
                .env("GEMINI_TELEMETRY_ENABLED", "false"),
        };
        Job {
            command,
            stdin: stdin.to_owned(),
        }
    }

    fn set_up_codex(&self) -> Result<()> {
        let dir = self.home().join(".codex");
        fs::create_dir(&dir)?;
        let config = format!(
            "model = \"gpt-5\"\nmodel_provider = \"local\"\napproval_policy = \"never\"\n\
             sandbox_mode = \"danger-full-access\"\ncheck_for_update_on_startup = false\n\
             [model_providers.local]\nname = \"local\"\nbase_url = \"{}/v1\"\n\
             wire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n[analytics]\nenabled = false\n",
            self.url
        );
        Ok(fs::write(dir.join("config.toml"), config)?)
    }

    fn set_up_gemini(&self) -> Result<()> {
        let dir = self.home().join(".gemini");
        fs::create_dir(&dir)?;
        let settings = r#"{"general":{"disableAutoUpdate":true,"enableAutoUpdate":false,
            "enableAutoUpdateNotification":false},"privacy":{"usageStatisticsEnabled":false},
            "security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}}}"#;
        Ok(fs::write(dir.join("settings.json"), settings)?)
    }
}

/// What a turn loop tells an engine with the contract of `claude`.
const MESSAGES: [&str; 13] = [
    "--print",
    "--verbose",
    "--output-format",
    "stream-json",
    "--model",
    "claude-sonnet-4-5",
    "--setting-sources",
    "",
    "--strict-mcp-config",
    "--tools",
    "Read",
    "--allowedTools",
    "Read",
];

fn size(path: &Path) -> u64 {
    let Ok(meta) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !meta.is_dir() {
        return meta.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| size(&entry.path())).sum()
}
