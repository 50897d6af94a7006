//! `logs [NAME]`: the newest events, oldest first, or what the agent's harness wrote.

use clap::Args;
use hive_wire::{
    client::Client,
    host::{EventRow, Events, ReadOutput},
};
use serde::Serialize;

use super::{
    failure::{Exit, Failure},
    json,
    live::{self, Line},
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
    /// What the agent's harness wrote to stdout and stderr, instead of events.
    #[arg(long, requires = "name", conflicts_with = "limit")]
    output: bool,
}

impl LogsArgs {
    pub(super) async fn run(self, host: &Client, out: &mut Out) -> Result<(), Failure> {
        if let (true, Some(name)) = (self.output, &self.name) {
            return show_output(name, host, out).await;
        }
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

async fn show_output(name: &str, host: &Client, out: &mut Out) -> Result<(), Failure> {
    let name = name.parse().map_err(|error| {
        Failure::new(
            Exit::Usage,
            "usage",
            format!("`{name}` is no agent: {error}"),
        )
    })?;
    let read = ReadOutput {
        name,
        max_bytes: None,
    };
    let output = host.call(&read).await?.output;
    if out.is_json() {
        return out.json(OutputDocument { output: &output });
    }
    if output.is_empty() {
        out.note("it wrote nothing yet");
    }
    for line in output.lines() {
        out.line(one_line(line))?;
    }
    Ok(())
}

#[derive(Serialize)]
struct OutputDocument<'a> {
    output: &'a str,
}

/// Prints one event, each of its lines cut to the terminal.
pub(super) fn show(event: &EventRow, out: &mut Out) -> Result<(), Failure> {
    if let Some(lines) = live::lines(event) {
        return show_live(event, &lines, out);
    }
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

/// Prints what a harness told of, with the time of day and whose it is.
fn show_live(event: &EventRow, lines: &[Line], out: &mut Out) -> Result<(), Failure> {
    let at = event.at.to_string();
    let time = at.get(11..19).unwrap_or_default();
    let about = one_line(&event.about);
    let head = format!("{time} {about:9} ");
    let room = out.width().saturating_sub(head.chars().count());
    for line in lines {
        let text = cut(&one_line(&line.text), room);
        let (head, text) = (out.paint(style::FAINT, &head), out.paint(line.style, &text));
        out.line(format!("{head}{text}").trim_end())?;
    }
    Ok(())
}
