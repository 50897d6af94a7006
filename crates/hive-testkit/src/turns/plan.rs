//! What an engine is told to do with a message, run by run: the faults of a campaign.
//!
//! A plan travels in the message's own body, so that it is the same whoever delivers it and however
//! often. Its form is described in `src/bin/fake-engine/main.rs`.

use std::fmt::Write;

use crate::rng::Rng;

/// How many of a hundred messages have a run that does not go well.
const FAULTY_PERCENT: u64 = 30;
/// How many of a thousand messages never have one that does.
const POISON_PERMILLE: u64 = 8;

/// Steps of one run that ends well.
const GOOD: [&[&str]; 8] = [
    &["init", "say ok", "result ok"],
    &["init", "tool Read 20", "say ok", "result ok"],
    &["init", "sleep 60", "result ok"],
    &["garbage", "init", "stderr a word", "result ok"],
    &["init", "flood 300", "result ok"],
    &["init", "long 300000", "result ok"],
    // Full to the watermark: notes and a compaction follow the ack.
    &["init", "context 160000", "say much", "result ok"],
    // What a tool left running.
    &["init", "child", "result ok"],
];

/// Steps of one run that does not, or only just.
const FAULTS: [&[&str]; 14] = [
    &["init", "error 500 server_error api_error Internal"],
    &["init", "error 529 overloaded api_error Overloaded"],
    &["error - unknown api_error Connection refused"],
    &["init", "limit 1"],
    &["init", "error 429 rate_limit api_error Too many requests"],
    &[
        "init",
        "error 401 authentication_failed api_error Invalid key",
    ],
    &[
        "init",
        "error 400 invalid_request prompt_too_long Prompt is too long",
    ],
    &["init", "say half", "exit 1"],
    &["exit 0"],
    &["init", "say half", "die KILL"],
    &[
        "init",
        "unended {\"type\":\"result\",\"subtype\":\"succ",
        "exit 0",
    ],
    &["init", "ignore TERM INT", "hang"],
    &["init", "result ok", "exit 3"],
    // Stays after its result.
    &["init", "stay", "result ok"],
];

/// The body of a message: its own name and the plan of its runs.
pub(super) fn body(key: &str, rng: &mut Rng) -> String {
    let mut text = format!("This is {key}.\n!fake plan {key}\n");
    let mut run = |prefix: String, steps: &[&str]| {
        for step in steps {
            writeln!(text, "!fake {prefix}{step}").expect("writing to a string cannot fail");
        }
    };
    if rng.draw() % 1000 < POISON_PERMILLE {
        run(String::new(), &["init", "say half", "exit 1"]);
        return text;
    }
    if rng.percent(FAULTY_PERCENT) {
        let faults = rng.within(1..3);
        for number in 1..=faults {
            run(format!("{number}: "), rng.pick::<&[&str]>(&FAULTS));
        }
    }
    // Most runs are plain, so that a campaign is about the loop and not about the engine.
    let good = if rng.percent(50) {
        GOOD[0]
    } else {
        *rng.pick::<&[&str]>(&GOOD)
    };
    run(String::new(), good);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_plans_and_every_fault_comes_up() {
        let plans = |seed| {
            let mut rng = Rng::new(seed);
            let bodies = (0..2_000).map(|number| body(&format!("m{number}"), &mut rng));
            bodies.collect::<Vec<_>>()
        };
        let all = plans(7);
        assert_eq!(all, plans(7));
        let text = all.concat();
        for steps in FAULTS.iter().chain(&GOOD) {
            let last = steps.last().unwrap();
            assert!(text.contains(last), "{last} never comes up");
        }
        assert!(
            all[0].starts_with("This is m0.\n!fake plan m0\n"),
            "{}",
            all[0]
        );
    }
}
