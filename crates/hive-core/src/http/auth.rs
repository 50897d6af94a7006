//! The token that everything but the page itself needs.

use axum::{
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use hive_wire::{ErrorCode, WireError};

use super::{Site, output};

/// The routes that need none: they hold no data of the hive.
const OPEN: [&str; 7] = [
    "/healthz",
    "/api/login",
    "/",
    "/assets/{name}",
    "/icon",
    "/files/",
    "/files/{*path}",
];

/// The token that a request came with, for handlers that look at it again later.
#[derive(Clone)]
pub(super) struct Token(pub(super) String);

pub(super) async fn require_token(
    State(site): State<Site>,
    mut request: Request,
    next: Next,
) -> Response {
    // What has no route is denied as well: a route that is forgotten here is closed, not open.
    let matched = request.extensions().get::<MatchedPath>();
    if matched.is_some_and(|path| OPEN.contains(&path.as_str())) {
        return next.run(request).await;
    }
    let token =
        bearer(request.headers()).filter(|token| site.host.access.admits(&site.audience, token));
    let Some(token) = token.map(str::to_owned) else {
        return refuse();
    };
    request.extensions_mut().insert(Token(token));
    next.run(request).await
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (token, None) = (given.next()?, given.next()) else {
        return None;
    };
    token.to_str().ok()?.strip_prefix("Bearer ")
}

fn refuse() -> Response {
    let error = WireError::new(ErrorCode::Denied, "this needs a token of this page")
        .hint("get a one-time link with `hive-c0re link`, and send the token as a bearer token");
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    let answer = output::error_with(StatusCode::UNAUTHORIZED, &error);
    (challenge, answer).into_response()
}
