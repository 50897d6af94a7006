//! What a model is told about the tools: a change of it is a change that somebody reads.

use hive_mcp::{groups::Groups, hyperhive};
use serde_json::Value;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/definitions.json");

fn definitions() -> Value {
    let toolbox = hyperhive::toolbox();
    let definitions: Vec<_> = toolbox.definitions(&Groups::all()).collect();
    serde_json::to_value(definitions).unwrap()
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
         HIVE_BLESS=1 cargo nextest run -p hive-mcp definitions"
    );
}

#[test]
fn every_tool_is_described_as_a_model_needs_it() {
    for tool in definitions().as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["description"].as_str().unwrap().len() > 80, "{name}");
        let input = &tool["inputSchema"];
        assert_eq!(input["type"], "object", "{name}");
        assert_eq!(input["additionalProperties"], false, "{name}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        let hints = &tool["annotations"];
        assert_eq!(hints["openWorldHint"], false, "{name}");
        assert!(hints["readOnlyHint"].is_boolean(), "{name}");
        for schema in [input, &tool["outputSchema"]] {
            let fields = schema["properties"].as_object();
            for (field, schema) in fields.into_iter().flatten() {
                let said = schema["description"].as_str().unwrap_or_default();
                assert!(said.len() > 5, "{name}.{field}: {schema}");
            }
        }
    }
}

#[test]
fn the_docs_have_a_section_for_each_tool_and_for_no_other() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let documented: Vec<_> = docs
        .lines()
        .filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`'))
        .collect();
    let definitions = definitions();
    let tools: Vec<_> = definitions
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(documented, tools);
    for tool in definitions.as_array().unwrap() {
        let fields = tool["inputSchema"]["properties"].as_object();
        let section = format!("### `{}`", tool["name"].as_str().unwrap());
        let (_, section) = docs.split_once(&section).unwrap();
        let section = section.split("\n### ").next().unwrap();
        for field in fields.into_iter().flat_map(|fields| fields.keys()) {
            assert!(section.contains(&format!("`{field}`")), "{field}");
        }
    }
}
