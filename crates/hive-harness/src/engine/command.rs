//! The engine command: what is run, with which flags and in which environment.
//!
//! The engine is configuration: `claude`, or any command that takes the same flags and prints the same
//! events. A probe at boot learns which flags it takes. One that a turn cannot do without is an error
//! there and then, with its name; the others are left out.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io,
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process_group};
use thiserror::Error;
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
};

use super::{SessionChoice, TurnSpec, facts::cut};

/// How long `--version` and `--help` may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(60);
/// How much of their output is read.
const PROBE_OUTPUT: u64 = 1024 * 1024;

/// The flags that a turn cannot do without.
const REQUIRED: [&str; 11] = [
    "--print",
    "--verbose",
    "--output-format",
    "--model",
    "--continue",
    "--settings",
    "--system-prompt-file",
    "--mcp-config",
    "--strict-mcp-config",
    "--tools",
    "--allowedTools",
];
/// Sends a changed system prompt at once, instead of the one that the conversation began with.
const SNAPSHOT: &str = "--system-prompt-snapshot";
/// Keeps settings that lie in the agent's own directory from being obeyed.
const SETTING_SOURCES: &str = "--setting-sources";
/// Who is asked about a call that the rules leave open.
const PROMPT_TOOL: &str = "--permission-prompt-tool";
/// Prompts as JSON lines, for a warm engine.
const INPUT_FORMAT: &str = "--input-format";

/// Variables of the harness's own environment that an engine gets too.
const INHERITED: [&str; 20] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HIVE_SOCKET",
    "HIVE_LABEL",
    "HIVE_BASH_SOCKET",
];
/// Beginnings of names that it gets too.
const INHERITED_PREFIXES: [&str; 3] = ["LC_", "ANTHROPIC_", "CLAUDE_"];
/// What is set unless the harness's environment or the configuration says otherwise.
const DEFAULTS: [(&str, &str); 5] = [
    ("TERM", "dumb"),
    // Waiting for an outage or a bad key is the harness's job; by itself `claude` tries for minutes.
    ("CLAUDE_CODE_MAX_RETRIES", "2"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    // One result per turn; work in the background belongs to the bash daemon.
    ("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
];

/// How to call the engine.
#[derive(Debug, Clone)]
pub struct EngineCommand {
    /// The program: a path, or a name that is looked up in the `PATH` of [`Self::env`].
    pub program: PathBuf,
    /// Arguments that go before all others.
    pub args: Vec<OsString>,
    /// The directory of every turn: the agent's own, and no other agent's.
    pub cwd: PathBuf,
    /// The whole environment of the engine; [`environment`] makes one.
    pub env: Vec<(OsString, OsString)>,
    /// `--setting-sources`: none by default, so that only the harness's settings count.
    pub setting_sources: String,
    /// `--permission-prompt-tool`: the tool that asks the operator; none refuses at once.
    pub permission_prompt: Option<String>,
}

/// What a probe found out about an engine.
#[derive(Debug, Clone, Default)]
pub struct Profile {
    /// What it says its version is.
    pub version: String,
    /// The flags that its help names.
    pub flags: BTreeSet<String>,
}

impl Profile {
    /// Whether it takes prompts as JSON lines, and so can stay for further turns.
    pub fn can_linger(&self) -> bool {
        self.flags.contains(INPUT_FORMAT)
    }
}

/// Why an engine cannot be used.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// It could not be started.
    #[error("cannot run the engine `{program}`: {source}; install it, or name another one")]
    Start {
        /// The program.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It was started and did not answer as it should.
    #[error("the engine `{program} {flag}` {what}; is it the right program?")]
    Answer {
        /// The program.
        program: String,
        /// What it was asked.
        flag: &'static str,
        /// What it did.
        what: String,
    },
    /// It lacks flags.
    #[error(
        "the engine `{program}` ({version}) lacks {}; install a version that has them, or name \
         another engine", flags.join(", ")
    )]
    Lacks {
        /// The program.
        program: String,
        /// Its version.
        version: String,
        /// The flags.
        flags: Vec<&'static str>,
    },
}

