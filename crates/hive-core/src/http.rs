//! HTTP on the dashboard's port: health and metrics. The pages come on top of this.
//!
//! Deny by default: the `Host` header is checked before anything is routed, and everything but
//! `/healthz` needs the operator's token.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use subtle::ConstantTimeEq;

use crate::metrics::Metrics;

/// What the routes look at.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) token: Arc<str>,
    /// The values of `Host` that are ours.
    pub(crate) hosts: Arc<[String]>,
}

/// All routes.
pub(crate) fn router(site: Site) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(metrics))
        .layer(middleware::from_fn_with_state(site.clone(), require_token));
    Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .merge(guarded)
        .layer(middleware::from_fn_with_state(site.clone(), require_host))
        .with_state(site)
}

async fn metrics(State(site): State<Site>) -> Response {
    let kind = [(
        header::CONTENT_TYPE,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )];
    (kind, site.metrics.render()).into_response()
}

/// A page that a browser was tricked into loading from here names another host (DNS rebinding).
async fn require_host(State(site): State<Site>, request: Request, next: Next) -> Response {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let is_ours = match (
        hosts.next().and_then(|host| host.to_str().ok()),
        hosts.next(),
    ) {
        (Some(host), None) => site
            .hosts
            .iter()
            .any(|ours| host.eq_ignore_ascii_case(ours)),
        _ => false,
    };
    // A name in the request line would count for more than the header.
    if is_ours && request.uri().authority().is_none() {
        return next.run(request).await;
    }
    let text = "this host name is not one of this hive's: see `dashboard.hosts` in hive.toml\n";
    (StatusCode::MISDIRECTED_REQUEST, text).into_response()
}

async fn require_token(State(site): State<Site>, request: Request, next: Next) -> Response {
    if has_token(request.headers(), &site.token) {
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (
        StatusCode::UNAUTHORIZED,
        challenge,
        "send the operator's token as a bearer token\n",
    )
        .into_response()
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "))
        .is_some_and(|given| given.as_bytes().ct_eq(token.as_bytes()).into())
}
