# The host daemon: unit, configuration, firewall, git.
{
  config,
  lib,
  pkgs,
  ...
}:
let
  inherit (lib)
    mkEnableOption
    mkIf
    mkOption
    mkPackageOption
    types
    ;
  cfg = config.services.hyperhive.c0re;
  toml = pkgs.formats.toml { };
  settings = lib.recursiveUpdate {
    hive = {
      root_agent = cfg.rootAgent;
      operator_pronouns = cfg.operatorPronouns;
    }
    // lib.optionalAttrs (cfg.hiveName != null) { name = cfg.hiveName; }
    // lib.optionalAttrs (cfg.swarmName != null) { swarm = cfg.swarmName; }
    // lib.optionalAttrs (cfg.domain != null) { inherit (cfg) domain; };
    dashboard = {
      inherit (cfg) bind;
      port = cfg.dashboardPort;
      agent_ports = "${toString cfg.agentPorts.from}-${toString cfg.agentPorts.to}";
    };
    engine.context_windows = cfg.contextWindowTokens;
    agents = {
      inherit (cfg) runtime;
    };
  } cfg.settings;
  hiveToml = toml.generate "hive.toml" settings;
in
{
  options.services.hyperhive.c0re = {
    enable = mkEnableOption "hive-c0re, the host daemon of a hive of LLM agents";

    package = mkPackageOption pkgs "hyperhive" { };

    hyperhiveFlake = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "/etc/hyperhive";
      description = ''
        The flake that agents' containers are built from. Its canonical path is the revision that
        is recorded for each agent: when it changes, agents are rebuilt at the next start. A remote
        flake such as `github:…` has none, so that nothing is rebuilt by itself.
      '';
    };

    rootAgent = mkOption {
      type = types.strMatching "([a-z][a-z0-9-]{0,8})?";
      default = "ruth";
      description = "The name of the root agent; empty for none.";
    };

    hiveName = mkOption {
      type = types.nullOr types.str;
      default = null;
      description = "The hive's name.";
    };

    swarmName = mkOption {
      type = types.nullOr types.str;
      default = null;
      description = "The swarm that the hive belongs to.";
    };

    domain = mkOption {
      type = types.nullOr types.str;
      default = null;
      example = "example.org";
      description = "The domain that makes an agent's address.";
    };

    operatorPronouns = mkOption {
      type = types.str;
      default = "she/her";
      description = "How prompts speak of the operator.";
    };

    contextWindowTokens = mkOption {
      type = types.attrsOf (types.ints.between 1000 100000000);
      default = {
        haiku = 200000;
        sonnet = 1000000;
        opus = 1000000;
      };
      description = "The context window of models, by a part of their name.";
    };

    runtime = mkOption {
      type = types.enum [
        "auto"
        "process"
        "bwrap"
        "nspawn"
        "podman"
        "nixos"
      ];
      default = "nixos";
      description = "Where agents run unless their configuration says otherwise.";
    };

    bind = mkOption {
      type = types.str;
      default = "127.0.0.1";
      description = "The address that pages are served on.";
    };

    dashboardPort = mkOption {
      type = types.port;
      default = 7000;
      description = "The dashboard's port.";
    };

    agentPorts = {
      from = mkOption {
        type = types.port;
        default = 8100;
        description = "The first port of agents' pages.";
      };
      to = mkOption {
        type = types.port;
        default = 8999;
        description = "The last port of agents' pages.";
      };
    };

    openFirewall = mkOption {
      type = types.bool;
      default = false;
      description = "Whether the ports of the pages are open to others.";
    };

    environmentFile = mkOption {
      type = types.nullOr types.path;
      default = null;
      example = "/run/secrets/hyperhive.env";
      description = "A file with the keys of models, such as `ANTHROPIC_API_KEY=…`; it stays out of the store.";
    };

    settings = mkOption {
      inherit (toml) type;
      default = { };
      description = "Anything else of hive.toml; see docs/configuration.md.";
    };
  };

  config = mkIf cfg.enable {
    assertions = [
      {
        assertion = cfg.agentPorts.from <= cfg.agentPorts.to;
        message = "services.hyperhive.c0re.agentPorts: `from` is greater than `to`";
      }
      {
        assertion = cfg.dashboardPort < cfg.agentPorts.from || cfg.dashboardPort > cfg.agentPorts.to;
        message = "services.hyperhive.c0re.dashboardPort lies among the agents' ports";
      }
      {
        assertion = lib.all (name: builtins.match "[A-Za-z0-9]+" name != null) (
          lib.attrNames cfg.contextWindowTokens
        );
        message = "services.hyperhive.c0re.contextWindowTokens: a part of a model's name has letters and digits, such as `sonnet`";
      }
      {
        assertion = cfg.openFirewall -> cfg.bind != "127.0.0.1" && cfg.bind != "::1";
        message = "services.hyperhive.c0re.openFirewall opens ports that nobody listens on: set `bind`";
      }
      {
        assertion = cfg.runtime == "nixos" -> cfg.hyperhiveFlake != null;
        message = "services.hyperhive.c0re.hyperhiveFlake has to name the flake that containers are built from";
      }
      {
        assertion = !(config.containers ? hm1nd) && !(config.containers ? "h-${cfg.rootAgent}");
        message = "hyperhive makes the root agent's container itself: remove it from `containers`";
      }
    ];

    environment.systemPackages = [ cfg.package ];
    boot.enableContainers = mkIf (cfg.runtime == "nixos") true;
    programs.git.enable = lib.mkDefault true;

    networking.firewall.allowedTCPPorts = mkIf cfg.openFirewall [
      cfg.dashboardPort
      8000
    ];
    networking.firewall.allowedTCPPortRanges = mkIf cfg.openFirewall [ cfg.agentPorts ];

    systemd.services.hive-c0re = {
      description = "Host daemon of a hive of LLM agents";
      wantedBy = [ "multi-user.target" ];
      after = [ "network-online.target" ];
      wants = [ "network-online.target" ];
      # A service's PATH is not the system's: containers are built with the system's own tools.
      path = [
        pkgs.git
        "/run/current-system/sw"
      ];
      environment = {
        HYPERHIVE_GIT = lib.getExe pkgs.git;
      }
      // lib.optionalAttrs (cfg.hyperhiveFlake != null) {
        HYPERHIVE_FLAKE = cfg.hyperhiveFlake;
      };
      preStart = ''
        install -m 0600 ${hiveToml} "$STATE_DIRECTORY/hive.toml"
      '';
      serviceConfig = {
        Type = "notify";
        ExecStart = "${lib.getExe cfg.package} serve";
        Restart = "on-failure";
        RestartSec = 2;
        StateDirectory = "hyperhive";
        StateDirectoryMode = "0755";
        RuntimeDirectory = "hyperhive";
        RuntimeDirectoryMode = "0700";
        # Running containers hold on to what lies there.
        RuntimeDirectoryPreserve = "yes";
        # Agents outlive the daemon, and the next one finds them again.
        KillMode = "process";
        TimeoutStopSec = 60;
        LimitNOFILE = 65536;
      }
      // lib.optionalAttrs (cfg.environmentFile != null) {
        EnvironmentFile = cfg.environmentFile;
      };
    };
  };
}
