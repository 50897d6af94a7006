# Every option of an agent beneath `hyperhive`: the same as in agent.toml, in camel case.
# `docs/configuration.md` has one table for both; a test compares the three.
{
  config,
  lib,
  options,
  pkgs,
  ...
}:
let
  inherit (lib) mkOption types;
  cfg = config.hyperhive;
  inherit (import ./values.nix { inherit lib; })
    httpUrl
    httpUrlOrNone
    isFree
    isServer
    isTarget
    line
    lineOrNone
    mountPath
    shortLine
    word
    ;
  freeVariables =
    where: env:
    map (name: {
      assertion = isFree name;
      message = "hyperhive.${where}.${name}: the name has to be of letters, digits and `_`, and none that the hive or the system sets";
    }) (lib.attrNames env);
  orNull =
    type:
    mkOption {
      type = types.nullOr type;
      default = null;
    };
  targets = lib.mapAttrsToList (name: file: {
    inherit name;
    target = if file.target == null then name else file.target;
  }) cfg.frontend.extraFiles;
  # The host reads these from agent.toml, before there is a container.
  ofTheHost =
    let
      inherit (options.hyperhive) budget limits;
    in
    {
      inherit (options.hyperhive)
        allowedRecipients
        capabilities
        mounts
        network
        toolGroups
        ;
      "budget.tokens" = budget.tokens;
      "budget.usd" = budget.usd;
      "limits.cpuPercent" = limits.cpuPercent;
      "limits.fileMib" = limits.fileMib;
      "limits.memoryMib" = limits.memoryMib;
      "limits.pids" = limits.pids;
    };
  # Set in agent.toml, or left as it is declared here.
  isForHost =
    file:
    lib.elem file [
      "agent.toml"
      (toString ./options.nix)
    ];
