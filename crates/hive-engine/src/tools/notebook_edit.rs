//! Changes a cell of a Jupyter notebook.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::edit::read_text;
use crate::{
    files,
    tool::{Access, Context, Output, Permission, Tool, ToolError, build},
};

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
enum Mode {
    #[default]
    Replace,
    Insert,
    Delete,
}

#[derive(Deserialize)]
struct Input {
    notebook_path: String,
    cell_id: Option<String>,
    #[serde(default)]
    new_source: String,
    cell_type: Option<String>,
    #[serde(default)]
    edit_mode: Mode,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "NotebookEdit",
        Permission::Write,
        "Replaces, inserts or deletes a cell of a Jupyter notebook (.ipynb). insert puts the new \
         cell after cell_id, or first without it. The notebook must have been read first.",
        json!({"type": "object", "required": ["notebook_path", "new_source"], "additionalProperties": false, "properties": {
            "notebook_path": {"type": "string", "description": "The path of the notebook"},
            "cell_id": {"type": "string", "description": "The cell, as Read shows it"},
            "new_source": {"type": "string", "description": "The new text of the cell"},
            "cell_type": {"type": "string", "enum": ["code", "markdown"]},
            "edit_mode": {"type": "string", "enum": ["replace", "insert", "delete"]},
        }}),
    )
    .touches(|input, workspace| Ok(vec![Access::Write(workspace.place(&input.notebook_path)?)]))
    .run_blocking(run)
}

fn run(input: Input, context: &Context) -> Result<Output, ToolError> {
    let place = context.workspace.place(&input.notebook_path)?;
    let text = read_text(&place.real)?;
    let mut notebook: Value = serde_json::from_str(&text)
        .map_err(|error| ToolError::tell(format!("Notebook is not valid JSON: {error}")))?;
    let cells = notebook["cells"]
        .as_array_mut()
        .ok_or_else(|| ToolError::tell("The notebook has no cells."))?;
    let done = change(cells, &input)?;
    let mut new = serde_json::to_string_pretty(&notebook)
        .map_err(|error| ToolError::tell(error.to_string()))?;
    new.push('\n');
    files::write(&place.real, new.as_bytes(), &context.ledger)?;
    Ok(Output::text(
        done,
        json!({"notebook_path": place.lexical.display().to_string(),
        "new_source": input.new_source, "cell_id": input.cell_id}),
    ))
}

fn change(cells: &mut Vec<Value>, input: &Input) -> Result<String, ToolError> {
    let at = input.cell_id.as_deref().map(|id| {
        let by_place = id
            .strip_prefix("cell-")
            .and_then(|number| number.parse::<usize>().ok());
        cells
            .iter()
            .position(|cell| cell["id"] == id)
            .or(by_place.filter(|at| *at < cells.len()))
            .ok_or_else(|| ToolError::tell(format!("Cell with ID \"{id}\" not found in notebook.")))
    });
    let at = at.transpose()?;
    let needed =
        || at.ok_or_else(|| ToolError::tell("cell_id must be given unless a cell is inserted."));
    Ok(match input.edit_mode {
        Mode::Replace => {
            let cell = &mut cells[needed()?];
            cell["source"] = json!(input.new_source);
            if let Some(kind) = &input.cell_type {
                cell["cell_type"] = json!(kind);
            }
            if cell["cell_type"] == "code" {
                cell["outputs"] = json!([]);
                cell["execution_count"] = Value::Null;
            }
            "Updated cell".to_owned()
        }
        Mode::Insert => {
            let kind = input.cell_type.as_deref().unwrap_or("code");
            let id = &uuid::Uuid::new_v4().simple().to_string()[..8];
            let mut cell =
                json!({"cell_type": kind, "id": id, "metadata": {}, "source": input.new_source});
            if kind == "code" {
                cell["outputs"] = json!([]);
                cell["execution_count"] = Value::Null;
            }
            cells.insert(at.map_or(0, |at| at + 1), cell);
            format!("Inserted cell {id}")
        }
        Mode::Delete => {
            cells.remove(needed()?);
            "Deleted cell".to_owned()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_change() {
        let mut cells =
            vec![json!({"id": "a", "cell_type": "code", "source": "x", "outputs": [1]})];
        let input = |value: Value| serde_json::from_value::<Input>(value).unwrap();
        let base = json!({"notebook_path": "n", "new_source": "y"});
        let with = |extra: Value| {
            let mut value = base.clone();
            value
                .as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
            input(value)
        };
        change(&mut cells, &with(json!({"cell_id": "a"}))).unwrap();
        assert_eq!(
            (cells[0]["source"].clone(), cells[0]["outputs"].clone()),
            (json!("y"), json!([]))
        );
        change(
            &mut cells,
            &with(json!({"cell_id": "a", "edit_mode": "insert", "cell_type": "markdown"})),
        )
        .unwrap();
        assert_eq!(cells[1]["cell_type"], "markdown");
        change(
            &mut cells,
            &with(json!({"cell_id": "cell-0", "edit_mode": "delete"})),
        )
        .unwrap();
        assert_eq!(cells.len(), 1);
        assert!(change(&mut cells, &with(json!({"cell_id": "zz"}))).is_err());
        assert!(change(&mut cells, &with(json!({}))).is_err());
    }
}
