//! MCP servers over stdio: the tools of `--mcp-config` as tools of ours.
//!
//! A server is a child process with a group of its own and an environment without secrets. It is
//! connected before the first turn; one that fails is reported and missing, nothing more. Other
//! transports and resources belong behind [`ServerConfig`] and the function that connects a server.

use std::{
    borrow::Cow, collections::BTreeMap, path::Path, process::Stdio, sync::Arc, time::Duration,
};

use hive_providers::{Block, ResultContent, Source, ToolSpec};
use rmcp::{
    RoleClient,
    model::{CallToolRequestParams, CallToolResult, ContentBlock},
    service::{Peer, RunningService, serve_client},
};
use rustix::process::Signal;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::process::{Child, Command};

use crate::{
    group::Group,
    paths::Workspace,
    stream_json::McpServer,
    tool::{Access, Context, Output, Permission, Properties, Running, Tool, ToolError},
};

/// How long a server may take to start.
const START: Duration = Duration::from_secs(30);
/// How long a call may take unless the configuration says otherwise.
const CALL: Duration = Duration::from_secs(600);
/// From the end of the input to the last signal.
const GRACE: Duration = Duration::from_millis(500);
/// The longest text of a result.
const MAX_RESULT: usize = 100_000;
/// The largest picture of a result, encoded.
const MAX_PICTURE: usize = 5 * 1024 * 1024;

/// How to start a server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// What its tools are prefixed with.
    pub name: String,
    /// How to reach it; `Err` holds why it cannot be reached.
    pub transport: Result<StdioConfig, String>,
}

/// A program that speaks MCP on its standard streams.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StdioConfig {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Further variables for it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The longest call, in milliseconds.
    pub timeout: Option<u64>,
}

/// Reads `--mcp-config` values: files, or JSON itself. Later ones win.
pub fn load_configs(
    sources: &[String],
    cwd: &Path,
    env: &BTreeMap<String, String>,
) -> Result<Vec<ServerConfig>, String> {
    let mut servers: Vec<ServerConfig> = Vec::new();
    for source in sources {
        let text = if source.trim_start().starts_with('{') {
            source.clone()
        } else {
            let path = cwd.join(source);
            std::fs::read_to_string(&path)
                .map_err(|_| format!("MCP config file not found: {}", path.display()))?
        };
        let config: Value =
            serde_json::from_str(&text).map_err(|_| "MCP config is not a valid JSON".to_owned())?;
        let entries = config["mcpServers"]
            .as_object()
            .ok_or("mcpServers: Does not adhere to MCP server configuration schema")?;
        for (name, entry) in entries {
            let server = server(name, entry, env)?;
            servers.retain(|known| known.name != server.name);
            servers.push(server);
        }
    }
    Ok(servers)
}

fn server(
    name: &str,
    entry: &Value,
    env: &BTreeMap<String, String>,
) -> Result<ServerConfig, String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_word) {
        return Err(format!(
            "mcpServers.{name}: a name is letters, digits, - and _"
        ));
    }
    let transport = match entry["type"].as_str().unwrap_or("stdio") {
        "stdio" => {
            let mut stdio: StdioConfig = serde_json::from_value(entry.clone())
                .map_err(|error| format!("mcpServers.{name}: {error}"))?;
            stdio.command = expand(&stdio.command, env);
            for text in stdio.args.iter_mut().chain(stdio.env.values_mut()) {
                *text = expand(text, env);
            }
            Ok(stdio)
        }
        other => Err(format!("the transport {other} is not supported yet")),
    };
    Ok(ServerConfig {
        name: name.to_owned(),
        transport,
    })
}

/// `${NAME}` and `${NAME:-default}` from the environment without secrets.
fn expand(text: &str, env: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let Some(end) = rest[at..].find('}') else {
            break;
        };
        out.push_str(&rest[..at]);
        let inside = &rest[at + 2..at + end];
        let (name, default) = inside.split_once(":-").unwrap_or((inside, ""));
        out.push_str(env.get(name).map_or(default, String::as_str));
        rest = &rest[at + end + 1..];
    }
    out.push_str(rest);
    out
}

