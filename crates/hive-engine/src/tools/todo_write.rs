//! A list of tasks that the model keeps for itself and for those who watch.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::tool::{Output, Permission, Tool, ToolError, build};

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Todo {
    content: String,
    status: Status,
    #[serde(default)]
    active_form: String,
}

#[derive(Deserialize)]
struct Input {
    todos: Vec<Todo>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "TodoWrite",
        Permission::Auto,
        "Keeps a list of tasks for work of several steps. Send the whole list each time; at most \
         one task is in_progress.",
        json!({"type": "object", "required": ["todos"], "additionalProperties": false, "properties": {
            "todos": {"type": "array", "items": {
                "type": "object", "required": ["content", "status", "activeForm"], "properties": {
                    "content": {"type": "string", "description": "What to do"},
                    "status": {"type": "string", "enum": ["pending", "in_progress", "completed"]},
                    "activeForm": {"type": "string", "description": "What is being done, in the present"},
            }}},
        }}),
    )
    .undoable()
    .run(|input, _| async move {
        if input.todos.iter().any(|todo| todo.content.trim().is_empty()) {
            return Err(ToolError::tell("Every task needs a content."));
        }
        Ok(Output::text(
            "Todos have been modified successfully. Ensure that you continue to use the todo list to \
             track your progress. Please proceed with the current tasks if applicable",
            json!({"newTodos": input.todos}),
        ))
    })
}
