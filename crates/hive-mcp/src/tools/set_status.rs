use std::{fs, io, path::Path};

use hive_wire::{agent::SetStatus as Set, report::MAX_STATUS};
use schemars::JsonSchema;
use serde::Deserialize;

use super::Done;
use crate::{
    hyperhive::{Hyperhive, key},
    toolbox::{Call, Effect, Failure, Tool},
    whole_file,
};

/// Where the status stays beside the host's own record.
const FILE: &str = "hyperhive-status";

/// Says what the agent is about (M10).
pub struct SetStatus;

/// The new status.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Args {
    /// One line of at most 200 characters; an empty text clears the status.
    #[schemars(length(max = 200))]
    text: String,
    /// Your own name for this change. Called again within a day with the same key, nothing is done
    /// twice.
    #[serde(default)]
    #[schemars(length(min = 1, max = 128))]
    key: Option<String>,
}

impl Tool<Hyperhive> for SetStatus {
    const NAME: &'static str = "set_status";
    const TITLE: &'static str = "Set your status";
    const DESCRIPTION: &'static str = "Say in one line what you are doing or waiting for. The \
        operator sees it on the dashboard and other agents in list_peers. It stays until you \
        change it, so clear it with an empty text when it is no longer true.";
    const EFFECT: Effect = Effect::Sets;
    type Args = Args;
    type Reply = Done;

    async fn call(hive: &Hyperhive, args: Args, _: &Call) -> Result<Done, Failure> {
        let text = args.text.trim();
        let length = text.chars().count();
        if length > MAX_STATUS || text.chars().any(char::is_control) {
            return Err(Failure::new(
                format!(
                    "A status is one line of at most {MAX_STATUS} characters, this has {length}"
                ),
                "say it in one short line",
            ));
        }
        hive.call(&Set {
            text: text.to_owned(),
            key: key(args.key)?,
        })
        .await?;
        if let Some(dir) = hive.state_dir()
            && let Err(error) = keep(&dir.join(FILE), text)
        {
            // The host has it, which is what counts.
            tracing::warn!(%error, "cannot keep the status in the agent's state");
        }
        Ok(Done::new(if text.is_empty() {
            "the status is cleared"
        } else {
            "the status is set"
        }))
    }
}

fn keep(path: &Path, text: &str) -> io::Result<()> {
    if !text.is_empty() {
        return whole_file::write(path, text.as_bytes());
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
