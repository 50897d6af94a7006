//! From flags, environment and settings to a conversation that can begin.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use hive_providers::{
    Fetch, Models, Thinking,
    config::{Configured, SECRET_VARIABLES, configure},
};
use serde_json::{Map, json};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    browser::{self, Browser},
    cli::{TurnArgs, split_list},
    consent::{Consent, Question},
    conversation::{Conversation, Limits, Setup},
    files::Ledger,
    ids,
    mcp::{Servers, load_configs},
    paths::Workspace,
    permission::{Effect, Mode, Origin, Policy, Rule, RuleReader},
    sandbox::Sandbox,
    session::{Session, SessionError, Sessions},
    settings::{Places, Settings, Sources},
    stream_json::Init,
    tool::{Context, Tool},
    tools,
};

/// What is asked for when nothing else is.
const DEFAULT_MODEL: &str = "sonnet";
const DEFAULT_MAX_PARALLEL: usize = 5;
/// The longest CLAUDE.md that is taken.
const MAX_MEMORY: usize = 64 * 1024;

/// Why a turn cannot begin. The text is what `claude` prints in the same case.
#[derive(Debug)]
pub enum StartError {
    /// Printed on standard error, exit code 1.
    Message(String),
    /// The session to resume is not there: also a `result`.
    NoSession(SessionError, String),
}

impl<T: std::fmt::Display> From<T> for StartError {
    fn from(error: T) -> Self {
        Self::Message(error.to_string())
    }
}

/// Everything that a process needs for its turns.
pub struct Ready {
    /// The conversation.
    pub conversation: Conversation,
    /// What `init` says.
    pub init: Init,
    /// The MCP servers, to be stopped at the end.
    pub servers: Servers,
    /// Questions about permissions for the program on our standard streams.
    pub questions: mpsc::Receiver<(Question, oneshot::Sender<serde_json::Value>)>,
    /// Things to tell on standard error.
    pub warnings: Vec<String>,
    /// The present instructions apart from the model, for changes of it.
    pub models: Models,
}

/// Where the user's files are.
#[derive(Debug, Clone)]
pub struct Homes {
    /// The home.
    pub home: PathBuf,
    /// `~/.claude` or what replaces it.
    pub config: PathBuf,
}

impl Homes {
    /// From the environment.
    pub fn find(env: &BTreeMap<String, String>) -> Self {
        let home = PathBuf::from(env.get("HOME").map_or("/", String::as_str));
        let config = env
            .get("CLAUDE_CONFIG_DIR")
            .filter(|dir| !dir.is_empty())
            .map_or_else(|| home.join(".claude"), PathBuf::from);
        Self { home, config }
    }
}

/// Rules, mode and directories for a process.
pub fn policy(
    settings: &mut Settings,
    args: &PolicyArgs<'_>,
    cwd: &Path,
    homes: &Homes,
) -> Result<Policy, StartError> {
    let reader = RuleReader {
        cwd,
        home: &homes.home,
    };
    for (flag, effect, values) in [
        ("--allowedTools", Effect::Allow, args.allowed),
        ("--disallowedTools", Effect::Deny, args.disallowed),
    ] {
        let origin = Origin {
            source: flag.to_owned(),
            line: None,
            base: cwd.to_owned(),
        };
        for text in split_list(values) {
            match Rule::parse(&text, effect, &origin, &reader) {
                Ok(rule) => settings.rules.push(rule),
                // As in `claude`, the list of a newer caller may name tools that are not here.
                Err(error) if effect == Effect::Allow => settings.warnings.push(error.to_string()),
                Err(error) => return Err(StartError::Message(format!("Error: {error}"))),
            }
        }
    }
    let mode = match args.mode {
        Some(name) => Mode::parse(name).map_err(|error| format!("Error: {error}"))?,
        None => settings.mode.unwrap_or_default(),
    };
    let mut directories = settings.directories.clone();
    directories.extend(args.directories.iter().cloned());
    let mut workspace = Workspace::new(cwd, &directories, &homes.home)
        .map_err(|error| format!("Error: the working directories cannot be used: {error}"))?;
    // Long outputs and the transcript, which the model is told about.
    workspace.allow_reading(&homes.config.join("hive-engine"));
    Ok(Policy {
        rules: settings.rules.clone(),
        mode,
        role: settings.role.clone(),
        workspace: Arc::new(workspace),
    })
}

