# The options of NixOS that our modules set, with the types that NixOS gives them. Anything else does
# not exist, so that a name that is spelled wrong is found.
{ lib, ... }:
let
  inherit (lib) mkOption types;
  inherit (types)
    attrsOf
    bool
    either
    enum
    int
    lines
    listOf
    nullOr
    oneOf
    package
    path
    port
    raw
    str
    submodule
    ;
  is =
    type: default:
    mkOption {
      inherit type default;
    };
  must = type: mkOption { inherit type; };
  set = options: submodule { inherit options; };
  value = oneOf [
    bool
    int
    str
    path
  ];
in
{
  options = {
    assertions = is (listOf (set {
      assertion = must bool;
      message = must str;
    })) [ ];
    boot = {
      isNspawnContainer = is bool false;
      enableContainers = is bool false;
    };
    containers = is (attrsOf raw) { };
    environment = {
      systemPackages = is (listOf package) [ ];
      etc = is (attrsOf (set {
        source = must path;
      })) { };
    };
    networking = {
      useDHCP = is bool true;
      firewall = {
        allowedTCPPorts = is (listOf port) [ ];
        allowedTCPPortRanges = is (listOf (attrsOf port)) [ ];
      };
    };
    nixpkgs = {
      config = is (attrsOf raw) { };
      hostPlatform = is str "x86_64-linux";
      overlays = is (listOf raw) [ ];
    };
    programs.git = {
      enable = is bool false;
      config = is (attrsOf (attrsOf str)) { };
    };
    security.sudo.extraRules = is (listOf (set {
      users = is (listOf (either str int)) [ ];
      commands = must (
        listOf (set {
          command = must str;
          options = is (listOf (enum [ "NOPASSWD" ])) [ ];
        })
      );
    })) [ ];
    system.stateVersion = is str "";
    systemd.services = is (attrsOf (set {
      description = is str "";
      wantedBy = is (listOf str) [ ];
      wants = is (listOf str) [ ];
      after = is (listOf str) [ ];
      before = is (listOf str) [ ];
      path = is (listOf (either package str)) [ ];
      environment = is (attrsOf (
        nullOr (oneOf [
          str
          path
          package
        ])
      )) { };
      preStart = is lines "";
      script = is lines "";
      serviceConfig = is (attrsOf (either value (listOf value))) { };
    })) { };
    users = {
      users = is (attrsOf (set {
        uid = is (nullOr int) null;
        isNormalUser = is bool false;
        group = is str "";
        home = is path "/var/empty";
      })) { };
      groups = is (attrsOf (set {
        gid = is (nullOr int) null;
      })) { };
    };
  };
}
