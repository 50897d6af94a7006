//! The events that it prints.

use serde_json::{Value, json};

use crate::{
    engine::Engine,
    out::{emit, record},
};

impl Engine {
    pub(crate) fn named(&self, mut event: Value) -> Value {
        if let (Some(uuid), false) = (&self.uuid, self.unnamed) {
            event["user_message_uuids"] = json!([uuid]);
        }
        event["session_id"] = json!(self.session.id);
        event
    }

    pub(crate) fn init(&self) {
        emit(&self.named(json!({
            "type": "system", "subtype": "init", "model": self.model, "tools": ["Read", "Edit"],
            "mcp_servers": [{"name": "hyperhive", "status": "connected"}],
            "claude_code_version": "2.1.325", "permissionMode": "default",
        })));
    }

    pub(crate) fn usage(&self) -> Value {
        json!({"input_tokens": self.tokens, "output_tokens": 5,
            "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0})
    }

    pub(crate) fn say(&self, content: &Value) {
        emit(&self.said(content));
    }

    pub(crate) fn said(&self, content: &Value) -> Value {
        self.named(
            json!({"type": "assistant", "parent_tool_use_id": null, "message": {
            "role": "assistant", "model": self.model, "content": content, "usage": self.usage()}}),
        )
    }

    pub(crate) fn tool_call(&self, name: &str) {
        self.say(&json!([{"type": "tool_use", "id": "toolu_fake", "name": name, "input": {}}]));
    }

    pub(crate) fn result(&mut self, result: Value) {
        emit(&self.resulting(result));
    }

    /// A result, with what it cost.
    pub(crate) fn resulting(&mut self, mut result: Value) -> Value {
        let good = result["is_error"] == json!(false);
        record(&json!({"result": good, "pid": std::process::id()}));
        self.session.add(0.01);
        result["type"] = json!("result");
        result["num_turns"] = json!(1);
        result["result_index"] = json!(self.results);
        result["usage"] = self.usage();
        result["total_cost_usd"] = json!(self.session.cost);
        let since = json!({"inputTokens": self.tokens, "outputTokens": 5, "cacheReadInputTokens": 0,
            "cacheCreationInputTokens": 0, "costUSD": 0.01, "contextWindow": 200_000});
        result["model_usage_since_last_result"] = json!({ self.model.clone(): since });
        self.results += 1;
        self.named(result)
    }

    pub(crate) fn error(&mut self, rest: &str) {
        let mut words = rest.splitn(4, ' ');
        let mut word = || words.next().filter(|word| *word != "-");
        let status: Option<u16> = word().and_then(|word| word.parse().ok());
        let (class, reason, text) = (word(), word(), word().unwrap_or("API Error"));
        emit(&self.named(
            json!({"type": "assistant", "error": class, "api_error_status": status,
            "is_api_error_message": true, "message": {"role": "assistant", "model": "<synthetic>",
            "content": [{"type": "text", "text": text}], "usage": {"input_tokens": 0}}}),
        ));
        self.result(
            json!({"subtype": "success", "is_error": true, "result": text,
            "api_error_status": status, "terminal_reason": reason}),
        );
    }

    pub(crate) fn compact(&mut self, rest: &str) {
        emit(&json!({"type": "system", "subtype": "status", "status": "compacting"}));
        let (result, why) = match rest.strip_prefix("failed") {
            Some(why) => ("failed", Some(why.trim())),
            None => ("success", None),
        };
        emit(
            &json!({"type": "system", "subtype": "status", "status": null,
            "compact_result": result, "compact_error": why}),
        );
        if why.is_none() {
            self.tokens = 100;
            emit(
                &json!({"type": "system", "subtype": "compact_boundary", "compact_metadata":
                {"trigger": "manual", "pre_tokens": 1000, "post_tokens": 100}}),
            );
        }
    }
}
