//! What is kept of a conversation.

use std::{fs, path::PathBuf};

use serde_json::{Value, json};

/// The conversation, as far as it has an id and a cost.
pub(crate) struct Session {
    file: Option<PathBuf>,
    pub(crate) id: String,
    pub(crate) cost: f64,
}

impl Session {
    pub(crate) fn open(continued: bool) -> Self {
        let dir = std::env::var_os("CLAUDE_CONFIG_DIR").map(PathBuf::from);
        let file = dir.map(|dir| dir.join("fake-session.json"));
        let saved = file
            .as_ref()
            .filter(|_| continued)
            .and_then(|file| fs::read(file).ok());
        let saved: Option<Value> = saved.and_then(|text| serde_json::from_slice(&text).ok());
        let nanos = std::time::SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |now| now.as_nanos());
        let new = format!("fake-{}-{nanos}", std::process::id());
        Self {
            file,
            id: saved
                .as_ref()
                .and_then(|s| s["id"].as_str())
                .unwrap_or(&new)
                .to_owned(),
            cost: saved
                .as_ref()
                .and_then(|s| s["cost"].as_f64())
                .unwrap_or(0.0),
        }
    }

    pub(crate) fn add(&mut self, cost: f64) {
        self.cost += cost;
        if let Some(file) = &self.file {
            let text = json!({"id": self.id, "cost": self.cost}).to_string();
            fs::write(file, text).ok();
        }
    }
}
