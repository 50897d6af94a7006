//! `GET /readyz`: whether the hive takes mail, not merely whether the daemon answers. On a full disk the
//! redo journal takes a little more, and then it does not: that is said at once.

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
    let why_not = match timeout(PATIENCE, asked).await {
        Ok(Ok(_)) if site.host.readers.is_disk_full() => "the disk is full\n",
        Ok(Ok(_)) if !site.host.stop.is_cancelled() => return "ok\n".into_response(),
        _ => "the hive takes no mail\n",
    };
    (StatusCode::SERVICE_UNAVAILABLE, why_not).into_response()
}