in
{
  options.hyperhive = {
    model = mkOption {
      type = types.nullOr (types.strMatching "[^-[:space:][:cntrl:]][^[:space:][:cntrl:]]{0,99}");
      default = null;
      example = "sonnet";
      description = "The model, until the operator chooses another; the hive's default when null.";
    };
    engine = mkOption {
      type = types.nullOr line;
      default = null;
      description = "`claude`, `native` or a command; the hive's default when null.";
    };
    runtime = mkOption {
      type = types.enum [
        "auto"
        "nixos"
      ];
      default = "auto";
      description = "Where it runs. An agent that has an agent.nix runs in a NixOS container.";
    };
    autoCompact = mkOption {
      type = types.bool;
      default = true;
      description = "Whether the session is compacted before it is full; a full one always is.";
    };
    hiveName = mkOption {
      type = types.nullOr shortLine;
      default = null;
      description = "The hive's name in its prompt; the host's when null.";
    };
    swarmName = mkOption {
      type = types.nullOr shortLine;
      default = null;
      description = "The swarm's name in its prompt; the host's when null.";
    };
    icon = mkOption {
      type = types.nullOr types.path;
      default = null;
      example = lib.literalExpression "./icon.svg";
      description = "An SVG shown on its page and its card; the hive's mark when null.";
    };
    allowedRecipients = mkOption {
      type = types.listOf word;
      default = [ ];
      example = [ "operator" ];
      description = "Whom it may write to; everybody when empty. Its parent is always reachable.";
    };
    network = mkOption {
      type = types.enum [
        "auto"
        "gateway"
        "none"
        "host"
      ];
      default = "auto";
      description = "What it reaches: the model and the world through the host's proxy, the model alone, or all that the host reaches.";
    };
    toolGroups = mkOption {
      type = types.listOf word;
      default = [ ];
      description = "Tool groups that it asks for; the operator grants them.";
    };
    capabilities = mkOption {
      type = types.listOf word;
      default = [ ];
      description = "Capabilities that it asks for; the operator grants them.";
    };
    claudeMarketplaces = mkOption {
      type = types.listOf line;
      default = [ "anthropics/claude-plugins-official" ];
      description = "Where plugins of Claude Code come from.";
    };
    claudePlugins = mkOption {
      type = types.listOf line;
      default = [ ];
      example = [ "formatter@my-marketplace" ];
      description = "Plugins that are installed at every boot.";
    };
    claudePluginsAutoUpdate = mkOption {
      type = types.bool;
      default = false;
      description = "Whether the marketplaces are updated before that.";
    };
    dashboardLinks = mkOption {
      default = [ ];
      description = "Links on its card and its page.";
      type = types.listOf (
        types.submodule {
          options = {
            label = mkOption {
              type = line;
              description = "What it says.";
            };
            url = mkOption {
              type = httpUrl;
              description = "Where it leads.";
            };
            icon = mkOption {
              type = lineOrNone;
              default = "";
              description = "A sign before it.";
            };
          };
        }
      );
    };
    env = mkOption {
      type = types.attrsOf line;
      default = { };
      description = "Further variables of its environment.";
    };
    frontend = {
      dist = mkOption {
        type = types.nullOr types.path;
        default = null;
        description = "A directory that replaces its page; the hive's own when null.";
      };
      extraFiles = mkOption {
        default = { };
        description = "Files and directories that its page's port serves besides, by what they are served under.";
        type = types.attrsOf (
          types.submodule {
            options = {
              source = mkOption {
                type = types.path;
                description = "A file or directory.";
              };
              target = mkOption {
                type = types.nullOr types.str;
                default = null;
                description = "What it is served under; the attribute's name when null.";
              };
            };
          }
        );
      };
    };
    forge.url = mkOption {
      type = httpUrlOrNone;
      default = "http://localhost:3000";
      description = "The forge that its tools use; empty for none.";
    };
    matrix.url = mkOption {
      type = httpUrlOrNone;
      default = "http://localhost:8008";
      description = "The Matrix homeserver that it uses; empty for none.";
    };
    cargo.shortMessages = mkOption {
      type = types.bool;
      default = true;
      description = "Whether cargo prints short messages in background commands.";
    };
    user = {
      name = mkOption {
        type = types.nullOr (types.strMatching "[a-z_][a-z0-9_-]{0,30}");
        default = null;
        description = "The name of its unix user; `agent` when null.";
      };
      uid = mkOption {
        type = types.nullOr (types.ints.between 1000 60000);
        default = null;
        description = "The number of its unix user; 1000 when null.";
      };
      gid = mkOption {
        type = types.nullOr (types.ints.between 1000 60000);
        default = null;
        description = "The number of its group; that of the user when null.";
      };
      passwordlessSudo = mkOption {
        type = types.bool;
        default = true;
        description = "Whether it may become root inside the container without a password.";
      };
    };
    mcpServers = mkOption {
      default = { };
      description = "Further MCP servers: a command, or an address.";
      type = types.attrsOf (
        types.submodule {
          options = {
            command = mkOption {
              type = types.nullOr line;
              default = null;
              description = "The program that is it.";
            };
            args = mkOption {
              type = types.listOf types.str;
              default = [ ];
              description = "Its arguments.";
            };
            env = mkOption {
              type = types.attrsOf line;
              default = { };
              description = "Its environment.";
            };
            url = mkOption {
              type = types.nullOr httpUrl;
              default = null;
              description = "Where it is reached, instead of a command.";
            };
            allowedTools = mkOption {
              type = types.nullOr (types.listOf (types.strMatching "[A-Za-z0-9_-]{1,128}"));
              default = null;
              description = "Its tools that may be used; all of them when null.";
            };
          };
        }
      );
    };
    mounts = mkOption {
      default = [ ];
      description = "Directories of the host that it sees.";
      type = types.listOf (
        types.submodule {
          options = {
            source = mkOption {
              type = mountPath;
              description = "Where it lies on the host.";
            };
            target = mkOption {
              type = types.nullOr mountPath;
              default = null;
              description = "Where the agent sees it; at the same path when null.";
            };
            writable = mkOption {
              type = types.bool;
              default = false;
              description = "Whether it may change it.";
            };
          };
        }
      );
    };
    limits = {
      memoryMib = orNull types.ints.positive // {
        description = "Memory of all of its processes, in MiB.";
      };
      pids = orNull types.ints.positive // {
        description = "Processes and threads.";
      };
      cpuPercent = orNull types.ints.positive // {
        description = "Processor time, in hundredths of a processor.";
      };
      fileMib = orNull types.ints.positive // {
        description = "The largest single file, in MiB.";
      };
    };
    budget = {
      tokens = orNull types.ints.unsigned // {
        description = "What it may use in a day, in tokens of every kind.";
      };
      usd = orNull (types.numbers.between 0 1000000) // {
        description = "What it may spend in a day, in US dollars.";
      };
    };

    # Beneath here is what the host and the templates set; none of it is for an agent.nix.
    hostUid = mkOption {
      type = types.nullOr types.ints.positive;
      default = null;
      internal = true;
      description = "The host's user that its directories belong to: nothing maps the numbers of users inside.";
    };
    staticDir = mkOption {
      type = types.nullOr types.package;
      internal = true;
      readOnly = true;
      description = "The files of its page, merged.";
    };
  };

  config = {
    hyperhive.staticDir =
      if cfg.frontend.extraFiles == { } && cfg.frontend.dist == null then
        null
      else
        pkgs.runCommand "hyperhive-static" { } (
          ''
            mkdir $out
          ''
          + lib.optionalString (cfg.frontend.dist != null) ''
            cp -r ${cfg.frontend.dist}/. $out/
            chmod -R u+w $out
          ''
          + lib.concatMapStrings (
            file:
            let
              to = lib.escapeShellArg file.target;
            in
            ''
              if [ -e $out/${to} ]; then
                echo "frontend.extraFiles: ${file.target} is there already" >&2
                exit 1
              fi
              mkdir -p "$(dirname $out/${to})"
              cp -r ${cfg.frontend.extraFiles.${file.name}.source} $out/${to}
              chmod -R u+w $out/${to}
            ''
          ) targets
        );

    assertions =
      map (file: {
        assertion = isTarget file.target;
        message = "hyperhive.frontend.extraFiles: `${file.target}` has to begin with a letter, a digit or `_`, and go on with those and `./-`, without `..`";
      }) targets
      ++ [
        {
          assertion = lib.allUnique (map (file: file.target) targets);
          message = "hyperhive.frontend.extraFiles: two files are served under one name";
        }
      ]
      ++ lib.mapAttrsToList (name: server: {
        assertion = (server.command == null) != (server.url == null);
        message = "hyperhive.mcpServers.${name} needs either a `command` or a `url`";
      }) cfg.mcpServers
      ++ lib.mapAttrsToList (name: server: {
        assertion = server.url == null || (server.args == [ ] && server.env == { });
        message = "hyperhive.mcpServers.${name} has a `url`, so that `args` and `env` mean nothing";
      }) cfg.mcpServers
      ++ lib.mapAttrsToList (name: _: {
        assertion = isServer name;
        message = "hyperhive.mcpServers.${name}: the name has to be of letters, digits, `-` and single `_`";
      }) cfg.mcpServers
      ++ lib.mapAttrsToList (name: _: {
        assertion =
          !(lib.elem name [
            "hyperhive"
            "bash"
            "matrix"
            "forge"
          ]);
        message = "hyperhive.mcpServers.${name} is a server of the hive's own";
      }) cfg.mcpServers
      ++ lib.mapAttrsToList (name: option: {
        assertion = lib.all isForHost option.files;
        message = "hyperhive.${name} is enforced by the host, which does not read agent.nix: say it in an agent.toml beside it";
      }) ofTheHost
      ++ freeVariables "env" cfg.env
      ++ lib.concatLists (
        lib.mapAttrsToList (name: server: freeVariables "mcpServers.${name}.env" server.env) cfg.mcpServers
      );
  };
}
