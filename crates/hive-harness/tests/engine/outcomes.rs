//! T6, T7, T11, T20: what an ended turn means. Every transcript of the real CLI has its row.

use std::{collections::BTreeSet, path::Path};

use hive_harness::engine::{
    Purpose, Stopped,
    outcome::{TurnOutcome, classify},
};
use hive_wire::Timestamp;

use crate::rig::{Rig, WAYS, Way, fake, run};

/// What a row expects: the outcome's word, and a part of its text.
type Row = (&'static str, &'static str, &'static str);

/// Every transcript in `fixtures/transcripts`.
#[rustfmt::skip]
const TRANSCRIPTS: &[Row] = &[
    ("a04-off-next",                 "too_long",     ""),
    ("b-178000-b",                   "too_long",     ""),
    ("b-recover-compact",            "compacted",    ""),
    ("bg1",                          "ok",           ""),
    ("bg3-timeout",                  "ok",           ""),
    ("c03-compact",                  "compacted",    ""),
    ("c04-after",                    "ok",           ""),
    ("c05-compact-nosession",        "failed",       "No messages to compact"),
    ("c06c-compact-toolong",         "compacted",    ""),
    ("c06d-turn-after-failed-compact", "too_long",   ""),
    ("cf-529",                       "unavailable",  "529"),
    ("e-400",                        "failed",       "something is wrong"),
    ("e-401-oauth",                  "auth_failed",  "401"),
    ("e-401-retry0",                 "auth_failed",  "Invalid API key"),
    ("e-401",                        "auth_failed",  "Invalid API key"),
    ("e-403",                        "auth_failed",  "403"),
    ("e-404",                        "failed",       "issue with the selected model"),
    ("e-413",                        "failed",       "image_error"),
    ("e-429-ra120",                  "rate_limited", ""),
    ("e-429-unified-oauth",          "rate_limited", "1794772607"),
    ("e-429",                        "rate_limited", ""),
    ("e-429x2",                      "ok",           ""),
    ("e-500",                        "unavailable",  "500"),
    ("e-529-retry0",                 "unavailable",  "529"),
    ("e-529x2",                      "ok",           ""),
    ("e-connref-retry0",             "unavailable",  "Connection refused"),
    ("e-credit",                     "failed",       "needs credit"),
    ("e-cut",                        "unavailable",  "529"),
    ("e-empty",                      "ok",           ""),
    ("e-maxtok",                     "ok",           ""),
    ("e-midfail",                    "unavailable",  "529"),
    ("e-nokey",                      "auth_failed",  "Not logged in"),
    ("e-refuse",                     "ok",           ""),
    ("e-stall3",                     "ok",           ""),
    ("e-toolong",                    "too_long",     ""),
    ("f4-badsettings",               "ok",           ""),
    ("f6-badmcp",                    "failed",       "Invalid MCP configuration"),
    ("g1-emptyprompt",               "failed",       "Input must be provided"),
    ("g3-noverbose",                 "failed",       "requires --verbose"),
    ("g4-unknownflag",               "failed",       "unknown option '--no-such-flag'"),
    ("g5-unknownmodel",              "ok",           ""),
    ("h01-first-continue-nosession", "ok",           ""),
    ("h02-second",                   "ok",           ""),
    ("h05-tool-read",                "ok",           ""),
    ("h06-tool-write-bash",          "ok",           ""),
    ("h07-mcp",                      "ok",           ""),
    ("k-slow-SIGINT-1-killed",       "interrupted",  ""),
    ("k-slow-SIGKILL-1-killed",      "failed",       "signal 9"),
    ("k-slow-SIGKILL-2-continue",    "ok",           ""),
    ("k-slow-SIGTERM-1-killed",      "failed",       "signal 15"),
    ("k-tool-SIGKILL-1-killed",      "failed",       "without a result"),
    ("k-tool-SIGKILL-2-continue",    "ok",           ""),
    ("m-dead",                       "ok",           ""),
    ("mt1",                          "failed",       "maximum number of turns"),
    ("p01-warm",                     "ok",           ""),
    ("s1-partial",                   "ok",           ""),
    ("t7-bash-notallowed",           "ok",           ""),
    ("u6-resume-bad",                "failed",       "No conversation found"),
    ("v-clear",                      "ok",           ""),
];

fn transcripts() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/transcripts")
}

