# What every agent's container has: the harness, its companions, its user.
{
  config,
  hyperhive,
  lib,
  options,
  pkgs,
  ...
}:
let
  cfg = config.hyperhive;
  userName = if cfg.user.name == null then "agent" else cfg.user.name;
  firstOf = lib.findFirst (number: number != null) 1000;
  uid = firstOf [
    cfg.hostUid
    cfg.user.uid
  ];
  gid = firstOf [
    cfg.hostUid
    cfg.user.gid
    uid
  ];
  json = pkgs.formats.json { };
  extraMcp = json.generate "extra-mcp.json" {
    mcpServers = lib.mapAttrs (
      _: server:
      (
        if server.url != null then
          {
            type = "http";
            inherit (server) url;
          }
        else
          {
            type = "stdio";
            inherit (server) command args env;
          }
      )
      // lib.optionalAttrs (server.allowedTools != null) { inherit (server) allowedTools; }
    ) cfg.mcpServers;
  };
  links = json.generate "hyperhive-dashboard-links.json" cfg.dashboardLinks;
  icon = if cfg.icon == null then ../icon.svg else cfg.icon;
  # What the container's configuration says, as a file: systemd lets files win over a unit's own
  # variables, and the later one over the earlier. The host's file comes first.
  ownEnv = pkgs.writeText "hive.env" (
    lib.concatStrings (
      lib.mapAttrsToList (
        name: value:
        let
          quoted = lib.escape [
            "\\"
            "\""
            "$"
            "`"
          ] (toString value);
        in
        lib.optionalString (value != null) "${name}=\"${quoted}\"\n"
      ) config.systemd.services.hive.environment
    )
  );
  # A one-shot at boot that runs as the agent and is no reason to fail the boot.
  atBoot = description: script: {
    inherit description script;
    wantedBy = [ "multi-user.target" ];
    before = [ "hive.service" ];
    path = [ "/run/current-system/sw" ];
    serviceConfig = {
      Type = "oneshot";
      RemainAfterExit = true;
      User = userName;
      Group = userName;
    };
  };