/// The flags that make a policy.
pub struct PolicyArgs<'a> {
    /// Allow rules.
    pub allowed: &'a [String],
    /// Deny rules.
    pub disallowed: &'a [String],
    /// The mode.
    pub mode: Option<&'a str>,
    /// Further directories.
    pub directories: &'a [PathBuf],
}

/// Puts everything together.
pub async fn start(args: &TurnArgs, env: &BTreeMap<String, String>) -> Result<Ready, StartError> {
    let cwd =
        std::env::current_dir().map_err(|error| format!("Error: no working directory: {error}"))?;
    let homes = Homes::find(env);
    refuse_root(args, env)?;
    let sources = Sources::parse(args.setting_sources.as_deref());
    let mut settings = Settings::load(&Places {
        config_dir: &homes.config,
        cwd: &cwd,
        home: &homes.home,
        flag: args.settings.as_deref(),
        sources,
    })?;
    let mode_flag = if args.dangerously_skip_permissions {
        Some("bypassPermissions")
    } else {
        args.permission_mode.as_deref()
    };
    let policy_args = PolicyArgs {
        allowed: &args.allowed_tools,
        disallowed: &args.disallowed_tools,
        mode: mode_flag,
        directories: &args.add_dir,
    };
    let policy = policy(&mut settings, &policy_args, &cwd, &homes)?;
    let system = system_prompt(args, &policy.workspace, sources.project)?;
    let named = args.model.clone().or(settings.model.clone());
    let model = Models::resolve(named.as_deref().unwrap_or(DEFAULT_MODEL), |name| {
        env.get(name).cloned()
    });
    let configured = configure(&model, args.provider.as_deref(), |name| {
        env.get(name).cloned()
    })
    .map_err(|error| format!("Error: {error}"))?;
    let session = open_session(args, &homes, policy.workspace.cwd())?;
    let clean = clean_env(env, &settings.env, &session.id, policy.workspace.cwd());
    let configs = load_configs(&args.mcp_config, &cwd, &clean)
        .map_err(|error| format!("Error: Invalid MCP configuration:\n{error}"))?;
    let start_timeout = env
        .get("MCP_TIMEOUT")
        .and_then(|ms| ms.parse().ok())
        .map(Duration::from_millis);
    let servers = Servers::start(&configs, &clean, policy.workspace.cwd(), start_timeout).await;
    let context = tool_context(&policy, &settings, &session, &servers, clean, &homes);
    assemble(
        args,
        settings,
        policy,
        context,
        Asking {
            configured,
            session,
            servers,
            model,
            system,
        },
    )
}

/// Whom to ask, about what.
struct Asking {
    configured: Configured,
    session: Session,
    servers: Servers,
    model: String,
    system: String,
}

/// What calls run in.
fn tool_context(
    policy: &Policy,
    settings: &Settings,
    session: &Session,
    servers: &Servers,
    env: BTreeMap<String, String>,
    homes: &Homes,
) -> Context {
    let mut tools = servers.tools.iter();
    let own = homes.config.join("hive-engine");
    let env = Arc::new(env);
    let named_hosts = Arc::new(policy.rules.named_hosts());
    Context {
        workspace: Arc::clone(&policy.workspace),
        ledger: Arc::new(Ledger::new(session.files.clone())),
        spill_dir: own.join("outputs").join(&session.id),
        browser: Arc::new(Browser::new(browser::Settings {
            env: Arc::clone(&env),
            profile: own.join("browser").join(&session.id),
            named_hosts: Arc::clone(&named_hosts),
        })),
        sandbox: Arc::new(Sandbox::find(
            &settings.sandbox,
            env.get("PATH").map(String::as_str),
        )),
        fetch: Fetch::public(Arc::clone(&named_hosts), |name| env.get(name).cloned()),
        env,
        cancel: CancellationToken::new(),
        named_hosts,
        background: tools
            .find(|tool| tool.spec().name == "mcp__bash__run")
            .cloned(),
    }
}

/// The built-in tools of the list and those of the servers, without what is denied outright.
fn offered(
    args: &TurnArgs,
    policy: &Policy,
    servers: &Servers,
    has_browser: bool,
) -> Vec<Arc<dyn Tool>> {
    let list = args.tools.as_ref().map(|list| split_list(list));
    let mut offered = tools::select(list.as_deref());
    if !has_browser {
        offered.retain(|tool| !tool.spec().name.starts_with("browser_"));
    }
    offered.extend(servers.tools.iter().cloned());
    let is_denied = |name: &str| {
        policy
            .rules
            .with(Effect::Deny)
            .any(|rule| rule.covers_tool(name))
    };
    // Whoever asks for permission is not for the model.
    let is_prompt = |name: &str| args.permission_prompt_tool.as_deref() == Some(name);
    offered.retain(|tool| !is_denied(&tool.spec().name) && !is_prompt(&tool.spec().name));
    offered
}

