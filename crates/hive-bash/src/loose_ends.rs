//! What the daemon tells the rest of the hive about tasks that are open (B6): one file, whole.

use std::{fs, io, path::Path};

use hive_mcp::whole_file;
use hive_wire::Timestamp;
use serde::Serialize;

use crate::task::Record;

/// The directory in which companions say what is open, below the harness's.
pub(crate) const DIR: &str = "mcp-loose-ends";
/// The file of this one.
const FILE: &str = "bash.json";

#[derive(Serialize)]
struct LooseEnds {
    schema: u32,
    loose_ends: Vec<LooseEnd>,
}

#[derive(Serialize)]
struct LooseEnd {
    label: String,
    text: String,
    since: Timestamp,
}

/// Writes the file anew: tasks that run, and those that ended without the agent knowing it.
pub(crate) fn publish<'a>(
    harness_dir: &Path,
    open: impl Iterator<Item = &'a Record>,
) -> io::Result<()> {
    let dir = harness_dir.join(DIR);
    fs::create_dir_all(&dir)?;
    let loose_ends = open.map(|record| LooseEnd {
        label: record.label(),
        text: format!("{}: {}", record.headline(), record.short_cmd()),
        since: record.created_at,
    });
    let file = LooseEnds {
        schema: 1,
        loose_ends: loose_ends.collect(),
    };
    whole_file::write(&dir.join(FILE), &serde_json::to_vec(&file)?)
}
