//! The tools of `hyperhive`, one file each.

mod answer;
mod approval;
mod ask;
mod cancel_loose_end;
mod cancel_schedule;
mod child;
mod get_agent_meta;
mod get_host_journal;
mod get_logs;
mod get_loose_ends;
mod get_receipt;
mod kill;
mod list_agents;
mod list_peers;
mod list_schedules;
mod permission_prompt;
mod recv;
mod remind;
mod request_apply_commit;
mod request_next_turn;
mod request_spawn;
mod restart;
mod schedule;
mod send;
mod set_status;
mod start;

pub use answer::Answer;
pub use ask::Ask;
pub use cancel_loose_end::CancelLooseEnd;
pub use cancel_schedule::CancelSchedule;
pub use get_agent_meta::GetAgentMeta;
pub use get_host_journal::GetHostJournal;
pub use get_logs::GetLogs;
pub use get_loose_ends::GetLooseEnds;
pub use get_receipt::GetReceipt;
pub use kill::Kill;
pub use list_agents::ListAgents;
pub use list_peers::ListPeers;
pub use list_schedules::ListSchedules;
pub use permission_prompt::PermissionPrompt;
pub use recv::Recv;
pub use remind::Remind;
pub use request_apply_commit::RequestApplyCommit;
pub use request_next_turn::RequestNextTurn;
pub use request_spawn::RequestSpawn;
pub use restart::Restart;
pub use schedule::Schedule;
pub use send::Send;
pub use set_status::SetStatus;
pub use start::Start;

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
