//! The container of an agent: what it gets from its own configuration and from the host.

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use hive_testkit::nix::{self, Nix};
use serde_json::{Value, json};

use crate::{assert_golden, assertions_in, fixture};

/// A directory as the host makes it for an agent: the flake, and its applied configuration.
fn applied(flake: &str, files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config");
    for (name, text) in files {
        let file = config.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    fs::write(dir.path().join("flake.nix"), fixture(flake)).unwrap();
    dir
}

/// What a flake that the host wrote comes to; `what` looks at `config`.
fn built(nix: &Nix, dir: &Path, what: &str) -> Result<Value, String> {
    nix.eval(&format!(
        "let system = generated {}; config = checked system; in plain ({what})",
        nix::path(&dir.join("flake.nix"))
    ))
}

const WHOLE: &str = r#"{
  inherit (config) boot;
  inherit (config.environment) systemPackages;
  etc = builtins.mapAttrs (_: file: file.source.made.value or file.source) config.environment.etc;
  inherit (config.programs) git;
  inherit (config.security) sudo;
  inherit (config) users;
  inherit ((system.extendModules { modules = [ opened ]; }).config.systemd) services;
}"#;

#[test]
fn n2_n3_n5_an_agent_with_every_option_gets_this_container() {
    let Some(nix) = nix::find() else { return };
    let everything = fixture("everything.toml");
    let dir = applied(
        "root-flake.nix",
        &[
            ("agent.toml", &everything),
            ("icon.svg", "<svg/>"),
            ("ui/index.html", "<p>"),
            ("games/bitburner/index.html", "<p>"),
        ],
    );
    let actual = built(&nix, dir.path(), WHOLE).unwrap();
    for (unit, service) in actual["services"].as_object().unwrap() {
        let script = service["script"].as_str().unwrap();
        let parsed = Command::new("bash").args(["-n", "-c", script]).output();
        let said = String::from_utf8(parsed.unwrap().stderr).unwrap();
        assert_eq!(said, "", "{unit}");
    }
    assert_golden("nixos-agent.json", &actual, dir.path());
}

/// The address of a forge may hold what a shell would take apart.
#[test]
fn n5_a_script_takes_addresses_as_they_are() {
    let Some(nix) = nix::find() else { return };
    let own = r#"{ hyperhive.forge.url = "http://a/$(touch+b)'"; }"#;
    let dir = applied("agent-flake.nix", &[("agent.nix", own)]);
    let script = built(&nix, dir.path(), "config.systemd.services.tea-login.script").unwrap();
    let script = script.as_str().unwrap();
    let line = script
        .lines()
        .find(|line| line.contains("    url: "))
        .unwrap();
    let said = Command::new("bash").args(["-c", line]).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    assert_eq!(said, "    url: http://a/$(touch+b)'\n");
}

#[test]
fn n3_the_host_says_who_an_agent_is_and_whose_its_files_are() {
    let Some(nix) = nix::find() else { return };
    let dir = applied("agent-flake.nix", &[("agent.nix", "{ }")]);
    let what = "{
        inherit (config) users;
        inherit (config.programs.git.config) user;
        inherit (config.systemd.services.hive) environment;
    }";
    let actual = built(&nix, dir.path(), what).unwrap();
    // Nothing maps the numbers of users, so that it is the host's user inside too.
    assert_eq!(actual["users"]["users"]["agent"]["uid"], 70_000);
    assert_eq!(actual["users"]["groups"]["agent"]["gid"], 70_000);
    assert_eq!(
        actual["user"],
        json!({"name": "ada", "email": "ada@example.org"})
    );
    for (name, value) in [
        ("HIVE_LABEL", "ada"),
        ("HIVE_PORT", "8123"),
        ("HIVE_ROLE", "agent"),
        ("HIVE_FORGE_URL", "http://localhost:3000"),
    ] {
        assert_eq!(actual["environment"][name], value, "{name}");
    }
    assert_eq!(actual["environment"].get("HIVE_AGENTS_DIR"), None);
}