impl EngineCommand {
    /// A command with the default environment for this directory.
    pub fn new(program: impl Into<PathBuf>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: cwd.into(),
            env: environment(std::env::vars_os(), &[]),
            setting_sources: String::new(),
            permission_prompt: None,
        }
    }

    /// Runs `--version` and `--help` once and learns which flags the engine takes.
    ///
    /// # Errors
    /// When it cannot be run, or lacks a flag that every turn needs.
    pub async fn probe(&self) -> Result<Profile, ProbeError> {
        let (version, help) = tokio::join!(self.ask("--version"), self.ask("--help"));
        let profile = Profile {
            version: cut(version?.lines().next().unwrap_or_default().trim(), 100),
            flags: flags_of(&help?),
        };
        let lacks = REQUIRED
            .into_iter()
            .filter(|flag| !profile.flags.contains(*flag));
        let flags: Vec<_> = lacks.collect();
        if flags.is_empty() {
            return Ok(profile);
        }
        Err(ProbeError::Lacks {
            program: self.name(),
            version: profile.version,
            flags,
        })
    }

    /// The arguments of a turn's process, its conversation left aside.
    pub(super) fn argv(&self, profile: &Profile, spec: &TurnSpec, warm: Warmth) -> Vec<OsString> {
        let mut argv = self.args.clone();
        let mut add = |words: &[&OsStr]| argv.extend(words.iter().map(OsString::from));
        let text = OsStr::new;
        add(&[text("--print"), text("--verbose")]);
        add(&[text("--output-format"), text("stream-json")]);
        if warm == Warmth::Warm {
            add(&[text(INPUT_FORMAT), text("stream-json")]);
        }
        add(&[text("--model"), text(&spec.model)]);
        add(&[text("--settings"), spec.files.settings.as_os_str()]);
        add(&[
            text("--system-prompt-file"),
            spec.files.system_prompt.as_os_str(),
        ]);
        if profile.flags.contains(SNAPSHOT) {
            add(&[text(SNAPSHOT), text("off")]);
        }
        if profile.flags.contains(SETTING_SOURCES) {
            add(&[text(SETTING_SOURCES), text(&self.setting_sources)]);
        }
        add(&[text("--mcp-config"), spec.files.mcp_config.as_os_str()]);
        add(&[text("--strict-mcp-config")]);
        let prompt = self.permission_prompt.as_deref();
        let can_ask = !spec.purpose.is_upkeep() && profile.flags.contains(PROMPT_TOOL);
        if let Some(prompt) = prompt.filter(|_| can_ask) {
            add(&[text(PROMPT_TOOL), text(prompt)]);
        }
        add(&[text("--tools"), text(&spec.tools.join(","))]);
        if !spec.allowed_tools.is_empty() {
            add(&[text("--allowedTools"), text(&spec.allowed_tools.join(","))]);
        }
        argv
    }

    /// Runs the engine for something else than a turn; why it failed.
    pub(crate) async fn run(&self, args: &[OsString], limit: Duration) -> Result<(), String> {
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .args(args)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let group = Group::of(&child);
        let ended = async {
            let mut words = Vec::new();
            if let Some(stderr) = child.stderr.take() {
                stderr.take(PROBE_OUTPUT).read_to_end(&mut words).await?;
            }
            let status = child.wait().await?;
            group.ended();
            io::Result::Ok((status, words))
        };
        match tokio::time::timeout(limit, ended).await {
            Err(_) => Err(format!("it took longer than {} s", limit.as_secs())),
            Ok(Err(error)) => Err(error.to_string()),
            Ok(Ok((status, _))) if status.success() => Ok(()),
            Ok(Ok((status, words))) => {
                let words = String::from_utf8_lossy(&words);
                Err(format!("{status}: {}", cut(words.trim(), 300)))
            }
        }
    }

    fn name(&self) -> String {
        self.program.display().to_string()
    }

    /// What the engine prints when it is called with this flag alone.
    async fn ask(&self, flag: &'static str) -> Result<String, ProbeError> {
        let odd = |what: String| ProbeError::Answer {
            program: self.name(),
            flag,
            what,
        };
        let failed = |error: io::Error| odd(format!("could not be read ({error})"));
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .arg(flag)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.cwd)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| ProbeError::Start {
                program: self.name(),
                source,
            })?;
        let group = Group::of(&child);
        let answer = async {
            let mut output = Vec::new();
            if let Some(stdout) = child.stdout.take() {
                stdout.take(PROBE_OUTPUT).read_to_end(&mut output).await?;
            }
            let status = child.wait().await?;
            group.ended();
            io::Result::Ok((status, output))
        };
        let answer = tokio::time::timeout(PROBE_TIMEOUT, answer).await;
        let answer = answer.map_err(|_| odd(format!("gave no answer in {PROBE_TIMEOUT:?}")))?;
        let (status, output) = answer.map_err(failed)?;
        if !status.success() {
            return Err(odd(format!("ended with {status}")));
        }
        Ok(String::from_utf8_lossy(&output).into_owned())
    }
}

