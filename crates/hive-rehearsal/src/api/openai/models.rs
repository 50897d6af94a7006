//! `GET /v1/models` and `/v1/models/{id}`.

use serde_json::{Value, json};

pub(crate) fn list(names: &[String]) -> Value {
    let data: Vec<Value> = names.iter().map(|name| one(name)).collect();
    json!({"object": "list", "data": data})
}

pub(crate) fn one(name: &str) -> Value {
    json!({"id": name, "object": "model", "created": 1_735_689_600, "owned_by": "rehearsal"})
}
