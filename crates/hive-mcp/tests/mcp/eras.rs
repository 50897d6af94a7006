//! Both eras of the protocol, and what a server must bear.

use serde_json::json;

use crate::client::{MODERN, Mcp, PATIENCE, hive, options};

/// The revisions that begin with a handshake.
const HANDSHAKES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

#[tokio::test]
async fn every_handshake_is_answered_with_its_own_revision() {
    let hive = hive().await;
    for revision in HANDSHAKES {
        let mut mcp = Mcp::shaken(&options(&hive), revision).await;
        let tools = mcp.ask("tools/list", json!({})).await;
        let tools = tools["result"]["tools"].as_array().unwrap().len();
        assert!(tools >= 12, "{revision}: {tools}");
        assert_eq!(mcp.ask("ping", json!({})).await["result"], json!({}));
        mcp.ok("set_status", json!({"text": revision})).await;
        mcp.leave().await;
    }
}

#[tokio::test]
async fn the_server_says_who_it_is_and_declares_tools_alone() {
    let hive = hive().await;
    let mut mcp = Mcp::silent(&options(&hive));
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    });
    let answer = mcp.ask("initialize", hello).await;
    let result = &answer["result"];
    assert_eq!(result["serverInfo"]["name"], "hyperhive");
    assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(result["capabilities"], json!({"tools": {}}));
}

#[tokio::test]
async fn a_revision_from_the_future_gets_one_that_we_know() {
    let hive = hive().await;
    let mut mcp = Mcp::silent(&options(&hive));
    let hello = json!({
        "protocolVersion": "2099-01-01",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    });
    let answer = mcp.ask("initialize", hello).await;
    let revision = answer["result"]["protocolVersion"].as_str().unwrap();
    assert!(HANDSHAKES.contains(&revision), "{revision}");
}

/// `claude` asks `server/discover` first and shakes hands then; an unanswered question costs it
/// three seconds at every start.
#[tokio::test]
async fn discovery_comes_before_a_handshake_or_instead_of_one() {
    let hive = hive().await;
    let mut mcp = Mcp::modern(&options(&hive));
    let answer = mcp.ask("server/discover", json!({})).await;
    let versions = answer["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(MODERN)), "{answer}");
    assert_eq!(answer["result"]["capabilities"], json!({"tools": {}}));

    // Without a handshake each request stands for itself.
    let tools = mcp.ask("tools/list", json!({})).await;
    assert!(tools["result"]["tools"].as_array().unwrap().len() >= 12);
    assert!(tools["result"]["ttlMs"].is_u64(), "{tools}");
    let sent = mcp.ok("send", json!({"to": "bob", "body": "hi"})).await;
    assert!(sent["message_id"].as_i64().unwrap() > 0);
    mcp.leave().await;

    // Or the old way follows, also after a probe that carries nothing about its client.
    let mut mcp = Mcp::silent(&options(&hive));
    let probe = mcp.ask("server/discover", json!({})).await;
    assert!(probe["error"]["code"].is_i64(), "{probe}");
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "raw", "version": "1"},
    });
    let answer = mcp.ask("initialize", hello).await;
    assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
}

#[tokio::test]
async fn what_is_not_declared_is_not_answered() {
    let hive = hive().await;
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    for (method, params) in [
        ("prompts/list", json!({})),
        ("prompts/get", json!({"name": "x"})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", json!({"uri": "file:///etc/passwd"})),
        ("resources/subscribe", json!({"uri": "file:///x"})),
        ("logging/setLevel", json!({"level": "debug"})),
        (
            "completion/complete",
            json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}),
        ),
        ("tasks/list", json!({})),
        ("hive/secret", json!({})),
    ] {
        let answer = mcp.ask(method, params).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
    let answer = mcp.ask("tools/list", json!({"cursor": "x"})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_a_protocol_error_with_a_hint() {
    let hive = hive().await;
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    let params = json!({"name": "sned", "arguments": {}});
    let answer = mcp.ask("tools/call", params).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(
        answer["error"]["message"],
        "Unknown tool: sned (did you mean send?)"
    );
}

#[tokio::test]
async fn rubbish_is_borne_and_the_next_request_is_answered() {
    let hive = hive().await;
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    for rubbish in [
        &b"\n"[..],
        b"not json\n",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\n",
        b"\xff\xfe\x00\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unheard_of\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":77}}\n",
    ] {
        mcp.say_raw(rubbish).await;
    }
    let mut mcp = answered(mcp).await;
    // JSON that is no message of the protocol is told so.
    for wrong in [
        "{}",
        "[]",
        "42",
        r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#,
    ] {
        mcp.say_raw(format!("{wrong}\n").as_bytes()).await;
        let answer = mcp.hear().await;
        assert_eq!(answer["error"]["code"], -32600, "{wrong}: {answer}");
    }
    answered(mcp).await.leave().await;
}

async fn answered(mut mcp: Mcp) -> Mcp {
    assert_eq!(mcp.ask("ping", json!({})).await["result"], json!({}));
    mcp
}

#[tokio::test]
async fn pipelined_calls_are_all_answered_each_once() {
    let hive = hive().await;
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    let mut open = std::collections::BTreeSet::new();
    for n in 0..200 {
        let args = json!({"to": "bob", "body": format!("{n}")});
        let params = json!({"name": "send", "arguments": args});
        open.insert(mcp.request("tools/call", params).await);
    }
    while !open.is_empty() {
        let answer = mcp.hear().await;
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        assert!(open.remove(&answer["id"].as_i64().unwrap()), "{answer}");
    }
    let unread = crate::client::wire(&hive, "bob", hive_wire::agent::Status {}).await;
    assert_eq!(unread.unread, 200);
}

#[tokio::test]
async fn it_ends_when_it_is_told_to_though_a_receive_is_parked() {
    let hive = hive().await;
    let mut mcp = Mcp::shaken(&options(&hive), "2025-11-25").await;
    let params = json!({"name": "recv", "arguments": {"wait_seconds": 180}});
    mcp.request("tools/call", params).await;
    answered(mcp).await.stop().await;

    // A client that never says a word is no failure either.
    let silent = Mcp::silent(&options(&hive));
    tokio::time::timeout(PATIENCE, silent.leave())
        .await
        .unwrap();
}