/// What the outcome says besides its word.
fn text(outcome: &TurnOutcome) -> String {
    match outcome {
        TurnOutcome::RateLimited { resets_at } => {
            resets_at.map_or(String::new(), |at| (at.millis() / 1000).to_string())
        }
        TurnOutcome::AuthFailed { why }
        | TurnOutcome::Unavailable { why }
        | TurnOutcome::Failed { why } => why.clone(),
        TurnOutcome::Ok
        | TurnOutcome::Compacted
        | TurnOutcome::TooLong
        | TurnOutcome::Interrupted => String::new(),
    }
}

fn check(case: &str, outcome: &TurnOutcome, word: &str, part: &str) {
    let said = text(outcome);
    assert_eq!(outcome.word(), word, "{case}: {outcome:?}");
    assert!(said.contains(part), "{case}: {part:?} is not in {said:?}");
    if part.is_empty() {
        assert_eq!(said, "", "{case}");
    }
}

#[test]
fn every_transcript_has_a_row() {
    let names: BTreeSet<String> = std::fs::read_dir(transcripts())
        .expect("the fixtures")
        .filter_map(|entry| {
            let name = entry
                .expect("an entry")
                .file_name()
                .into_string()
                .expect("a name");
            name.strip_suffix(".jsonl").map(str::to_owned)
        })
        .collect();
    let rows: BTreeSet<String> = TRANSCRIPTS.iter().map(|row| row.0.to_owned()).collect();
    assert_eq!(names, rows);
}

#[tokio::test]
async fn t6_t7_t11_t20_every_transcript_of_the_real_cli_is_understood() {
    let rig = Rig::new(Way::PerTurn);
    let mut engine = rig.engine().await;
    for &(name, word, part) in TRANSCRIPTS {
        let file = |end: &str| transcripts().join(format!("{name}.{end}"));
        let read = |end| std::fs::read_to_string(file(end)).expect("a fixture");
        let exit = match read("exit").trim() {
            "-9" => "die KILL".to_owned(),
            code => format!("exit {code}"),
        };
        let stderr: String = read("stderr")
            .lines()
            .map(|l| format!("stderr {l}\n"))
            .collect();
        let steps = format!("{stderr}transcript {}\n{exit}", file("jsonl").display());
        let mut spec = rig.spec(&fake(&steps));
        if word == "compacted" || name.starts_with("cf-") || name.contains("compact-nosession") {
            spec.purpose = Purpose::Compact;
        }
        let (_, outcome) = run(&mut engine, spec).await;
        check(name, &outcome, word, part);
    }
    engine.shutdown().await;
}

/// Words about errors, wherever a conversation can put them.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "rate_limit_error 429", "Prompt is too long", "authentication_failed 401",
    "API Error: 529 Overloaded", "Not logged in · Please run /login",
    r#"{"type":"result","is_error":true,"api_error_status":429}"#,
    r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected"}}"#,
];

#[tokio::test]
async fn t6_talk_about_errors_is_no_error() {
    for way in WAYS {
        let rig = Rig::new(way);
        let mut engine = rig.engine().await;
        for words in WORDS {
            let quoted = serde_json::Value::from(*words);
            let steps = format!(
                r#"init
                say {words}
                tool Read
                raw {{"type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","is_error":true,"content":{quoted}}}]}},"tool_use_result":{quoted}}}
                raw {{"type":"user","isReplay":true,"message":{{"role":"user","content":{quoted}}}}}
                raw {{"type":"stream_event","event":{{"type":"error","error":{{"type":"rate_limit_error","message":{quoted}}}}}}}
                raw {{"type":"system","subtype":"informational","content":{quoted}}}
                raw {words} in the middle of nowhere
                say {words}
                result {words}"#
            );
            let (ended, outcome) = run(&mut engine, rig.spec(&fake(&steps))).await;
            assert_eq!(outcome, TurnOutcome::Ok, "{way:?}: {words}");
            assert_eq!(ended.facts.results, 1);
        }
        engine.shutdown().await;
    }
}

