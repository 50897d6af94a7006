//! What the daemon tells the rest of the hive about tasks that are open (B6): one file, whole.

use std::{cmp::Reverse, fs, io, path::Path};

use hive_wire::{Timestamp, text};
use serde::Serialize;

use crate::{replace, task::Record};

/// The directory in which companions say what is open, below the harness's.
pub(crate) const DIR: &str = "mcp-loose-ends";
/// The file of this one.
const FILE: &str = "bash.json";
/// How many tasks are named: as many as the host shows, so that the file stays one that it reads.
const MAX_ROWS: usize = 64;
/// How long the text of one is, in bytes; for the same reason.
const MAX_TEXT: usize = 400;

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

/// Writes the file anew: tasks that run, and the newest of those that ended without the agent
/// knowing it.
pub(crate) fn publish<'a>(
    harness_dir: &Path,
    open: impl Iterator<Item = &'a Record>,
) -> io::Result<()> {
    let dir = harness_dir.join(DIR);
    fs::create_dir_all(&dir)?;
    let mut open: Vec<&Record> = open.collect();
    open.sort_unstable_by_key(|record| (record.state.is_final(), Reverse(record.id)));
    open.truncate(MAX_ROWS);
    open.sort_unstable_by_key(|record| record.id);
    let loose_ends = open.into_iter().map(|record| LooseEnd {
        label: record.label(),
        text: line(record),
        since: record.created_at,
    });
    let file = LooseEnds {
        schema: 1,
        loose_ends: loose_ends.collect(),
    };
    replace::write(&dir.join(FILE), &serde_json::to_vec(&file)?)
}

fn line(record: &Record) -> String {
    let line = format!("{}: {}", record.headline(), record.short_cmd());
    let mut line = text::printable(&line);
    line.truncate(line.floor_char_boundary(MAX_TEXT));
    line
}
