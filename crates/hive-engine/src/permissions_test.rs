//! `hive-engine permissions test`: what would be decided, and why.

use std::{collections::BTreeMap, path::PathBuf};

use serde_json::json;

use crate::{
    bash,
    cli::PermissionsCommand,
    permission::{Call, Decision},
    sandbox::Sandbox,
    settings::{Places, Settings, Sources},
    startup::{Homes, PolicyArgs, StartError, policy},
    tool::{Access, Permission, Properties},
};

/// The report about a command line, and the exit code: 0 allowed, 2 asked for, 3 denied.
pub fn report(
    command: &PermissionsCommand,
    env: &BTreeMap<String, String>,
) -> Result<(String, u8), StartError> {
    let PermissionsCommand::Test {
        command,
        settings,
        setting_sources,
        permission_mode,
        allowed_tools,
    } = command;
    let cwd: PathBuf = std::env::current_dir().map_err(|error| format!("Error: {error}"))?;
    let homes = Homes::find(env);
    let mut settings = Settings::load(&Places {
        config_dir: &homes.config,
        cwd: &cwd,
        home: &homes.home,
        flag: settings.as_deref(),
        sources: Sources::parse(setting_sources.as_deref()),
    })?;
    let args = PolicyArgs {
        allowed: allowed_tools,
        disallowed: &[],
        mode: permission_mode.as_deref(),
        directories: &[],
    };
    let policy = policy(&mut settings, &args, &cwd, &homes)?;
    let judgement = bash::judge(command, policy.workspace.cwd());
    let call = Call {
        tool: "Bash".into(),
        permission: Permission::Execute,
        properties: Properties::default(),
        accesses: vec![Access::Command(Box::new(judgement.clone()))],
        input: json!({"command": command}),
    };
    let decision = policy.decide(&call);
    let (word, code) = match &decision {
        Decision::Allow(_) => ("allow", 0),
        Decision::Ask(_) => ("ask", 2),
        Decision::Deny(_) => ("deny", 3),
    };
    let why = decision.why();
    let mut text = format!("{word}: {}\n", why.rule.as_deref().unwrap_or(&why.text));
    for simple in &judgement.commands {
        let behind = if simple.behind.is_empty() {
            String::new()
        } else {
            format!(" (behind {})", simple.behind.join(", "))
        };
        text.push_str(&format!("  command: {}{behind}\n", simple.text_with_gaps()));
    }
    for doubt in &judgement.doubts {
        text.push_str(&format!("  doubt: {}\n", doubt.describe()));
    }
    let sandbox = Sandbox::find(&settings.sandbox, env.get("PATH").map(String::as_str));
    text.push_str(&format!("  sandbox: {}\n", sandbox.describe()));
    for warning in &settings.warnings {
        text.push_str(&format!("  note: {warning}\n"));
    }
    Ok((text, code))
}
