//! What options there are, and what is said of them.

use std::{collections::BTreeSet, fs};

use hive_core::agent_config::OPTIONS;
use hive_testkit::nix::{self, Nix, project};
use serde_json::{Value, json};

const AGENT: &str = "(agent [ ]).options.hyperhive";
const HOST: &str = "(host [ ]).options.services.hyperhive.c0re";

/// The options for users that hold no further ones; each of all is described and has a type.
fn leaves(nix: &Nix, tree: &str) -> BTreeSet<String> {
    let options = nix.eval(&format!("list \"\" {tree}")).unwrap();
    let mut leaves = BTreeSet::new();
    for option in options.as_array().unwrap() {
        let text = |key: &str| option[key].as_str().unwrap();
        assert!(text("description").trim_end().ends_with('.'), "{option}");
        assert!(!text("type").is_empty(), "{option}");
        if option["isLeaf"] == true && option["isInternal"] == false {
            leaves.insert(text("name").to_owned());
        }
    }
    leaves
}

#[test]
fn n2_t29_agent_nix_has_the_options_of_agent_toml_and_describes_them() {
    let Some(nix) = nix::find() else { return };
    let toml: BTreeSet<String> = OPTIONS.iter().map(|option| option.nix()).collect();
    assert_eq!(leaves(&nix, AGENT), toml);
}

#[test]
fn n1_every_option_of_the_module_is_described_in_it_and_in_the_docs() {
    let Some(nix) = nix::find() else { return };
    let docs = fs::read_to_string(project().join("docs/nixos.md")).unwrap();
    for option in leaves(&nix, HOST) {
        let name = option.trim_end_matches(".*");
        assert!(docs.contains(&format!("| `{name}` |")), "{option}");
    }
}

#[test]
fn n1_options_of_the_host_have_the_defaults_that_the_docs_name() {
    let Some(nix) = nix::find() else { return };
    let defaults = nix.eval("plain (host [ ]).config.services.hyperhive.c0re");
    let expected = json!({
        "agentPorts": {"from": 8100, "to": 8999},
        "bind": "127.0.0.1",
        "contextWindowTokens": {"haiku": 200_000, "opus": 1_000_000, "sonnet": 1_000_000},
        "dashboardPort": 7000,
        "domain": null,
        "enable": false,
        "environmentFile": null,
        "hiveName": null,
        "hyperhiveFlake": null,
        "openFirewall": false,
        "operatorPronouns": "she/her",
        "package": "hyperhive",
        "rootAgent": "ruth",
        "runtime": "nixos",
        "settings": {},
        "swarmName": null,
    });
    assert_eq!(defaults, Ok(expected));
}

#[test]
fn n2_options_of_an_agent_have_these_defaults() {
    let Some(nix) = nix::find() else { return };
    let expected = json!({
        "allowedRecipients": [],
        "autoCompact": true,
        "budget": {"tokens": null, "usd": null},
        "capabilities": [],
        "cargo": {"shortMessages": true},
        "claudeMarketplaces": ["anthropics/claude-plugins-official"],
        "claudePlugins": [],
        "claudePluginsAutoUpdate": false,
        "dashboardLinks": [],
        "engine": null,
        "env": {},
        "forge": {"url": "http://localhost:3000"},
        "frontend": {"dist": null, "extraFiles": {}},
        "hiveName": null,
        "hostUid": null,
        "icon": null,
        "limits": {"cpuPercent": null, "fileMib": null, "memoryMib": null, "pids": null},
        "matrix": {"url": "http://localhost:8008"},
        "mcpServers": {},
        "model": null,
        "mounts": [],
        "network": "auto",
        "runtime": "auto",
        "staticDir": null,
        "swarmName": null,
        "toolGroups": [],
        "user": {"gid": null, "name": null, "passwordlessSudo": true, "uid": null},
    });
    assert_eq!(nix.eval("plain (agent [ ]).config.hyperhive"), Ok(expected));
    // Those of what a user adds.
    let added = nix.eval(
        r#"plain (checked (agent [ { hyperhive = {
             dashboardLinks = [ { label = "a"; url = "http://a"; } ];
             frontend.extraFiles.a.source = /a;
             mcpServers.a.command = "a";
           }; } ])).hyperhive"#,
    );
    let added = added.unwrap();
    assert_eq!(added["dashboardLinks"][0]["icon"], "");
    assert_eq!(added["frontend"]["extraFiles"]["a"]["target"], Value::Null);
    let server = json!({"command": "a", "args": [], "env": {}, "url": null, "allowedTools": null});
    assert_eq!(added["mcpServers"]["a"], server);
}

