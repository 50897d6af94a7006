//! Applies a unified diff, finding its place when line numbers are off.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::edit::{patch, read_text};
use crate::{
    files,
    paths::Workspace,
    tool::{Access, Context, Output, Permission, Tool, ToolError, build},
};

/// How many lines of context at either end of a hunk may differ.
const FUZZ: usize = 2;

#[derive(Deserialize)]
struct Input {
    diff: String,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "ApplyDiff",
        Permission::Write,
        "Applies a unified diff (as `git diff` prints it) to one or more files. Line numbers may be \
         off and a little context may differ. If a hunk does not fit, nothing is changed and the \
         conflict is reported. Files that exist must have been read first.",
        json!({"type": "object", "required": ["diff"], "additionalProperties": false, "properties": {
            "diff": {"type": "string", "description": "The unified diff, with ---, +++ and @@ lines"},
        }}),
    )
    .undoable()
    .touches(touches)
    .run_blocking(run)
}

fn touches(input: &Input, workspace: &Workspace) -> Result<Vec<Access>, ToolError> {
    let files = parse(&input.diff)?;
    let places = files
        .iter()
        .map(|file| Ok(Access::Write(workspace.place(&file.path)?)));
    places.collect()
}

fn run(input: Input, context: &Context) -> Result<Output, ToolError> {
    let files = parse(&input.diff)?;
    // All hunks of all files first, so that a conflict leaves everything as it was.
    let mut changes = Vec::new();
    for file in &files {
        let place = context.workspace.place(&file.path)?;
        let old = if file.is_new {
            String::new()
        } else {
            read_text(&place.real)?
        };
        let new = apply(&old, &file.hunks).map_err(|conflict| {
            ToolError::tell(format!("{}: {conflict}\nNothing was changed.", file.path))
        })?;
        changes.push((place, old, new));
    }
    let mut report = Vec::new();
    let mut patches = Vec::new();
    for (place, old, new) in changes {
        files::write(&place.real, new.as_bytes(), &context.ledger)?;
        report.push(format!(
            "The file {} has been updated successfully.",
            place.lexical.display()
        ));
        patches.push(json!({"filePath": place.lexical.display().to_string(), "structuredPatch": patch(&old, &new)}));
    }
    Ok(Output::text(report.join("\n"), json!({"files": patches})))
}

#[derive(Debug, PartialEq, Eq)]
struct FileDiff {
    path: String,
    is_new: bool,
    hunks: Vec<Hunk>,
}

#[derive(Debug, PartialEq, Eq)]
struct Hunk {
    header: String,
    /// Where the old text starts, from 0.
    start: usize,
    old: Vec<String>,
    new: Vec<String>,
    /// Lines of context at the beginning and the end.
    context: (usize, usize),
}

fn parse(diff: &str) -> Result<Vec<FileDiff>, ToolError> {
    let bad = |text: &str| ToolError::tell(format!("This is not a unified diff: {text}"));
    let mut files: Vec<FileDiff> = Vec::new();
    let mut old_name = String::new();
    let mut lines = diff.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("--- ") {
            name.clone_into(&mut old_name);
        } else if let Some(name) = line.strip_prefix("+++ ") {
            let is_new = old_name.trim() == "/dev/null";
            if name.trim() == "/dev/null" {
                return Err(bad(
                    "removing files is not supported; remove them with a command",
                ));
            }
            files.push(FileDiff {
                path: file_name(name),
                is_new,
                hunks: Vec::new(),
            });
        } else if line.starts_with("@@") {
            let file = files
                .last_mut()
                .ok_or_else(|| bad("a hunk comes before its +++ line"))?;
            let mut body = Vec::new();
            while let Some(next) = lines.peek() {
                let is_body = next.is_empty() || next.starts_with([' ', '+', '-', '\\']);
                let is_header = next.starts_with("--- ") && body.len() > 1;
                if !is_body || is_header {
                    break;
                }
                body.extend(lines.next());
            }
            file.hunks.push(hunk(line, &body).ok_or_else(|| bad(line))?);
        }
    }
    if files.iter().any(|file| file.hunks.is_empty()) || files.is_empty() {
        return Err(bad("it has no hunks (lines with @@)"));
    }
    Ok(files)
}

/// `b/src/x.rs<TAB>date` names `src/x.rs`.
fn file_name(name: &str) -> String {
    let name = name.split('\t').next().unwrap_or(name).trim();
    let stripped = name.strip_prefix("b/").or_else(|| name.strip_prefix("a/"));
    stripped.unwrap_or(name).to_owned()
}

