//! Several replacements in one file, all or none.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use super::edit::{Replacement, edit_file};
use crate::tool::{Access, Context, Output, Permission, Tool, ToolError, build};

#[derive(Deserialize)]
struct Input {
    file_path: String,
    edits: Vec<Replacement>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "MultiEdit",
        Permission::Write,
        "Makes several exact replacements in one file, one after the other. If one of them does \
         not fit, none is made.",
        json!({"type": "object", "required": ["file_path", "edits"], "additionalProperties": false, "properties": {
            "file_path": {"type": "string", "description": "The path of the file"},
            "edits": {"type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["old_string", "new_string"], "properties": {
                    "old_string": {"type": "string"},
                    "new_string": {"type": "string"},
                    "replace_all": {"type": "boolean", "default": false},
            }}},
        }}),
    )
    .undoable()
    .touches(|input, workspace| Ok(vec![Access::Write(workspace.place(&input.file_path)?)]))
    .run_blocking(run)
}

fn run(input: Input, context: &Context) -> Result<Output, ToolError> {
    if input.edits.is_empty() {
        return Err(ToolError::tell("edits is empty."));
    }
    edit_file(&input.file_path, &input.edits, context)
}
