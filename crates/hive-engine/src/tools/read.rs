//! Reads files: text with line numbers, pictures, PDFs and notebooks.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hive_providers::{Block, ResultContent, Source};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    files::{self, failed},
    tool::{Access, Context, Output, Permission, Tool, ToolError, build},
};

const MAX_LINES: usize = 2_000;
const MAX_LINE: usize = 2_000;
const MAX_TEXT_FILE: u64 = 256 * 1024;
/// What the API takes, before it is encoded.
const MAX_IMAGE: u64 = 3_750_000;
const MAX_PDF: u64 = 20 * 1024 * 1024;

#[derive(Deserialize)]
struct Input {
    file_path: String,
    offset: Option<usize>,
    limit: Option<usize>,
    pages: Option<String>,
}

pub(super) fn tool() -> Arc<dyn Tool> {
    build::<Input>(
        "Read",
        Permission::Read,
        "Reads a file from the local filesystem. The path must be absolute or relative to the \
         working directory. Text comes with line numbers, up to 2000 lines from the start unless \
         offset and limit say otherwise; long lines are cut. Pictures (PNG, JPEG, GIF, WebP), PDFs \
         and Jupyter notebooks are shown as what they are.",
        json!({"type": "object", "required": ["file_path"], "additionalProperties": false, "properties": {
            "file_path": {"type": "string", "description": "The path of the file"},
            "offset": {"type": "integer", "minimum": 0, "description": "The first line to read, from 1"},
            "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read"},
            "pages": {"type": "string", "description": "Accepted for PDFs; the whole document is always sent"},
        }}),
    )
    .read_only()
    .touches(|input, workspace| Ok(vec![Access::Read(workspace.place(&input.file_path)?)]))
    .run_blocking(run)
}

fn run(input: Input, context: &Context) -> Result<Output, ToolError> {
    let place = context.workspace.place(&input.file_path)?;
    let mut file = files::open(&place.real)?;
    let size = file
        .metadata()
        .map_err(|error| failed(&place.real, &error))?
        .len();
    let shown = place.lexical.display().to_string();
    let mut start = [0u8; 8192];
    let length = read_some(&mut file, &mut start).map_err(|error| failed(&place.real, &error))?;
    let start = &start[..length];
    if let Some(media_type) = picture_type(start) {
        return picture(file, start, size, media_type, &shown);
    }
    if start.starts_with(b"%PDF-") {
        return pdf(file, start, size, &shown, input.pages.is_some());
    }
    if start.contains(&0) {
        return Err(ToolError::tell(format!(
            "This tool cannot read binary files. {shown} appears to be one ({size} bytes). Use other \
             tools to inspect it."
        )));
    }
    let whole_wanted = input.limit.is_none() && input.offset.is_none();
    if whole_wanted && size > MAX_TEXT_FILE {
        return Err(ToolError::tell(format!(
            "File content ({} KB) exceeds maximum allowed size ({} KB). Use offset and limit to \
             read a part of it, or Grep to search it.",
            size / 1024,
            MAX_TEXT_FILE / 1024
        )));
    }
    context
        .ledger
        .note(&place.real, &file)
        .map_err(|error| failed(&place.real, &error))?;
    let reader = BufReader::new(start.chain(file));
    if shown.ends_with(".ipynb") && whole_wanted {
        return notebook(reader, &shown);
    }
    text(reader, &input, &shown)
}

