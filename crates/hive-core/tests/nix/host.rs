//! `services.hyperhive.c0re`: what a host gets.

use std::{collections::BTreeSet, path::Path};

use hive_core::config::Config;
use hive_testkit::nix::{self, Nix};
use hive_wire::host::Runtime;

use crate::{assert_golden, assertions_in};

fn sample() -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/nixos-host.nix");
    nix::path(&file)
}

/// The sample host, with something changed.
fn host(change: &str) -> String {
    let change = format!("{{ services.hyperhive.c0re = {{ {change} }}; }}");
    format!("(host [ {} {change} ])", sample())
}

#[test]
fn n1_n4_the_sample_host_gets_these_units_ports_and_packages() {
    let Some(nix) = nix::find() else { return };
    let actual = nix.eval(&format!(
        r#"let config = checked {}; in plain {{
             inherit (config) boot containers;
             inherit (config.environment) systemPackages;
             inherit (config.networking) firewall;
             inherit (config.programs) git;
             inherit (config.systemd) services;
           }}"#,
        host("")
    ));
    let nowhere = Path::new("/nowhere");
    assert_golden("nixos-host.json", &actual.unwrap(), nowhere);
}

#[test]
fn n1_a_host_without_the_service_gets_nothing() {
    let Some(nix) = nix::find() else { return };
    let actual = nix.eval("(checked (host [ ])).systemd.services");
    assert_eq!(actual, Ok(serde_json::json!({})));
}

/// The hive.toml that a host's unit installs, as the daemon reads it.
fn hive_toml(nix: &Nix, modules: &str) -> Config {
    let script = nix.eval(&format!(
        "(checked (host [ opened {modules} ])).systemd.services.hive-c0re.preStart"
    ));
    let script = script.unwrap();
    let content = script.as_str().unwrap().strip_prefix("install -m 0600 ");
    let content = content.and_then(|rest| rest.strip_suffix(" \"$STATE_DIRECTORY/hive.toml\"\n"));
    let settings: toml::Value = serde_json::from_str(content.unwrap()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("hive.toml");
    std::fs::write(&file, toml::to_string(&settings).unwrap()).unwrap();
    Config::load(&file).unwrap()
}

#[test]
fn n1_the_daemon_reads_the_hive_toml_that_the_module_writes() {
    let Some(nix) = nix::find() else { return };
    let config = hive_toml(&nix, &sample());
    assert_eq!(config.hive.name.as_deref(), Some("hexagon"));
    assert_eq!(config.hive.swarm.as_deref(), Some("north"));
    assert_eq!(config.hive.domain.as_deref(), Some("example.org"));
    assert_eq!(config.hive.root_agent, "queen");
    assert_eq!(config.hive.operator_pronouns, "they/them");
    assert_eq!(config.dashboard.bind.to_string(), "0.0.0.0");
    assert_eq!(config.dashboard.port, 7777);
    assert_eq!(config.dashboard.agent_ports.0, 9100..=9200);
    assert_eq!(config.dashboard.hosts, ["hive.example.org"]);
    assert_eq!(config.agents.runtime, Runtime::Nixos);
    assert_eq!(config.agents.restarts, 3);
    assert_eq!(config.engine.context_windows["haiku"], 100_000);
    assert_eq!(config.engine.context_windows["mine"], 64_000);

    let least = r#"{ services.hyperhive.c0re = { enable = true; hyperhiveFlake = "/x"; }; }"#;
    let (least, default) = (hive_toml(&nix, least), Config::default());
    assert_eq!(least.hive.name, None);
    assert_eq!(least.hive.root_agent, default.hive.root_agent);
    assert_eq!(least.hive.operator_pronouns, default.hive.operator_pronouns);
    assert_eq!(least.dashboard.port, default.dashboard.port);
    assert_eq!(least.dashboard.agent_ports, default.dashboard.agent_ports);
    assert_eq!(least.agents.runtime, Runtime::Nixos);
}

/// What breaks an assertion, and what it then says.
const BROKEN: &[(&str, &str)] = &[
    (
        "agentPorts.from = lib.mkForce 9201;",
        "`from` is greater than `to`",
    ),
    (
        "dashboardPort = lib.mkForce 9150;",
        "lies among the agents' ports",
    ),
    (
        "contextWindowTokens.my-model = 64000;",
        "a part of a model's name",
    ),
    (
        "bind = lib.mkForce \"127.0.0.1\";",
        "opens ports that nobody listens on",
    ),
    (
        "hyperhiveFlake = lib.mkForce null;",
        "has to name the flake",
    ),
    ("}; containers.hm1nd = { ", "remove it from `containers`"),
];

#[test]
fn n1_every_assertion_of_the_host_holds_and_can_fail() {
    let Some(nix) = nix::find() else { return };
    let failed = |change: &str| -> Vec<String> {
        let failed = nix.eval(&format!("failed {}", host(change))).unwrap();
        serde_json::from_value(failed).unwrap()
    };
    assert_eq!(failed(""), Vec::<String>::new());
    for (change, message) in BROKEN {
        let failed = failed(change);
        assert!(
            failed.len() == 1 && failed[0].contains(message),
            "{change}: {failed:?}"
        );
    }
    let own = "}; containers.h-queen = { ";
    assert_eq!(failed(own), failed("}; containers.hm1nd = { "));
    assert_eq!(failed("}; containers.h-ruth = { "), Vec::<String>::new());
    let messages: BTreeSet<_> = BROKEN.iter().map(|(_, message)| message).collect();
    assert_eq!(messages.len(), assertions_in("nix/modules/hive-c0re.nix"));
}

#[test]
fn n1_settings_win_and_only_what_runs_on_nixos_needs_a_flake() {
    let Some(nix) = nix::find() else { return };
    let change = "runtime = lib.mkForce \"bwrap\"; hyperhiveFlake = lib.mkForce null;";
    let config = nix.eval(&format!(
        "let config = checked {}; in {{
           inherit (config.boot) enableContainers;
           inherit (config.systemd.services.hive-c0re) environment;
         }}",
        host(change)
    ));
    let config = config.unwrap();
    assert_eq!(config["enableContainers"], false);
    assert_eq!(config["environment"].get("HYPERHIVE_FLAKE"), None);
    let quiet = "openFirewall = lib.mkForce false;";
    let ports = format!("(checked {}).networking.firewall", host(quiet));
    let none = serde_json::json!({"allowedTCPPorts": [], "allowedTCPPortRanges": []});
    assert_eq!(nix.eval(&ports), Ok(none));
    let sample = r#"{ services.hyperhive.c0re = {
        enable = true; hyperhiveFlake = "/x"; settings.dashboard.port = 7500;
    }; }"#;
    assert_eq!(hive_toml(&nix, sample).dashboard.port, 7500);
}
