//! The command line: that of headless `claude`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::{printer::Format, sandbox::confine::Confinement};

/// The native engine of hyperhive: a drop-in for headless `claude`.
///
/// Asks a model, lets it use tools, and prints what happens. Sessions are kept per directory under
/// ~/.claude/hive-engine (or CLAUDE_CONFIG_DIR). Keys come from ANTHROPIC_API_KEY,
/// ANTHROPIC_AUTH_TOKEN or OPENAI_API_KEY; ANTHROPIC_BASE_URL and OPENAI_BASE_URL say where to ask,
/// also `unix:/path/to.sock`.
#[derive(Debug, Parser)]
#[command(
    name = "hive-engine",
    version,
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
pub struct Cli {
    /// What to do instead of a turn.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// A turn.
    #[command(flatten)]
    pub turn: TurnArgs,
}

/// What to do instead of a turn.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Look into permissions.
    Permissions {
        /// What to look at.
        #[command(subcommand)]
        command: PermissionsCommand,
    },
    /// Put a sandbox on and become a command.
    #[command(hide = true)]
    Confine(Confinement),
}

/// What to look at.
#[derive(Debug, Subcommand)]
pub enum PermissionsCommand {
    /// Show what would be decided about a shell command, and by which rule.
    Test {
        /// The command line.
        command: String,
        /// Settings to use, as for a turn.
        #[arg(long)]
        settings: Option<String>,
        /// Which settings files to read.
        #[arg(long)]
        setting_sources: Option<String>,
        /// The mode.
        #[arg(long)]
        permission_mode: Option<String>,
        /// Further allow rules.
        #[arg(long = "allowedTools", alias = "allowed-tools", num_args = 1..)]
        allowed_tools: Vec<String>,
    },
}

/// How prompts come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum InputFormat {
    /// All of standard input is one prompt.
    #[default]
    Text,
    /// One JSON message per line, several turns.
    StreamJson,
}

/// How results come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum OutputFormat {
    /// The last words of the model.
    #[default]
    Text,
    /// The result as one object.
    Json,
    /// Everything, line by line.
    StreamJson,
}

impl From<OutputFormat> for Format {
    fn from(format: OutputFormat) -> Self {
        match format {
            OutputFormat::Text => Self::Text,
            OutputFormat::Json => Self::Json,
            OutputFormat::StreamJson => Self::StreamJson,
        }
    }
}

/// The flags of a turn.
#[derive(Debug, Args)]
pub struct TurnArgs {
    /// The prompt; standard input is added to it.
    pub prompt: Option<String>,
    /// Answer and exit: the only mode there is, and what a prompt means without it.
    #[arg(short, long)]
    pub print: bool,
    /// Print every event; needed for stream-json.
    #[arg(long)]
    pub verbose: bool,
    /// How results come out.
    #[arg(long, value_enum, default_value_t)]
    pub output_format: OutputFormat,
    /// How prompts come in.
    #[arg(long, value_enum, default_value_t)]
    pub input_format: InputFormat,
    /// Print pieces of answers as they come (with stream-json).
    #[arg(long)]
    pub include_partial_messages: bool,
    /// Print the messages that come in on standard input.
    #[arg(long)]
    pub replay_user_messages: bool,

    /// The model: a full name, or haiku, sonnet, opus.
    #[arg(long, env = "ANTHROPIC_MODEL")]
    pub model: Option<String>,
    /// The kind of API: anthropic or openai; found out from the environment otherwise.
    #[arg(long)]
    pub provider: Option<String>,
    /// How much to think: low, medium, high, xhigh or max.
    #[arg(long)]
    pub effort: Option<String>,
    /// How much to think, in tokens.
    #[arg(long, env = "MAX_THINKING_TOKENS")]
    pub max_thinking_tokens: Option<u32>,

    /// Go on with the latest session of this directory.
    #[arg(short = 'c', long = "continue")]
    pub continue_latest: bool,
    /// Go on with this session.
    #[arg(short = 'r', long, value_name = "ID")]
    pub resume: Option<String>,
    /// Go on under a new id and leave the old session as it is.
    #[arg(long)]
    pub fork_session: bool,
    /// The id of the new session: a UUID.
    #[arg(long, value_name = "UUID")]
    pub session_id: Option<String>,
    /// Leave no session on disk.
    #[arg(long)]
    pub no_session_persistence: bool,

