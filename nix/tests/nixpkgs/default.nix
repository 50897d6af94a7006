# Packages, in place of nixpkgs: each is a name and what it was made from. Nothing can be built.
{
  system ? "x86_64-linux",
  overlays ? [ ],
  config ? { },
}:
let
  lib = import ./lib.nix;
  # `made` is what a test looks at.
  package = pname: made: {
    type = "derivation";
    outPath = "/nix/store/eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee-${pname}";
    inherit pname made;
    meta = made.meta or { };
  };
  unfree =
    pname:
    let
      it = package pname { };
    in
    if (config.allowUnfreePredicate or (_: false)) it then it else throw "${pname} is unfree";
  base = final: {
    inherit lib;
    stdenv.hostPlatform = { inherit system; };
    callPackage =
      file: args:
      let
        f = import file;
      in
      f (builtins.intersectAttrs (builtins.functionArgs f) final // args);
    rustPlatform.buildRustPackage = args: package args.pname args;
    buildNpmPackage = args: package args.pname args;
    importNpmLock = {
      __functor = _: args: args;
      npmConfigHook = package "npm-config-hook" { };
    };
    runCommand =
      name: _: script:
      package name { inherit script; };
    writeText = name: text: package name { inherit text; };
    formats = {
      json = _: { generate = name: value: package name { inherit value; }; };
      toml = _: {
        type = lib.types.format;
        generate = name: value: package name { inherit value; };
      };
    };
    git = package "git" { };
    tea = package "tea" { };
    curl = package "curl" { };
    nixfmt = package "nixfmt" { };
    claude-code = unfree "claude-code";
  };
  extended = builtins.foldl' (
    before: overlay: final:
    let
      prev = before final;
    in
    prev // overlay final prev
  ) base overlays;
  final = extended final;
in
final
