# The container of the root agent: it also sees every proposed configuration at /agents.
{ lib, ... }:
{
  imports = [ ./harness-base.nix ];

  systemd.services.hive.environment = {
    HIVE_ROLE = lib.mkDefault "manager";
    HIVE_AGENTS_DIR = lib.mkDefault "/agents";
  };
}