#[test]
fn n3_an_agents_names_of_hive_and_swarm_win_over_the_hosts() {
    let Some(nix) = nix::find() else { return };
    let own = r#"{ hyperhive.hiveName = "own"; }"#;
    let dir = applied("agent-flake.nix", &[("agent.nix", own)]);
    let flake = fixture("agent-flake.nix").replace(
        "HIVE_LABEL = \"ada\";",
        "HIVE_LABEL = \"ada\"; HIVE_NAME = \"host's\"; HIVE_SWARM = \"host's\";",
    );
    fs::write(dir.path().join("flake.nix"), flake).unwrap();
    let what = "{ inherit (config.systemd.services.hive.environment) HIVE_NAME HIVE_SWARM; }";
    let expected = json!({"HIVE_NAME": "own", "HIVE_SWARM": "host's"});
    assert_eq!(built(&nix, dir.path(), what), Ok(expected));
}

/// Keys, groups and the way to the model are in a file of the host's, which the unit reads; what
/// the configuration says comes after it and so wins, whatever is in it.
#[test]
fn n3_the_harness_reads_the_hosts_variables_and_then_its_own() {
    let Some(nix) = nix::find() else { return };
    let own = r#"{ hyperhive.env.ODD = "a \"b\" $c `d` \\e"; }"#;
    let dir = applied("agent-flake.nix", &[("agent.nix", own)]);
    let what = "(system.extendModules { modules = [ opened ]; })
        .config.systemd.services.hive.serviceConfig.EnvironmentFile";
    let files = built(&nix, dir.path(), what).unwrap();
    assert_eq!(files[0], "-/run/hive/env");
    let lines: Vec<&str> = files[1].as_str().unwrap().lines().collect();
    assert!(lines.contains(&r#"HIVE_LABEL="ada""#), "{lines:?}");
    assert!(
        lines.contains(&r#"ODD="a \"b\" \$c \`d\` \\e""#),
        "{lines:?}"
    );
}

#[test]
fn n2_an_agent_nix_adds_packages() {
    let Some(nix) = nix::find() else { return };
    let own = "{ pkgs, ... }: { environment.systemPackages = [ pkgs.nixfmt ]; }";
    let dir = applied("agent-flake.nix", &[("agent.nix", own)]);
    let packages = built(&nix, dir.path(), "config.environment.systemPackages").unwrap();
    let packages = packages.as_array().unwrap();
    // Claude Code is unfree and comes from another nixpkgs.
    for name in ["hyperhive", "claude-code", "git", "nixfmt"] {
        assert!(packages.contains(&name.into()), "{name}: {packages:?}");
    }
    assert_eq!(
        built(&nix, dir.path(), "config.boot.isNspawnContainer"),
        Ok(true.into())
    );
}

/// What an agent.nix says beneath `hyperhive`, and what is then said of it.
const BROKEN: &[(&str, &str)] = &[
    (
        "frontend.extraFiles.\"../x\".source = /a;",
        "`../x` has to begin",
    ),
    (
        "frontend.extraFiles = { a.source = /a; b = { source = /b; target = \"a\"; }; };",
        "two files are served under one name",
    ),
    ("mcpServers.a = { };", "mcpServers.a needs either"),
    (
        "mcpServers.a = { url = \"http://a\"; args = [ \"b\" ]; };",
        "mean nothing",
    ),
    ("mcpServers.a__b.command = \"a\";", "single `_`"),
    ("mcpServers.bash.command = \"a\";", "the hive's own"),
    ("network = \"host\";", "say it in an agent.toml"),
    ("env.LD_PRELOAD = \"a\";", "env.LD_PRELOAD"),
];

/// More of the same.
const ALSO_BROKEN: &[(&str, &str)] = &[
    (
        "frontend.extraFiles.\"-x\".source = /a;",
        "`-x` has to begin",
    ),
    ("frontend.extraFiles.\"a//b\".source = /a;", "`a//b` has to"),
    (
        "frontend.extraFiles.\"a/./b\".source = /a;",
        "`a/./b` has to",
    ),
    (
        "frontend.extraFiles.a = { source = /a; target = \"a/../../b\"; };",
        "`a/../../b` has to",
    ),
    (
        "mcpServers.a = { command = \"a\"; url = \"http://a\"; };",
        "mcpServers.a needs either",
    ),
    ("mcpServers.matrix.command = \"a\";", "the hive's own"),
    (
        "mcpServers.a = { command = \"a\"; env.PATH = \"/a\"; };",
        "mcpServers.a.env.PATH",
    ),
    ("env.https_proxy = \"http://a\";", "env.https_proxy"),
    ("env.aws_profile = \"a\";", "env.aws_profile"),
    ("env.\"A B\" = \"a\";", "env.A B"),
    ("env.BASH_ENV = \"a\";", "env.BASH_ENV"),
];

/// What is refused of agents, each with its modules.
fn failed<'a>(nix: &Nix, modules: impl IntoIterator<Item = &'a str>) -> Vec<Vec<String>> {
    let agents = modules.into_iter().map(|one| format!("(agent [ {one} ])"));
    let agents: Vec<String> = agents.collect();
    let failed = nix.eval(&format!("map failed [ {} ]", agents.join(" ")));
    serde_json::from_value(failed.unwrap()).unwrap()
}

#[test]
fn n2_every_assertion_of_an_agent_holds_and_can_fail() {
    let Some(nix) = nix::find() else { return };
    let good = r#"{ hyperhive = {
        env.RUST_LOG = "debug";
        frontend.extraFiles = { "games/a_b.c".source = /a; b = { source = /b; target = "c"; }; };
        mcpServers.docs = { command = "docs"; env.DOCS = "/docs"; };
        mcpServers.web-2.url = "http://127.0.0.1:9000/mcp";
    }; }"#;
    assert_eq!(failed(&nix, [good]), [[""; 0]]);
    let broken: Vec<_> = BROKEN.iter().chain(ALSO_BROKEN).collect();
    let modules = broken.iter();
    let modules = modules.map(|(text, _)| format!("{{ hyperhive = {{ {text} }}; }}"));
    let modules: Vec<String> = modules.collect();
    let failed = failed(&nix, modules.iter().map(String::as_str));
    for ((text, message), failed) in broken.into_iter().zip(failed) {
        assert!(
            failed.len() == 1 && failed[0].contains(message),
            "{text}: {failed:?}"
        );
    }
    let messages: BTreeSet<_> = BROKEN.iter().map(|(_, message)| message).collect();
    assert_eq!(messages.len(), assertions_in("nix/options.nix"));
}

