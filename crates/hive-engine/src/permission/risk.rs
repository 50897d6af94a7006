//! A label for people who are asked: how bad can it get?

use std::time::Duration;

use super::Call;
use crate::{
    bash::{self, Safety},
    tool::{Access, Permission},
};

/// How long the label may take; without it a call is of unknown risk.
const BUDGET: Duration = Duration::from_secs(2);

/// How bad it can get.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// It looks.
    Low,
    /// It changes what can be changed back.
    Medium,
    /// It may destroy, run foreign code or talk to others.
    High,
    /// There was no time to tell.
    Unknown,
}

impl Risk {
    /// As it is shown.
    pub fn label(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Unknown => "unknown",
        }
    }
}

/// Labels a call, within two seconds.
pub async fn classify(call: Call) -> Risk {
    let work = tokio::task::spawn_blocking(move || of(&call));
    match tokio::time::timeout(BUDGET, work).await {
        Ok(Ok(risk)) => risk,
        Ok(Err(_)) | Err(_) => Risk::Unknown,
    }
}

fn of(call: &Call) -> Risk {
    if call.properties.read_only {
        return Risk::Low;
    }
    let accesses = call.accesses.iter().map(|access| match access {
        Access::Read(_) => Risk::Low,
        Access::Write(_) => Risk::Medium,
        Access::Fetch { .. } => Risk::High,
        Access::Command(judgement) => {
            if !judgement.doubts.is_empty() {
                return Risk::High;
            }
            let commands = judgement
                .commands
                .iter()
                .map(|command| match bash::safety(command) {
                    Safety::ReadOnly { .. } => Risk::Low,
                    Safety::Files { .. } => Risk::Medium,
                    Safety::Unknown => Risk::High,
                });
            commands.max().unwrap_or(Risk::Low)
        }
    });
    accesses.max().unwrap_or(match call.permission {
        Permission::Read | Permission::Auto => Risk::Low,
        Permission::Write => Risk::Medium,
        Permission::Execute | Permission::Admin => Risk::High,
    })
}