/// A connected server.
pub struct Server {
    name: String,
    service: RunningService<RoleClient, ()>,
    child: Child,
    group: Group,
    timeout: Duration,
}

/// A server with its tools.
type Connected = (Server, Vec<Arc<dyn Tool>>);

/// All servers of a process.
#[derive(Default)]
pub struct Servers {
    running: Vec<Server>,
    /// What `init` says about them.
    pub states: Vec<McpServer>,
    /// Their tools.
    pub tools: Vec<Arc<dyn Tool>>,
}

impl Servers {
    /// Starts all of them at once and waits until each is connected or has failed.
    pub async fn start(
        configs: &[ServerConfig],
        env: &BTreeMap<String, String>,
        cwd: &Path,
        start_timeout: Option<Duration>,
    ) -> Self {
        let mut tasks = tokio::task::JoinSet::new();
        for (place, config) in configs.iter().enumerate() {
            let (config, env, cwd) = (config.clone(), env.clone(), cwd.to_owned());
            tasks.spawn(async move {
                let connecting = Server::connect(&config, &env, &cwd);
                let limit = start_timeout.unwrap_or(START);
                (place, tokio::time::timeout(limit, connecting).await)
            });
        }
        let mut connected: Vec<Option<Connected>> = configs.iter().map(|_| None).collect();
        while let Some(joined) = tasks.join_next().await {
            if let Ok((place, Ok(Ok(server)))) = joined {
                connected[place] = Some(server);
            }
        }
        let mut servers = Self::default();
        for (config, connected) in configs.iter().zip(connected) {
            let status = if connected.is_some() {
                "connected"
            } else {
                "failed"
            };
            servers.states.push(McpServer {
                name: config.name.clone(),
                status: status.to_owned(),
                source: Some("dynamic".to_owned()),
            });
            if let Some((server, tools)) = connected {
                servers.running.push(server);
                servers.tools.extend(tools);
            }
        }
        servers
    }

    /// Ends all of them.
    pub async fn stop(self) {
        let mut tasks = tokio::task::JoinSet::new();
        for server in self.running {
            tasks.spawn(server.stop());
        }
        while tasks.join_next().await.is_some() {}
    }
}

impl Server {
    /// Starts a server and learns its tools.
    async fn connect(
        config: &ServerConfig,
        env: &BTreeMap<String, String>,
        cwd: &Path,
    ) -> Result<Connected, String> {
        let stdio = config.transport.as_ref().map_err(Clone::clone)?;
        let mut child = Command::new(&stdio.command)
            .args(&stdio.args)
            .env_clear()
            .envs(env)
            .envs(&stdio.env)
            .current_dir(cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{}: {error}", stdio.command))?;
        let group = Group::of(&child);
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server has no standard streams".into());
        };
        let service = serve_client((), (output, input))
            .await
            .map_err(|error| error.to_string())?;
        let listed = service
            .list_all_tools()
            .await
            .map_err(|error| error.to_string())?;
        let timeout = stdio.timeout.map_or(CALL, Duration::from_millis);
        let tools = listed
            .into_iter()
            .map(|tool| {
                let spec = ToolSpec {
                    name: format!("mcp__{}__{}", config.name, tool.name),
                    description: tool.description.unwrap_or_default().into_owned(),
                    input_schema: Value::Object(tool.input_schema.as_ref().clone()),
                };
                Arc::new(McpTool {
                    spec,
                    remote: tool.name,
                    peer: service.peer().clone(),
                    timeout,
                }) as Arc<dyn Tool>
            })
            .collect();
        let name = config.name.clone();
        Ok((
            Self {
                name,
                service,
                child,
                group,
                timeout,
            },
            tools,
        ))
    }

