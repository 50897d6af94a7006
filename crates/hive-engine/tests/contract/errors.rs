//! Turns that fail: the same fields, texts and exit codes.

use serde_json::{Value, json};

use crate::support::{Engine, Stage, contract};

contract!(
    provider_errors,
    retries,
    no_key,
    nobody_there,
    too_long_is_compacted,
    mistakes,
    rate_limit_of_a_subscription
);

/// fault, api_error_status, terminal_reason, class of the synthetic message, beginning of the text
const FAULTS: &[(&str, u16, &str, &str, &str)] = &[
    (
        "prompt_too_long",
        400,
        "prompt_too_long",
        "invalid_request",
        "Prompt is too long",
    ),
    (
        "bad_request",
        400,
        "api_error",
        "unknown",
        "API Error: 400 ",
    ),
    (
        "credit",
        400,
        "api_error",
        "billing_error",
        "Credit balance is too low",
    ),
    (
        "unauthorized",
        401,
        "api_error",
        "authentication_failed",
        "Invalid API key · Fix external API key",
    ),
    (
        "forbidden",
        403,
        "api_error",
        "authentication_failed",
        "Failed to authenticate. API Error: 403 ",
    ),
    (
        "model_not_found",
        404,
        "api_error",
        "model_not_found",
        "There's an issue with the selected model (claude-sonnet-4-5).",
    ),
    (
        "too_large",
        413,
        "image_error",
        "invalid_request",
        "Request too large (max 32MB).",
    ),
    (
        "rate_limit",
        429,
        "api_error",
        "rate_limit",
        "API Error: Request rejected (429) · ",
    ),
    (
        "server_error",
        500,
        "api_error",
        "server_error",
        "API Error: 500 ",
    ),
    (
        "overloaded",
        529,
        "api_error",
        "server_error",
        "API Error: 529 Overloaded.",
    ),
];

async fn provider_errors(engine: Engine) {
    for (fault, status, terminal, class, text) in FAULTS {
        let scenario = format!("[[rule]]\nwhen.request = 'any'\nfault = '{fault}'");
        let stage = Stage::new(engine.clone(), &scenario).await;
        let settings = json!({"autoCompactEnabled": false}).to_string();
        let run = stage.turn("hi", &["--settings", &settings]).await;
        assert_eq!(run.code, Some(1), "{fault}");
        assert_eq!(
            run.shape(),
            ["system/init", "assistant/text", "result/success"],
            "{fault}"
        );
        let result = run.result();
        assert_eq!(result["is_error"], true, "{fault}");
        assert_eq!(result["api_error_status"], *status, "{fault}");
        assert_eq!(result["terminal_reason"], *terminal, "{fault}");
        let said = result["result"].as_str().unwrap();
        assert!(said.starts_with(text), "{fault}: {said}");
        let synthetic = run
            .lines
            .iter()
            .find(|line| line["type"] == "assistant")
            .unwrap();
        assert_eq!(synthetic["error"], *class, "{fault}");
        assert_eq!(synthetic["message"]["model"], "<synthetic>", "{fault}");
        assert_eq!(synthetic["is_api_error_message"], true, "{fault}");
        assert_eq!(synthetic["message"]["content"][0]["text"], said, "{fault}");
    }
}

