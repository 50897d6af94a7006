//! The agents' ports: each agent's page is served by the host, on a port of its own.
//!
//! A port that cannot be had costs the page until it is free, never the agent: it has its socket
//! and its mail.

use std::{
    net::{SocketAddr, TcpListener as StdListener},
    sync::{Arc, PoisonError},
    time::Duration,
};

use hive_wire::AgentName;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    access::Audience,
    host_commands::Host,
    http::{self, Limits, Site},
};

/// The most connections to one port.
const CONNECTIONS: usize = 128;
/// How often a port that is taken is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// The page of one agent.
#[derive(Debug)]
pub(crate) struct Page {
    /// Ends it.
    stop: CancellationToken,
    /// Says that nobody listens on its port any more.
    closed: CancellationToken,
}

/// Listens on a port, if it is free.
pub(crate) fn try_listen(address: SocketAddr) -> Option<StdListener> {
    let listener = StdListener::bind(address).ok()?;
    listener.set_nonblocking(true).ok()?;
    Some(listener)
}

impl Host {
    /// Serves an agent's page on a listener, or on its port as soon as that can be had.
    pub(crate) fn open_page(
        self: &Arc<Self>,
        name: &AgentName,
        port: u16,
        listener: Option<StdListener>,
    ) {
        let page = Page {
            stop: self.stop.child_token(),
            closed: CancellationToken::new(),
        };
        let (stop, closed) = (page.stop.clone(), page.closed.clone().drop_guard());
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(earlier) = pages.insert(name.clone(), page) {
            earlier.stop.cancel();
        }
        drop(pages);
        let address = SocketAddr::new(self.config.dashboard.bind, port);
        match listener.or_else(|| try_listen(address)) {
            Some(listener) => self.serve_page(name, address, listener, stop, closed),
            None => {
                tracing::warn!(
                    agent = %name, %address,
                    "somebody listens there: the agent's page waits until the port is free"
                );
                let wait = Arc::clone(self).wait_for_port(name.clone(), address, stop, closed);
                self.tasks.spawn(wait);
            }
        }
    }

    async fn wait_for_port(
        self: Arc<Self>,
        name: AgentName,
        address: SocketAddr,
        stop: CancellationToken,
        closed: DropGuard,
    ) {
        loop {
            // Cancel-safe: both only wait.
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(TRY_AGAIN) => {}
            }
            if let Some(listener) = try_listen(address) {
                tracing::info!(agent = %name, %address, "the agent's page is there now");
                return self.serve_page(&name, address, listener, stop, closed);
            }
        }
    }

    fn serve_page(
        self: &Arc<Self>,
        name: &AgentName,
        address: SocketAddr,
        listener: StdListener,
        stop: CancellationToken,
        closed: DropGuard,
    ) {
        let listener = match TcpListener::from_std(listener) {
            Ok(listener) => listener,
            Err(error) => {
                tracing::warn!(agent = %name, %address, %error, "cannot serve an agent's page");
                return;
            }
        };
        let audience = Audience::Agent(name.clone());
        let site = Site::new(self, &self.metrics, audience, address, &stop);
        let limits = self.http_limits();
        http::serve(listener, site, limits, &self.tasks, stop, closed);
    }

    /// Serves the dashboard.
    pub(crate) fn serve_dashboard(self: &Arc<Self>, listener: TcpListener, address: SocketAddr) {
        let audience = Audience::Operator;
        let site = Site::new(self, &self.metrics, audience, address, &self.stop);
        let limits = self.http_limits();
        let closed = CancellationToken::new().drop_guard();
        http::serve(
            listener,
            site,
            limits,
            &self.tasks,
            self.stop.clone(),
            closed,
        );
    }

    /// Closes an agent's page, and ends the sessions on it. When this returns, nobody listens on
    /// its port.
    pub(crate) async fn close_page(&self, name: &AgentName) {
        let page = {
            let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
            pages.remove(name)
        };
        if let Some(page) = page {
            page.stop.cancel();
            page.closed.cancelled().await;
        }
        if let Err(error) = self.access.rotate(&Audience::Agent(name.clone())) {
            tracing::warn!(agent = %name, %error, "cannot end the sessions on a page");
        }
    }

    /// Where a page on this port is.
    pub(crate) fn page_address(&self, port: u16) -> String {
        format!(
            "http://{}",
            SocketAddr::new(self.config.dashboard.bind, port)
        )
    }

    /// How much every port takes on.
    pub(crate) fn http_limits(&self) -> Limits {
        Limits {
            connections: CONNECTIONS,
            patience: self.config.limits.line_time(),
        }
    }
}
