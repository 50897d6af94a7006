//! What a model is told about the tools: a change of it is a change that somebody reads.

use hive_bash::mcp;
use serde_json::Value;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/definitions.json");

fn definitions() -> Value {
    let toolbox = mcp::toolbox();
    let definitions = toolbox.tools().map(|(tool, _)| tool);
    serde_json::to_value(definitions.collect::<Vec<_>>()).unwrap()
}

/// `HIVE_BLESS=1` writes the file anew; the difference then stands in the review.
#[test]
fn the_definitions_are_those_in_the_golden_file() {
    let now = serde_json::to_string_pretty(&definitions()).unwrap() + "\n";
    if std::env::var_os("HIVE_BLESS").is_some() {
        std::fs::write(GOLDEN, &now).unwrap();
    }
    let golden = std::fs::read_to_string(GOLDEN).unwrap();
    assert!(
        golden == now,
        "the tools' definitions changed; if that is meant, run \
         HIVE_BLESS=1 cargo nextest run -p hive-bash definitions"
    );
}

#[test]
fn the_docs_have_a_section_for_each_tool_with_its_fields() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bash.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for tool in definitions().as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let (_, section) = docs.split_once(&format!("### `{name}`")).unwrap();
        let section = section.split("\n### ").next().unwrap();
        let fields = tool["inputSchema"]["properties"].as_object();
        for field in fields.into_iter().flat_map(|fields| fields.keys()) {
            assert!(section.contains(&format!("`{field}`")), "{name}.{field}");
        }
    }
}
