//! What the fake engine wrote down, as runs of messages.

use std::{fs, path::Path};

use anyhow::Context;
use hive_wire::MessageId;
use serde::Deserialize;

use super::log::{Life, Run};

/// What is read of a line; others hold none of this.
#[derive(Deserialize)]
struct Line {
    pid: Option<u32>,
    argv: Option<Vec<String>>,
    prompt: Option<String>,
    result: Option<bool>,
}

/// Reads the record of an agent's engines: the runs that were about a message, and the engines.
///
/// # Errors
/// When it cannot be read or is no record.
pub(super) fn read(path: &Path) -> anyhow::Result<(Vec<Run>, Vec<Life>)> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> anyhow::Result<(Vec<Run>, Vec<Life>)> {
    let (mut runs, mut lives): (Vec<Run>, Vec<Life>) = (Vec::new(), Vec::new());
    // The run that an engine's next result belongs to; a result without one is that of `/compact`.
    let mut open: Option<(u32, usize)> = None;
    for (number, line) in text.lines().enumerate() {
        // A cut line is that of an engine that was killed while it wrote.
        let Ok(line) = serde_json::from_str::<Line>(line) else {
            continue;
        };
        let Some(pid) = line.pid else { continue };
        if line.argv.is_some() {
            lives.push(Life {
                pid,
                first: number,
                last: number,
            });
        }
        let life = lives.iter_mut().rev().find(|life| life.pid == pid);
        life.context("an engine says something before it began")?
            .last = number;
        if let Some(prompt) = &line.prompt {
            open = None;
            if let Some(run) = run_of(prompt, pid) {
                open = Some((pid, runs.len()));
                runs.push(run);
            }
        }
        if let (Some(good), Some((owner, run))) = (line.result, open)
            && owner == pid
        {
            runs[run].result = Some(good);
        }
    }
    Ok((runs, lives))
}

/// The run that a prompt begins; none for one that is about no message.
fn run_of(prompt: &str, pid: u32) -> Option<Run> {
    // A brief about earlier messages may go before, and holds their bodies.
    let (head, body) = prompt.rsplit_once(" begins · ")?;
    let mut heads = head.lines().rev();
    let first = heads.find_map(|line| line.strip_prefix("Message "))?;
    let (id, rest) = first.split_once(" from ")?;
    let from = rest.split([',', ' ']).next()?.trim_end_matches('.');
    let between = |text: &'_ str, before: &str, after: &str| {
        let (_, rest) = text.split_once(before)?;
        let (between, _) = rest.split_once(after)?;
        Some(between.to_owned())
    };
    let delivery = between(head, "This is delivery ", " of the same message");
    let delivery = delivery.and_then(|number| number.parse().ok());
    Some(Run {
        pid,
        message: MessageId(id.parse().ok()?),
        from: from.to_owned(),
        key: between(body, "!fake plan ", "\n").unwrap_or_default(),
        delivery: delivery.unwrap_or(1),
        is_marked: delivery.is_some() || head.contains("This is the same message "),
        result: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_and_results_become_runs() {
        let text = r#"{"argv":[],"pid":7}
{"prompt":"Message 3 from operator, sent 2026.\n\n--- begins · 1\n!fake plan m1\n---","pid":7,"uuid":"u"}
{"result":true,"pid":7}
{"exit":0}
{"argv":[],"pid":9}
{"prompt":"Message 4 from ada.\nThis is delivery 2 of the same message: x\n--- begins · 2\n!fake plan m2\n","pid":9}
{"prompt":"/compact","pid":9}
{"result":true,"pid":9}
{"prompt":"A brief: Message 3\n!fake plan m1\n\nMessage 4 from ada.\nThis is the same message 4 that did not fit\n--- begins · 3\n!fake plan m2\n","pid":9}
{"result":false,"pid":9}
{"argv":[],"pi"#;
        let (runs, lives) = parse(text).unwrap();
        let run = |pid, id, from: &str, key: &str, delivery, is_marked, result| Run {
            pid,
            message: MessageId(id),
            from: from.to_owned(),
            key: key.to_owned(),
            delivery,
            is_marked,
            result,
        };
        assert_eq!(
            runs,
            [
                run(7, 3, "operator", "m1", 1, false, Some(true)),
                run(9, 4, "ada", "m2", 2, true, None),
                run(9, 4, "ada", "m2", 1, true, Some(false)),
            ]
        );
        assert_eq!((lives[0].pid, lives[0].first, lives[0].last), (7, 0, 2));
        assert_eq!((lives[1].pid, lives[1].first, lives[1].last), (9, 4, 9));
    }
}
