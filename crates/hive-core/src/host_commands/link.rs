//! `link`: a one-time link to the dashboard or to an agent's page.

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{Link, OneTimeLink},
};

use super::{Host, storage};
use crate::access::Audience;

pub(super) async fn run(host: Arc<Host>, command: Link) -> Result<OneTimeLink, WireError> {
    let (audience, page) = match command.name {
        None => (Audience::Operator, host.dashboard.clone()),
        Some(name) => {
            let (agent, _) = host.find(name).await?;
            let page = host.page_address(agent.port);
            (Audience::Agent(agent.name), page)
        }
    };
    if command.rotate {
        host.access
            .rotate(&audience)
            .map_err(|error| storage(&error))?;
    }
    let (code, expires_at) = host
        .access
        .new_code(audience)
        .map_err(|error| storage(&error))?;
    Ok(OneTimeLink {
        url: format!("{page}/#code={code}"),
        expires_at,
    })
}
