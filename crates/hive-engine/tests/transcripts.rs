//! Recorded output of the real `claude` is read with the types that we print with.

use std::{fs, path::Path};

use hive_engine::stream_json::{Line, System};
use serde_json::Value;

#[test]
fn every_line_is_understood_and_survives() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/transcripts");
    let mut kinds = std::collections::BTreeMap::<String, usize>::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        for (number, text) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            let place = format!("{}:{}", path.display(), number + 1);
            let raw: Value = serde_json::from_str(text).unwrap();
            let line: Line = serde_json::from_value(raw.clone()).unwrap();
            // Kinds that we know must not fall through to the kind for unknown ones.
            let kind = raw["type"].as_str().unwrap();
            let is_known = matches!(
                kind,
                "assistant"
                    | "user"
                    | "result"
                    | "stream_event"
                    | "rate_limit_event"
                    | "control_response"
            );
            assert!(
                !is_known || !matches!(line, Line::Other(_)),
                "{place}: {text}"
            );
            let subtype = raw["subtype"].as_str().unwrap_or_default();
            let is_known_system = matches!(
                subtype,
                "init"
                    | "status"
                    | "api_retry"
                    | "permission_denied"
                    | "compact_boundary"
                    | "informational"
            );
            if kind == "system" && is_known_system {
                assert!(
                    !matches!(line, Line::System(System::Other(_)) | Line::Other(_)),
                    "{place}: {text}"
                );
            }
            *kinds.entry(format!("{kind}/{subtype}")).or_default() += 1;
            let printed = serde_json::to_value(&line).unwrap();
            for (key, value) in raw.as_object().unwrap() {
                if !value.is_null() && key != "message" && key != "retry_delay_ms" {
                    assert!(!printed[key].is_null(), "{place}: {key} got lost");
                }
            }
        }
    }
    assert!(kinds.len() >= 15, "{kinds:#?}");
}
