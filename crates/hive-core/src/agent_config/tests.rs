mod nix;

use std::collections::BTreeSet;

use crate::repos::{File, Mode};

use super::*;

const ROOT: &str = "/var/lib/hyperhive";
/// A configuration that sets every option.
const EVERYTHING: &str = include_str!("../../tests/fixtures/everything.toml");
const DOC: &str = include_str!("../../../../docs/configuration.md");

fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    for (path, content) in files {
        let file = File {
            mode: Mode::Plain,
            content: content.as_bytes().to_vec(),
        };
        tree.add((*path).to_owned(), file).unwrap();
    }
    tree
}

fn everything() -> Tree {
    tree(&[
        (AGENT_TOML, EVERYTHING),
        ("icon.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
        ("ui/index.html", "<p>"),
        ("games/bitburner/index.html", "<p>"),
    ])
}

/// The names of all values in a table, with `*` for what the user chooses.
fn names(value: &toml::Value, prefix: &str, found: &mut BTreeSet<String>) {
    let is_chosen = ["env", "mcp_servers", "frontend.extra_files"].contains(&prefix)
        || prefix == "mcp_servers.*.env";
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let key = if is_chosen { "*" } else { key.as_str() };
                let name = match prefix {
                    "" => key.to_owned(),
                    prefix => format!("{prefix}.{key}"),
                };
                names(value, &name, found);
            }
        }
        toml::Value::Array(list) if list.iter().all(toml::Value::is_table) && !list.is_empty() => {
            for value in list {
                names(value, &format!("{prefix}.*"), found);
            }
        }
        _ => {
            found.insert(prefix.to_owned());
        }
    }
}

#[test]
fn t29_every_option_is_in_the_example_in_the_table_and_in_the_docs() {
    let read = read(&everything(), Path::new(ROOT)).unwrap();
    let Declared::Toml(config) = read else {
        panic!("it is an agent.toml");
    };
    assert_ne!(*config, AgentConfig::default());
    let mut set = BTreeSet::new();
    names(&toml::from_str(EVERYTHING).unwrap(), "", &mut set);
    let listed: BTreeSet<String> = OPTIONS.iter().map(|one| one.toml.to_owned()).collect();
    assert_eq!(set, listed, "the example sets every option of the table");
    assert!(
        DOC.contains(&table()),
        "docs/configuration.md needs this table:\n{}",
        table()
    );
}

#[test]
fn t29_every_option_does_something() {
    let Declared::Toml(config) = read(&everything(), Path::new(ROOT)).unwrap() else {
        panic!("it is an agent.toml");
    };
    // An option that parses into nothing would leave the default behind.
    let default = AgentConfig::default();
    let AgentConfig {
        model,
        engine,
        runtime,
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
    } = *config;
    assert_ne!(model, default.model);
    assert_ne!(engine, default.engine);
    assert_ne!(runtime, default.runtime);
    assert_ne!(auto_compact, default.auto_compact);
    assert_ne!(hive_name, default.hive_name);
    assert_ne!(swarm_name, default.swarm_name);
    assert_ne!(icon, default.icon);
    assert_ne!(allowed_recipients, default.allowed_recipients);
    assert_ne!(network, default.network);
    assert_ne!(tool_groups, default.tool_groups);
    assert_ne!(capabilities, default.capabilities);
    assert_ne!(claude_marketplaces, default.claude_marketplaces);
    assert_ne!(claude_plugins, default.claude_plugins);
    assert_ne!(
        claude_plugins_auto_update,
        default.claude_plugins_auto_update
    );
    assert_eq!(dashboard_links.len(), 2);
    assert_eq!(env.len(), 1);
    assert!(frontend.dist.is_some() && frontend.extra_files.len() == 2);
    assert_ne!(forge, default.forge);
    assert_ne!(matrix, default.matrix);
    assert_ne!(cargo, default.cargo);
    assert!(user.name.is_some() && user.uid.is_some() && user.gid.is_some());
    assert!(!user.passwordless_sudo.0);
    assert_eq!(mcp_servers.len(), 2);
    assert_eq!(mounts.len(), 2);
    assert!(limits.memory_mib.is_some() && limits.pids.is_some());
    assert!(limits.cpu_percent.is_some() && limits.file_mib.is_some());
    assert!(budget.tokens.is_some() && budget.usd.is_some());
}