    /// Ends it, with whatever it started.
    async fn stop(mut self) {
        // Cancelling closes its input, which a good server takes for the end.
        drop(tokio::time::timeout(GRACE, self.service.cancel()).await);
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_ok() {
            return;
        }
        for signal in [Signal::TERM, Signal::KILL] {
            self.group.signal(signal);
            if tokio::time::timeout(GRACE, self.child.wait()).await.is_ok() {
                return;
            }
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("name", &self.name)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

struct McpTool {
    spec: ToolSpec,
    remote: Cow<'static, str>,
    peer: Peer<RoleClient>,
    timeout: Duration,
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// What a server says about itself is no ground to trust it: the careful defaults hold.
    fn properties(&self, _: &Value) -> Properties {
        Properties::default()
    }

    fn permission(&self) -> Permission {
        Permission::Execute
    }

    fn accesses(&self, input: &Value, _: &Workspace) -> Result<Vec<Access>, ToolError> {
        if input.is_object() {
            Ok(Vec::new())
        } else {
            Err(ToolError::tell(
                "InputValidationError: the input must be an object.",
            ))
        }
    }

    fn run(&self, input: Value, context: Context) -> Running<'static> {
        let (peer, timeout, name) = (self.peer.clone(), self.timeout, self.remote.clone());
        Box::pin(async move {
            let arguments: Map<String, Value> = match input {
                Value::Object(arguments) => arguments,
                _ => Map::new(),
            };
            let mut params = CallToolRequestParams::new(name);
            params.arguments = Some(arguments);
            let calling = tokio::time::timeout(timeout, peer.call_tool(params));
            tokio::select! {
                result = calling => match result {
                    Ok(Ok(result)) => Ok(output(result)),
                    Ok(Err(error)) => Err(ToolError::tell(error.to_string())),
                    Err(_) => Err(ToolError::tell(format!(
                        "The MCP server did not answer within {} s.", timeout.as_secs()
                    ))),
                },
                () = context.cancel.cancelled() => Err(ToolError::Interrupted),
            }
        })
    }
}

fn output(result: CallToolResult) -> Output {
    let mut blocks = Vec::new();
    for content in result.content {
        match content {
            ContentBlock::Text(text) => blocks.push(Block::text(cut(&text.text))),
            ContentBlock::Image(image) if image.data.len() <= MAX_PICTURE => {
                let source = Source::Base64 {
                    media_type: image.mime_type,
                    data: image.data,
                };
                blocks.push(Block::Image { source });
            }
            // Links are shown, never followed.
            other => {
                let shown = serde_json::to_string(&other).unwrap_or_default();
                blocks.push(Block::text(cut(&shown)));
            }
        }
    }
    if blocks.is_empty() {
        let structured = result.structured_content.map(|value| value.to_string());
        blocks.push(Block::text(cut(
            &structured.unwrap_or_else(|| "(no output)".into())
        )));
    }
    let structured = json!(blocks);
    Output {
        content: ResultContent::Blocks(blocks),
        structured,
        is_error: result.is_error == Some(true),
    }
}

fn cut(text: &str) -> String {
    if text.len() <= MAX_RESULT {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(MAX_RESULT / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - MAX_RESULT / 2)..];
    format!(
        "{head}\n… {} bytes left out …\n{tail}",
        text.len() - head.len() - tail.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations() {
        let env = BTreeMap::from([("HOME".to_owned(), "/h".to_owned())]);
        let load = |text: &str| load_configs(&[text.to_owned()], Path::new("/"), &env);
        let servers = load(
            r#"{"mcpServers":{"a":{"command":"${HOME}/x","args":["${NOPE:-d}","${NOPE}"]},"b":{"type":"http","url":"u"}}}"#,
        )
        .unwrap();
        let stdio = servers[0].transport.as_ref().unwrap();
        assert_eq!(
            (stdio.command.as_str(), stdio.args.as_slice()),
            ("/h/x", &["d".to_owned(), String::new()][..])
        );
        assert!(servers[1].transport.is_err());
        for (text, needle) in [
            ("{", "not a valid JSON"),
            ("{}", "mcpServers"),
            (r#"{"mcpServers":{"a b":{"command":"x"}}}"#, "letters"),
            (r#"{"mcpServers":{"a":{"args":[]}}}"#, "command"),
            ("/no/such/file.json", "not found"),
        ] {
            let error = load(text).unwrap_err();
            assert!(error.contains(needle), "{text}: {error}");
        }
    }
}
