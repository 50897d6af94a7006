# Evaluates our own files without nixpkgs: `nixpkgs/` is a stand-in of what they use of it, which says
# nothing about building. The tests of `crates/hive-core` call what is here.
rec {
  lib = import ./nixpkgs/lib.nix;

  # What `nix flake` would make of our flake.nix.
  flake =
    let
      nixpkgs = {
        inherit lib;
        outPath = ./nixpkgs;
      };
      outputs = (import ../../flake.nix).outputs {
        self = outputs;
        inherit nixpkgs;
        nixpkgs-unstable = nixpkgs;
      };
    in
    outputs;

  # A host, and a container of an agent, with some modules added.
  host =
    modules:
    lib.nixosSystem {
      modules = [
        flake.nixosModules.default
        { nixpkgs.overlays = [ flake.overlays.default ]; }
      ]
      ++ modules;
    };
  agent = modules: flake.nixosConfigurations.agent-base.extendModules { inherit modules; };

  # An agent as a flake makes it that hive-c0re wrote.
  generated = file: ((import file).outputs { hyperhive = flake; }).nixosConfigurations.default;

  # What NixOS refuses to make a system for.
  failed =
    system: map (one: one.message) (builtins.filter (one: !one.assertion) system.config.assertions);

  # The configuration of a system that NixOS does not refuse.
  checked =
    system:
    if failed system == [ ] then
      system.config
    else
      throw "Failed assertions:\n${builtins.concatStringsSep "\n" (failed system)}";

  # A module with which every file that is written is its own content, for a look inside.
  opened.nixpkgs.overlays = [
    (_: prev: {
      writeText = _: text: text;
      formats = builtins.mapAttrs (
        _: format: args:
        format args // { generate = _: builtins.toJSON; }
      ) prev.formats;
    })
  ];

  # A value as text: paths stay where they are instead of being copied, packages are their names.
  plain =
    value:
    if builtins.isPath value then
      toString value
    else if builtins.isList value then
      map plain value
    else if value.type or null == "derivation" then
      value.pname
    else if builtins.isAttrs value then
      builtins.mapAttrs (_: plain) value
    else
      value;

  # Every option of a tree, those of submodules too, with what is said of it. A star stands for a
  # name or a place in a list; a `leaf` holds no further options.
  list =
    prefix: tree:
    lib.concatLists (
      lib.mapAttrsToList (
        name: one:
        let
          here = "${prefix}${name}";
          isLeaf = one.type.inner == null;
        in
        if one._type or null != "option" then
          list "${here}." one
        else
          [
            {
              name = here + lib.optionalString (isLeaf && one.type.isSet) ".*";
              type = one.type.description;
              description = one.description or "";
              isInternal = one.internal or false;
              inherit isLeaf;
            }
          ]
          ++ lib.optionals (!isLeaf) (list "${here}.*." one.type.inner)
      ) tree
    );
}