#[test]
fn t29_options_reach_the_harness() {
    let config = read(&everything(), Path::new(ROOT)).unwrap().config();
    let around = Around {
        extra_mcp: "/run/hive/extra-mcp.json",
        static_dir: Some("/static"),
    };
    let env = environment(&config, around);
    for (name, value) in [
        ("HIVE_NAME", "hexagon"),
        ("HIVE_SWARM", "north"),
        ("HIVE_COMPACT_WATERMARK_TOKENS", "0"),
        ("HIVE_CARGO_SHORT_MESSAGES", "0"),
        ("HIVE_FORGE_URL", "https://forge.example.org"),
        ("HIVE_MATRIX_URL", ""),
        ("HIVE_EXTRA_MCP", "/run/hive/extra-mcp.json"),
        ("HIVE_STATIC_DIR", "/static"),
        ("HIVE_CLAUDE_PLUGINS", "[\"formatter@mine\"]"),
        ("HIVE_CLAUDE_MARKETPLACES", "[\"me/mine\"]"),
        ("HIVE_CLAUDE_PLUGINS_AUTO_UPDATE", "1"),
        ("RUST_LOG", "debug"),
    ] {
        assert_eq!(env.get(name).map(String::as_str), Some(value), "{name}");
    }
    let links: serde_json::Value = serde_json::from_str(&env["HIVE_DASHBOARD_LINKS"]).unwrap();
    assert_eq!(links[0]["label"], "Stats");
    assert_eq!(links[1]["icon"], "");
    let servers = extra_mcp(&config).unwrap();
    let servers = &servers["mcpServers"];
    assert_eq!(servers["docs"]["command"], "docs-mcp");
    assert_eq!(servers["docs"]["allowedTools"], serde_json::json!(["find"]));
    assert_eq!(servers["web"]["url"], "http://127.0.0.1:9000/mcp");
    assert_eq!(servers["web"].get("allowedTools"), None);
    let plain = environment(
        &AgentConfig::default(),
        Around {
            static_dir: None,
            ..around
        },
    );
    let names: Vec<_> = plain.keys().map(String::as_str).collect();
    assert_eq!(names, ["HIVE_FORGE_URL", "HIVE_MATRIX_URL"]);
    assert_eq!(extra_mcp(&AgentConfig::default()), None);
}

#[test]
fn t29_a_name_is_no_longer_than_the_harness_takes_it() {
    for key in ["hive_name", "swarm_name"] {
        let parse = |length| AgentConfig::parse(&format!("{key} = \"{}\"", "x".repeat(length)));
        assert!(parse(200).is_ok(), "{key}");
        let error = parse(201).unwrap_err().to_string();
        assert!(error.contains("at most 200 bytes"), "{error}");
    }
}

