//! What a turn is: its prompt, its conversation, its tools.

use std::{fmt, path::PathBuf};

/// One attempt at a turn: a UUID, fresh for each [`Engine::begin`](super::Engine::begin), never
/// used twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttemptId(Box<str>);

impl AttemptId {
    /// A new random one.
    pub fn fresh() -> Self {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("this system has random numbers");
        // The version and the variant of a random UUID.
        bytes[6] = bytes[6] & 0x0F | 0x40;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        Self(parts.join("-").into())
    }

    /// The UUID as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the turn goes on with the agent's conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionChoice {
    /// Go on with the last conversation in this directory; a new one when there is none.
    Continue,
    /// Start a new conversation.
    Fresh,
}

/// What a turn is for. Only [`Purpose::Compact`] is judged differently; upkeep has processes of its
/// own, which are told so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Messages to deal with.
    Mail,
    /// The agent asked itself for another turn.
    Continue,
    /// The agent writes its notes before its context is cut.
    Checkpoint,
    /// The prompt is `/compact`: it is a success only when a compaction took place.
    Compact,
}

impl Purpose {
    /// The word for it, as the engine's processes read it in `HIVE_TURN_PURPOSE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mail => "mail",
            Self::Continue => "continue",
            Self::Checkpoint => "checkpoint",
            Self::Compact => "compact",
        }
    }

    /// Whether it is for the conversation itself: mail that it took would be answered by nobody.
    pub fn is_upkeep(self) -> bool {
        match self {
            Self::Mail | Self::Continue => false,
            Self::Checkpoint | Self::Compact => true,
        }
    }
}

/// The files that the engine is pointed to. They must exist when a turn begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFiles {
    /// `--settings`: JSON, to be checked by whoever writes it since `claude` ignores a broken one.
    pub settings: PathBuf,
    /// `--system-prompt-file`.
    pub system_prompt: PathBuf,
    /// `--mcp-config`.
    pub mcp_config: PathBuf,
}

/// One turn to run.
#[derive(Debug, Clone)]
pub struct TurnSpec {
    /// The attempt's own id. A retry of the same messages is another attempt.
    pub attempt: AttemptId,
    /// What the turn is for.
    pub purpose: Purpose,
    /// The whole prompt. A prompt that begins with `/` is a command to `claude`.
    pub prompt: String,
    /// Which conversation.
    pub session: SessionChoice,
    /// `--model`.
    pub model: String,
    /// `--tools`: the built-in tools there are; none when empty.
    pub tools: Vec<String>,
    /// `--allowedTools`: what may be used without asking, MCP servers included.
    pub allowed_tools: Vec<String>,
    /// Settings, system prompt and MCP servers.
    pub files: EngineFiles,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_random_uuids() {
        let (a, b) = (AttemptId::fresh(), AttemptId::fresh());
        assert_ne!(a, b);
        let shape: String = a
            .as_str()
            .chars()
            .map(|c| if c == '-' { '-' } else { 'x' })
            .collect();
        assert_eq!(shape, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx");
        assert_eq!(&a.as_str()[14..15], "4");
        assert!("89ab".contains(&a.as_str()[19..20]));
    }
}
