//! `GET /v1/models` and `/v1/models/{id}`.

use serde_json::{Value, json};

pub(crate) fn list(names: &[String]) -> Value {
    let data: Vec<Value> = names.iter().map(|name| one(name)).collect();
    json!({
        "data": data,
        "has_more": false,
        "first_id": names.first(),
        "last_id": names.last(),
    })
}

pub(crate) fn one(name: &str) -> Value {
    json!({
        "type": "model",
        "id": name,
        "display_name": name,
        "created_at": "2025-01-01T00:00:00Z",
    })
}
