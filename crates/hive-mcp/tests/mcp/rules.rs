//! The numbers in docs/mcp.md are those that hold: they are compared with the constants, and where
//! the host keeps those to itself, the real daemon is tried at the limit and one beyond.

use std::fs;

use hive_testkit::hive::TestHive;
use hive_wire::{agent, approval, report, tools};
use serde_json::{Value, json};

use crate::client::{Mcp, hive, options, wire};

const DOC: &str = include_str!("../../../../docs/mcp.md");
/// The defaults of `limits.…`, which nothing but the daemon reads.
const HOST_CONFIG: &str = include_str!("../../../hive-core/src/config.rs");

const KIB: usize = 1024;

/// The text from a heading to the next one.
fn section(heading: &str) -> &'static str {
    let (_, rest) = DOC
        .split_once(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("docs/mcp.md has no heading {heading:?}"));
    rest.split("\n##").next().unwrap()
}

/// The number in a sentence of a section, where `{}` stands for it.
fn stated(heading: &str, sentence: &str) -> usize {
    let (before, after) = sentence.split_once("{}").unwrap();
    let mut places = section(heading).split(before).skip(1);
    let number = places.find_map(|place| {
        let end = place.find(|c: char| !c.is_ascii_digit())?;
        let (number, rest) = place.split_at(end);
        rest.starts_with(after).then(|| number.parse().ok())?
    });
    number.unwrap_or_else(|| panic!("docs/mcp.md does not say {sentence:?} at {heading:?}"))
}

#[test]
fn the_numbers_are_those_of_the_wire() {
    let number = |small: u32| usize::try_from(small).unwrap();
    for (heading, sentence, limit) in [
        (
            "### `send`",
            "the text, at most {} KiB",
            agent::MAX_BODY / KIB,
        ),
        (
            "### `send`",
            "`body` has at most {} KiB",
            agent::MAX_BODY / KIB,
        ),
        (
            "### `recv`",
            "first one, at most {} |",
            number(agent::MAX_WAIT_SECONDS),
        ),
        (
            "### `recv`",
            "how many to take, at most {} |",
            number(agent::MAX_BATCH),
        ),
        (
            "### `remind`",
            "kept whole and has at most {} KiB",
            agent::MAX_BODY / KIB,
        ),
        (
            "### `set_status`",
            "one line of at most {} characters",
            report::MAX_STATUS,
        ),
        (
            "### `request_spawn`",
            "`agent.toml`, at most {} KiB",
            approval::MAX_AGENT_CONFIG / KIB,
        ),
        (
            "## Approvals",
            "a `reason` has at most {} bytes",
            approval::MAX_NOTE,
        ),
        (
            "## Scheduling",
            "at least {} seconds apart",
            number(tools::MIN_INTERVAL_SECONDS),
        ),
        (
            "### `schedule`",
            "what it says, at most {} KiB",
            tools::MAX_PROMPT / KIB,
        ),
        ("### `get_logs`", "at most {} |", number(tools::MAX_LOG)),
    ] {
        assert_eq!(stated(heading, sentence), limit, "{heading}: {sentence}");
    }
}

#[test]
fn the_numbers_are_the_defaults_of_the_host() {
    for (heading, sentence, setting) in [
        (
            "### `send`",
            "An inbox in which {} messages wait",
            "inbox_depth",
        ),
        ("### `send`", "change things {} times at once", "send_burst"),
        ("### `send`", "and {} times a minute", "sends_per_minute"),
        ("### `ask`", "at most {} questions", "questions_per_agent"),
        (
            "### `remind`",
            "at most {} reminders",
            "reminders_per_agent",
        ),
        ("## Approvals", "At most {} requests", "approvals_per_agent"),
        (
            "## Scheduling",
            "At most {} schedules",
            "schedules_per_agent",
        ),
    ] {
        let name = format!("`limits.{setting}`");
        assert!(section(heading).contains(&name), "{heading}: {name}");
        let defaults = HOST_CONFIG.lines().filter_map(|line| {
            let value = line.trim().strip_prefix(setting)?.strip_prefix(": ")?;
            value.trim_end_matches(',').replace('_', "").parse().ok()
        });
        let defaults: Vec<usize> = defaults.collect();
        assert_eq!(defaults, [stated(heading, sentence)], "{setting}");
    }
}

