//! An `agent.toml` on NixOS: the options of the module get what the parser here reads, and what is
//! refused here is refused there (N2, T29).

use std::fs;

use hive_testkit::nix::{self, Nix};
use serde_json::{Value, json};

use super::*;

/// A configuration as the NixOS module holds it. `runtime` is left out: where there is a module, it
/// is decided.
fn as_module(config: AgentConfig) -> Value {
    // Whole, so that a new option is missed here first.
    let AgentConfig {
        model,
        engine,
        runtime: _,
        auto_compact,
        hive_name,
        swarm_name,
        icon,
        allowed_recipients,
        network,
        tool_groups,
        capabilities,
        claude_marketplaces,
        claude_plugins,
        claude_plugins_auto_update,
        dashboard_links,
        env,
        frontend,
        forge,
        matrix,
        cargo,
        user,
        mcp_servers,
        mounts,
        limits,
        budget,
    } = config;
    json!({
        "model": model.as_ref().map(ModelName::as_str),
        "engine": engine.as_ref().map(Line::as_str),
        "autoCompact": auto_compact.0,
        "hiveName": hive_name.as_ref().map(Name::as_str),
        "swarmName": swarm_name.as_ref().map(Name::as_str),
        "icon": icon.as_ref().map(RepoPath::as_str),
        "allowedRecipients": words(&allowed_recipients),
        "network": network.as_str(),
        "toolGroups": words(&tool_groups),
        "capabilities": words(&capabilities),
        "claudeMarketplaces": lines(&claude_marketplaces.0),
        "claudePlugins": lines(&claude_plugins),
        "claudePluginsAutoUpdate": claude_plugins_auto_update,
        "dashboardLinks": dashboard_links.iter().map(link).collect::<Value>(),
        "env": variables(&env),
        "frontend": {
            "dist": frontend.dist.as_ref().map(RepoPath::as_str),
            "extraFiles": frontend.extra_files.iter().map(extra_file).collect::<Value>(),
        },
        "forge": {"url": forge.url.as_str()},
        "matrix": {"url": matrix.url.as_str()},
        "cargo": {"shortMessages": cargo.short_messages.0},
        "user": {
            "name": user.name.as_ref().map(UserName::as_str),
            "uid": user.uid.map(|id| id.0),
            "gid": user.gid.map(|id| id.0),
            "passwordlessSudo": user.passwordless_sudo.0,
        },
        "mcpServers": mcp_servers.iter().map(server).collect::<Value>(),
        "mounts": mounts.iter().map(mount).collect::<Value>(),
        "limits": {
            "memoryMib": limits.memory_mib.map(|limit| limit.0),
            "pids": limits.pids.map(|limit| limit.0),
            "cpuPercent": limits.cpu_percent.map(|limit| limit.0),
            "fileMib": limits.file_mib.map(|limit| limit.0),
        },
        "budget": {
            "tokens": budget.tokens,
            "usd": budget.usd.map(|dollars| dollars.0),
        },
    })
}

fn words(words: &[Word]) -> Vec<&str> {
    words.iter().map(Word::as_str).collect()
}

fn lines(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(Line::as_str).collect()
}

fn variables(env: &BTreeMap<EnvName, Line>) -> BTreeMap<&str, &str> {
    let env = env.iter();
    env.map(|(name, value)| (name.as_str(), value.as_str()))
        .collect()
}

fn link(link: &DashboardLink) -> Value {
    json!({
        "label": link.label.as_str(),
        "url": link.url.as_str(),
        "icon": link.icon.as_ref().map_or("", Line::as_str),
    })
}

fn extra_file((name, file): (&Target, &ExtraFile)) -> (String, Value) {
    let file = json!({
        "source": file.source.as_str(),
        "target": file.target.as_ref().map(Target::as_str),
    });
    (name.to_string(), file)
}

fn server((name, server): (&ServerName, &McpServer)) -> (String, Value) {
    let tools = server.allowed_tools.as_ref();
    let tools = tools.map(|tools| tools.iter().map(ToolName::as_str).collect::<Vec<_>>());
    let server = json!({
        "command": server.command.as_ref().map(Line::as_str),
        "args": server.args,
        "env": variables(&server.env),
        "url": server.url.as_ref().map(HttpUrl::as_str),
        "allowedTools": tools,
    });
    (name.to_string(), server)
}

fn mount(mount: &Mount) -> Value {
    json!({
        "source": mount.source.as_str(),
        "target": mount.target.as_ref().map(MountPath::as_str),
        "writable": mount.writable,
    })
}

/// What the options of the module are with this `agent.toml`; paths are those in its directory.
fn module(nix: &Nix, text: &str) -> Result<Value, String> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(AGENT_TOML);
    fs::write(&file, text).unwrap();
    let ours = r#"[ "hostUid" "runtime" "staticDir" ]"#;
    let value = nix.eval(&format!(
        "removeAttrs (plain (checked (agent [ (flake.lib.fromToml {}) ])).hyperhive) {ours}",
        nix::path(&file)
    ))?;
    let inside = format!("{}/", dir.path().display());
    let text = value.to_string().replace(&inside, "");
    let mut module: Value = serde_json::from_str(&text).unwrap();
    // Nix writes 5.0 as 5.
    if let Some(usd) = module["budget"]["usd"].as_f64() {
        module["budget"]["usd"] = usd.into();
    }
    Ok(module)
}

