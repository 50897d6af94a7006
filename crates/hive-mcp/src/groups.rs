//! Tool groups: which tools an agent is shown. The host enforces them, here they only shorten the
//! list that the model reads.

pub use hive_wire::grants::{Group, Groups};