async fn ada(hive: &TestHive) -> Mcp {
    Mcp::shaken(&options(hive), "2025-11-25").await
}

/// Calls a tool with what just fits, and with what just does not.
async fn fits(ada: &mut Mcp, tool: &str, (last, beyond): (Value, Value)) {
    let said = ada.failure(tool, beyond).await;
    let done = ada.call(tool, last).await;
    assert_ne!(done["isError"], true, "{tool}: {done}, after {said}");
}

#[tokio::test]
async fn m4_m5_questions_and_answers_are_as_long_as_the_docs_say() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    let longest = stated("### `ask`", "have at most {} KiB") * KIB;
    let question = |extra: usize| json!({"question": "x".repeat(longest + extra)});
    fits(&mut ada, "ask", (question(0), question(1))).await;
    let options = |extra: usize| {
        let half = "x".repeat(longest / 2);
        json!({"question": "?", "options": [half, half, "y".repeat(extra)]})
    };
    fits(&mut ada, "ask", (options(0), options(1))).await;
    let most = stated("### `ask`", "at most {} `options`");
    let options = |extra: usize| json!({"question": "?", "options": vec!["x"; most + extra]});
    fits(&mut ada, "ask", (options(0), options(1))).await;

    let asked = agent::Ask {
        question: "Is it done?".to_owned(),
        options: Vec::new(),
        multi: false,
        ttl_seconds: None,
        to: Some("ada".to_owned()),
        key: None,
        wait: false,
    };
    let question = wire(&hive, "bob", asked).await.question_id.0;
    let longest = stated("### `answer`", "`answer` has at most {} KiB") * KIB;
    let answer =
        |extra: usize| json!({"question_id": question, "answer": "x".repeat(longest + extra)});
    fits(&mut ada, "answer", (answer(0), answer(1))).await;
}

#[tokio::test]
async fn m4_m8_as_many_questions_and_reminders_are_open_as_the_docs_say() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    let question = json!({"question": "?"});
    let reminder = json!({"message": "!", "delay_seconds": 1_000_000});
    for (tool, args, most) in [
        ("ask", question, stated("### `ask`", "at most {} questions")),
        (
            "remind",
            reminder,
            stated("### `remind`", "at most {} reminders"),
        ),
    ] {
        for _ in 0..most {
            ada.ok(tool, args.clone()).await;
        }
        let said = ada.failure(tool, args).await;
        assert!(said.contains(&most.to_string()), "{said}");
    }
}

#[tokio::test]
async fn m8_reminders_lie_as_far_ahead_and_are_as_long_as_the_docs_say() {
    let hive = hive().await;
    let mut ada = ada(&hive).await;
    let seconds = stated("### `remind`", "which is {} days") * 24 * 60 * 60;
    let ahead = |extra: usize| json!({"message": "!", "delay_seconds": seconds + extra});
    fits(&mut ada, "remind", (ahead(0), ahead(1))).await;

    let state = hive.root().join("state/agents/ada/state");
    fs::create_dir_all(&state).unwrap();
    let long = stated("### `remind`", "A `message` of more than {} KiB") * KIB;
    for (extra, files) in [(0, 0), (1, 1)] {
        let message = "x".repeat(long + extra);
        let args = json!({"message": message, "delay_seconds": 1_000});
        ada.ok("remind", args).await;
        let found = fs::read_dir(state.join("reminders"));
        assert_eq!(found.into_iter().flatten().count(), files, "{extra}");
    }
}
