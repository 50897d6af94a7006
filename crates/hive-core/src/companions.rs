//! What an agent's companions say is open (B6): files that the agent can write, so hostile input.
//!
//! Each companion keeps one JSON file in `mcp-loose-ends/` of the agent's harness directory. Links
//! are not followed, only plain files are read, and everything is bounded; what cannot be read is
//! left out, since nobody but the agent itself loses by it.

use std::{fs::File, io::Read, os::fd::OwnedFd, path::Path};

use hive_wire::{Timestamp, agent::LooseEnd, text};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use serde::Deserialize;

/// The directory below the harness's.
const DIR: &str = "mcp-loose-ends";
/// How many files are read.
const MAX_FILES: usize = 8;
/// How long a file may be, in bytes.
const MAX_BYTES: u64 = 64 * 1024;
/// How many rows of one file are shown.
const MAX_ROWS: usize = 64;
/// How much of a row's text is shown, in characters.
const SHOWN: usize = 300;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    loose_ends: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    label: String,
    text: String,
    since: Timestamp,
}

/// What the companions of the agent with this harness directory say is open, by file and row.
pub(crate) fn loose_ends(harness: &Path) -> Vec<LooseEnd> {
    let rows = read(harness).unwrap_or_default();
    rows.into_iter()
        .map(|row| LooseEnd::Task {
            label: text::printable(&text::shorten(&row.label, 64)),
            text: text::printable(&text::shorten(&row.text, SHOWN)),
            since: row.since,
        })
        .collect()
}

fn read(harness: &Path) -> rustix::io::Result<Vec<Row>> {
    let as_dir = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let harness = openat(CWD, harness, as_dir, Mode::empty())?;
    let dir = openat(&harness, DIR, as_dir, Mode::empty())?;
    let mut names: Vec<_> = Dir::read_from(&dir)?
        .take(MAX_FILES * 8)
        .filter_map(|entry| Some(entry.ok()?.file_name().to_owned()))
        .filter(|name| name.to_bytes().ends_with(b".json"))
        .collect();
    names.sort();
    let mut rows = Vec::new();
    for name in names.into_iter().take(MAX_FILES) {
        // Not to be held up by a pipe that nobody writes to.
        let as_file = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(file) = openat(&dir, name, as_file, Mode::empty()) {
            rows.extend(page(file).into_iter().flatten().take(MAX_ROWS));
        }
    }
    Ok(rows)
}

fn page(file: OwnedFd) -> Option<Vec<Row>> {
    let kind = FileType::from_raw_mode(fstat(&file).ok()?.st_mode);
    if kind != FileType::RegularFile {
        return None;
    }
    let mut bytes = Vec::new();
    let limited = &mut File::from(file).take(MAX_BYTES + 1);
    limited.read_to_end(&mut bytes).ok()?;
    let fits = bytes.len() as u64 <= MAX_BYTES;
    let page: Page = serde_json::from_slice(&bytes).ok().filter(|_| fits)?;
    Some(page.loose_ends)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    fn row(label: &str) -> String {
        format!(
            r#"{{"label":"{label}","text":"running: x","since":"2026-01-02T03:04:05.678Z","more":1}}"#
        )
    }

    fn labels(harness: &Path) -> Vec<String> {
        let label = |end| match end {
            LooseEnd::Task { label, .. } => label,
            other => panic!("{other:?}"),
        };
        loose_ends(harness).into_iter().map(label).collect()
    }

    #[test]
    fn b6_what_companions_say_is_read() {
        let harness = tempfile::tempdir().unwrap();
        assert_eq!(labels(harness.path()), [""; 0]);
        let dir = harness.path().join(DIR);
        fs::create_dir(&dir).unwrap();
        let page = |label: &str| format!(r#"{{"schema":1,"loose_ends":[{}]}}"#, row(label));
        fs::write(dir.join("matrix.json"), page("matrix")).unwrap();
        fs::write(dir.join("bash.json"), page("bash-task-1")).unwrap();
        assert_eq!(labels(harness.path()), ["bash-task-1", "matrix"]);
    }

    #[test]
    fn b6_links_pipes_floods_and_rubbish_are_left_out() {
        let harness = tempfile::tempdir().unwrap();
        let dir = harness.path().join(DIR);
        fs::create_dir(&dir).unwrap();
        let rows = vec![row("\u{1b}[2J"); MAX_ROWS + 9].join(",");
        fs::write(
            dir.join("a.json"),
            format!(r#"{{"loose_ends":[{rows}]}}"#).replace('\u{1b}', "\\u001b"),
        )
        .unwrap();
        fs::write(dir.join("b.json"), "rubbish").unwrap();
        fs::write(dir.join("c.json"), vec![b' '; 100_000]).unwrap();
        fs::create_dir(dir.join("d.json")).unwrap();
        let outside = harness.path().join("outside.json");
        fs::write(
            &outside,
            format!(r#"{{"loose_ends":[{}]}}"#, row("outside")),
        )
        .unwrap();
        symlink(&outside, dir.join("e.json")).unwrap();
        rustix::fs::mknodat(
            CWD,
            dir.join("f.json"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        let labels = labels(harness.path());
        assert_eq!(labels.len(), MAX_ROWS);
        assert!(labels.iter().all(|label| label == "\\u{1b}[2J"));

        // Nor is a directory that leads elsewhere.
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(&dir, elsewhere.path().join(DIR)).unwrap();
        assert!(loose_ends(elsewhere.path()).is_empty());
    }
}
