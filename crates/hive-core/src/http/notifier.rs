//! `GET /api/notifier`, `POST /api/notifier/test`: who is told of news, and whether it arrives.

use axum::{extract::State, response::Response};
use serde::{Deserialize, Serialize};

use super::{Site, input::Body, output};

#[derive(Deserialize)]
pub(super) struct Nothing {}

#[derive(Serialize)]
struct Taken {}

pub(super) async fn show(State(site): State<Site>) -> Response {
    output::answer(Ok(site.host.notifier.standing()))
}

pub(super) async fn test(State(site): State<Site>, Body(Nothing {}): Body<Nothing>) -> Response {
    output::answer(site.host.notifier.test().await.map(|()| Taken {}))
}
