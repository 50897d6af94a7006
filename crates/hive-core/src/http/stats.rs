//! `GET /api/turns` and `GET /api/stats`: what the turns were and what they add up to.

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, Query, State},
    http::request::Parts,
    response::Response,
};
use hive_wire::{
    ErrorCode, TurnRowId, WireError,
    host::{TurnTotals, Turns},
};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    Site,
    input::Target,
    output::{self, Refused},
};
use crate::{
    access::Audience,
    host_commands::{turn_totals, turns as page},
};

/// The part behind `?`.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequestParts<Site> for Asked<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Self, Refused> {
        let query = Query::<T>::from_request_parts(parts, site).await;
        query.map(|Query(query)| Self(query)).map_err(|error| {
            WireError::new(
                ErrorCode::BadRequest,
                format!("cannot read the query: {error}"),
            )
            .hint("GET /api/openapi.json describes it")
            .into()
        })
    }
}

#[derive(Deserialize)]
pub(super) struct Page {
    before: Option<i64>,
    limit: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Days {
    days: Option<u32>,
}

pub(super) async fn turns(
    State(site): State<Site>,
    Target(name): Target,
    Asked(asked): Asked<Page>,
) -> Response {
    let command = Turns {
        name,
        before: asked.before.map(TurnRowId),
        limit: asked.limit,
    };
    output::answer(page::run(Arc::clone(&site.host), command).await)
}

/// Of one agent.
pub(super) async fn of_agent(
    State(site): State<Site>,
    Target(name): Target,
    Asked(asked): Asked<Days>,
) -> Response {
    let command = TurnTotals {
        name: Some(name),
        days: asked.days.unwrap_or(7),
    };
    output::answer(turn_totals::run(Arc::clone(&site.host), command).await)
}

/// Of everybody; the dashboard's alone.
pub(super) async fn of_hive(State(site): State<Site>, Asked(asked): Asked<Days>) -> Response {
    debug_assert_eq!(
        *site.audience,
        Audience::Operator,
        "routed on the dashboard only"
    );
    let command = TurnTotals {
        name: None,
        days: asked.days.unwrap_or(7),
    };
    output::answer(turn_totals::run(Arc::clone(&site.host), command).await)
}
