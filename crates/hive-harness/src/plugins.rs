//! Plugins of Claude Code (T33): installed at every boot, which changes nothing when they are there.
//!
//! What cannot be installed is told to the agent's parent; the agent works without it.

use std::{ffi::OsString, time::Duration};

use crate::{
    bus::Bus,
    engine::command::{EngineCommand, Profile},
    environment::Plugins,
    surface::Surface,
};

/// How long one step may take: a marketplace is cloned over the network.
const STEP: Duration = Duration::from_secs(180);

/// Installs what the configuration names, and tells the parent what could not be.
pub async fn install(
    plugins: &Plugins,
    engine: &EngineCommand,
    profile: &Profile,
    bus: &Bus,
    surface: &impl Surface,
) {
    if plugins.plugins.is_empty() {
        return;
    }
    if !profile.version.contains("Claude Code") {
        bus.note("this engine has no plugins: those of the configuration are left out");
        return;
    }
    let mut failures = Vec::new();
    for step in steps(plugins) {
        let args: Vec<OsString> = step.iter().map(Into::into).collect();
        if let Err(why) = engine.run(&args, STEP).await {
            failures.push(format!("`{}`: {why}", step.join(" ")));
        }
    }
    bus.note(&format!(
        "plugins: {} named, {} steps failed",
        plugins.plugins.len(),
        failures.len()
    ));
    if failures.is_empty() {
        return;
    }
    let body = format!(
        "[system] Plugins could not be installed; the agent works without them.\n{}",
        failures.join("\n")
    );
    let Ok(key) = format!("plugins-{}", bus.epoch()).parse() else {
        return;
    };
    if let Err(error) = surface.send_to_parent(&body, &key).await {
        bus.note(&format!("the parent cannot be told of it: {error}"));
    }
}

/// The engine's arguments, step by step.
fn steps(plugins: &Plugins) -> Vec<Vec<String>> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let mut steps: Vec<Vec<String>> = Vec::new();
    for source in &plugins.marketplaces {
        steps.push(words(&["plugin", "marketplace", "add", "--", source]));
    }
    if plugins.auto_update {
        steps.push(words(&["plugin", "marketplace", "update"]));
    }
    for plugin in &plugins.plugins {
        steps.push(words(&["plugin", "install", "--", plugin]));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t33_marketplaces_come_first_and_are_updated_only_when_asked() {
        let mut plugins = Plugins {
            marketplaces: vec!["a/b".to_owned(), "-evil".to_owned()],
            plugins: vec!["p@b".to_owned()],
            auto_update: false,
        };
        let lines = |plugins: &Plugins| -> Vec<String> {
            steps(plugins).iter().map(|step| step.join(" ")).collect()
        };
        assert_eq!(
            lines(&plugins),
            [
                "plugin marketplace add -- a/b",
                "plugin marketplace add -- -evil",
                "plugin install -- p@b"
            ]
        );
        plugins.auto_update = true;
        assert_eq!(lines(&plugins)[2], "plugin marketplace update");
    }
}
