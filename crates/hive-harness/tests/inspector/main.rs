//! The MCP Inspector, as a user would run it, on `hive mcp`: it lists and calls tools in each era of
//! the protocol, and finds nothing wrong with their schemas.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Output;

use hive_testkit::{
    hive::TestHive,
    mcp_tools::{self, McpTools, said},
};
use hive_wire::{
    grants::{Capability, Group},
    host::SetPermissions,
};
use serde_json::Value;

/// How the Inspector begins: with a handshake, with whichever the server has, or without one.
const ERAS: [&str; 3] = ["legacy", "auto", "modern"];

struct Stage {
    hive: TestHive,
    tools: McpTools,
}

impl Stage {
    /// A hive with `ada`, who may do everything, and `bob`; none where there is no Inspector.
    async fn set() -> Option<Self> {
        let tools = mcp_tools::find()?;
        let hive = TestHive::start().await.unwrap();
        for agent in ["ada", "bob"] {
            hive.spawn_agent(agent).await.unwrap();
        }
        let all = SetPermissions {
            name: "ada".parse().unwrap(),
            reset: false,
            grant: Group::ALL.to_vec(),
            revoke: Vec::new(),
            grant_capabilities: Capability::ALL.to_vec(),
            revoke_capabilities: Vec::new(),
            recipients: None,
        };
        hive.host_client().call(&all).await.unwrap();
        Some(Self { hive, tools })
    }

    fn run(&self, era: &str, args: &[&str]) -> Output {
        let socket = self.hive.agent_socket("ada");
        let mut inspector = self.tools.inspector(self.hive.root());
        inspector
            .args(["--protocol-era", era, "--format", "json", "-q"])
            .args(args)
            .args(["-e", &format!("HIVE_SOCKET={}", socket.display())])
            // With this there is the engine's own tool as well.
            .args(["-e", "HIVE_CONSENT_SECS=300"])
            .args([env!("CARGO_BIN_EXE_hive"), "mcp"]);
        inspector.output().unwrap()
    }

    fn call(&self, era: &str, tool: &str, args: &str) -> Output {
        let call = [
            "--method",
            "tools/call",
            "--tool-name",
            tool,
            "--tool-args-json",
            args,
        ];
        self.run(era, &call)
    }
}

fn result(output: &Output) -> Value {
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert!(answer["result"].is_object(), "{}", said(output));
    answer["result"].clone()
}

#[tokio::test]
async fn m1_the_inspector_lists_every_tool_in_each_era_without_a_complaint() {
    let Some(stage) = Stage::set().await else {
        return;
    };
    let toolbox = hive_mcp::hyperhive::toolbox_with_consent();
    let known: Vec<_> = toolbox
        .tools()
        .map(|(tool, _)| tool.name.to_string())
        .collect();
    for era in ERAS {
        let listed = stage.run(era, &["--method", "tools/list", "--strict"]);
        assert!(listed.status.success(), "{era}: {}", said(&listed));
        assert_eq!(
            String::from_utf8_lossy(&listed.stderr),
            "",
            "{era}: a schema is not portable"
        );
        let tools = result(&listed);
        let names = tools["tools"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, known, "{era}");
    }
}

#[tokio::test]
async fn m2_the_inspector_calls_tools_in_each_era() {
    let Some(stage) = Stage::set().await else {
        return;
    };
    for era in ERAS {
        let sent = stage.call(era, "send", r#"{"to":"bob","body":"hi"}"#);
        assert!(sent.status.success(), "{era}: {}", said(&sent));
        let sent = result(&sent);
        assert!(
            sent["structuredContent"]["message_id"].is_i64(),
            "{era}: {sent}"
        );
        let refused = stage.call(era, "send", r#"{"to":"nobody","body":"hi"}"#);
        assert!(!refused.status.success(), "{era}: {}", said(&refused));
        let text = result(&refused)["content"][0]["text"].to_string();
        assert!(text.contains("What to do: "), "{era}: {text}");
    }
}
