//! Lists a directory.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use crate::{
    files::failed,
    tool::{Access, Context, Output, Permission, Tool, ToolError, build},
};

const MAX_ENTRIES: usize = 1_000;

#[derive(Deserialize)]
struct Input {
    path: Option<String>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "LS",
        Permission::Read,
        "Lists the files and directories in a directory; directories end with a slash.",
        json!({"type": "object", "additionalProperties": false, "properties": {
            "path": {"type": "string", "description": "The directory; the working directory by default"},
        }}),
    )
    .read_only()
    .touches(|input, workspace| {
        Ok(vec![Access::Read(workspace.place(input.path.as_deref().unwrap_or("."))?)])
    })
    .run_blocking(run)
}

fn run(input: Input, context: &Context) -> Result<Output, ToolError> {
    let place = context
        .workspace
        .place(input.path.as_deref().unwrap_or("."))?;
    let entries = std::fs::read_dir(&place.real).map_err(|error| failed(&place.real, &error))?;
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| failed(&place.real, &error))?;
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let slash = if is_dir { "/" } else { "" };
        names.push(format!("{}{slash}", entry.file_name().to_string_lossy()));
    }
    names.sort();
    let left_out = names.len().saturating_sub(MAX_ENTRIES);
    names.truncate(MAX_ENTRIES);
    let mut text = names.join("\n");
    if text.is_empty() {
        text.push_str("(empty)");
    }
    if left_out > 0 {
        text.push_str(&format!("\n… and {left_out} more"));
    }
    Ok(Output::text(
        text,
        json!({"entries": names, "truncated": left_out > 0}),
    ))
}
