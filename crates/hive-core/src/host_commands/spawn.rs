//! `spawn`: registers an agent and opens its socket. The operator's own spawn needs no approval.

use std::sync::{Arc, PoisonError};

use hive_wire::{
    AgentName, ErrorCode, WireError,
    host::{AgentRow, Runtime, Spawn},
};
use serde_json::json;

use super::{Host, list};
use crate::{
    agent_commands::Caller,
    broker::Desk,
    ports,
    server::{Limits, Listener},
};

pub(super) async fn run(host: Arc<Host>, command: Spawn) -> Result<AgentRow, WireError> {
    let runtime = match command.runtime {
        // The best one there is in this build.
        Runtime::Auto | Runtime::None => Runtime::None,
        other => {
            return Err(WireError::new(
                ErrorCode::Unsupported,
                format!("this build has no runtime `{}`", other.as_str()),
            )
            .hint("use `--runtime none` and run the agent yourself on its socket"));
        }
    };
    let _alone = host.lifecycle.lock().await;
    let (agent, inbox) = host
        .broker
        .run(move |desk| {
            let agent = register(desk, &command.name, command.parent.as_ref(), runtime)?;
            list::with_inbox(desk, agent)
        })
        .await?;
    if let Err(error) = host.open_socket(&agent.name) {
        return Err(WireError::new(
            ErrorCode::Storage,
            format!(
                "`{}` is registered, but its socket cannot be opened: {error}",
                agent.name
            ),
        )
        .hint("mend the directory it lies in; the next start opens it"));
    }
    Ok(list::row(&host, agent, &inbox))
}

fn register(
    desk: &mut Desk<'_>,
    name: &AgentName,
    parent: Option<&AgentName>,
    runtime: Runtime,
) -> Result<hive_store::sqlite::AgentRecord, WireError> {
    desk.roster.check_new(name, parent)?;
    let former = desk.store(|tx| tx.former_port(name))?;
    let port = choose_port(desk, name, former)?;
    let agent = desk.store(|tx| tx.register_agent(name, parent, runtime, port))?;
    desk.roster.insert(agent.clone());
    let data = json!({"runtime": runtime, "parent": parent, "port": port});
    desk.report_agent(name, "agent_spawned", &data);
    Ok(agent)
}

/// The port it had before, if that is free; else the one its name leads to.
fn choose_port(desk: &Desk<'_>, name: &AgentName, former: Option<u16>) -> Result<u16, WireError> {
    let is_taken = |port| desk.roster.has_port(port);
    let is_root = name.as_str() == desk.config.hive.root_agent;
    let wanted = former.or(is_root.then_some(ports::ROOT_AGENT_PORT));
    if let Some(port) = wanted.filter(|port| !is_taken(*port)) {
        return Ok(port);
    }
    let range = &desk.config.dashboard.agent_ports.0;
    ports::assign(name, range, is_taken).ok_or_else(|| {
        WireError::new(
            ErrorCode::LimitReached,
            format!(
                "every port from {} to {} is taken",
                range.start(),
                range.end()
            ),
        )
        .hint("widen `dashboard.agent_ports` in hive.toml")
    })
}

impl Host {
    /// Listens on an agent's socket. Idempotent: the socket of an earlier daemon is replaced (C13).
    pub(crate) fn open_socket(&self, name: &AgentName) -> std::io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;
        let dir = self.paths.agent_run(name);
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        let caller = Caller {
            name: name.clone(),
            broker: self.broker.clone(),
        };
        let limits = Limits {
            connections: self.config.limits.connections_per_agent,
            line_time: self.config.limits.line_time(),
            ..Limits::default()
        };
        let _on_brokers_thread = self.broker.enter();
        let listener = Listener::start(
            &self.paths.agent_socket(name),
            caller,
            limits,
            &self.tasks,
            self.stop.child_token(),
        )?;
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.insert(name.clone(), listener);
        Ok(())
    }
}