/// Ends of turns that the transcripts do not show.
#[rustfmt::skip]
const CONSTRUCTED: &[(&str, &str, &str)] = &[
    // A good turn stays good whatever stderr says.
    ("stderr 429 rate_limit\nresult ok\nexit 0",                        "ok",           ""),
    // Without a result, stderr is all there is to go by.
    ("stderr HTTP 429: slow down\nexit 1",                              "rate_limited", ""),
    ("stderr {\"type\":\"rate_limit_error\"}\nexit 1",                  "rate_limited", ""),
    ("stderr request failed: 401 Unauthorized\nexit 1",                 "auth_failed",  "401"),
    ("stderr Not logged in\nexit 1",                                    "auth_failed",  "Not logged in"),
    ("stderr at cli.js:429:401 in request 4290\nexit 1",                "failed",       "cli.js:429:401"),
    // Errors as the API words them.
    (r#"raw {"type":"error","error":{"type":"rate_limit_error"}}
        exit 1"#,                                                       "rate_limited", ""),
    (r#"raw {"type":"error","error":{"type":"overloaded_error","message":"busy"}}
        exit 1"#,                                                       "unavailable",  "busy"),
    (r#"raw {"type":"error","error":{"type":"authentication_error","message":"no"}}
        exit 1"#,                                                       "auth_failed",  "no"),
    // A limit that was hit, and one that is only near.
    (r#"raw {"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1800000000}}
        exit 1"#,                                                       "rate_limited", "1800000000"),
    (r#"raw {"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1800000000}}
        exit 1"#,                                                       "failed",       "exit code 1"),
    // An error that the engine got over.
    ("error 529 server_error api_error Overloaded\nsay fine\nresult ok\nexit 0", "ok",  ""),
    // Two results: the last one counts.
    ("result ok\nerror 529 server_error api_error Overloaded\nexit 1",  "unavailable",  "Overloaded"),
    ("error - unknown api_error Request timed out\nexit 1",             "unavailable",  "timed out"),
    ("error - invalid_request blocking_limit Prompt is too long\nexit 1", "too_long",   ""),
    // The same words without the fields.
    ("error 400 invalid_request api_error Prompt is too long\nexit 1",  "failed",       "Prompt is too long"),
    ("result ok\nexit 3",                                               "failed",       "after its result: exit code 3"),
    ("result ok\ndie ABRT",                                             "failed",       "signal 6"),
    ("exit 0",                                                          "failed",       "without a result: exit code 0"),
    (r#"raw {"type":"result"}
        exit 0"#,                                                       "ok",           ""),
];

#[tokio::test]
async fn t11_constructed_endings_are_understood() {
    let rig = Rig::new(Way::PerTurn);
    let mut engine = rig.engine().await;
    for &(steps, word, part) in CONSTRUCTED {
        let (_, outcome) = run(&mut engine, rig.spec(&fake(steps))).await;
        check(steps, &outcome, word, part);
    }
    engine.shutdown().await;
}

#[tokio::test]
async fn t20_a_compaction_counts_only_when_it_took_place() {
    for way in WAYS {
        let rig = Rig::new(way);
        let cases = [
            ("compact\nresult", "compacted", ""),
            ("result", "failed", "no compaction"),
            (
                "compact failed nothing to do\nresult",
                "failed",
                "nothing to do",
            ),
            (
                "compact failed Error during compaction: API Error: 503 x\nresult",
                "unavailable",
                "503",
            ),
            (
                "compact failed API Error: Request rejected (429) · x\nresult",
                "rate_limited",
                "",
            ),
            (
                "compact failed Invalid API key · Fix it\nresult",
                "auth_failed",
                "Invalid API key",
            ),
            (
                "compact failed API Error: Connection refused\nresult",
                "unavailable",
                "refused",
            ),
            ("compact failed Prompt is too long\nresult", "too_long", ""),
        ];
        for (steps, word, part) in cases {
            let mut engine = rig.engine().await;
            rig.script(&format!("on /compact\n{steps}"));
            let (_, outcome) = run(&mut engine, rig.spec("/compact")).await;
            check(steps, &outcome, word, part);
            engine.shutdown().await;
        }
    }
}

#[tokio::test]
async fn a_limit_says_when_it_ends() {
    for way in WAYS {
        let ended = Rig::new(way).play("init\nlimit 1800000000").await;
        let at = Timestamp::from_millis(1_800_000_000_000);
        let expected = TurnOutcome::RateLimited {
            resets_at: Some(at),
        };
        assert_eq!(classify(&ended), expected, "{way:?}");
        assert_eq!(ended.stopped, None::<Stopped>);
    }
}