fn hunk(header: &str, body: &[&str]) -> Option<Hunk> {
    let range = header.strip_prefix("@@")?.trim_start().strip_prefix('-')?;
    let digits: String = range.chars().take_while(char::is_ascii_digit).collect();
    let start = digits.parse::<usize>().ok()?.saturating_sub(1);
    let (mut old, mut new) = (Vec::new(), Vec::new());
    let mut kinds = Vec::new();
    for line in body {
        let (kind, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        match kind {
            "+" => new.push(text.to_owned()),
            "-" => old.push(text.to_owned()),
            "\\" => continue,
            _ => {
                old.push(text.to_owned());
                new.push(text.to_owned());
            }
        }
        kinds.push(kind.to_owned());
    }
    let before = kinds.iter().take_while(|kind| *kind == " ").count();
    let after = kinds.iter().rev().take_while(|kind| *kind == " ").count();
    Some(Hunk {
        header: header.to_owned(),
        start,
        old,
        new,
        context: (before, after),
    })
}

fn apply(text: &str, hunks: &[Hunk]) -> Result<String, String> {
    let ends_with_newline = text.is_empty() || text.ends_with('\n');
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut shift = 0isize;
    for hunk in hunks {
        let wanted = hunk.start.saturating_add_signed(shift);
        let (at, fuzz) =
            find(&lines, hunk, wanted).ok_or_else(|| conflict(&lines, hunk, wanted))?;
        let (first, last) = (fuzz.min(hunk.context.0), fuzz.min(hunk.context.1));
        let old = &hunk.old[first..hunk.old.len() - last];
        let new = &hunk.new[first..hunk.new.len() - last];
        lines.splice(at..at + old.len(), new.iter().cloned());
        let expected = wanted + first;
        shift += new.len().cast_signed() - old.len().cast_signed();
        shift += at.cast_signed() - expected.cast_signed();
    }
    let mut out = lines.join("\n");
    if ends_with_newline && !out.is_empty() {
        out.push('\n');
    }
    Ok(out)
}

/// Where a hunk fits best: exactly first, then with less of its context, nearest first.
fn find(lines: &[String], hunk: &Hunk, wanted: usize) -> Option<(usize, usize)> {
    for fuzz in 0..=FUZZ {
        let (first, last) = (fuzz.min(hunk.context.0), fuzz.min(hunk.context.1));
        if fuzz > 0 && first + last == 0 {
            break;
        }
        let old = &hunk.old[first..hunk.old.len() - last];
        if old.is_empty() {
            return (fuzz == 0).then_some((wanted.min(lines.len()), 0));
        }
        let wanted = wanted + first;
        let fits = |at: usize| {
            lines
                .get(at..at + old.len())
                .is_some_and(|piece| piece == old)
        };
        let found = (0..=lines.len())
            .filter(|at| fits(*at))
            .min_by_key(|at| at.abs_diff(wanted));
        if let Some(at) = found {
            return Some((at, fuzz));
        }
    }
    None
}

fn conflict(lines: &[String], hunk: &Hunk, wanted: usize) -> String {
    let here: Vec<String> = lines
        .iter()
        .enumerate()
        .skip(wanted)
        .take(hunk.old.len().clamp(1, 12))
        .map(|(number, line)| format!("{}\t{line}", number + 1))
        .collect();
    format!(
        "the hunk {} does not fit.\nIt expects:\n{}\nThe file has there:\n{}",
        hunk.header,
        hunk.old.join("\n"),
        here.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "one\ntwo\nthree\nfour\nfive\nsix\n";

    fn applied(diff: &str) -> Result<String, String> {
        let files = parse(diff).map_err(|error| error.to_string())?;
        apply(TEXT, &files[0].hunks)
    }

    #[test]
    fn hunks_fit_where_they_belong() {
        let body = " two\n-three\n+THREE\n four\n";
        for header in ["@@ -2,3 +2,3 @@", "@@ -5,3 +5,3 @@ fn x()", "@@ -1 +1 @@"] {
            let diff = format!("--- a/x\n+++ b/x\n{header}\n{body}");
            assert_eq!(
                applied(&diff).unwrap(),
                "one\ntwo\nTHREE\nfour\nfive\nsix\n",
                "{header}"
            );
        }
    }

    #[test]
    fn context_may_differ_a_little() {
        let diff = "--- x\n+++ x\n@@ -2,3 +2,3 @@\n TWO!\n-three\n+3\n four\n";
        assert_eq!(applied(diff).unwrap(), "one\ntwo\n3\nfour\nfive\nsix\n");
    }

    #[test]
    fn several_hunks_shift_each_other() {
        let diff =
            "--- x\n+++ x\n@@ -1,2 +1,3 @@\n one\n+1.5\n two\n@@ -5,2 +6,1 @@\n-five\n six\n";
        assert_eq!(applied(diff).unwrap(), "one\n1.5\ntwo\nthree\nfour\nsix\n");
    }

    #[test]
    fn conflicts_are_reported() {
        let diff = "--- x\n+++ x\n@@ -2,1 +2,1 @@\n-zwei\n+2\n";
        let report = applied(diff).unwrap_err();
        assert!(
            report.contains("zwei") && report.contains("2\ttwo"),
            "{report}"
        );
        for bad in ["", "hello", "--- a\n+++ b\n", "@@ -1 +1 @@\n x"] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_new_file() {
        let files = parse("--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n").unwrap();
        assert!(files[0].is_new);
        assert_eq!(files[0].path, "new.txt");
        assert_eq!(apply("", &files[0].hunks).unwrap(), "a\nb\n");
    }
}
