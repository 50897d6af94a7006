//! `GET /readyz`: whether the hive takes mail, not merely whether the daemon answers.

use std::time::Duration;

use axum::{
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use tokio::time::timeout;

use super::Site;

/// How long the broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

pub(super) async fn ready(State(site): State<Site>) -> Response {
    let asked = site.host.broker.run(|desk| Ok(desk.roster.len()));
    match timeout(PATIENCE, asked).await {
        Ok(Ok(_)) if !site.host.stop.is_cancelled() => "ok\n".into_response(),
        _ => (StatusCode::SERVICE_UNAVAILABLE, "the hive takes no mail\n").into_response(),
    }
}
