//! HTTP: the dashboard's port and one port for each agent, all served by the host.
//!
//! Deny by default. Before anything is routed, `Host` and `Origin` must be this port's own
//! (`guard`); everything under `/api`, `/mcp` and `/metrics` needs a token of the port's audience
//! (`auth`), but for `POST /api/login`. No cookie, no CORS header, nothing of an agent's in a
//! header. Every route is an entry of a table that also makes the OpenAPI document, so that none
//! can be forgotten there.
//!
//! The actions are those of the admin socket: a route reads its input, calls the same function,
//! and writes the answer in the wire's own shape.

mod actions;
mod auth;
mod beneath;
mod call;
mod etag;
mod events;
mod files;
mod guard;
mod input;
mod log;
mod login;
mod mcp;
mod metrics;
mod notifier;
mod once;
mod openapi;
mod output;
mod own;
mod past;
mod patience;
mod ready;
mod reminders;
mod render;
mod schemas;
mod serve;
mod shared;
mod shell;
mod state;
mod stats;
mod table;
mod tasks;
mod traffic;
mod written;

use std::{net::SocketAddr, sync::Arc};

use axum::{Router, middleware};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{access::Audience, host_commands::Host, metrics::Metrics};

pub(crate) use patience::Patient;
pub(crate) use serve::{Limits, serve};

/// The most event streams on one port at a time.
const MAX_STREAMS: usize = 100;

/// One port.
#[derive(Clone)]
pub(crate) struct Site {
    host: Arc<Host>,
    metrics: Arc<Metrics>,
    /// Whose page this is.
    audience: Arc<Audience>,
    /// The values of `Host` that mean this port.
    hosts: Arc<[String]>,
    /// Seats for event streams.
    streams: Arc<Semaphore>,
    /// The tools of the agent whose page this is.
    tools: Option<Arc<mcp::Mount>>,
    /// Answers that may be asked for again.
    answers: Arc<once::Answers>,
    /// Pages of events that several readers want.
    shared: Arc<shared::Shared>,
    /// What was asked so far.
    traffic: Arc<traffic::Traffic>,
    #[cfg(feature = "mcp-fixtures")]
    fixtures: Arc<mcp::Mount<mcp::fixtures::Fixtures>>,
}

impl Site {
    /// The site at `address` for this audience, until `stop`.
    pub(crate) fn new(
        host: &Arc<Host>,
        metrics: &Arc<Metrics>,
        audience: Audience,
        address: SocketAddr,
        stop: &CancellationToken,
    ) -> Self {
        let hosts = guard::own_hosts(address, &host.config.dashboard.hosts);
        let tools = match &audience {
            Audience::Operator => None,
            Audience::Agent(name) => Some(Arc::new(mcp::Mount::new(host, name, &hosts, stop))),
        };
        Self {
            #[cfg(feature = "mcp-fixtures")]
            fixtures: Arc::new(mcp::Mount::fixtures(&hosts, stop)),
            host: Arc::clone(host),
            metrics: Arc::clone(metrics),
            audience: Arc::new(audience),
            hosts,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            tools,
            answers: Arc::default(),
            shared: Arc::default(),
            traffic: Arc::default(),
        }
    }
}

/// All routes of a site.
pub(crate) fn router(site: Site) -> Router {
    let mut router = Router::new();
    for route in table::routes(&site.audience) {
        router = router.route(&route.path, route.handler);
    }
    router
        .fallback(output::no_such_page)
        .method_not_allowed_fallback(output::no_such_method)
        .layer(middleware::from_fn(etag::compare))
        .layer(middleware::from_fn_with_state(site.clone(), once::do_once))
        .layer(middleware::from_fn_with_state(site.clone(), traffic::count))
        .layer(middleware::from_fn_with_state(
            site.clone(),
            auth::require_token,
        ))
        .layer(middleware::from_fn_with_state(
            site.clone(),
            guard::require_own_origin,
        ))
        .layer(middleware::map_response(guard::add_headers))
        .with_state(site)
}
