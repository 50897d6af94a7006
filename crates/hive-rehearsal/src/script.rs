//! Which rule answers a call, and with what.
//!
//! Rules are tried from the first to the last; the first whose conditions hold and which has not
//! answered as often as it may is the one. What no rule answers has a plain answer of its own. The
//! state is counters only, so a scenario is deterministic.

use std::{sync::Arc, time::Duration};

use hyper::header::{HeaderName, HeaderValue};
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    api::error::ApiError,
    ask::{Ask, Purpose},
    ids::Ids,
    scenario::{
        Rule, Scenario, Unmatched,
        answer::{Answer, Pace, StopReason},
        fault::{Break, BreakKind, ErrorKind, Fault},
        limits::{self, Status},
        template::Scene,
        when::{Captured, is_in},
    },
    tokens::{self, Usage},
};

/// A block of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Thinking(String),
    Text(String),
    ToolUse { name: String, input: Value },
}

/// An answer, in neither API's shape.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) ids: Ids,
    pub(crate) model: String,
    pub(crate) blocks: Vec<Block>,
    pub(crate) stop: StopReason,
    pub(crate) usage: Usage,
    /// Whether a stream of chat completions ends with its usage.
    pub(crate) wants_usage: bool,
    pub(crate) pace: Pace,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
}

/// Where and how a streamed answer breaks.
#[derive(Debug, Clone)]
pub(crate) struct Breaking {
    pub(crate) how: BreakKind,
    pub(crate) after_events: Option<usize>,
    pub(crate) error: ApiError,
}

/// What happens to a call.
#[derive(Debug)]
pub(crate) enum Act {
    Reply(Reply),
    Break(Reply, Breaking),
    Refuse(ApiError, Vec<(HeaderName, HeaderValue)>, Duration),
    NoAnswer,
    Refused(Duration),
    ResetConnections(u32),
}

/// What happens to a call, and why.
#[derive(Debug)]
pub(crate) struct Cue {
    pub(crate) call: u64,
    /// The rule; `None` for the plain answer.
    pub(crate) rule: Option<String>,
    pub(crate) act: Act,
}

/// A scenario being played.
#[derive(Debug)]
pub(crate) struct Script {
    scenario: Arc<Scenario>,
    calls: u64,
    counts: Vec<Count>,
}

/// How often a rule matched and answered.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    matched: u64,
    answered: u64,
}

impl Script {
    pub(crate) fn new(scenario: Arc<Scenario>) -> Self {
        let counts = vec![Count::default(); scenario.rules.len()];
        Self {
            scenario,
            calls: 0,
            counts,
        }
    }

    /// Counts a call and decides it.
    pub(crate) fn next(&mut self, ask: &Ask, now: Timestamp) -> Cue {
        self.calls += 1;
        let call = self.calls;
        let scenario = Arc::clone(&self.scenario);
        match self.choose(&scenario, ask, call) {
            Some((rule, nth, captured)) => {
                let scene = Scene {
                    ask,
                    call,
                    nth,
                    captured: &captured,
                };
                Cue {
                    call,
                    rule: Some(rule.name.clone()),
                    act: act(&scenario, rule, &scene, now),
                }
            }
            None => Cue {
                call,
                rule: None,
                act: plain(&scenario, ask, call, now),
            },
        }
    }

    fn choose<'s>(
        &mut self,
        scenario: &'s Scenario,
        ask: &Ask,
        call: u64,
    ) -> Option<(&'s Rule, u64, Captured)> {
        for (rule, count) in scenario.rules.iter().zip(&mut self.counts) {
            if rule.times.is_some_and(|times| count.answered >= times) {
                continue;
            }
            let Some(captured) = rule.when.matches(ask, call) else {
                continue;
            };
            count.matched += 1;
            if is_in(rule.when.nth.as_ref(), count.matched) {
                count.answered += 1;
                return Some((rule, count.matched, captured));
            }
        }
        None
    }
}

