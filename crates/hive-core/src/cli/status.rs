//! `status`: the daemon and what it holds.

use clap::Args;
use hive_wire::{
    Timestamp,
    client::Client,
    host::{HiveInfo, Info},
};

use super::{age::age, failure::Failure, json, out::Out, table::one_line};

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct StatusArgs {}

impl StatusArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let info = host.call(&Info {}).await?;
        if out.is_json() {
            return out.json(json::Status::from(&info));
        }
        out.fields(&fields(&info))?;
        if info.dead > 0 {
            out.note("dead letters wait for you: see them with `hive-c0re dead`");
        }
        if info.agents == 0 {
            out.note("no agents yet: create one with `hive-c0re spawn NAME`");
        }
        Ok(())
    }
}

fn fields(info: &HiveInfo) -> Vec<(&'static str, String)> {
    let up = age(info.started_at, Timestamp::now());
    let mut fields = vec![(
        "daemon",
        format!("{}, pid {}, up {up}", one_line(&info.version), info.pid),
    )];
    for (name, value) in [("hive", &info.hive), ("swarm", &info.swarm)] {
        if let Some(value) = value {
            fields.push((name, one_line(value)));
        }
    }
    fields.extend([
        ("root", one_line(&info.root)),
        ("dashboard", one_line(&info.dashboard)),
        ("agents", info.agents.to_string()),
        ("undelivered", info.undelivered.to_string()),
        ("dead", info.dead.to_string()),
    ]);
    fields
}
