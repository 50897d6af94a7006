//! `POST /api/render`: what agents wrote, made fit to be shown (see [`crate::render`]).
//!
//! A page asks for what is on the screen, some pieces at a time; nothing of it is kept.

use axum::{extract::State, response::Response};
use hive_wire::{ErrorCode, WireError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Site, input::Body, output};
use crate::render::{
    ansi,
    diff::{self, FileChange},
    markdown,
    node::Node,
};

/// The most pieces in one request.
const MAX_PIECES: usize = 64;

#[derive(Deserialize)]
pub(super) struct Pieces {
    pieces: Vec<Piece>,
}

/// Something to be shown.
#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Piece {
    /// Markdown.
    Markdown { text: String },
    /// What a program wrote to a terminal.
    Terminal { text: String },
    /// A unified diff.
    Patch { text: String },
    /// A file before and after.
    Change {
        #[serde(default)]
        path: String,
        before: String,
        after: String,
    },
}

#[derive(Serialize, JsonSchema)]
pub(super) struct Rendered {
    pieces: Vec<Shown>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Shown {
    Nodes(Vec<Node>),
    Files(Vec<FileChange>),
}

pub(super) async fn render(State(site): State<Site>, Body(asked): Body<Pieces>) -> Response {
    if asked.pieces.len() > MAX_PIECES {
        let problem = format!(
            "{} pieces, and {MAX_PIECES} is the most",
            asked.pieces.len()
        );
        return output::answer::<()>(Err(WireError::new(ErrorCode::BadRequest, problem)));
    }
    let work = move || asked.pieces.iter().map(show).collect();
    let outcome = site.host.tasks.spawn_blocking(work).await;
    output::answer(match outcome {
        Ok(pieces) => Ok(Rendered { pieces }),
        Err(error) => Err(WireError::new(
            ErrorCode::Unknown,
            format!("cannot show this: {error}"),
        )),
    })
}

fn show(piece: &Piece) -> Shown {
    match piece {
        Piece::Markdown { text } => Shown::Nodes(markdown::render(text)),
        Piece::Terminal { text } => Shown::Nodes(ansi::render(text)),
        Piece::Patch { text } => Shown::Files(diff::unified(text)),
        Piece::Change {
            path,
            before,
            after,
        } => Shown::Files(vec![diff::between(path, before, after)]),
    }
}