/// A value that an option does not take, and the option's name in the error.
const REFUSED_BY_THE_HOST: &[(&str, &str)] = &[
    ("enable = 1;", "enable"),
    ("package = \"hyperhive\";", "package"),
    ("hyperhiveFlake = 7;", "hyperhiveFlake"),
    ("rootAgent = \"Ruth\";", "rootAgent"),
    ("rootAgent = \"much-too-long\";", "rootAgent"),
    ("hiveName = 1;", "hiveName"),
    ("swarmName = [ ];", "swarmName"),
    ("domain = true;", "domain"),
    ("operatorPronouns = null;", "operatorPronouns"),
    ("contextWindowTokens.opus = 0;", "contextWindowTokens.opus"),
    ("contextWindowTokens = [ 1 ];", "contextWindowTokens"),
    ("runtime = \"docker\";", "runtime"),
    ("bind = 127;", "bind"),
    ("dashboardPort = 65536;", "dashboardPort"),
    ("agentPorts.from = -1;", "agentPorts.from"),
    ("agentPorts.to = \"8999\";", "agentPorts.to"),
    ("openFirewall = \"yes\";", "openFirewall"),
    ("environmentFile = \"keys.env\";", "environmentFile"),
    ("settings.limits.events = x: x;", "settings"),
    ("dashbordPort = 7000;", "dashbordPort"),
];

#[test]
fn n1_what_the_host_does_not_take_is_refused_by_name() {
    let Some(nix) = nix::find() else { return };
    for (text, option) in REFUSED_BY_THE_HOST {
        let module = format!("{{ services.hyperhive.c0re = {{ {text} }}; }}");
        let tree = format!("(host [ {module} ]).config.services.hyperhive.c0re");
        let error = nix.eval(&format!("plain {tree}")).unwrap_err();
        assert_names(&error, &format!("services.hyperhive.c0re.{option}"));
    }
}