/// A program that leads a group of its own. What is left of the group is killed with this, unless
/// the program has ended: one that is given up may have started others.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        Self(pid.and_then(Pid::from_raw))
    }

    /// Its number may be another's from now on.
    fn ended(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(pid) = self.0
            && let Err(error) = kill_process_group(pid, Signal::KILL)
        {
            tracing::debug!(%error, "nothing is left of a program that was given up");
        }
    }
}

/// Whether the process takes one prompt or many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Warmth {
    Cold,
    Warm,
}

/// The arguments that choose the conversation.
pub(super) fn session_args(session: SessionChoice) -> &'static [&'static str] {
    match session {
        SessionChoice::Continue => &["--continue"],
        SessionChoice::Fresh => &[],
    }
}

/// The environment of an engine: what it may inherit, then defaults, then `configured`, which wins.
pub fn environment(
    inherited: impl IntoIterator<Item = (OsString, OsString)>,
    configured: &[(OsString, OsString)],
) -> Vec<(OsString, OsString)> {
    let mut env: Vec<_> = inherited
        .into_iter()
        .filter(|(name, _)| may_inherit(name))
        .collect();
    for (name, value) in DEFAULTS {
        if !env.iter().any(|(known, _)| known == name) {
            env.push((name.into(), value.into()));
        }
    }
    for (name, value) in configured {
        env.retain(|(known, _)| known != name);
        env.push((name.clone(), value.clone()));
    }
    env
}

fn may_inherit(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    INHERITED.contains(&name) || INHERITED_PREFIXES.iter().any(|p| name.starts_with(p))
}

/// Every flag that a help text names. `--name[-more]` stands for both `--name` and `--name-more`.
fn flags_of(help: &str) -> BTreeSet<String> {
    let mut flags = BTreeSet::new();
    for (at, _) in help.match_indices("--") {
        let joined = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if help[..at].chars().next_back().is_some_and(joined) {
            continue;
        }
        let rest = &help[at..];
        let end = rest.find(|c| !joined(c)).unwrap_or(rest.len());
        let (flag, rest) = rest.split_at(end);
        let flag = flag.trim_end_matches('-');
        if let Some((more, _)) = rest.strip_prefix("[-").and_then(|r| r.split_once(']')) {
            flags.insert(format!("{flag}-{more}"));
        }
        flags.insert(flag.to_owned());
    }
    flags.remove("");
    flags
}

#[cfg(test)]
mod tests {
    use super::{super::EngineFiles, *};
    use crate::engine::{AttemptId, Purpose};

    #[test]
    fn flags_are_found_however_a_help_text_writes_them() {
        let help = "  -c, --continue   Go on\n  --allowedTools, --allowed-tools <tools...>\n\
            via: --system-prompt[-file], a--b ---- (see --debug='!x') --print\n";
        let flags: Vec<_> = flags_of(help).into_iter().collect();
        assert_eq!(
            flags,
            [
                "--allowed-tools",
                "--allowedTools",
                "--continue",
                "--debug",
                "--print",
                "--system-prompt",
                "--system-prompt-file",
            ]
        );
    }

    fn spec() -> TurnSpec {
        TurnSpec {
            attempt: AttemptId::fresh(),
            purpose: Purpose::Mail,
            prompt: "hello".to_owned(),
            session: SessionChoice::Continue,
            model: "haiku".to_owned(),
            tools: vec!["Read".to_owned(), "Edit".to_owned()],
            allowed_tools: vec!["Read".to_owned(), "mcp__hyperhive".to_owned()],
            files: EngineFiles {
                settings: "s.json".into(),
                system_prompt: "p.md".into(),
                mcp_config: "m.json".into(),
            },
        }
    }

    fn argv(flags: &[&str], warm: Warmth, spec: &TurnSpec) -> String {
        let mut command = EngineCommand::new("claude", "/");
        command.args = vec!["--first".into()];
        let profile = Profile {
            version: String::new(),
            flags: flags.iter().map(|&f| f.to_owned()).collect(),
        };
        let argv = command.argv(&profile, spec, warm);
        let argv: Vec<_> = argv.iter().map(|a| a.to_string_lossy()).collect();
        argv.join("|")
    }

