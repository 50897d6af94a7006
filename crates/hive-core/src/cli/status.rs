//! `status`: the daemon and what it holds.

use clap::Args;
use hive_wire::{
    Timestamp,
    client::Client,
    host::{HiveInfo, Info},
};

use super::{
    age::age, failure::Failure, json, lifecycle, out::Out, spend::budget_line, table::one_line,
};

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
        if info.defaults.rehearsed {
            out.note("the model is REHEARSED: no key was found, so a script answers");
        }
        if info.agents == 0 {
            out.note("no agents yet: create one with `hive-c0re spawn NAME`");
        }
        Ok(())
    }
}

fn engine(info: &HiveInfo) -> String {
    match info.defaults.engine.as_str() {
        "" => format!("none: {}", one_line(&info.defaults.engine_note)),
        engine => one_line(engine),
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
        (
            "runtime",
            lifecycle::runtime(info.defaults.runtime).to_owned(),
        ),
        ("engine", engine(info)),
    ]);
    if let Some(spent) = &info.spent_today {
        fields.push(("spent", budget_line(spent)));
    }
    if let Some(reason) = &info.paused {
        fields.push(("paused", one_line(reason)));
    }
    fields
}
