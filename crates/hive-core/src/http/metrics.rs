//! `GET /metrics`: what the daemon counts, how the hive stands, and what it costs, for Prometheus.
//!
//! Names follow Prometheus' own habits, so that the usual panels of Grafana find them:
//! `process_*`, `http_requests_total`, and `hive_*` with the unit at the end of the name.

use std::{collections::BTreeMap, fmt::Write, fs, sync::Arc};

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use hive_store::sqlite::AgentRecord;
use hive_wire::{
    WireError,
    agent::InboxStatus,
    host::{AgentState, DayTotal, Info, TurnTotals},
};

use super::Site;
use crate::host_commands::{Host, info, list, turn_totals};

/// How a text of metrics ends; ours goes before it.
const END: &str = "# EOF\n";
/// The clock's ticks in a second, as every Linux has them.
const TICKS: f64 = 100.0;

/// States that are always there, at zero if need be: a graph needs no holes.
const STATES: [AgentState; 10] = [
    AgentState::External,
    AgentState::Starting,
    AgentState::Idle,
    AgentState::Thinking,
    AgentState::Compacting,
    AgentState::RateLimited,
    AgentState::NeedsLogin,
    AgentState::Paused,
    AgentState::Stopped,
    AgentState::Failed,
];

pub(super) async fn show(State(site): State<Site>) -> Response {
    let mut text = site.metrics.render();
    let more = match gather(&site.host).await {
        Ok(standing) => standing,
        // Half of the figures are better than none: the broker's own are there.
        Err(error) => format!("# {}\n", error.message.replace('\n', " ")),
    };
    if text.ends_with(END) {
        text.truncate(text.len() - END.len());
    }
    text += &more;
    text += &site.traffic.render();
    text += END;
    let kind = [(
        header::CONTENT_TYPE,
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    )];
    (kind, text).into_response()
}

async fn gather(host: &Arc<Host>) -> Result<String, WireError> {
    let about = info::run(Arc::clone(host), Info {}).await?;
    let agents = list::everybody(host).await?;
    let today = TurnTotals {
        name: None,
        days: 1,
    };
    let totals = turn_totals::run(Arc::clone(host), today).await?.totals;
    let mut page = Page::default();
    page.family("hive_build", "info", "What is running");
    page.line("hive_build_info", &[("version", &about.version)], 1.0);
    page.gauge(
        "hive_undelivered_messages",
        "Messages that wait or are held",
        about.undelivered.into(),
    );
    page.gauge(
        "hive_dead_letters",
        "Dead letters that wait for the operator",
        about.dead.into(),
    );

    fleet(host, &mut page, agents);
    spent(&mut page, &totals);
    page.gauge(
        "hive_events_lost",
        "Events that the log had no room for",
        count(host.events.lost()),
    );
    page.process(host);
    Ok(page.text)
}

/// Agents by state, and what waits for each.
fn fleet(host: &Host, page: &mut Page, agents: Vec<(AgentRecord, InboxStatus)>) {
    let mut states: BTreeMap<&str, u32> = BTreeMap::new();
    for state in STATES {
        states.insert(state.as_str(), 0);
    }
    page.family(
        "hive_inbox_messages",
        "gauge",
        "Messages that wait or are held, by agent",
    );
    for (agent, inbox) in agents {
        let waiting = f64::from(inbox.unread + inbox.inflight);
        page.line(
            "hive_inbox_messages",
            &[("agent", agent.name.as_str())],
            waiting,
        );
        let row = list::row(host, agent, &inbox);
        *states.entry(row.state.as_str()).or_default() += 1;
    }
    page.family("hive_agents", "gauge", "Agents, by state");
    for (state, count) in states {
        page.line("hive_agents", &[("state", state)], count.into());
    }
}

/// What the turns of today come to.
fn spent(page: &mut Page, totals: &[DayTotal]) {
    for (name, help, value) in [
        (
            "hive_turns_today",
            "Turns since midnight UTC, by agent",
            Figure::Turns,
        ),
        (
            "hive_turns_failed_today",
            "Those that failed",
            Figure::Failed,
        ),
        ("hive_cost_today_dollars", "What they cost", Figure::Cost),
        (
            "hive_tokens_today",
            "Tokens read and written since midnight UTC, by agent",
            Figure::Tokens,
        ),
    ] {
        page.family(name, "gauge", help);
        for total in totals {
            let labels = [("agent", total.agent.as_str())];
            page.line(name, &labels, value.of(total));
        }
    }
}

#[derive(Clone, Copy)]
enum Figure {
    Turns,
    Failed,
    Cost,
    Tokens,
}

impl Figure {
    fn of(self, total: &DayTotal) -> f64 {
        match self {
            Self::Turns => count(total.turns),
            Self::Failed => count(total.failed),
            Self::Cost => count(total.cost_micro_usd) / 1e6,
            Self::Tokens => count(
                total.input_tokens
                    + total.output_tokens
                    + total.cache_read_tokens
                    + total.cache_creation_tokens,
            ),
        }
    }
}

/// A count as a figure; beyond 2^53 the last digits do not matter.
#[expect(clippy::cast_precision_loss, reason = "a figure on a graph")]
fn count(value: u64) -> f64 {
    value as f64
}

/// Metrics as text.
#[derive(Default)]
pub(super) struct Page {
    pub(super) text: String,
}

impl Page {
    /// Begins a family.
    pub(super) fn family(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.text, "# HELP {name} {help}.\n# TYPE {name} {kind}")
            .expect("a string takes everything");
    }

    /// One sample. Labels are names of agents and words of ours: nothing in them needs escaping.
    pub(super) fn line(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(key, value)| format!("{key}=\"{value}\""))
            .collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(","))
        };
        writeln!(self.text, "{name}{labels} {value}").expect("a string takes everything");
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.family(name, "gauge", help);
        self.line(name, &[], value);
    }

    /// What every exporter says of its own process.
    fn process(&mut self, host: &Host) {
        #[expect(clippy::cast_precision_loss, reason = "a time in seconds")]
        let started = host.started_at.millis() as f64 / 1000.0;
        self.gauge(
            "process_start_time_seconds",
            "When the daemon started",
            started,
        );
        let fds = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        self.gauge(
            "process_open_fds",
            "Open file descriptors",
            count(fds as u64),
        );
        let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // The second field is a name in parentheses, which may hold anything.
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let field = |place: usize| {
            fields
                .get(place)
                .and_then(|field| field.parse::<u64>().ok())
                .unwrap_or(0)
        };
        self.family("process_cpu_seconds", "counter", "Time on a processor");
        self.line(
            "process_cpu_seconds_total",
            &[],
            count(field(11) + field(12)) / TICKS,
        );
        let page = rustix::param::page_size() as u64;
        self.gauge(
            "process_resident_memory_bytes",
            "Memory in use",
            count(field(21) * page),
        );
        self.gauge(
            "process_virtual_memory_bytes",
            "Memory mapped",
            count(field(20)),
        );
    }
}
