//! `/mcp`: the tools of the agent whose port this is, for MCP clients of any era.
//!
//! The tools are those of `hive mcp`, and they go through the agent's own socket, so that every
//! rule of the host holds here as it does there. Before a request comes here, `Host`, `Origin` and
//! the token of the page were checked; the library below checks the first two again. It keeps
//! sessions for the handshake revisions alone: from 2026-07-28 on every request stands for itself.
//!
//! The agent's directories are not touched from here: what is in them is the agent's, and the host
//! follows none of its links.

#[cfg(feature = "mcp-fixtures")]
pub(super) mod fixtures;

use std::{sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    extract::{Request, State},
    http::{Method, request::Parts},
    response::{IntoResponse, Response},
};
use hive_mcp::{
    Options, handover::Handovers, hyperhive, hyperhive::Hyperhive, journal::Journal, server::Server,
};
use hive_wire::{AgentName, ErrorCode, WireError};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService,
    session::local::{LocalSessionManager, SessionConfig},
};
use tokio_util::sync::CancellationToken;

use super::{
    Site, input,
    output::{self, Refused},
    written::{Told, Written},
};
use crate::host_commands::Host;

/// The most sessions of the handshake revisions on one port.
const MAX_SESSIONS: usize = 64;
/// How long a session lives of which nothing is heard.
const SESSION_IDLE: Duration = Duration::from_secs(60 * 60);

/// The first revision without sessions.
const MODERN: &[u8] = b"2026-07-28";

/// A server on a port.
pub(super) struct Mount<S = Server<Hyperhive>> {
    service: StreamableHttpService<S, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
}

impl Mount {
    /// The tools of an agent, for requests to `hosts`, until `stop`.
    pub(super) fn new(
        host: &Arc<Host>,
        name: &AgentName,
        hosts: &[String],
        stop: &CancellationToken,
    ) -> Self {
        let options = Options::new(host.paths.agent_socket(name));
        let journal = Journal::of_agent(hyperhive::NAME, name.to_string());
        let server = hyperhive::server_with(&options, journal);
        Self::of(move || server.clone(), hosts, stop)
    }
}

#[cfg(feature = "mcp-fixtures")]
impl Mount<fixtures::Fixtures> {
    /// The same mount with what the conformance suite wants to find.
    pub(super) fn fixtures(hosts: &[String], stop: &CancellationToken) -> Self {
        let fixtures = fixtures::Fixtures::new();
        Self::of(move || fixtures.clone(), hosts, stop)
    }
}

impl<S: rmcp::ServerHandler> Mount<S> {
    /// The servers that `factory` makes: one for a session, or one for a request without one.
    fn of(
        factory: impl Fn() -> S + Send + Sync + 'static,
        hosts: &[String],
        stop: &CancellationToken,
    ) -> Self {
        let mut session = SessionConfig::default();
        session.keep_alive = Some(SESSION_IDLE);
        let mut sessions = LocalSessionManager::default();
        sessions.session_config = session;
        let sessions = Arc::new(sessions);
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(hosts)
            .with_allowed_origins(hosts.iter().flat_map(|host| origins(host)))
            .enforce_origin_validation()
            .with_json_response(true)
            .with_max_request_body_bytes(input::MAX_BYTES)
            .with_cancellation_token(stop.clone());
        let service =
            StreamableHttpService::new(move || Ok(factory()), Arc::clone(&sessions), config);
        Self { service, sessions }
    }

    async fn answer(&self, request: Request, written: Written) -> Result<Response, Refused> {
        let (mut parts, body) = request.into_parts();
        let body = input::whole(body).await?;
        if may_open_session(&parts) {
            self.check_room().await?;
        }
        let handovers = Arc::new(Handovers::default());
        parts.extensions.insert(Arc::clone(&handovers));
        let request = Request::from_parts(parts, Body::from(body));
        let answer = self.service.handle(request).await;
        Ok(answer.map(|body| Body::new(Told::new(Body::new(body), handovers, written))))
    }

    /// A client that goes without a word leaves its session behind until that is idle for long.
    async fn check_room(&self) -> Result<(), Refused> {
        if self.sessions.sessions.read().await.len() < MAX_SESSIONS {
            return Ok(());
        }
        let error = WireError::new(
            ErrorCode::LimitReached,
            format!("{MAX_SESSIONS} MCP sessions are open here, and that is the most"),
        )
        .hint("end sessions with DELETE, or speak 2026-07-28, which has none");
        Err(error.into())
    }
}

/// Any method at `/mcp`.
pub(super) async fn serve(
    State(site): State<Site>,
    Extension(written): Extension<Written>,
    request: Request,
) -> Response {
    let Some(tools) = &site.tools else {
        return output::no_such_page().await;
    };
    let answer = tools.answer(request, written).await;
    answer.unwrap_or_else(IntoResponse::into_response)
}

/// Any method at the place of the fixtures.
#[cfg(feature = "mcp-fixtures")]
pub(super) async fn serve_fixtures(
    State(site): State<Site>,
    Extension(written): Extension<Written>,
    request: Request,
) -> Response {
    let answer = site.fixtures.answer(request, written).await;
    answer.unwrap_or_else(IntoResponse::into_response)
}

/// Whether this may be the first request of a session: from [`MODERN`] on there are none.
fn may_open_session(request: &Parts) -> bool {
    let header = |name| request.headers.get(name).map(|value| value.as_bytes());
    let is_modern = header("mcp-protocol-version").is_some_and(|revision| revision >= MODERN);
    request.method == Method::POST && header("mcp-session-id").is_none() && !is_modern
}

/// The origins of pages that were loaded from this host: with their port, without which the library
/// would take any.
fn origins(host: &str) -> [String; 2] {
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let (plain, secure) = if has_port { ("", "") } else { (":80", ":443") };
    [
        format!("http://{host}{plain}"),
        format!("https://{host}{secure}"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_a_port() {
        for (host, expected) in [
            (
                "localhost:7000",
                ["http://localhost:7000", "https://localhost:7000"],
            ),
            (
                "hive.example",
                ["http://hive.example:80", "https://hive.example:443"],
            ),
            ("[::1]:7000", ["http://[::1]:7000", "https://[::1]:7000"]),
        ] {
            assert_eq!(origins(host), expected);
        }
    }
}