fn read_some(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut length = 0;
    while length < buffer.len() {
        match file.read(&mut buffer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    Ok(length)
}

fn text(
    mut reader: BufReader<impl std::io::Read>,
    input: &Input,
    shown: &str,
) -> Result<Output, ToolError> {
    let first = input.offset.unwrap_or(1).max(1);
    let count = input.limit.unwrap_or(MAX_LINES).min(MAX_LINES);
    let (mut numbered, mut content) = (String::new(), String::new());
    let (mut line_number, mut lines) = (0usize, 0usize);
    let mut line = Vec::new();
    let mut ends_with_newline = false;
    loop {
        line.clear();
        let read = reader
            .read_until(b'\n', &mut line)
            .map_err(|error| ToolError::tell(format!("{shown}: {error}")))?;
        let is_last = read == 0;
        if is_last && !(ends_with_newline || line_number == 0) {
            break;
        }
        line_number += 1;
        ends_with_newline = line.ends_with(b"\n");
        if line_number >= first && lines < count && !(is_last && line_number == 1) {
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches('\n');
            let cut = &text[..text.floor_char_boundary(MAX_LINE)];
            numbered.push_str(if lines == 0 { "" } else { "\n" });
            numbered.push_str(&format!("{line_number}\t{cut}"));
            content.push_str(text);
            if ends_with_newline {
                content.push('\n');
            }
            lines += 1;
        }
        if is_last {
            break;
        }
    }
    let structured = json!({"type": "text", "file": {
        "filePath": shown, "content": content, "numLines": lines, "startLine": first,
        "totalLines": line_number,
    }});
    if lines == 0 {
        let note = if line_number <= 1 && first <= 1 {
            "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>".to_owned()
        } else {
            format!(
                "<system-reminder>Warning: the file exists but is shorter than the provided offset \
                 ({first}). The file has {line_number} lines.</system-reminder>"
            )
        };
        return Ok(Output::text(note, structured));
    }
    if line_number > first + lines - 1 && input.limit.is_none() {
        numbered.push_str(&format!(
            "\n… (the file has {line_number} lines; use offset to read on)"
        ));
    }
    Ok(Output::text(numbered, structured))
}

fn picture_type(start: &[u8]) -> Option<&'static str> {
    match start {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => Some("image/webp"),
        _ => None,
    }
}

fn encoded(
    mut file: File,
    start: &[u8],
    max: u64,
    what: &str,
    size: u64,
) -> Result<String, ToolError> {
    if size > max {
        return Err(ToolError::tell(format!(
            "{what} too large: {size} bytes, and the API takes at most {max}."
        )));
    }
    let mut bytes = start.to_vec();
    file.by_ref()
        .take(max)
        .read_to_end(&mut bytes)
        .map_err(|error| ToolError::tell(error.to_string()))?;
    Ok(STANDARD.encode(bytes))
}

fn picture(
    file: File,
    start: &[u8],
    size: u64,
    media_type: &str,
    shown: &str,
) -> Result<Output, ToolError> {
    let data = encoded(file, start, MAX_IMAGE, "Image was", size)?;
    let source = Source::Base64 {
        media_type: media_type.to_owned(),
        data,
    };
    Ok(Output {
        content: ResultContent::Blocks(vec![Block::Image { source }]),
        structured: json!({"type": "image", "file": {"filePath": shown, "type": media_type, "originalSize": size}}),
        is_error: false,
    })
}

fn pdf(
    file: File,
    start: &[u8],
    size: u64,
    shown: &str,
    has_pages: bool,
) -> Result<Output, ToolError> {
    let data = encoded(file, start, MAX_PDF, "PDF", size)?;
    let source = Source::Base64 {
        media_type: "application/pdf".to_owned(),
        data,
    };
    let note = if has_pages {
        " (the whole document; pages cannot be chosen)"
    } else {
        ""
    };
    let text = format!("PDF file read: {shown} ({size} bytes){note}");
    Ok(Output {
        content: ResultContent::Blocks(vec![Block::text(text), Block::Document { source }]),
        structured: json!({"type": "pdf", "file": {"filePath": shown, "originalSize": size}}),
        is_error: false,
    })
}

fn notebook(reader: impl std::io::Read, shown: &str) -> Result<Output, ToolError> {
    let notebook: Value = serde_json::from_reader(reader)
        .map_err(|error| ToolError::tell(format!("{shown} is not a valid notebook: {error}")))?;
    let join = |value: &Value| match value {
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        other => other.as_str().unwrap_or_default().to_owned(),
    };
    let mut text = String::new();
    for (place, cell) in notebook["cells"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let id = cell["id"]
            .as_str()
            .map_or_else(|| format!("cell-{place}"), str::to_owned);
        let kind = cell["cell_type"].as_str().unwrap_or("code");
        let source: String = join(&cell["source"]);
        text.push_str(&format!(
            "<cell id=\"{id}\" type=\"{kind}\">\n{source}\n</cell>\n"
        ));
        for output in cell["outputs"].as_array().into_iter().flatten() {
            let plain = if output["text"].is_null() {
                &output["data"]["text/plain"]
            } else {
                &output["text"]
            };
            let plain: String = join(plain);
            if !plain.is_empty() {
                text.push_str(&format!("<output cell=\"{id}\">\n{plain}\n</output>\n"));
            }
        }
    }
    let structured =
        json!({"type": "notebook", "file": {"filePath": shown, "cells": notebook["cells"]}});
    Ok(Output::text(text, structured))
}
