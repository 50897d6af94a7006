//! Replaces exact text in a file.

use std::{io::Read as _, path::Path, sync::Arc};

use serde::Deserialize;
use serde_json::{Value, json};
use similar::TextDiff;

use crate::{
    files::{self, failed},
    tool::{Access, Context, Output, Permission, Tool, ToolError, build},
};

/// Larger files are not edited as text.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// One replacement.
#[derive(Debug, Deserialize)]
pub(super) struct Replacement {
    pub(super) old_string: String,
    pub(super) new_string: String,
    #[serde(default)]
    pub(super) replace_all: bool,
}

#[derive(Deserialize)]
struct Input {
    file_path: String,
    #[serde(flatten)]
    replacement: Replacement,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "Edit",
        Permission::Write,
        "Replaces exact text in a file. old_string must occur exactly once, unless replace_all is \
         set; copy it as it is in the file, without the line numbers of Read. The file must have \
         been read first.",
        json!({"type": "object", "required": ["file_path", "old_string", "new_string"], "additionalProperties": false, "properties": {
            "file_path": {"type": "string", "description": "The path of the file"},
            "old_string": {"type": "string", "description": "The text to replace"},
            "new_string": {"type": "string", "description": "What to put there"},
            "replace_all": {"type": "boolean", "default": false, "description": "Replace every occurrence"},
        }}),
    )
    .undoable()
    .touches(|input, workspace| Ok(vec![Access::Write(workspace.place(&input.file_path)?)]))
    .run_blocking(run)
}

fn run(input: Input, context: &Context) -> Result<Output, ToolError> {
    edit_file(
        &input.file_path,
        std::slice::from_ref(&input.replacement),
        context,
    )
}

/// Applies replacements one after the other; all or none.
pub(super) fn edit_file(
    path: &str,
    replacements: &[Replacement],
    context: &Context,
) -> Result<Output, ToolError> {
    let place = context.workspace.place(path)?;
    let shown = place.lexical.display().to_string();
    let creates = replacements
        .first()
        .is_some_and(|first| first.old_string.is_empty());
    let old = match read_text(&place.real) {
        Ok(old) if creates && !old.is_empty() => {
            return Err(ToolError::tell(
                "Cannot create new file - file already exists.",
            ));
        }
        Ok(old) => old,
        Err(_) if creates && !place.real.exists() => String::new(),
        Err(error) => return Err(error),
    };
    let mut new = old.clone();
    for replacement in replacements {
        new = replace(&new, replacement)?;
    }
    files::write(&place.real, new.as_bytes(), &context.ledger)?;
    let first = replacements.first();
    Ok(Output::text(
        format!(
            "The file {shown} has been updated successfully. (file state is current in your context \
             — no need to Read it back)"
        ),
        json!({
            "filePath": shown,
            "oldString": first.map(|first| &first.old_string),
            "newString": first.map(|first| &first.new_string),
            "replaceAll": first.is_some_and(|first| first.replace_all),
            "structuredPatch": patch(&old, &new),
            "userModified": false,
        }),
    ))
}

/// The text of a file, if it is text.
pub(super) fn read_text(real: &Path) -> Result<String, ToolError> {
    let file = files::open(real)?;
    let size = file.metadata().map_err(|error| failed(real, &error))?.len();
    if size > MAX_FILE {
        return Err(ToolError::tell(format!(
            "{} is too large to edit ({size} bytes).",
            real.display()
        )));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE)
        .read_to_end(&mut bytes)
        .map_err(|error| failed(real, &error))?;
    String::from_utf8(bytes)
        .map_err(|_| ToolError::tell(format!("{} is not UTF-8 text.", real.display())))
}

fn replace(text: &str, replacement: &Replacement) -> Result<String, ToolError> {
    let Replacement {
        old_string: old,
        new_string: new,
        replace_all,
    } = replacement;
    if old == new {
        return Err(ToolError::tell(
            "No changes to make: old_string and new_string are exactly the same.",
        ));
    }
    if old.is_empty() && text.is_empty() {
        return Ok(new.clone());
    }
    if old.is_empty() {
        return Err(ToolError::tell("old_string is empty, but the file is not."));
    }
    match text.matches(old.as_str()).count() {
        0 => Err(ToolError::tell(format!(
            "String to replace not found in file.\nString: {old}"
        ))),
        1 => Ok(text.replacen(old, new, 1)),
        _ if *replace_all => Ok(text.replace(old, new)),
        count => Err(ToolError::tell(format!(
            "Found {count} matches of the string to replace, but replace_all is false. To replace \
             all occurrences, set replace_all to true. To replace only one occurrence, please \
             provide more context to uniquely identify the instance.\nString: {old}"
        ))),
    }
}

/// The change as hunks, for programs that show it.
pub(super) fn patch(old: &str, new: &str) -> Value {
    let diff = TextDiff::from_lines(old, new);
    let hunks = diff.grouped_ops(3).into_iter().map(|group| {
        let (first, last) = (group.first(), group.last());
        let range = |pick: fn(&similar::DiffOp) -> std::ops::Range<usize>| {
            let start = first.map_or(0, |op| pick(op).start);
            (start, last.map_or(0, |op| pick(op).end) - start)
        };
        let (old_start, old_lines) = range(similar::DiffOp::old_range);
        let (new_start, new_lines) = range(similar::DiffOp::new_range);
        let lines: Vec<String> = group
            .iter()
            .flat_map(|op| diff.iter_changes(op))
            .map(|change| format!("{}{}", change.tag(), change.value().trim_end_matches('\n')))
            .collect();
        json!({"oldStart": old_start + 1, "oldLines": old_lines, "newStart": new_start + 1,
               "newLines": new_lines, "lines": lines})
    });
    Value::Array(hunks.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements() {
        let with = |old: &str, new: &str, all: bool| {
            let replacement = Replacement {
                old_string: old.into(),
                new_string: new.into(),
                replace_all: all,
            };
            replace("one two one", &replacement).map_err(|error| error.to_string())
        };
        assert_eq!(with("two", "2", false), Ok("one 2 one".into()));
        assert_eq!(with("one", "1", true), Ok("1 two 1".into()));
        for (old, new, needle) in [
            ("one", "1", "Found 2 matches"),
            ("three", "3", "not found"),
            ("two", "two", "exactly the same"),
            ("", "x", "empty"),
        ] {
            let error = with(old, new, false).unwrap_err();
            assert!(error.contains(needle), "{error}");
        }
    }

    #[test]
    fn hunks() {
        let hunks = patch("a\nb\nc\n", "a\nB\nc\n");
        assert_eq!(hunks[0]["lines"], json!([" a", "-b", "+B", " c"]));
        assert_eq!(hunks[0]["oldStart"], 1);
    }
}