in
{
  imports = [ ../options.nix ];

  config = {
    # The second is what older releases call the first.
    boot =
      if options.boot ? isNspawnContainer then { isNspawnContainer = true; } else { isContainer = true; };
    system.stateVersion = lib.mkDefault "25.11";
    networking.useDHCP = lib.mkDefault false;

    nixpkgs.overlays = [
      hyperhive.overlays.default
      hyperhive.overlays.claude-unstable
    ];
    nixpkgs.config.allowUnfreePredicate = pkg: lib.getName pkg == "claude-code";

    users.users.${userName} = {
      inherit uid;
      isNormalUser = true;
      group = userName;
      home = "/home/agent";
    };
    users.groups.${userName} = {
      inherit gid;
    };
    security.sudo.extraRules = lib.mkIf cfg.user.passwordlessSudo [
      {
        users = [ userName ];
        commands = [
          {
            command = "ALL";
            options = [ "NOPASSWD" ];
          }
        ];
      }
    ];

    environment.systemPackages = [
      pkgs.hyperhive
      pkgs.claude-code
      pkgs.git
      pkgs.tea
      pkgs.curl
    ];
    programs.git.enable = true;

    environment.etc."hyperhive/icon.svg".source = icon;
    environment.etc."hyperhive/extra-mcp.json" = lib.mkIf (cfg.mcpServers != { }) {
      source = extraMcp;
    };

    systemd.services = {
      hive = {
        description = "Turn loop of the agent";
        wantedBy = [ "multi-user.target" ];
        after = [ "hive-bash-daemon.service" ];
        # What an agent adds to environment.systemPackages is there for its tools.
        path = [ "/run/current-system/sw" ];
        environment =
          cfg.env
          // {
            CLAUDE_CONFIG_DIR = "/home/agent/.claude";
            HOME = "/home/agent";
            HIVE_BASH_SOCKET = "/run/hive-bash/socket";
            # The unit below is it: the harness starts none of its own.
            HIVE_BASH_DAEMON = "/run/hive-bash/unit";
            HIVE_FORGE_URL = cfg.forge.url;
            HIVE_MATRIX_URL = cfg.matrix.url;
          }
          // lib.optionalAttrs (cfg.model != null) { HIVE_DEFAULT_MODEL = cfg.model; }
          // lib.optionalAttrs (cfg.engine != null) { HIVE_ENGINE = cfg.engine; }
          # These win over what the agent's flake says of the hive.
          // lib.optionalAttrs (cfg.hiveName != null) { HIVE_NAME = lib.mkOverride 90 cfg.hiveName; }
          // lib.optionalAttrs (cfg.swarmName != null) { HIVE_SWARM = lib.mkOverride 90 cfg.swarmName; }
          // lib.optionalAttrs (!cfg.autoCompact) { HIVE_COMPACT_WATERMARK_TOKENS = "0"; }
          // lib.optionalAttrs (cfg.mcpServers != { }) {
            HIVE_EXTRA_MCP = "/etc/hyperhive/extra-mcp.json";
          }
          // lib.optionalAttrs (cfg.staticDir != null) { HIVE_STATIC_DIR = "${cfg.staticDir}"; }
          // lib.optionalAttrs (cfg.claudePlugins != [ ]) {
            HIVE_CLAUDE_PLUGINS = builtins.toJSON cfg.claudePlugins;
            HIVE_CLAUDE_MARKETPLACES = builtins.toJSON cfg.claudeMarketplaces;
            HIVE_CLAUDE_PLUGINS_AUTO_UPDATE = if cfg.claudePluginsAutoUpdate then "1" else "0";
          };
        serviceConfig = {
          ExecStart = "${pkgs.hyperhive}/bin/hive serve";
          EnvironmentFile = [
            "-/run/hive/env"
            "${ownEnv}"
          ];
          User = userName;
          Group = userName;
          WorkingDirectory = "/state";
          Restart = "on-failure";
          RestartSec = 2;
          TimeoutStopSec = 30;
        };
      };

      hive-bash-daemon = {
        description = "Background commands of the agent";
        wantedBy = [ "multi-user.target" ];
        path = [ "/run/current-system/sw" ];
        environment = cfg.env // {
          HIVE_BASH_SOCKET = "/run/hive-bash/socket";
          HIVE_CARGO_SHORT_MESSAGES = if cfg.cargo.shortMessages then "1" else "0";
          HOME = "/home/agent";
        };
        serviceConfig = {
          ExecStart = "${pkgs.hyperhive}/bin/hive-bash-daemon";
          User = userName;
          Group = userName;
          WorkingDirectory = "/state";
          RuntimeDirectory = "hive-bash";
          RuntimeDirectoryMode = "0700";
          Restart = "on-failure";
        };
      };

      hive-dashboard-links = atBoot "Links on the agent's card and page" ''
        install -m 0600 ${links} /state/hyperhive-dashboard-links.json
      '';

      tea-login = atBoot "Forge login of the agent" ''
        token=/state/forge-token
        [ -s "$token" ] || exit 0
        [ -n ${lib.escapeShellArg cfg.forge.url} ] || exit 0
        umask 077
        mkdir -p /home/agent/.config/tea
        {
          echo "logins:"
          echo "  - name: hive"
          echo "    url: "${lib.escapeShellArg cfg.forge.url}
          echo "    token: $(cat "$token")"
          echo "    default: true"
        } > /home/agent/.config/tea/config.yml
      '';

      forge-avatar-sync = atBoot "The agent's icon as its avatar on the forge" ''
        token=/state/forge-token
        [ -s "$token" ] || exit 0
        [ -n ${lib.escapeShellArg cfg.forge.url} ] || exit 0
        printf 'header = "Authorization: token %s"\n' "$(cat "$token")" |
          curl --config - --silent --show-error --fail --max-time 30 \
            --header "Content-Type: application/json" \
            --data "{\"image\":\"$(base64 -w0 ${icon})\"}" \
            ${lib.escapeShellArg "${cfg.forge.url}/api/v1/user/avatar"} ||
          echo "the avatar was not set" >&2
      '';

      matrix-avatar-sync = atBoot "The agent's icon as its avatar on Matrix" ''
        token=/state/matrix-token
        user=/state/matrix-user
        { [ -s "$token" ] && [ -s "$user" ]; } || exit 0
        [ -n ${lib.escapeShellArg cfg.matrix.url} ] || exit 0
        auth() { printf 'header = "Authorization: Bearer %s"\n' "$(cat "$token")"; }
        uri=$(auth | curl --config - --silent --fail --max-time 30 \
          --header "Content-Type: image/svg+xml" --data-binary @${icon} \
          ${lib.escapeShellArg "${cfg.matrix.url}/_matrix/media/v3/upload"} |
          sed -n 's/.*"content_uri" *: *"\([^"]*\)".*/\1/p')
        [ -n "$uri" ] || { echo "the avatar was not uploaded" >&2; exit 0; }
        auth | curl --config - --silent --fail --max-time 30 --request PUT \
          --header "Content-Type: application/json" --data "{\"avatar_url\":\"$uri\"}" \
          ${lib.escapeShellArg "${cfg.matrix.url}/_matrix/client/v3/profile/"}"$(cat "$user")/avatar_url" ||
          echo "the avatar was not set" >&2
      '';
    };
  };
}
