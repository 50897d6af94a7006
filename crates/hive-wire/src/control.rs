//! What the host asks of a harness, and what came of it.
//!
//! A harness parks in `control` until the host has a request for it. A request keeps its number
//! until it is answered: a harness that connects again says `hello` and is sent what is still open,
//! and answers a number that it has dealt with already from memory.

use serde::{Deserialize, Serialize};

use crate::{ControlId, Timestamp};

/// The most results in one `control`.
pub const MAX_DONE: usize = 64;

/// Carries results back and waits for the next request.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Control {
    /// How long to wait; capped at [`crate::agent::MAX_WAIT_SECONDS`].
    #[serde(default)]
    pub wait_seconds: u32,
    /// The first one after a connect: the host says again what stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hello: bool,
    /// What came of earlier requests; at most [`MAX_DONE`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub done: Vec<ControlDone>,
}

/// What came of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlDone {
    /// Which one.
    pub request_id: ControlId,
    /// Whether it was carried out.
    pub ok: bool,
    /// What happened, or why it was not carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What the host asks, oldest first; nothing when the wait ran out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRequests {
    /// The requests.
    pub requests: Vec<ControlRequest>,
}

/// One request of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRequest {
    /// Its number.
    pub request_id: ControlId,
    /// What to do.
    pub action: ControlAction,
}

/// What a harness can be asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ControlAction {
    /// Stop the running turn; it keeps its messages, and the next message joins it.
    Interrupt,
    /// Compact the session.
    Compact,
    /// Let the next turn begin a session of its own.
    NewSession,
    /// Use this model from the next turn on.
    Model {
        /// The model.
        name: String,
    },
    /// Begin a login.
    LoginStart,
    /// Pass a line on to the login that runs.
    LoginInput {
        /// The line.
        text: String,
    },
    /// Give up the login that runs.
    LoginCancel,
    /// Begin no turn before this time.
    Hold {
        /// Until when.
        until: Timestamp,
        /// Why.
        reason: String,
    },
    /// A hold is lifted.
    Release,
    /// Show the engine the tools of these groups from the next turn on (C14).
    ToolGroups {
        /// The words of the groups that the agent has now.
        groups: Vec<String>,
    },
    /// Begin no turn until [`Self::Resume`].
    Pause {
        /// Why.
        reason: String,
        /// Stop the turn that runs, too, and give its messages back.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        now: bool,
    },
    /// A pause is over.
    Resume,
    /// Finish or give back the running turn, and end.
    Stop,
}

impl ControlAction {
    /// Its name, as on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Interrupt => "interrupt",
            Self::Compact => "compact",
            Self::NewSession => "new_session",
            Self::Model { .. } => "model",
            Self::LoginStart => "login_start",
            Self::LoginInput { .. } => "login_input",
            Self::LoginCancel => "login_cancel",
            Self::Hold { .. } => "hold",
            Self::Release => "release",
            Self::ToolGroups { .. } => "tool_groups",
            Self::Pause { .. } => "pause",
            Self::Resume => "resume",
            Self::Stop => "stop",
        }
    }
}
