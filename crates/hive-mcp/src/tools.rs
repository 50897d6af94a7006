//! The tools of `hyperhive`, one file each.

mod answer;
mod ask;
mod cancel_loose_end;
mod get_agent_meta;
mod get_loose_ends;
mod get_receipt;
mod list_peers;
mod permission_prompt;
mod recv;
mod remind;
mod request_next_turn;
mod send;
mod set_status;

pub use answer::Answer;
pub use ask::Ask;
pub use cancel_loose_end::CancelLooseEnd;
pub use get_agent_meta::GetAgentMeta;
pub use get_loose_ends::GetLooseEnds;
pub use get_receipt::GetReceipt;
pub use list_peers::ListPeers;
pub use permission_prompt::PermissionPrompt;
pub use recv::Recv;
pub use remind::Remind;
pub use request_next_turn::RequestNextTurn;
pub use send::Send;
pub use set_status::SetStatus;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArgs {}

/// It is done.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Done {
    /// What was done, in words.
    done: &'static str,
}

impl Done {
    fn new(done: &'static str) -> Self {
        Self { done }
    }
}
