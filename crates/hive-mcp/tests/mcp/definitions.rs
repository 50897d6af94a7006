//! What a model is told about the tools: a change of it is a change that somebody reads.

use std::collections::{BTreeMap, BTreeSet};

use hive_mcp::{
    groups::{Gate, Grants},
    hyperhive,
};
use serde_json::{Value, json};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/definitions.json");
/// The only tool whose form is not ours: engines add fields of their own to its arguments, and want
/// one text for an answer.
const ENGINES_OWN: &str = "permission_prompt";

/// Every tool that is served to anybody.
fn definitions() -> Value {
    let toolbox = hyperhive::toolbox_with_consent();
    let definitions: Vec<_> = toolbox.definitions(&Grants::all()).collect();
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
        if name == ENGINES_OWN {
            assert!(input.get("additionalProperties").is_none(), "{name}");
            assert!(tool.get("outputSchema").is_none(), "{name}");
        } else {
            assert_eq!(input["additionalProperties"], false, "{name}");
            assert_eq!(tool["outputSchema"]["type"], "object", "{name}");
        }
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

/// What changes something can be repeated by the model as well, and has one effect.
#[test]
fn every_tool_that_changes_something_takes_a_key_and_needs_none() {
    let keyless = BTreeMap::from([
        (
            "recv",
            "the host keeps what was taken, and brings it again unless it was handed over",
        ),
        ("request_next_turn", "two wishes for a turn are one"),
        (
            ENGINES_OWN,
            "the engine's contract has no such field, and a call that ends takes its question back",
        ),
    ]);
    let mut without = BTreeSet::new();
    for tool in definitions().as_array().unwrap() {
        let name = tool["name"].as_str().unwrap().to_owned();
        let input = &tool["inputSchema"];
        let has_key = input["properties"].get("key").is_some();
        if tool["annotations"]["readOnlyHint"] == true {
            assert!(!has_key, "{name} changes nothing");
        } else if has_key {
            let required = input["required"].as_array();
            let is_required = required.is_some_and(|all| all.contains(&json!("key")));
            assert!(!is_required, "{name}");
        } else {
            without.insert(name);
        }
    }
    let keyless: BTreeSet<String> = keyless.into_keys().map(str::to_owned).collect();
    assert_eq!(without, keyless);
}

/// The page has a chapter for each group and capability, and in it a section for each tool.
#[test]
fn the_docs_have_a_section_for_each_tool_in_the_chapter_of_its_group() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    let mut documented = Vec::new();
    let mut chapter = "";
    for line in docs.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            chapter = title;
        }
        if let Some(tool) = line.strip_prefix("### `").and_then(|l| l.strip_suffix('`')) {
            documented.push((tool.to_owned(), chapter.to_owned()));
        }
    }
    let toolbox = hyperhive::toolbox_with_consent();
    let tools: Vec<_> = toolbox
        .tools()
        .map(|(tool, gate)| (tool.name.to_string(), chapter_of(gate)))
        .collect();
    assert_eq!(documented, tools);
}

fn chapter_of(gate: Option<Gate>) -> String {
    match gate {
        None => "For the engine".to_owned(),
        Some(Gate::Capability(capability)) => format!("Capability `{capability}`"),
        Some(Gate::Group(group)) => {
            let name = group.as_str();
            name[..1].to_uppercase() + &name[1..]
        }
    }
}

#[test]
fn the_docs_name_each_field_of_each_tool_and_show_a_call_that_fits() {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mcp.md");
    let docs = std::fs::read_to_string(docs).unwrap();
    for tool in definitions().as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let (_, section) = docs.split_once(&format!("### `{name}`")).unwrap();
        let section = section.split("\n### ").next().unwrap();
        let fields = tool["inputSchema"]["properties"].as_object();
        let fields: Vec<&String> = fields.into_iter().flatten().map(|(name, _)| name).collect();
        for field in &fields {
            assert!(section.contains(&format!("| `{field}`")), "{name}.{field}");
        }
        let (_, example) = section.split_once("```json\n").unwrap();
        let mut example = example.split("\n```").next().unwrap().lines();
        let mut line = || serde_json::from_str::<Value>(example.next().unwrap()).unwrap();
        let (args, reply) = (line(), line());
        for field in args.as_object().unwrap().keys() {
            assert!(fields.contains(&field), "{name}: {field} in the example");
        }
        let required = tool["inputSchema"]["required"].as_array();
        for field in required.into_iter().flatten() {
            assert!(
                args.get(field.as_str().unwrap()).is_some(),
                "{name}: {field}"
            );
        }
        if name == ENGINES_OWN {
            assert_eq!(reply["behavior"], "deny", "{name}");
            assert!(reply["message"].is_string(), "{name}");
            continue;
        }
        let answers = tool["outputSchema"]["properties"].as_object().unwrap();
        for field in reply.as_object().unwrap().keys() {
            assert!(answers.contains_key(field), "{name}: {field} in the answer");
        }
    }
}
