//! The page itself: one shell for every port, its script and style.
//!
//! They are built from `web/` and embedded (`build.rs`). They hold no data of the hive, so that they
//! need no token; everything they show comes over the API.

use axum::{
    extract::{Path, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};

use hive_wire::AgentName;
use serde::Deserialize;

use super::{Site, output, own, stats::Asked};
use crate::access::Audience;

/// A file of the built page.
struct Asset {
    name: &'static str,
    kind: &'static str,
    plain: &'static [u8],
    gzip: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/page.rs"));

/// What the page may do: load its own script and style, and talk to its own origin. No text ever
/// becomes markup or script: browsers that know trusted types refuse it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";
/// The names of built files change with what is in them.
const FOREVER: &str = "public, max-age=31536000, immutable";
const ICON: &str = include_str!("icon.svg");

#[derive(Deserialize)]
pub(super) struct Badge {
    /// How many things wait; shown on the mark.
    n: Option<u8>,
    /// On the dashboard: the mark of this agent. Like the one on the agent's own port it is open.
    of: Option<AgentName>,
}

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

/// `GET /icon`: the mark of the hive, with the number of waiting things that the page asks for.
pub(super) async fn icon(State(site): State<Site>, Asked(badge): Asked<Badge>) -> Response {
    // An agent's own mark, as it is; the hive's everywhere else.
    let whose = match &*site.audience {
        Audience::Agent(name) => Some(name),
        Audience::Operator => badge.of.as_ref(),
    };
    let own = match whose {
        Some(name) => own::icon(&site.host, name).await,
        None => None,
    };
    let waiting = badge.n.filter(|waiting| *waiting > 0).map(|waiting| {
        format!(
            "<circle cx=\"44\" cy=\"44\" r=\"20\" fill=\"#c62828\"/><text x=\"44\" y=\"53\" \
             font-family=\"sans-serif\" font-weight=\"bold\" font-size=\"26\" fill=\"#fff\" \
             text-anchor=\"middle\">{waiting}</text></svg>"
        )
    });
    let mark = waiting.map_or_else(
        || ICON.to_owned(),
        |waiting| ICON.replace("</svg>", &waiting),
    );
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        // Drawn, not run: an agent's own mark may hold anything.
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox",
        ),
    ];
    let mark = own.unwrap_or_else(|| mark.into_bytes());
    (StatusCode::OK, headers, mark).into_response()
}
