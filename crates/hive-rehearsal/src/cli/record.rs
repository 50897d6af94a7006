//! `record`: a proxy that writes down what a real model answers.

use std::{net::IpAddr, path::PathBuf};

use clap::Args;
use serde_json::json;

use super::{say, signal::Stop};
use crate::proxy::{Proxy, Upstream};

/// Arguments of `record`.
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// The real API, such as `https://api.anthropic.com`.
    #[arg(long, value_name = "URL")]
    upstream: Upstream,
    /// The port; 0 for any.
    #[arg(long, value_name = "N", default_value_t = 0)]
    port: u16,
    /// The address, which must be one of loopback.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// Append every exchange to this file, one JSON object per line, secrets masked.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

impl RecordArgs {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let stop = Stop::listen()?;
        let upstream = self.upstream.to_string();
        let proxy = Proxy::start(self.upstream, self.host, self.port, &self.out)?;
        let ready = json!({
            "schema": 1,
            "url": proxy.url(),
            "port": proxy.port(),
            "upstream": upstream,
        });
        say(&format!("{ready}\n"))?;
        stop.wait().await;
        proxy.stop().await;
        Ok(())
    }
}
