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

/// An engine may call a tool again that says it does no harm: a command would run twice.
#[test]
fn b1_no_engine_is_told_that_it_may_run_a_command_twice() {
    let definitions = definitions();
    let hints = &definitions[0]["annotations"];
    assert_eq!(definitions[0]["name"], "run");
    assert_eq!(hints["idempotentHint"], false);
    assert_eq!(hints["destructiveHint"], true);
    assert_eq!(hints["readOnlyHint"], false);
}

#[test]
fn the_docs_name_each_field_of_each_tool_and_show_a_call_that_fits() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/bash.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for tool in definitions().as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let (_, section) = docs.split_once(&format!("### `{name}`")).unwrap();
        let section = section.split("\n### ").next().unwrap();
        let fields = tool["inputSchema"]["properties"].as_object().unwrap();
        for field in fields.keys() {
            assert!(section.contains(&format!("| `{field}`")), "{name}.{field}");
        }
        let (_, example) = section.split_once("```json\n").unwrap();
        let mut example = example.split("\n```").next().unwrap().lines();
        let mut line = || serde_json::from_str::<Value>(example.next().unwrap()).unwrap();
        fits(&line(), &tool["inputSchema"], &format!("a call of {name}"));
        fits(
            &line(),
            &tool["outputSchema"],
            &format!("an answer of {name}"),
        );
        assert_eq!(example.next(), None, "{name}");
    }
}

/// Checks that an object has all that it must have, nothing unknown, and values of the right types.
fn fits(object: &Value, schema: &Value, what: &str) {
    let required = schema["required"].as_array();
    for field in required.into_iter().flatten() {
        let field = field.as_str().unwrap();
        assert!(object.get(field).is_some(), "{what} has no {field}");
    }
    for (field, value) in object.as_object().unwrap() {
        let schema = &schema["properties"][field];
        assert!(schema.is_object(), "{what} has no field {field}");
        let types = schema["anyOf"]
            .as_array()
            .map_or(vec![schema], |types| types.iter().collect());
        let of_type = |name: &Value| match name.as_str().unwrap() {
            "string" => value.is_string(),
            "integer" => value.is_i64(),
            "null" => value.is_null(),
            other => panic!("{what}: teach this test the type {other} of {field}"),
        };
        let is_one = types.iter().any(|schema| of_type(&schema["type"]));
        assert!(is_one, "{what}: {field} is {value}, not {schema}");
    }
}
