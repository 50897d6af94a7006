//! What crosses a process boundary: names, ids, requests, replies and the JSON-line format.
//!
//! Everything here is a plain value that is valid by construction: a [`name::AgentName`] that
//! exists is a legal name, a [`line::LineBuffer`] never holds more than a line may have. The crate
//! knows no rule of the hive (who may do what) and touches no disk.

pub mod agent;
pub mod alarm;
pub mod approval;
pub mod client;
pub mod command;
pub mod control;
pub mod error;
pub mod grants;
pub mod host;
pub mod id;
pub mod line;
pub mod name;
pub mod report;
pub mod socket;
pub mod stream;
pub mod text;
pub mod time;
pub mod tools;
pub mod vigil;

pub use error::{ErrorCode, WireError};
pub use id::{
    ApprovalId, ControlId, HarnessEpoch, MessageId, QuestionId, ReminderId, ReqId, ScheduleId,
    SendKey, TurnId, TurnRowId,
};
pub use name::{AgentName, Recipient, SenderLabel};
pub use time::Timestamp;
