//! `doctor`: checks this machine and this hive, and says what to do about what it finds.
//!
//! A check is a function from [`Facts`] to a [`Finding`], in one list, [`CHECKS`]. Its id is stable:
//! scripts and people look for it. Checks only look; none of them changes or locks anything of a
//! live hive. A note is worth knowing and fails nothing.

mod agents;
mod daemon;
mod files;
mod machine;

use std::time::Duration;

use anstyle::Style;
use clap::Args;
use hive_wire::{
    client::Client,
    host::{HiveInfo, Info, RuntimeStates, TryRuntimes},
};
use serde::Serialize;

use super::{
    Places,
    failure::{Exit, Failure},
    out::{Out, style},
    table::{Cell, Table, one_line},
};

/// How long the daemon may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(5);

/// Every check, in the order they are shown.
pub const CHECKS: &[Check] = &[
    Check::new("root-dir", files::root_dir),
    Check::new("root-owner", files::root_owner),
    Check::new("root-mode", files::root_mode),
    Check::new("disk-space", files::disk_space),
    Check::new("socket-path", files::socket_path),
    Check::new("database", files::database),
    Check::new("daemon", daemon::reachable),
    Check::new("daemon-version", daemon::version),
    Check::new("lock", daemon::lock),
    Check::new("sqlite", daemon::sqlite),
    Check::new("clock", machine::clock),
    Check::new("open-files", machine::open_files),
    Check::new("user-namespaces", machine::user_namespaces),
    Check::new("claude", agents::claude),
    Check::new("runtime", agents::runtime),
    Check::new("other-runtimes", agents::other_runtimes),
    Check::new("engine", agents::engine),
    Check::new("model", agents::model),
    Check::new("config-mode", agents::config_mode),
];

/// One thing that is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    id: &'static str,
    examine: fn(&Facts) -> Finding,
}

impl Check {
    /// A check under a stable id.
    pub const fn new(id: &'static str, examine: fn(&Facts) -> Finding) -> Self {
        Self { id, examine }
    }
}

/// What is known before the first check runs.
#[derive(Debug)]
pub struct Facts {
    /// Where the hive's things lie.
    pub places: Places,
    /// What the daemon says of itself, or why it says nothing.
    pub daemon: Result<HiveInfo, String>,
    /// What it says of its runtimes, when it answers.
    pub runtimes: Option<RuntimeStates>,
}

/// What a check found.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    #[serde(rename = "status")]
    verdict: Verdict,
    measured: String,
    expected: String,
    remedy: String,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    Ok,
    Note,
    Failed,
    Skipped,
}

impl Finding {
    /// It is as it should be when `good`; otherwise `remedy` says what to do.
    pub fn expect(
        good: bool,
        measured: impl Into<String>,
        expected: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            verdict: if good { Verdict::Ok } else { Verdict::Failed },
            measured: measured.into(),
            expected: expected.into(),
            remedy: if good { String::new() } else { remedy.into() },
        }
    }

    /// The same finding, but one that fails nothing.
    #[must_use]
    pub fn as_note(mut self) -> Self {
        if self.verdict == Verdict::Failed {
            self.verdict = Verdict::Note;
        }
        self
    }

    /// It could not be looked at.
    pub fn skipped(why: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Skipped,
            measured: why.into(),
            expected: String::new(),
            remedy: String::new(),
        }
    }
}

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {}

impl DoctorArgs {
    pub(super) async fn run(
        self,
        places: &Places,
        host: &Client,
        out: &mut Out,
    ) -> Result<(), Failure> {
        let daemon = host.call_within(&Info {}, PATIENCE).await.map_err(|error| {
            let failure = Failure::from(error);
            failure
                .report()
                .map_or_else(String::new, |report| report.message.clone())
        });
        let runtimes = match &daemon {
            // Some take a while to be tried.
            Ok(_) => host.call_within(&TryRuntimes {}, 12 * PATIENCE).await.ok(),
            Err(_) => None,
        };
        let facts = Facts {
            places: places.clone(),
            daemon,
            runtimes,
        };
        let results: Vec<Examined> = CHECKS.iter().map(|check| examine(check, &facts)).collect();
        let failed: Vec<&str> = results
            .iter()
            .filter(|result| result.finding.verdict == Verdict::Failed)
            .map(|result| result.id)
            .collect();
        if out.is_json() {
            out.json(Document {
                ok: failed.is_empty(),
                checks: &results,
            })?;
        } else {
            show(&results, out)?;
        }
        if failed.is_empty() {
            return Ok(());
        }
        let (count, names) = (failed.len(), failed.join(", "));
        let message = format!("{count} of {} checks failed: {names}", results.len());
        Err(Failure::new(Exit::Failure, "checks_failed", message)
            .hint("each failed check says what to do"))
    }
}

#[derive(Serialize)]
struct Document<'a> {
    ok: bool,
    checks: &'a [Examined],
}

/// A check with its finding: an element of `checks` in JSON.
#[derive(Serialize)]
struct Examined {
    id: &'static str,
    #[serde(flatten)]
    finding: Finding,
}

fn examine(check: &Check, facts: &Facts) -> Examined {
    Examined {
        id: check.id,
        finding: (check.examine)(facts),
    }
}

fn show(results: &[Examined], out: &mut Out) -> Result<(), Failure> {
    let mut table = Table::new(&["CHECK", "STATUS", "MEASURED", "EXPECTED"]);
    for Examined { id, finding } in results {
        let (word, style) = word(finding.verdict);
        table.row([
            (*id).into(),
            Cell::styled(word, style),
            finding.measured.as_str().into(),
            finding.expected.as_str().into(),
        ]);
    }
    out.table(&table)?;
    for Examined { id, finding } in results {
        if !finding.remedy.is_empty() {
            let (_, style) = word(finding.verdict);
            let id = out.paint(style, id);
            let measured = one_line(&finding.measured);
            out.line(format_args!("\n{id}: {measured}\n  {}", finding.remedy))?;
        }
    }
    Ok(())
}

fn word(verdict: Verdict) -> (&'static str, Style) {
    match verdict {
        Verdict::Ok => ("ok", style::GOOD),
        Verdict::Note => ("note", style::WARN),
        Verdict::Failed => ("failed", style::BAD),
        Verdict::Skipped => ("skipped", style::FAINT),
    }
}

#[cfg(test)]
mod tests;
