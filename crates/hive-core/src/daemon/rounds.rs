//! Rounds: what is compared with what should be, whether something happened or not.
//!
//! Each agent's own task looks after its process (`supervisor/agent.rs`). The rounds are about what
//! no task looks after: something that runs and belongs to no agent, a socket that somebody
//! removed, what a destroyed agent left in the directory of sockets, an agent without a task, files
//! of reminders that were dealt with. They take no input and change nothing that is as it should be.

use std::{
    fs,
    sync::Arc,
    time::{Duration, SystemTime},
};

use hive_store::sqlite::{AgentRecord, Wanted};
use hive_wire::{AgentName, WireError, host::Runtime};

use crate::{
    host_commands::{Host, destroy},
    spill,
};

/// How often files of old reminders are looked for.
const TIDY: Duration = Duration::from_secs(3600);

/// Begins the rounds, after what an earlier daemon began and did not finish is taken up.
pub(super) fn begin(host: &Arc<Host>, agents: &[AgentRecord]) {
    for agent in agents.iter().filter(|one| one.run.wanted == Wanted::Gone) {
        let finish = destroy::finish(Arc::clone(host), agent.clone());
        host.tasks.spawn(finish);
    }
    host.tasks.spawn(go(Arc::clone(host)));
    host.tasks.spawn(tidy(Arc::clone(host)));
}

/// Goes round until the daemon stops.
async fn go(host: Arc<Host>) {
    loop {
        if let Err(error) = once(&host).await {
            tracing::warn!(%error, "a round was cut short");
        }
        // Cancel-safe: both only wait.
        tokio::select! {
            () = host.stop.cancelled() => return,
            () = tokio::time::sleep(host.config.agents.look_again()) => {}
        }
    }
}

/// Removes, now and then, the files of reminders that were dealt with.
async fn tidy(host: Arc<Host>) {
    loop {
        if let Err(error) = tidy_once(&host).await {
            tracing::warn!(%error, "files of old reminders stay for now");
        }
        // Cancel-safe: both only wait.
        tokio::select! {
            () = host.stop.cancelled() => return,
            () = tokio::time::sleep(TIDY) => {}
        }
    }
}

async fn tidy_once(host: &Arc<Host>) -> Result<(), WireError> {
    let names = host.broker.run(|desk| {
        let names = desk.roster.iter().map(|agent| agent.name.clone());
        Ok(names.collect::<Vec<AgentName>>())
    });
    for name in names.await? {
        let state = host.paths.agent_dirs(&name).state;
        let look = move || (spill::old(&state, SystemTime::now()), state);
        let Ok((mut old, state)) = host.tasks.spawn_blocking(look).await else {
            continue;
        };
        if old.is_empty() {
            continue;
        }
        // Those that are old were written down long ago, so that what names them is found here.
        let ends = host
            .broker
            .run(move |desk| desk.store(|tx| tx.open_reminder_ends(&name, spill::NAMED_WITHIN)));
        for end in ends.await? {
            if let Some(needed) = spill::file_named(&end) {
                old.remove(needed);
            }
        }
        let remove = move || old.iter().for_each(|file| spill::remove(&state, file));
        if let Err(error) = host.tasks.spawn_blocking(remove).await {
            tracing::error!(%error, "the removal of old reminders was cut short");
        }
    }
    Ok(())
}

async fn once(host: &Arc<Host>) -> Result<(), WireError> {
    // What runs is looked at first: an agent is registered before it is started.
    let running = host.supervisor.running().await;
    // No agent comes or goes meanwhile.
    let _alone = host.lifecycle.lock().await;
    let agents = host
        .broker
        .run(|desk| Ok(desk.roster.iter().cloned().collect::<Vec<AgentRecord>>()))
        .await?;
    for (runtime, name) in running {
        let mut agents = agents.iter();
        if !agents.any(|agent| agent.name == name && agent.runtime == runtime) {
            host.supervisor.stop_stray(runtime, &name).await;
        }
    }
    for agent in &agents {
        reopen(host, agent);
        if agent.runtime != Runtime::None && host.supervisor.standing(&agent.name).is_none() {
            host.supervisor.look_after(agent);
        }
        host.supervisor.look(&agent.name);
    }
    remove_old_sockets(host, &agents);
    Ok(())
}

/// Opens a socket that is not where it should be.
fn reopen(host: &Host, agent: &AgentRecord) {
    let socket = host.paths.agent_socket(&agent.name);
    if fs::symlink_metadata(&socket).is_ok() {
        return;
    }
    tracing::warn!(agent = %agent.name, "its socket was gone, and is opened again");
    if let Err(error) = host.open_socket(&agent.name, agent.runtime) {
        tracing::error!(agent = %agent.name, error = %format!("{error:#}"), "cannot open its socket");
    }
}

/// Removes the directories of sockets of agents that are gone.
fn remove_old_sockets(host: &Host, agents: &[AgentRecord]) {
    let Ok(dirs) = fs::read_dir(host.paths.run.join("agents")) else {
        return;
    };
    for dir in dirs.flatten() {
        let name = dir.file_name();
        let Some(Ok(name)) = name.to_str().map(str::parse::<AgentName>) else {
            continue;
        };
        if agents.iter().any(|agent| agent.name == name) {
            continue;
        }
        // It follows no links; only the daemon writes there.
        if let Err(error) = fs::remove_dir_all(dir.path()) {
            tracing::warn!(agent = %name, %error, "cannot remove what is left of its sockets");
        }
    }
}