fn assemble(
    args: &TurnArgs,
    settings: Settings,
    policy: Policy,
    context: Context,
    asking: Asking,
) -> Result<Ready, StartError> {
    let Asking {
        configured,
        session,
        servers,
        model,
        system,
    } = asking;
    let mut warnings = settings.warnings;
    warnings.extend(context.sandbox.warning());
    if !settings.models.find(&model).1 {
        warnings.push(format!(
            "[hive-engine:unrecognized_model] {}",
            json!({"model": model})
        ));
    }
    let has_browser = browser::is_installed(context.env.get("PATH").map(String::as_str));
    let tools = offered(args, &policy, &servers, has_browser);
    let (consent, questions) = consent(args, &servers)?;
    let init = init(
        &model,
        &session,
        &tools,
        &servers,
        &policy,
        configured.key_source.0,
    );
    let setup = Setup {
        model,
        system,
        thinking: thinking(args)?,
        models: settings.models.clone(),
        tools,
        policy,
        consent,
        context,
        limits: Limits {
            max_turns: args.max_turns,
            max_budget_usd: args.max_budget_usd,
            max_time: args.max_seconds.map(Duration::from_secs),
        },
        max_parallel: settings
            .max_parallel
            .unwrap_or(DEFAULT_MAX_PARALLEL)
            .clamp(1, 64),
        auto_compact: settings.auto_compact.unwrap_or(true),
        has_key: configured.has_key,
    };
    Ok(Ready {
        conversation: Conversation::new(setup, session, configured.client),
        init,
        servers,
        questions,
        warnings,
        models: settings.models,
    })
}

fn refuse_root(args: &TurnArgs, env: &BTreeMap<String, String>) -> Result<(), StartError> {
    let skips = args.dangerously_skip_permissions
        || args.permission_mode.as_deref() == Some("bypassPermissions");
    let is_root = rustix::process::geteuid().is_root();
    let is_caged = env.get("IS_SANDBOX").is_some_and(|value| value == "1");
    if skips && is_root && !is_caged {
        return Err(StartError::Message(
            "--dangerously-skip-permissions cannot be used with root/sudo privileges for security \
             reasons"
                .into(),
        ));
    }
    Ok(())
}

fn open_session(args: &TurnArgs, homes: &Homes, cwd: &Path) -> Result<Session, StartError> {
    let sessions = Sessions::new(
        homes.config.join("hive-engine").join("sessions"),
        cwd.to_owned(),
    );
    let id = args.session_id.as_deref();
    if args.no_session_persistence {
        return Ok(Sessions::transient(id)?);
    }
    let latest = if args.continue_latest {
        sessions.latest()?
    } else {
        None
    };
    let Some(old) = args.resume.clone().or(latest) else {
        return Ok(sessions.create(id)?);
    };
    if id.is_some() && !args.fork_session {
        return Err(StartError::Message(
            "Error: --session-id can only be used with --continue or --resume if --fork-session is \
             also specified."
                .into(),
        ));
    }
    let opened = if args.fork_session {
        sessions.fork(&old, id)
    } else {
        sessions.resume(&old)
    };
    opened.map_err(|error| match error {
        SessionError::NotFound(_) => StartError::NoSession(error, old),
        error => StartError::Message(error.to_string()),
    })
}