async fn retries(engine: Engine) {
    let mut stage = Stage::new(
        engine,
        "[[rule]]\ntimes = 1\nfault = 'overloaded'\n[[rule]]\nanswer.text = 'recovered'",
    )
    .await;
    stage.retries = 2;
    let run = stage.turn("hi", &[]).await;
    assert_eq!(
        run.shape(),
        [
            "system/init",
            "system/api_retry",
            "assistant/text",
            "result/success"
        ]
    );
    let retry = run
        .lines
        .iter()
        .find(|line| line["subtype"] == "api_retry")
        .unwrap();
    assert_eq!(
        (&retry["attempt"], &retry["max_retries"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(retry["error_status"], 529);
    assert_eq!(retry["error"], "overloaded");
    assert_eq!(run.result()["result"], "recovered");
    assert_eq!(run.code, Some(0));
}

async fn no_key(engine: Engine) {
    let mut stage = Stage::new(engine, "[[rule]]\nanswer.text = 'x'").await;
    stage.key = None;
    let run = stage.turn("hi", &[]).await;
    assert_eq!(run.code, Some(1));
    assert_eq!(run.result()["result"], "Not logged in · Please run /login");
    assert_eq!(run.result()["api_error_status"], Value::Null);
    assert_eq!(run.result()["terminal_reason"], "api_error");
    assert_eq!(stage.model.requests().len(), 0);
}

async fn nobody_there(engine: Engine) {
    let stage = Stage::new(engine, "[[rule]]\nanswer.text = 'x'").await;
    stage.model.refuse().await;
    let run = stage.turn("hi", &[]).await;
    assert_eq!(run.code, Some(1));
    let result = run.result();
    assert_eq!(result["api_error"], "connection_failed");
    assert_eq!(result["api_error_status"], Value::Null);
    let text = result["result"].as_str().unwrap();
    assert!(text.contains("ECONNREFUSED"), "{text}");
}

async fn too_long_is_compacted(engine: Engine) {
    let stage = Stage::new(
        engine,
        r#"
        [[rule]]
        when.body = "remember"
        answer.text = "noted"
        [[rule]]
        when.request = "summary"
        answer.text = "<summary>bananas</summary>"
        [[rule]]
        times = 1
        fault = "prompt_too_long"
        [[rule]]
        answer.text = "ok"
        "#,
    )
    .await;
    stage.turn("remember banana", &["--continue"]).await;
    let run = stage.turn("go on", &["--continue"]).await;
    assert_eq!(run.code, Some(0), "{run:#?}");
    assert_eq!(run.result()["result"], "ok");
    let boundary = run
        .lines
        .iter()
        .find(|line| line["subtype"] == "compact_boundary")
        .unwrap();
    assert_eq!(boundary["compact_metadata"]["trigger"], "auto");
}

/// Everything that is refused before a turn: exit code 1 and a text on stderr.
async fn mistakes(engine: Engine) {
    let stage = Stage::new(engine, "[[rule]]\nanswer.text = 'x'").await;
    let base = ["--print", "--verbose", "--output-format", "stream-json"];
    let with = |more: &[&'static str]| [&base[..], more].concat();
    for (stdin, args, text) in [
        (
            "",
            with(&[]),
            "Error: Input must be provided either through stdin or as a prompt argument when using --print",
        ),
        (
            "hi",
            vec!["--print", "--output-format", "stream-json"],
            "Error: When using --print, --output-format=stream-json requires --verbose",
        ),
        (
            "hi",
            with(&["--no-such-flag"]),
            "error: unknown option '--no-such-flag'",
        ),
        (
            "hi",
            with(&["--settings", "/no/such.json"]),
            "Error: Settings file not found: /no/such.json",
        ),
        (
            "hi",
            with(&["--system-prompt-file", "/no/such.md"]),
            "Error: System prompt file not found: /no/such.md",
        ),
        (
            "hi",
            with(&["--mcp-config", "{", "--strict-mcp-config"]),
            "Error: Invalid MCP configuration:",
        ),
    ] {
        let run = stage.raw(stdin, &args).await;
        assert_eq!(run.code, Some(1), "{args:?}: {run:?}");
        assert!(run.lines.is_empty(), "{args:?}: {run:?}");
        assert!(run.stderr.starts_with(text), "{args:?}: {}", run.stderr);
    }
}

async fn rate_limit_of_a_subscription(engine: Engine) {
    let stage = Stage::new(
        engine,
        "[[rule]]\nwhen.request = 'any'\nfault = { kind = 'rate_limit', subscription = 'five_hour', reset_at = 1894772607 }",
    )
    .await;
    // The real program takes these headers seriously with a subscription's token only.
    if !stage.engine.is_native() {
        return;
    }
    let run = stage.turn("hi", &[]).await;
    assert_eq!(run.code, Some(1));
    let limit = run
        .lines
        .iter()
        .find(|line| line["type"] == "rate_limit_event")
        .unwrap();
    assert_eq!(limit["rate_limit_info"]["status"], "rejected");
    assert_eq!(limit["rate_limit_info"]["resetsAt"], 1_894_772_607);
    assert_eq!(run.result()["api_error"], "usage_limit_reached");
    assert_eq!(run.result()["api_error_status"], 429);
}
