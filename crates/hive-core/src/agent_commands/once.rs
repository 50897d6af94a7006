//! Commands that carry a key: asked again within a day, they are answered and not carried out again.

use hive_wire::{AgentName, ErrorCode, SendKey, WireError, command::Command};
use serde::{Serialize, de::DeserializeOwned};
use sha2::{Digest, Sha256};

use crate::broker::Desk;

/// What makes a command the same as an earlier one.
#[derive(Clone)]
pub(crate) struct Once {
    keyed: Option<Keyed>,
}

#[derive(Clone)]
struct Keyed {
    key: SendKey,
    /// The command's name and a hash of all that it says.
    request: String,
}

impl Once {
    /// Of a command that may have a key.
    pub(crate) fn of<C: Command>(command: &C, key: Option<&SendKey>) -> Self {
        let keyed = key.map(|key| {
            let said = serde_json::to_vec(command).expect("commands encode");
            let hash = Sha256::digest(said);
            let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
            Keyed {
                key: key.clone(),
                request: format!("{} {hash}", C::NAME),
            }
        });
        Self { keyed }
    }

    /// Carries the command out, unless it was before: then the answer of that time is given. The
    /// answer is remembered in the same group as whatever the command does.
    ///
    /// # Errors
    /// The command's own, which are not remembered; `conflict` when the key stands for another
    /// command.
    pub(crate) fn run<T: Serialize + DeserializeOwned>(
        &self,
        desk: &mut Desk<'_>,
        agent: &AgentName,
        carry_out: impl FnOnce(&mut Desk<'_>) -> Result<T, WireError>,
    ) -> Result<T, WireError> {
        let Some(Keyed { key, request }) = &self.keyed else {
            return carry_out(desk);
        };
        if let Some(earlier) = self.earlier(desk, agent)? {
            return Ok(earlier);
        }
        let reply = carry_out(desk)?;
        let said = serde_json::to_string(&reply).expect("replies encode");
        desk.store(|tx| tx.remember_answer(agent, key, request, &said))?;
        Ok(reply)
    }

    /// What was answered before, for a command that takes work before it is carried out.
    ///
    /// # Errors
    /// `conflict` when the key stands for another command.
    pub(crate) fn earlier<T: DeserializeOwned>(
        &self,
        desk: &mut Desk<'_>,
        agent: &AgentName,
    ) -> Result<Option<T>, WireError> {
        let Some(Keyed { key, request }) = &self.keyed else {
            return Ok(None);
        };
        let earlier = desk.store(|tx| tx.answered_before(agent, key, request));
        let earlier = earlier.map_err(|error| match error.code {
            ErrorCode::Conflict => {
                error.hint("choose another key, or repeat that request as it was")
            }
            _ => error,
        })?;
        let read = |earlier: String| serde_json::from_str(&earlier);
        earlier.map(read).transpose().map_err(|error| {
            WireError::new(
                ErrorCode::Storage,
                format!("the answer under the key `{key}` cannot be read: {error}"),
            )
        })
    }
}