/// Each option that the host enforces: where it was set decides, not what it was set to.
#[test]
fn n2_what_the_host_enforces_is_taken_from_agent_toml_only() {
    let Some(nix) = nix::find() else { return };
    for (option, toml, value) in [
        (
            "allowedRecipients",
            "allowed_recipients = ['a']",
            "[ \"a\" ]",
        ),
        ("capabilities", "capabilities = ['a']", "[ \"a\" ]"),
        (
            "mounts",
            "[[mounts]]\nsource = '/a'",
            "[ { source = \"/a\"; } ]",
        ),
        ("network", "network = 'none'", "\"none\""),
        ("toolGroups", "tool_groups = ['a']", "[ \"a\" ]"),
        ("budget.tokens", "budget.tokens = 1", "1"),
        ("budget.usd", "budget.usd = 1.5", "1.5"),
        ("limits.cpuPercent", "limits.cpu_percent = 1", "1"),
        ("limits.fileMib", "limits.file_mib = 1", "1"),
        ("limits.memoryMib", "limits.memory_mib = 1", "1"),
        ("limits.pids", "limits.pids = 1", "1"),
    ] {
        let set = format!("{{ hyperhive.{option} = {value}; }}");
        let weak = format!("{{ lib, ... }}: {{ hyperhive.{option} = lib.mkDefault {value}; }}");
        let dir = applied(
            "agent-flake.nix",
            &[
                ("agent.toml", toml),
                ("agent.nix", &set),
                ("options.nix", &set),
                ("weak.nix", &weak),
            ],
        );
        let config = dir.path().join("config");
        let file = |name: &str| nix::path(&config.join(name));
        let toml = format!("(flake.lib.fromToml {})", file("agent.toml"));
        // A value of agent.toml leaves none of a weaker one.
        let both = format!("{toml} {}", file("weak.nix"));
        let good = failed(&nix, [toml.as_str(), &both]);
        assert_eq!(good, [[""; 0], [""; 0]], "{option}");
        let bad = [
            set,
            file("agent.nix"),
            file("options.nix"),
            file("weak.nix"),
        ];
        let message = format!("hyperhive.{option} is enforced by the host");
        for failed in failed(&nix, bad.iter().map(String::as_str)) {
            assert!(
                failed.len() == 1 && failed[0].starts_with(&message),
                "{option}: {failed:?}"
            );
        }
    }
}
