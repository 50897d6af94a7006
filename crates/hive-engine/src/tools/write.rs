//! Writes a whole file.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::json;

use crate::{
    files::{self, Before},
    tool::{Access, Context, Output, Permission, Tool, ToolError, build},
};

#[derive(Deserialize)]
struct Input {
    file_path: String,
    content: String,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "Write",
        Permission::Write,
        "Writes a file, replacing what is there. A file that exists must have been read first in \
         this conversation, and must not have changed since. Prefer editing to rewriting.",
        json!({"type": "object", "required": ["file_path", "content"], "additionalProperties": false, "properties": {
            "file_path": {"type": "string", "description": "The path of the file"},
            "content": {"type": "string", "description": "The whole new content"},
        }}),
    )
    .touches(|input, workspace| Ok(vec![Access::Write(workspace.place(&input.file_path)?)]))
    .run_blocking(run)
}

fn run(input: Input, context: &Context) -> Result<Output, ToolError> {
    let place = context.workspace.place(&input.file_path)?;
    let before = files::write(&place.real, input.content.as_bytes(), &context.ledger)?;
    let shown = place.lexical.display();
    let (kind, text) = match before {
        Before::Nothing => (
            "create",
            format!(
                "File created successfully at: {shown} (file state is current in your context — no \
                 need to Read it back)"
            ),
        ),
        Before::Seen => (
            "update",
            format!(
                "The file {shown} has been updated successfully. (file state is current in your \
                 context — no need to Read it back)"
            ),
        ),
    };
    Ok(Output::text(
        text,
        json!({"type": kind, "filePath": shown.to_string(), "content": input.content,
               "structuredPatch": [], "userModified": false}),
    ))
}
