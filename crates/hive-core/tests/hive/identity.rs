//! Who the hive is: its name, its domain and its swarm, from hive.toml to those who ask.

use std::fs;

use hive_testkit::hive::TestHive;
use serde_json::{Value, json};

use crate::{
    daemon::refused,
    mcp::Tools,
    peer::{Doors, hive_with, ok},
};

/// What an agent is told of another, on its socket and as a tool: the same.
fn meta(hive: &TestHive, agent: &str, name: Option<&str>) -> Value {
    let mut ask = json!({"cmd": "get_agent_meta"});
    let mut args = json!({});
    if let Some(name) = name {
        ask["name"] = json!(name);
        args["name"] = json!(name);
    }
    let wire = ok(hive.peer(agent).ask(&ask));
    let mut tool = Tools::of(hive, agent).call("get_agent_meta", args)["structuredContent"].take();
    for key in ["hive_name", "swarm_name"] {
        let said = tool.as_object_mut().unwrap().remove(key);
        assert_eq!(wire.get(key), said.as_ref(), "{key}: {wire}");
    }
    wire
}

#[tokio::test]
async fn c15_m10_the_swarm_is_told_on_the_wire_over_mcp_and_to_the_operator() {
    let config = "name = \"pr1ma\"\nswarm = \"north of the 🐝 `river`\"\n";
    let mut hive = hive_with(config, &["ada", "bob"]).await;
    for name in [None, Some("ada"), Some("bob")] {
        let meta = meta(&hive, "ada", name);
        assert_eq!(meta["swarm_name"], "north of the 🐝 `river`", "{name:?}");
        assert_eq!(meta["hive_name"], "pr1ma", "{name:?}");
    }
    let status = hive.cli_json(&["status"]);
    assert_eq!(status["swarm"], "north of the 🐝 `river`");

    let toml = "[hive]\nroot_agent = \"\"\nswarm = \"south\"\n";
    fs::write(hive.root().join("hive.toml"), toml).unwrap();
    // Its socket alone: another test's hive may have taken the agent's port by then.
    hive.restart().await.unwrap();
    let meta = ok(hive.peer("ada").ask(&json!({"cmd": "get_agent_meta"})));
    assert_eq!(meta["swarm_name"], "south", "read at every start");
    assert_eq!(meta.get("hive_name"), None);
}

#[tokio::test]
async fn c15_m10_names_that_are_not_set_or_empty_are_not_there() {
    for config in ["", "name = \"\"\nswarm = \"\"\ndomain = \"\"\n"] {
        let hive = hive_with(config, &["ada"]).await;
        let meta = meta(&hive, "ada", None);
        assert_eq!(meta["name"], "ada");
        for key in ["swarm_name", "hive_name"] {
            assert_eq!(meta.get(key), None, "{config:?}: {meta}");
        }
        let status = hive.cli_json(&["status"]);
        assert_eq!(status["swarm"], Value::Null, "{config:?}");
        assert_eq!(status["hive"], Value::Null, "{config:?}");
        let list = hive.cli_json(&["list"]);
        assert_eq!(list["agents"][0]["address"], "ada", "{config:?}");
    }
}

#[test]
fn c15_a_name_domain_or_swarm_that_cannot_be_one_is_refused_with_file_line_and_key() {
    let long = format!("\"{}\"", "x".repeat(201));
    for (key, value, rule) in [
        ("name", "7", "string"),
        ("swarm", "7", "string"),
        ("swarm", "[\"north\"]", "string"),
        ("domain", "true", "string"),
        ("name", "\"two\\nlines\"", "one line"),
        ("swarm", "\"\\u001b[2J\"", "one line"),
        ("swarm", "\" \"", "without blanks"),
        ("swarm", long.as_str(), "200 characters"),
        ("domain", "\"not a domain\"", "example.org"),
        ("domain", "\"ada@example.org\"", "example.org"),
        ("domain", "\"https://example.org\"", "example.org"),
        ("operator_pronouns", "\"a\\nb\"", "they/them"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let config = format!("[hive]\nroot_agent = \"\"\n{key} = {value}\n");
        fs::write(dir.path().join("hive.toml"), config).unwrap();
        let said = refused(dir.path()).stderr;
        for word in ["hive.toml", "line 3", &format!("{key} = "), rule] {
            assert!(said.contains(word), "{key} = {value}: {word}: {said}");
        }
    }
}