    /// The whole instructions.
    #[arg(long, conflicts_with = "system_prompt_file")]
    pub system_prompt: Option<String>,
    /// A file with the whole instructions.
    #[arg(long, value_name = "FILE")]
    pub system_prompt_file: Option<PathBuf>,
    /// Added to the instructions.
    #[arg(long)]
    pub append_system_prompt: Option<String>,
    /// A file that is added to the instructions.
    #[arg(long, value_name = "FILE")]
    pub append_system_prompt_file: Option<PathBuf>,
    /// Accepted; the present instructions are always used.
    #[arg(long, value_name = "on|off")]
    pub system_prompt_snapshot: Option<String>,

    /// The built-in tools: a list, "default", or "" for none.
    #[arg(long, num_args = 1.., value_name = "TOOL")]
    pub tools: Option<Vec<String>>,
    /// What may run without asking, such as Read, "Bash(git *)" or mcp__server.
    #[arg(long = "allowedTools", alias = "allowed-tools", num_args = 1.., value_name = "RULE")]
    pub allowed_tools: Vec<String>,
    /// What may not run.
    #[arg(long = "disallowedTools", alias = "disallowed-tools", num_args = 1.., value_name = "RULE")]
    pub disallowed_tools: Vec<String>,
    /// safe, normal, relaxed, auto or custom; or plan, default, acceptEdits, bypassPermissions, dontAsk.
    #[arg(long, value_name = "MODE")]
    pub permission_mode: Option<String>,
    /// The same as --permission-mode bypassPermissions.
    #[arg(long)]
    pub dangerously_skip_permissions: bool,
    /// The MCP tool that is asked where the rules leave it open, or stdio.
    #[arg(long, value_name = "TOOL")]
    pub permission_prompt_tool: Option<String>,
    /// A further directory of the workspace.
    #[arg(long, num_args = 1.., value_name = "DIR")]
    pub add_dir: Vec<PathBuf>,

    /// Settings: a file, or JSON.
    #[arg(long, value_name = "FILE|JSON")]
    pub settings: Option<String>,
    /// Which settings files to read: any of user, project, local.
    #[arg(long, value_name = "LIST")]
    pub setting_sources: Option<String>,
    /// MCP servers: files, or JSON.
    #[arg(long, num_args = 1.., value_name = "FILE|JSON")]
    pub mcp_config: Vec<String>,
    /// Use only the servers of --mcp-config, which is what always happens.
    #[arg(long)]
    pub strict_mcp_config: bool,
    /// Take prompts that begin with a slash as text.
    #[arg(long)]
    pub disable_slash_commands: bool,

    /// The most requests of a turn.
    #[arg(long, value_name = "N")]
    pub max_turns: Option<u32>,
    /// The most US dollars of this process.
    #[arg(long, value_name = "USD")]
    pub max_budget_usd: Option<f64>,
    /// The most seconds of a turn.
    #[arg(long, value_name = "SECONDS")]
    pub max_seconds: Option<u64>,
}

/// Splits lists that may be given with commas, spaces or several times; commas and spaces inside
/// brackets belong to the rule.
pub fn split_list(values: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for value in values {
        let mut depth = 0usize;
        let mut word = String::new();
        for c in value.chars() {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                ',' | ' ' if depth == 0 => {
                    out.push(std::mem::take(&mut word));
                    continue;
                }
                _ => {}
            }
            word.push(c);
        }
        out.push(word);
    }
    out.retain(|word| !word.is_empty());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn lists_are_split_outside_brackets() {
        let given = [
            "Read,Write Edit".to_owned(),
            "Bash(git log, x:*)".to_owned(),
            "mcp__h".to_owned(),
        ];
        assert_eq!(
            split_list(&given),
            ["Read", "Write", "Edit", "Bash(git log, x:*)", "mcp__h"]
        );
        assert!(split_list(&[String::new()]).is_empty());
    }

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_harness_line_is_understood() {
        let cli = Cli::try_parse_from([
            "hive-engine",
            "--print",
            "--verbose",
            "--output-format",
            "stream-json",
            "--model",
            "haiku",
            "--settings",
            "f",
            "--system-prompt-file",
            "f",
            "--system-prompt-snapshot",
            "off",
            "--setting-sources",
            "",
            "--mcp-config",
            "f",
            "--strict-mcp-config",
            "--tools",
            "",
            "--allowedTools",
            "Read,mcp__hyperhive",
            "--continue",
        ])
        .unwrap();
        assert!(cli.turn.continue_latest);
        assert_eq!(cli.turn.tools, Some(vec![String::new()]));
    }
}