    #[test]
    fn t17_the_command_line_follows_what_the_engine_takes() {
        let plain = "--first|--print|--verbose|--output-format|stream-json|--model|haiku\
            |--settings|s.json|--system-prompt-file|p.md|--mcp-config|m.json|--strict-mcp-config\
            |--tools|Read,Edit|--allowedTools|Read,mcp__hyperhive";
        assert_eq!(argv(&[], Warmth::Cold, &spec()), plain);
        let newer = argv(&[SNAPSHOT, SETTING_SOURCES], Warmth::Warm, &spec());
        assert!(
            newer.contains("|--system-prompt-snapshot|off|--setting-sources||"),
            "{newer}"
        );
        assert!(newer.contains("|--input-format|stream-json|"), "{newer}");
        assert!(!argv(&[PROMPT_TOOL], Warmth::Cold, &spec()).contains(PROMPT_TOOL));
    }

    #[test]
    fn a5_the_operator_is_asked_in_turns_with_mail_alone() {
        let mut command = EngineCommand::new("claude", "/");
        command.permission_prompt = Some("mcp__hyperhive__permission_prompt".to_owned());
        let knows = Profile {
            flags: [PROMPT_TOOL.to_owned()].into(),
            ..Profile::default()
        };
        let asks = |profile: &Profile, purpose: Purpose| {
            let spec = TurnSpec { purpose, ..spec() };
            let argv = command.argv(profile, &spec, Warmth::Cold);
            argv.iter().any(|word| word == PROMPT_TOOL)
        };
        assert!(asks(&knows, Purpose::Mail) && asks(&knows, Purpose::Continue));
        assert!(!asks(&knows, Purpose::Checkpoint) && !asks(&knows, Purpose::Compact));
        assert!(
            !asks(&Profile::default(), Purpose::Mail),
            "it does not know the flag"
        );
    }

    #[test]
    fn no_tools_are_said_so_and_none_allowed_is_left_out() {
        let mut spec = spec();
        spec.tools.clear();
        spec.allowed_tools.clear();
        assert!(argv(&[], Warmth::Cold, &spec).ends_with("|--strict-mcp-config|--tools|"));
    }

    #[tokio::test]
    async fn a_program_that_is_given_up_leaves_nothing_running() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = EngineCommand::new("/bin/sh", dir.path());
        command.args = vec!["-c".into()];
        let script = "sleep 600 & echo $! > pid.new; mv pid.new pid; wait";
        let args = [OsString::from(script)];
        let file = dir.path().join("pid");
        let sleeper = async {
            while !file.exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            std::fs::read_to_string(&file).unwrap()
        };
        let sleeper = tokio::select! {
            ended = command.run(&args, Duration::from_secs(600)) => panic!("{ended:?}"),
            pid = sleeper => pid,
        };
        let stat = format!("/proc/{}/stat", sleeper.trim());
        let is_gone = || std::fs::read_to_string(&stat).map_or(true, |text| text.contains(") Z "));
        for _ in 0..6_000 {
            if is_gone() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("process {sleeper} is left");
    }

    #[test]
    fn the_environment_is_cleaned_filled_up_and_overridden() {
        let var = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let inherited = [
            var("PATH", "/bin"),
            var("AWS_SECRET_ACCESS_KEY", "x"),
            var("LC_ALL", "C"),
            var("ANTHROPIC_API_KEY", "k"),
            var("CLAUDE_CODE_MAX_RETRIES", "9"),
            var("PATHS", "x"),
        ];
        let configured = [
            var("TERM", "xterm"),
            var("EXTRA", "1"),
            var("ANTHROPIC_API_KEY", "own"),
        ];
        let mut env = environment(inherited, &configured);
        env.sort();
        assert_eq!(
            env,
            [
                var("ANTHROPIC_API_KEY", "own"),
                var("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1"),
                var("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
                var("CLAUDE_CODE_MAX_RETRIES", "9"),
                var("DISABLE_AUTOUPDATER", "1"),
                var("EXTRA", "1"),
                var("LC_ALL", "C"),
                var("PATH", "/bin"),
                var("TERM", "xterm"),
            ]
        );
    }
}
