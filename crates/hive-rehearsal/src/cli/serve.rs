//! `serve`: the scripted model, until interrupted.

use std::{net::IpAddr, path::PathBuf};

use clap::Args;
use serde_json::json;

use super::{say, signal::Stop};
use crate::{Options, Rehearsal, Scenario};

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The port; 0 for any.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// The address, which must be one of loopback.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// A scenario file, or the name of a built-in one.
    #[arg(long, value_name = "FILE|NAME", default_value = "tour")]
    scenario: String,
    /// Append every request to this file, one JSON object per line, secrets masked.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
}

impl ServeArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let stop = Stop::listen()?;
        let scenario = Scenario::find(&self.scenario)?;
        let name = scenario.name.clone();
        let options = Options {
            host: self.host,
            port: self.port,
            record: self.record,
            // Nobody asks a process what it has seen.
            keep_bytes: 0,
        };
        let rehearsal = Rehearsal::start_with(scenario, options).await?;
        let ready = json!({
            "schema": 1,
            "url": rehearsal.url(),
            "port": rehearsal.port(),
            "scenario": name,
        });
        say(&format!("{ready}\n"))?;
        tracing::info!(url = rehearsal.url(), "this model is rehearsed");
        stop.wait().await;
        rehearsal.stop().await;
        Ok(())
    }
}
