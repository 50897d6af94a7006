//! `logs [NAME]`: the newest events, oldest first.

use clap::Args;
use hive_wire::{
    client::Client,
    host::{EventRow, Events},
};

use super::{
    failure::Failure,
    json,
    out::{Out, style},
    table::{cut, one_line},
};

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Only events about this agent (or `operator`).
    name: Option<String>,
    /// At most so many.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: u32,
}

impl LogsArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        let page = host
            .call(&Events {
                limit: Some(self.limit),
                about: self.name,
                ..Events::default()
            })
            .await?;
        if out.is_json() {
            return out.json(json::EventLog::from(&page));
        }
        if page.events.is_empty() {
            out.note("no events yet: follow new ones with `hive-c0re tail`");
        }
        for event in &page.events {
            show(event, out)?;
        }
        Ok(())
    }
}

/// Prints one event on one line, cut to the terminal.
pub(super) fn show(event: &EventRow, out: &mut Out) -> Result<(), Failure> {
    let at = event.at.to_string();
    let (about, kind) = (one_line(&event.about), one_line(&event.kind));
    let plain = format!("{at} {about:9} {kind} ");
    let data = match &event.data {
        serde_json::Value::Null => String::new(),
        data => one_line(&data.to_string()),
    };
    let room = out.width().saturating_sub(plain.chars().count());
    let at = out.paint(style::FAINT, &at);
    let kind = out.paint(style::BUSY, &kind);
    let data = cut(&data, room);
    out.line(
        format_args!("{at} {about:9} {kind} {data}")
            .to_string()
            .trim_end(),
    )
}
