//! What fifty agents' reminders and schedules cost while none of them is due.

use std::time::Duration;

use anyhow::{Context as _, Result};
use hive_testkit::hive::TestHive;
use hive_wire::{
    agent::{Remind, Schedule},
    grants::Group,
    host::SetPermissions,
};
use serde::Serialize;

use crate::process::Usage;

const AGENTS: usize = 50;
const REMINDERS: usize = 50;
const SCHEDULES: usize = 20;
/// For what setting them off has caused to die down.
const SETTLE: Duration = Duration::from_secs(3);

#[derive(Debug, Serialize)]
pub(super) struct Waiting {
    pub(super) agents: usize,
    pub(super) reminders: usize,
    pub(super) schedules: usize,
    pub(super) seconds: f64,
    pub(super) cpu_percent: f64,
}

pub(super) async fn run(time: Duration) -> Result<Waiting> {
    let hive = TestHive::start().await?;
    for number in 0..AGENTS {
        let name = format!("a{number}");
        hive.spawn_agent(&name).await?;
        let grant = SetPermissions {
            name: name.parse()?,
            reset: false,
            grant: vec![Group::Scheduling],
            revoke: Vec::new(),
            grant_capabilities: Vec::new(),
            revoke_capabilities: Vec::new(),
            recipients: None,
        };
        hive.host_client().call(&grant).await?;
        let agent = hive.agent_client(&name);
        for later in 0..REMINDERS {
            let remind = Remind {
                message: "later".to_owned(),
                delay_seconds: Some(100_000 + later as u64),
                at_unix_timestamp: None,
                key: None,
            };
            agent.call(&remind).await?;
        }
        for _ in 0..SCHEDULES {
            // The first of January, which a run meets rarely.
            let schedule = Schedule {
                prompt: "a new year".to_owned(),
                cron: Some("0 0 1 1 *".to_owned()),
                ..Schedule::default()
            };
            agent.call(&schedule).await?;
        }
    }
    tokio::time::sleep(SETTLE).await;
    let pid = hive.pid().context("the daemon runs")?;
    let before = Usage::of(pid)?;
    tokio::time::sleep(time).await;
    let used = Usage::of(pid)?.cpu - before.cpu;
    let seconds = time.as_secs_f64();
    Ok(Waiting {
        agents: AGENTS,
        reminders: AGENTS * REMINDERS,
        schedules: AGENTS * SCHEDULES,
        seconds,
        cpu_percent: used.as_secs_f64() / seconds * 100.0,
    })
}
