# The container of an agent. Its own flake adds its agent.nix and who it is.
{ lib, ... }:
{
  imports = [ ./harness-base.nix ];

  systemd.services.hive.environment.HIVE_ROLE = lib.mkDefault "agent";
}
