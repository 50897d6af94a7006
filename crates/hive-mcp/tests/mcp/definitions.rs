//! What a model is told about the tools: a change of it is a change that somebody reads.

use hive_mcp::{
    groups::{Gate, Grants},
    hyperhive,
};
use serde_json::Value;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/definitions.json");

fn definitions() -> Value {
    let toolbox = hyperhive::toolbox();
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
    let toolbox = hyperhive::toolbox();
    let tools: Vec<_> = toolbox
        .tools()
        .map(|(tool, gate)| (tool.name.to_string(), chapter_of(gate.unwrap())))
        .collect();
    assert_eq!(documented, tools);
}

fn chapter_of(gate: Gate) -> String {
    match gate {
        Gate::Capability(capability) => format!("Capability `{capability}`"),
        Gate::Group(group) => {
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
        let answers = tool["outputSchema"]["properties"].as_object().unwrap();
        for field in reply.as_object().unwrap().keys() {
            assert!(answers.contains_key(field), "{name}: {field} in the answer");
        }
    }
}
