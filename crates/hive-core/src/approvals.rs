//! Approvals: what waits for the operator, and what becomes of it.

use hive_wire::{ErrorCode, WireError};

/// The refusal of a part that is being built.
pub(crate) fn not_yet() -> WireError {
    WireError::new(ErrorCode::Unsupported, "this build has no approvals yet")
}
