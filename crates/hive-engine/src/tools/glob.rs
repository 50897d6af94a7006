//! Finds files by name.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use globset::GlobBuilder;
use ignore::WalkBuilder;
use serde::Deserialize;
use serde_json::json;

use crate::tool::{Access, Context, Output, Permission, Tool, ToolError, build};

const MAX_RESULTS: usize = 100;
const TIME: Duration = Duration::from_secs(20);

#[derive(Deserialize)]
struct Input {
    pattern: String,
    path: Option<String>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "Glob",
        Permission::Read,
        "Finds files whose path matches a glob pattern such as `**/*.rs` or `src/**/*.ts`, newest \
         first, at most 100. Files that .gitignore names are left out.",
        json!({"type": "object", "required": ["pattern"], "additionalProperties": false, "properties": {
            "pattern": {"type": "string", "description": "The pattern"},
            "path": {"type": "string", "description": "The directory to search; the working directory by default"},
        }}),
    )
    .read_only()
    .touches(|input, workspace| {
        Ok(vec![Access::Read(workspace.place(input.path.as_deref().unwrap_or("."))?)])
    })
    .run_blocking(run)
}

fn run(input: Input, context: &Context) -> Result<Output, ToolError> {
    let began = Instant::now();
    let place = context
        .workspace
        .place(input.path.as_deref().unwrap_or("."))?;
    let pattern = input.pattern.trim_start_matches("./");
    let matcher = GlobBuilder::new(pattern)
        .literal_separator(true)
        .build()
        .map_err(|error| ToolError::tell(format!("{pattern:?} is not a glob pattern: {error}")))?
        .compile_matcher();
    if !place.real.is_dir() {
        return Err(ToolError::tell(format!(
            "Directory does not exist: {}",
            place.lexical.display()
        )));
    }
    let mut found: Vec<(SystemTime, PathBuf)> = Vec::new();
    let mut is_cut = false;
    // Links are not followed, so that a search never leaves its directory.
    let walk = WalkBuilder::new(&place.real)
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    for entry in walk.flatten() {
        if context.cancel.is_cancelled() {
            return Err(ToolError::Interrupted);
        }
        if began.elapsed() > TIME {
            is_cut = true;
            break;
        }
        let Ok(relative) = entry.path().strip_prefix(&place.real) else {
            continue;
        };
        if entry.file_type().is_some_and(|kind| kind.is_dir()) || !matcher.is_match(relative) {
            continue;
        }
        let modified = entry.metadata().ok().and_then(|meta| meta.modified().ok());
        found.push((
            modified.unwrap_or(SystemTime::UNIX_EPOCH),
            entry.into_path(),
        ));
    }
    found.sort_by(|left, right| right.cmp(left));
    is_cut |= found.len() > MAX_RESULTS;
    found.truncate(MAX_RESULTS);
    let names: Vec<String> = found
        .iter()
        .map(|(_, path)| path.display().to_string())
        .collect();
    let mut text = if names.is_empty() {
        "No files found".to_owned()
    } else {
        names.join("\n")
    };
    if is_cut {
        text.push_str("\n(Results are truncated. Consider using a more specific path or pattern.)");
    }
    let ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(Output::text(
        text,
        json!({"filenames": names, "numFiles": names.len(), "durationMs": ms, "truncated": is_cut}),
    ))
}