/// What is wrong, in which line, and what is said of it.
const WRONG: &[(&str, usize, &str)] = &[
    ("modle = \"opus\"", 1, "did you mean `model`?"),
    ("\n[frontend]\ndsit = \"x\"", 3, "did you mean `dist`?"),
    (
        "[[dashboard_links]]\nlabel=\"a\"\niconn=\"http://x\"",
        3,
        "did you mean `icon`?",
    ),
    ("auto_compact = \"no\"", 1, "boolean"),
    ("model = \"a b\"", 1, "one word"),
    ("hive_name = \"a\\nb\"", 1, "one line of text"),
    ("runtime = \"dcoker\"", 1, "process"),
    ("network = \"open\"", 1, "gateway"),
    ("icon = \"../icon.svg\"", 1, "may not be named `..`"),
    ("\n\nicon = \"/etc/passwd\"", 3, "no name for a file"),
    ("[forge]\nurl = \"ftp://x\"", 2, "http://"),
    ("[matrix]\nurl = \"javascript:alert(1)\"", 2, "http://"),
    (
        "[[dashboard_links]]\nlabel=\"a\"\nurl=\"javascript:x\"",
        3,
        "http://",
    ),
    (
        "[[dashboard_links]]\nlabel=\"a\"\nurl=\"http://u@h/\"",
        3,
        "http://",
    ),
    (
        "[env]\nANTHROPIC_BASE_URL = \"http://evil\"",
        2,
        "the hive or the system sets",
    ),
    (
        "[env]\nhttps_proxy = \"http://evil\"",
        2,
        "the hive or the system sets",
    ),
    (
        "[env]\nLD_PRELOAD = \"x\"",
        2,
        "the hive or the system sets",
    ),
    ("[env]\n\"A B\" = \"x\"", 2, "a variable's name"),
    (
        "[frontend.extra_files.\"../x\"]\nsource = \"a\"",
        1,
        "without `..`",
    ),
    (
        "[frontend.extra_files.\"-x\"]\nsource = \"a\"",
        1,
        "has to begin",
    ),
    ("[mcp_servers.bash]\ncommand = \"x\"", 1, "the hive's own"),
    ("[mcp_servers.a__b]\ncommand = \"x\"", 1, "single `_`"),
    (
        "[mcp_servers.x]\ncommand = \"x\"\nallowed_tools = [\"a,Bash\"]",
        3,
        "a tool's name",
    ),
    ("[[mounts]]\nsource = \"relative\"", 2, "absolute path"),
    ("[[mounts]]\nsource = \"/a/../etc\"", 2, "absolute path"),
    ("[user]\nuid = 0", 2, "from 1000"),
    ("[user]\nname = \"-x\"", 2, "a unix user's name"),
    ("[limits]\npids = 0", 2, "at least 1"),
    ("[budget]\nusd = -1.0", 2, "US dollars"),
    ("allowed_recipients = [\"a b\"]", 1, "a word"),
    ("model = ", 1, "line 1"),
];