#[test]
fn n2_t29_the_module_gets_what_the_parser_reads() {
    let Some(nix) = nix::find() else { return };
    for text in [EVERYTHING, ""] {
        let config = AgentConfig::parse(text).unwrap();
        assert_eq!(module(&nix, text), Ok(as_module(config)));
    }
}

/// Where the module cannot know better: `fromToml` leaves `runtime` out, and a path that leads out
/// of the repository is none that a flake may read.
const HOSTS_ALONE: [&str; 3] = ["runtime", "icon = \"../", "icon = \"/etc"];

#[test]
fn n2_t29_what_the_parser_refuses_the_module_refuses() {
    let Some(nix) = nix::find() else { return };
    for (text, ..) in WRONG {
        if HOSTS_ALONE.iter().any(|alone| text.contains(alone)) {
            continue;
        }
        let module = module(&nix, text);
        assert!(module.is_err(), "{text}: {module:?}");
    }
}

const URLS: &[&str] = &[
    "",
    "http://",
    "http://a",
    "HTTP://a",
    "https://a:1/b?c=d#e",
    "http://a/@b",
    "http://a?b@c",
    "http://u@a",
    "http:///a",
    "http://[::1]:80/",
    "http://a b",
    "http://a/ü",
    "http://a/\"b",
    "http://a/<b>",
    "http://a/{b}",
    "http://a/`b`",
    "http://a/b\\c",
    "http://a/$(b)'c'",
    " http://a",
];
const VARIABLES: &[&str] = &[
    "A",
    "_a9",
    "9A",
    "a-b",
    "PATH",
    "path",
    "No_Proxy",
    "AWS",
    "AWS_X",
    "GIT_CONFIG",
    "HIVE",
];
const LINES: &[&str] = &["a", "", " ", "a\tb", "a\nb", "ä b", "-a"];

/// Values at the edge of what is allowed, and where `@` is to be such a text.
const EDGES: &[(&str, &[&str])] = &[
    ("forge.url = @", URLS),
    ("[[dashboard_links]]\nlabel = 'a'\nurl = @", URLS),
    ("[env]\n@ = 'x'", VARIABLES),
    (
        "[mcp_servers.x]\ncommand = 'x'\nenv = { @ = 'x' }",
        VARIABLES,
    ),
    (
        "[mcp_servers.@]\ncommand = 'x'",
        &["a", "a_b", "a__b", "a-b", "a.b", "a/b", "forge", "Forge"],
    ),
    (
        "[frontend.extra_files.@]\nsource = 'a'",
        &[
            "a", "_", ".a", "a.b", "a/b", "a/", "a//b", "a/./b", "a/../b", "a..b", "ü",
        ],
    ),
    (
        "[[mounts]]\nsource = @",
        &[
            "/", "/a", "/a/", "/a//b", "/a/.b", "/a/./b", "/a/..", "/a:b", "/a b", "/ü",
        ],
    ),
    (
        "allowed_recipients = [@]",
        &["a", "a.b@c_d-e", "a b", "", "ä"],
    ),
    ("user.name = @", &["a", "_a-9", "-a", "9a", "A", "a.b", ""]),
    ("hive_name = @", LINES),
    ("model = @", LINES),
];
const NUMBERS: &[(&str, [&str; 4])] = &[
    ("user.uid", ["999", "1000", "60000", "60001"]),
    ("limits.pids", ["-1", "0", "1", "1.5"]),
    ("budget.tokens", ["-1", "0", "1", "1.5"]),
    ("budget.usd", ["-0.5", "0.0", "1000000.0", "1000000.5"]),
];

#[test]
fn n2_t29_the_module_and_the_parser_draw_the_same_lines() {
    let Some(nix) = nix::find() else { return };
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let mut texts = Vec::new();
    for (place, edges) in EDGES {
        texts.extend(
            edges
                .iter()
                .map(|text| place.replacen('@', &quoted(text), 1)),
        );
    }
    for (key, edges) in NUMBERS {
        texts.extend(edges.map(|number| format!("{key} = {number}")));
    }
    for key in ["hive_name", "swarm_name"] {
        let lengths = [200, 201].map(|length| "x".repeat(length));
        texts.extend(lengths.map(|name| format!("{key} = {}", quoted(&name))));
    }
    let dir = tempfile::tempdir().unwrap();
    for (n, text) in texts.iter().enumerate() {
        fs::write(dir.path().join(format!("{n}.toml")), text).unwrap();
    }
    let taken = nix.eval(&format!(
        "lib.genList (n: (builtins.tryEval (builtins.deepSeq
           (plain (checked (agent [ (flake.lib.fromToml ({} + \"/${{toString n}}.toml\")) ])).hyperhive)
           true)).success) {}",
        nix::path(dir.path()),
        texts.len()
    ));
    let taken: Vec<bool> = serde_json::from_value(taken.unwrap()).unwrap();
    for (text, by_module) in texts.iter().zip(taken) {
        let parsed = AgentConfig::parse(text);
        assert_eq!(parsed.is_ok(), by_module, "{text}\nthe parser: {parsed:?}");
    }
}
