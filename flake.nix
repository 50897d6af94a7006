{
  description = "hyperhive: a hive of LLM agents on your own machines";

  inputs = {
    nixpkgs.url = "github:NixOS/nixpkgs/nixos-25.11";
    # Claude Code changes weekly; the stable branch lags too far behind.
    nixpkgs-unstable.url = "github:NixOS/nixpkgs/nixos-unstable";
  };

  outputs =
    {
      self,
      nixpkgs,
      nixpkgs-unstable,
    }:
    let
      inherit (nixpkgs) lib;
      systems = [
        "x86_64-linux"
        "aarch64-linux"
      ];
      forAll = lib.genAttrs systems;
      pkgsFor =
        system:
        import nixpkgs {
          inherit system;
          overlays = [ self.overlays.default ];
        };
      container =
        module:
        lib.nixosSystem {
          specialArgs = {
            hyperhive = self;
          };
          modules = [
            { nixpkgs.hostPlatform = lib.mkDefault "x86_64-linux"; }
            module
          ];
        };
    in
    {
      overlays = {
        default = import ./nix/overlay.nix;
        claude-unstable = import ./nix/claude-unstable.nix nixpkgs-unstable;
      };

      packages = forAll (system: {
        inherit (pkgsFor system) hyperhive hyperhive-frontend;
        default = (pkgsFor system).hyperhive;
      });

      nixosModules = {
        hive-c0re = ./nix/modules/hive-c0re.nix;
        default = self.nixosModules.hive-c0re;
      };

      # What the generated flake of an agent extends.
      nixosConfigurations = {
        agent-base = container ./nix/templates/agent-base.nix;
        manager = container ./nix/templates/manager.nix;
      };

      lib = {
        fromToml = import ./nix/lib/from-toml.nix;
      };

      formatter = forAll (system: (pkgsFor system).nixfmt);
    };
}
