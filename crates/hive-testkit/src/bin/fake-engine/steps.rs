//! The steps that take no time.

use std::fs::{self, File};

use serde_json::json;

use crate::{
    child,
    engine::{Engine, Played},
    out::{FILL, complain, emit, emit_bytes, emit_filled, flood},
    script::{number, size},
};

impl Engine {
    /// Carries out a step; says how the prompt was dealt with when that is the end of it.
    pub(crate) fn step(&mut self, word: &str, rest: &str) -> Option<Played> {
        match word {
            "init" => self.init(),
            "say" => self.say(&json!([{"type": "text", "text": rest}])),
            "toolresult" => emit(
                &json!({"type": "user", "message": {"role": "user", "content":
                [{"type": "tool_result", "tool_use_id": "toolu_fake", "content": "done"}]}}),
            ),
            "context" => self.tokens = number(rest),
            "result" => {
                let result = json!({"subtype": "success", "is_error": false, "result": rest,
                    "terminal_reason": "completed"});
                self.result(result);
            }
            "error" => {
                self.error(rest);
                return Some(Played::Failed);
            }
            "limit" => {
                emit(&json!({"type": "rate_limit_event", "rate_limit_info":
                    {"status": "rejected", "resetsAt": number(rest), "rateLimitType": "five_hour"}}));
                self.error("429 rate_limit api_error You've hit your limit");
                return Some(Played::Failed);
            }
            "compact" => self.compact(rest),
            "raw" => emit_bytes(format!("{rest}\n").as_bytes()),
            "unended" => emit_bytes(rest.as_bytes()),
            "stderr" => complain(rest),
            "transcript" => emit_bytes(&fs::read(rest).unwrap_or_default()),
            "garbage" => emit_bytes(
                b"\xff\xfe\x00{\"type\":\n[1,2]\n42\n\"result\"\n{\"type\":\"resu\nnull\n",
            ),
            "long" => {
                let content = json!([{"type": "text", "text": FILL}]);
                emit_filled(&self.said(&content), size(rest));
            }
            "longresult" => {
                let result = json!({"a": FILL, "subtype": "success", "is_error": false,
                    "result": FILL, "terminal_reason": "completed"});
                emit_filled(&self.resulting(result), size(rest));
            }
            "flood" => flood(number(rest)),
            "ignore" => self.ignores.extend(rest.split(' ').map(str::to_owned)),
            "child" => child::start(),
            "touch" => drop(File::create(rest)),
            "unnamed" => self.unnamed = true,
            "stay" => self.stays = true,
            "exit" => return Some(Played::Exit(u8::try_from(number(rest)).unwrap_or(255))),
            "die" => child::die(rest),
            _ => {
                complain(&format!("fake-engine: unknown step `{word} {rest}`"));
                return Some(Played::Exit(64));
            }
        }
        None
    }
}
