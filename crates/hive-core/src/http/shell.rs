//! The page itself: one shell for every port, its script and style.
//!
//! They are built from `web/` and embedded (`build.rs`). They hold no data of the hive, so that they
//! need no token; everything they show comes over the API.

use axum::{
    extract::{Path, State},
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};

use super::{Site, output};
use crate::access::Audience;

/// A file of the built page.
struct Asset {
    name: &'static str,
    kind: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// What the page may do: load its own script and style, and talk to its own origin.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";
/// The names of built files change with what is in them.
const FOREVER: &str = "public, max-age=31536000, immutable";

/// `GET /`: the shell, which says whose page it is.
pub(super) async fn page(State(site): State<Site>) -> Response {
    let kind = match &*site.audience {
        Audience::Operator => "dashboard",
        Audience::Agent(_) => "agent",
    };
    let html = SHELL.replace("content=\"dashboard\"", &format!("content=\"{kind}\""));
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    (headers, html).into_response()
}

/// `GET /assets/NAME`: a script or a style sheet.
pub(super) async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    let Some(asset) = ASSETS.iter().find(|asset| asset.name == name) else {
        return output::no_such_page().await;
    };
    let kind = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, FOREVER),
        (header::VARY, "accept-encoding"),
    ];
    let accepted = headers.get(header::ACCEPT_ENCODING);
    let accepted = accepted.and_then(|accepted| accepted.to_str().ok());
    if accepted.is_some_and(|accepted| accepted.contains("gzip")) {
        let packed = [(header::CONTENT_ENCODING, "gzip")];
        return (kind, packed, asset.gzip).into_response();
    }
    (kind, asset.plain).into_response()
}