#[test]
fn t29_what_is_wrong_is_said_with_its_line() {
    for (text, line, expected) in WRONG {
        let error = AgentConfig::parse(text).unwrap_err().to_string();
        assert!(error.contains(&format!("line {line}")), "{text}: {error}");
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn t29_what_does_not_fit_together_is_refused() {
    let svg = "<svg/>";
    for (files, expected) in [
        (&[("x", "")][..], "there is no agent.toml"),
        (
            &[("agent.toml", "icon = \"i.svg\"")],
            "there is no file `i.svg`",
        ),
        (
            &[("agent.toml", "icon = \"i.svg\""), ("i.svg", "<html>")],
            "is no SVG",
        ),
        (
            &[("agent.toml", "[frontend]\ndist = \"ui\""), ("ui/x", svg)],
            "ui/index.html",
        ),
        (
            &[("agent.toml", "[frontend.extra_files.a]\nsource = \"none\"")],
            "there is no `none`",
        ),
        (
            &[(
                "agent.toml",
                "[frontend.extra_files.a]\nsource = \"agent.toml\"\n[frontend.extra_files.b]\nsource = \"agent.toml\"\ntarget = \"a\"",
            )],
            "are both served as `a`",
        ),
        (
            &[("agent.toml", "[mcp_servers.x]")],
            "either a `command` or a `url`",
        ),
        (
            &[(
                "agent.toml",
                "[mcp_servers.x]\nurl = \"http://a\"\nargs = [\"b\"]",
            )],
            "mean nothing",
        ),
        (
            &[(
                "agent.toml",
                "[[mounts]]\nsource = \"/var/lib/hyperhive/state\"",
            )],
            "own directory",
        ),
        (
            &[("agent.toml", "[[mounts]]\nsource = \"/var\"")],
            "own directory",
        ),
        (
            &[(
                "agent.toml",
                "[[mounts]]\nsource = \"/srv\"\ntarget = \"/run/hive\"",
            )],
            "the container's own",
        ),
        (
            &[(
                "agent.toml",
                "[[mounts]]\nsource = \"/srv\"\ntarget = \"/usr\"",
            )],
            "the container's own",
        ),
    ] {
        let error = format!("{:#}", read(&tree(files), Path::new(ROOT)).unwrap_err());
        assert!(error.contains(expected), "{files:?}: {error}");
    }
    let nix = read(&tree(&[("agent.nix", "{ }")]), Path::new(ROOT)).unwrap();
    assert_eq!(nix, Declared::Nix);
    assert_eq!(nix.config().runtime, Runtime::Nixos);
}

#[test]
fn n2_an_agent_toml_beside_agent_nix_says_what_the_host_enforces() {
    let both = |toml: &str| {
        let files = tree(&[("agent.nix", "{ }"), ("agent.toml", toml)]);
        read(&files, Path::new(ROOT)).map(|declared| declared.config())
    };
    for runtime in ["", "runtime = \"nixos\"\n"] {
        let config = both(&format!("{runtime}allowed_recipients = [\"bob\"]\n")).unwrap();
        assert_eq!(config.runtime, Runtime::Nixos);
        assert!(config.may_write_to("bob") && !config.may_write_to("cid"));
    }
    let error = both("runtime = \"bwrap\"\n").unwrap_err().to_string();
    assert!(error.contains("agent.toml says `bwrap`"), "{error}");
}

#[test]
fn c14_tool_groups_are_wishes_only() {
    let config = AgentConfig::parse("tool_groups = [\"lifecycle\"]").unwrap();
    assert_eq!(config.wishes(), ["tool groups: lifecycle"]);
    let around = Around {
        extra_mcp: "/x",
        static_dir: None,
    };
    let env = environment(&config, around);
    assert!(!env.contains_key("HIVE_TOOL_GROUPS"), "{env:?}");
}

#[test]
fn m2_recipients_are_everybody_unless_they_are_named() {
    let config = AgentConfig::parse("allowed_recipients = [\"operator\"]").unwrap();
    assert!(config.may_write_to("operator") && !config.may_write_to("bob"));
    assert!(AgentConfig::default().may_write_to("bob"));
}

#[test]
fn the_first_configuration_is_a_legal_one() {
    let text = first("ada", &[("model", "opus\"x\""), ("engine", "/bin/e -v")]);
    let config = AgentConfig::parse(&text).unwrap();
    assert_eq!(config.model.unwrap().as_str(), "opus\"x\"");
    assert_eq!(config.engine.unwrap().as_str(), "/bin/e -v");
    assert_eq!(
        AgentConfig::parse(&first("ada", &[])).unwrap(),
        AgentConfig::default()
    );
}

#[test]
fn m2_a_configuration_that_cannot_be_read_permits_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let repos = crate::repos::Repos::new(dir.path());
    repos.prepare().unwrap();
    let configs = Configs::new(repos.clone(), dir.path());
    let name = "ada".parse().unwrap();
    assert_eq!(*configs.get(&name), AgentConfig::default(), "it has none");
    let text = "allowed_recipients = [\"bob\"]\n";
    repos
        .apply(&name, &tree(&[(AGENT_TOML, text)]), "one")
        .unwrap();
    assert!(configs.reload(&name).may_write_to("bob"));
    // As a newer rule would refuse it, and as a damaged disk leaves it.
    let unread = "allowed_recipients = [\"bob\"]\nno_such_option = 1\n";
    repos
        .apply(&name, &tree(&[(AGENT_TOML, unread)]), "two")
        .unwrap();
    let strict = configs.reload(&name);
    std::fs::write(
        repos.applied_dir(&name).join("repo.git/refs/heads/applied"),
        "rubbish",
    )
    .unwrap();
    for config in [strict, configs.reload(&name)] {
        assert!(!config.may_write_to("bob") && !config.may_write_to("cid"));
        assert!(config.may_write_to("operator"));
        assert_eq!(config.network, Network::None);
        assert!(!config.user.passwordless_sudo.0);
    }
}