const REFUSED_BY_AN_AGENT: &[(&str, &str)] = &[
    ("model = \"a b\";", "model"),
    ("model = \"-x\";", "model"),
    ("engine = \"a\\nb\";", "engine"),
    ("runtime = \"bwrap\";", "runtime"),
    ("autoCompact = \"no\";", "autoCompact"),
    ("hiveName = \"\";", "hiveName"),
    ("swarmName = 1;", "swarmName"),
    ("icon = \"icon.svg\";", "icon"),
    ("allowedRecipients = [ \"a b\" ];", "allowedRecipients"),
    ("allowedRecipients = \"ruth\";", "allowedRecipients"),
    ("network = \"open\";", "network"),
    ("toolGroups = [ 1 ];", "toolGroups"),
    ("capabilities = [ \"\" ];", "capabilities"),
    ("claudeMarketplaces = [ \"\" ];", "claudeMarketplaces"),
    ("claudePlugins = { };", "claudePlugins"),
    ("claudePluginsAutoUpdate = 1;", "claudePluginsAutoUpdate"),
    (
        "dashboardLinks = [ { url = \"http://a\"; } ];",
        "dashboardLinks.[entry 1].label",
    ),
    (
        "dashboardLinks = [ { label = \"a\"; url = \"javascript:x\"; } ];",
        "dashboardLinks.[entry 1].url",
    ),
    (
        "dashboardLinks = [ { label = \"a\"; url = \"http://u@h/\"; } ];",
        "dashboardLinks.[entry 1].url",
    ),
    (
        "dashboardLinks = [ { label = \"a\"; url = \"http://h\"; icon = 1; } ];",
        "dashboardLinks.[entry 1].icon",
    ),
    ("env.A = 1;", "env.A"),
    ("frontend.dist = \"ui\";", "frontend.dist"),
    (
        "frontend.extraFiles.a = { };",
        "frontend.extraFiles.a.source",
    ),
    (
        "frontend.extraFiles.a = { source = /a; target = 1; };",
        "frontend.extraFiles.a.target",
    ),
    ("forge.url = \"ftp://x\";", "forge.url"),
    ("forge.url = \"http://$(id) x\";", "forge.url"),
    ("matrix.url = \"localhost:8008\";", "matrix.url"),
    ("cargo.shortMessages = 0;", "cargo.shortMessages"),
    ("user.name = \"Root User\";", "user.name"),
    ("user.uid = 0;", "user.uid"),
    ("user.gid = 70000;", "user.gid"),
    ("user.passwordlessSudo = null;", "user.passwordlessSudo"),
    ("mcpServers.a.command = 1;", "mcpServers.a.command"),
    ("mcpServers.a.args = \"x\";", "mcpServers.a.args"),
    ("mcpServers.a.env.A = 1;", "mcpServers.a.env.A"),
    ("mcpServers.a.url = \"x\";", "mcpServers.a.url"),
    (
        "mcpServers.a.allowedTools = [ \"a,Bash\" ];",
        "mcpServers.a.allowedTools",
    ),
    (
        "mounts = [ { source = \"a\"; } ];",
        "mounts.[entry 1].source",
    ),
    (
        "mounts = [ { source = \"/a\"; target = \"/a/../etc\"; } ];",
        "mounts.[entry 1].target",
    ),
    (
        "mounts = [ { source = \"/a\"; writable = 1; } ];",
        "mounts.[entry 1].writable",
    ),
    ("limits.memoryMib = 0;", "limits.memoryMib"),
    ("limits.pids = 1.5;", "limits.pids"),
    ("limits.cpuPercent = \"50\";", "limits.cpuPercent"),
    ("limits.fileMib = -1;", "limits.fileMib"),
    ("budget.tokens = -1;", "budget.tokens"),
    ("budget.usd = 1000001;", "budget.usd"),
    ("staticDir = null;", "staticDir"),
    ("hostUid = 0;", "hostUid"),
    ("modle = \"opus\";", "modle"),
    ("frontend.dsit = ./ui;", "frontend.dsit"),
];

#[test]
fn n2_what_an_agent_does_not_take_is_refused_by_name() {
    let Some(nix) = nix::find() else { return };
    for (text, option) in REFUSED_BY_AN_AGENT {
        let module = format!("{{ hyperhive = {{ {text} }}; }}");
        let error = nix
            .eval(&format!("plain (agent [ {module} ]).config.hyperhive"))
            .unwrap_err();
        assert_names(&error, &format!("hyperhive.{option}"));
    }
    let refused: BTreeSet<&str> = REFUSED_BY_AN_AGENT.iter().map(|(_, name)| *name).collect();
    for option in leaves(&nix, AGENT) {
        assert!(
            refused.iter().any(|name| stands_for(&option, name)),
            "{option}"
        );
    }
}

/// Whether a name is that of an option, whose stars stand for anything.
fn stands_for(option: &str, name: &str) -> bool {
    let (option, name): (Vec<_>, Vec<_>) = (option.split('.').collect(), name.split('.').collect());
    let mut both = option.iter().zip(&name);
    option.len() == name.len() && both.all(|(option, name)| *option == "*" || option == name)
}

#[track_caller]
fn assert_names(error: &str, option: &str) {
    // An entry of a list is named after the list.
    let is_named = error.contains(&format!("`{option}'")) || error.contains(&format!("`{option}."));
    assert!(is_named, "{option}: {error}");
}