fn act(scenario: &Scenario, rule: &Rule, scene: &Scene<'_>, now: Timestamp) -> Act {
    match &rule.fault {
        None => Act::Reply(reply(scenario, &rule.answer, scene, now)),
        Some(Fault::Break(broken)) => Act::Break(
            reply(scenario, &rule.answer, scene, now),
            breaking(broken, scene),
        ),
        Some(Fault::Refusal(refusal)) => {
            let api = scene.ask.api;
            let mut headers = limits::headers(&refusal.limits, api, Status::Rejected, now);
            headers.extend(refusal.headers.0.iter().cloned());
            let message = refusal.message.as_ref().map(|text| text.render(scene));
            let error = ApiError::new(refusal.kind.clone(), message, scene.ask);
            Act::Refuse(error, headers, scenario.pace.delay.0)
        }
        Some(Fault::NoAnswer) => Act::NoAnswer,
        Some(Fault::Refused(time)) => Act::Refused(*time),
        Some(Fault::ResetConnections(connections)) => Act::ResetConnections(*connections),
    }
}

fn breaking(broken: &Break, scene: &Scene<'_>) -> Breaking {
    let message = broken.message.as_ref().map(|text| text.render(scene));
    Breaking {
        how: broken.how,
        after_events: broken.after_events,
        error: ApiError::new(broken.error.clone(), message, scene.ask),
    }
}

fn reply(scenario: &Scenario, answer: &Answer, scene: &Scene<'_>, now: Timestamp) -> Reply {
    let ask = scene.ask;
    let blocks = blocks(scenario, answer, scene);
    let calls_tools = blocks
        .iter()
        .any(|block| matches!(block, Block::ToolUse { .. }));
    let stop = match answer.stop_reason {
        // Tools that were left out leave nothing to stop for.
        Some(StopReason::ToolUse) | None if !calls_tools => StopReason::EndTurn,
        Some(stop) => stop,
        None => StopReason::ToolUse,
    };
    let mut headers = match &answer.limits {
        Some(given) => limits::headers(given, ask.api, Status::Allowed, now),
        None => Vec::new(),
    };
    headers.extend(answer.headers.0.iter().cloned());
    Reply {
        ids: Ids::new(ask.seed, scene.call),
        model: ask.model.clone(),
        usage: tokens::usage(ask.size, &blocks, answer.usage),
        blocks,
        stop,
        wants_usage: ask.wants_usage,
        pace: answer.pace(scenario.pace),
        headers,
    }
}

fn blocks(scenario: &Scenario, answer: &Answer, scene: &Scene<'_>) -> Vec<Block> {
    let ask = scene.ask;
    let mut blocks = Vec::new();
    if let Some(thinking) = answer.thinking.as_ref().filter(|_| ask.wants_thinking) {
        blocks.push(Block::Thinking(thinking.render(scene)));
    }
    if let Some(text) = &answer.text {
        let text = text.render(scene);
        // The real APIs never send an empty block.
        if !text.is_empty() {
            blocks.push(Block::Text(text));
        }
    }
    // A script must not keep a client running for ever.
    if ask.step < scenario.max_steps {
        let calls = answer.tools.iter();
        for call in calls.filter(|call| !call.optional || ask.offers(&call.name)) {
            blocks.push(Block::ToolUse {
                name: call.name.clone(),
                input: call.input.render(scene).unwrap_or_default(),
            });
        }
    }
    blocks
}

/// The answer to what no rule answers.
fn plain(scenario: &Scenario, ask: &Ask, call: u64, now: Timestamp) -> Act {
    let text = match ask.purpose {
        Purpose::Summary => summary(ask),
        Purpose::Side if ask.wants_json => r#"{"title":"A rehearsed conversation"}"#.to_owned(),
        Purpose::Side => "A rehearsed conversation".to_owned(),
        Purpose::Turn => {
            let line = hive_wire::text::shorten(ask.wake.body.lines().next().unwrap_or(""), 80);
            let text = format!(
                "This model is rehearsed, and no rule of the scenario `{}` answers: {line}",
                scenario.name
            );
            if scenario.unmatched == Unmatched::Fail {
                let error = ApiError::new(ErrorKind::BadRequest, Some(text), ask);
                return Act::Refuse(error, Vec::new(), Duration::ZERO);
            }
            text
        }
    };
    let scene = Scene {
        ask,
        call,
        nth: call,
        captured: &Captured::default(),
    };
    Act::Reply(reply(scenario, &Answer::of_text(&text), &scene, now))
}

/// A summary in the form that `claude` asks for.
fn summary(ask: &Ask) -> String {
    format!(
        "<analysis>\nThis model is rehearsed; the conversation had {} bytes.\n</analysis>\n\n\
         <summary>\n1. Primary Request and Intent: the conversation so far was rehearsed.\n\
         2. Pending Tasks: none.\n3. Current Work: waiting for the next message.\n</summary>",
        ask.size.total
    )
}

#[cfg(test)]
mod tests;