/// The environment of tools and servers: no secrets, and who started them.
fn clean_env(
    env: &BTreeMap<String, String>,
    settings: &BTreeMap<String, String>,
    session_id: &str,
    cwd: &Path,
) -> BTreeMap<String, String> {
    let mut clean: BTreeMap<String, String> = env
        .iter()
        .filter(|(name, _)| !SECRET_VARIABLES.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    clean.extend(
        settings
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    clean.insert("CLAUDECODE".into(), "1".into());
    clean.insert("CLAUDE_CODE_SESSION_ID".into(), session_id.to_owned());
    clean.insert("CLAUDE_PROJECT_DIR".into(), cwd.display().to_string());
    clean
}

type Questions = mpsc::Receiver<(Question, oneshot::Sender<serde_json::Value>)>;

fn consent(args: &TurnArgs, servers: &Servers) -> Result<(Consent, Questions), StartError> {
    let (sender, questions) = mpsc::channel(4);
    let consent = match args.permission_prompt_tool.as_deref() {
        None => Consent::Nobody,
        Some("stdio") => Consent::Control(sender),
        Some(name) => {
            let tool = servers.tools.iter().find(|tool| tool.spec().name == name);
            let tool = tool.ok_or_else(|| {
                format!("Error: MCP tool {name} (passed via --permission-prompt-tool) not found")
            })?;
            Consent::Tool(Arc::clone(tool))
        }
    };
    Ok((consent, questions))
}

fn thinking(args: &TurnArgs) -> Result<Thinking, StartError> {
    if let Some(tokens) = args.max_thinking_tokens {
        return Ok(if tokens == 0 {
            Thinking::Off
        } else {
            Thinking::Budget(tokens)
        });
    }
    Ok(match args.effort.as_deref() {
        None | Some("low" | "medium") => Thinking::Off,
        Some("high") => Thinking::Budget(8_000),
        Some("xhigh") => Thinking::Budget(16_000),
        Some("max" | "ultracode") => Thinking::Budget(24_000),
        Some(other) => {
            let text =
                format!("Error: unknown effort {other:?}: use low, medium, high, xhigh or max");
            return Err(StartError::Message(text));
        }
    })
}

fn system_prompt(
    args: &TurnArgs,
    workspace: &Workspace,
    with_memory: bool,
) -> Result<String, StartError> {
    let read = |path: &Path, what: &str| {
        std::fs::read_to_string(workspace.cwd().join(path))
            .map_err(|_| format!("Error: {what} file not found: {}", path.display()))
    };
    let mut system = match (&args.system_prompt, &args.system_prompt_file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => read(path, "System prompt")?,
        (None, None) => default_prompt(workspace),
    };
    for text in [
        args.append_system_prompt.clone(),
        args.append_system_prompt_file
            .as_deref()
            .map(|path| read(path, "Append system prompt"))
            .transpose()?,
    ]
    .into_iter()
    .flatten()
    {
        system.push_str("\n\n");
        system.push_str(&text);
    }
    if with_memory && let Ok(memory) = std::fs::read_to_string(workspace.cwd().join("CLAUDE.md")) {
        let memory = &memory[..memory.floor_char_boundary(MAX_MEMORY)];
        system.push_str("\n\n# Instructions of the project (CLAUDE.md)\n\n");
        system.push_str(memory);
    }
    Ok(system)
}

fn default_prompt(workspace: &Workspace) -> String {
    let date = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    format!(
        "You are an agent that works on a computer with tools. Do what the user asks, whole and \
         carefully, and say briefly what you did. Look before you change: read files before you \
         edit them, and check your work. Call independent tools together. When a tool is denied, \
         do not try to get around it: say what you would need.\n\nThe working directory is {}. \
         The platform is {}. Today is {date}.",
        workspace.cwd().display(),
        std::env::consts::OS,
    )
}

fn init(
    model: &str,
    session: &Session,
    tools: &[Arc<dyn Tool>],
    servers: &Servers,
    policy: &Policy,
    key_source: &str,
) -> Init {
    let cwd = policy.workspace.cwd().display().to_string();
    let mut extra = Map::new();
    extra.insert("engine".into(), json!("hive-engine"));
    extra.insert("original_cwd".into(), json!(cwd));
    extra.insert("capabilities".into(), json!(["interrupt_receipt_v1"]));
    let extra_dirs: Vec<_> = policy.workspace.roots()[1..].iter().collect();
    extra.insert("additional_directories".into(), json!(extra_dirs));
    Init {
        cwd,
        session_id: session.id.clone(),
        tools: tools.iter().map(|tool| tool.spec().name.clone()).collect(),
        mcp_servers: servers.states.clone(),
        model: model.to_owned(),
        permission_mode: policy.mode.contract_name().to_owned(),
        slash_commands: ["compact", "clear", "model", "context"]
            .map(str::to_owned)
            .to_vec(),
        api_key_source: key_source.to_owned(),
        claude_code_version: env!("CARGO_PKG_VERSION").to_owned(),
        output_style: "default".to_owned(),
        agents: Vec::new(),
        skills: Vec::new(),
        plugins: Vec::new(),
        uuid: ids::uuid(),
        extra,
    }
}
