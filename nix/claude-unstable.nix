# Takes Claude Code from nixpkgs-unstable. It is unfree, so the other nixpkgs needs a predicate of
# its own: that of the importing system does not reach in here.
nixpkgs-unstable: final: _prev: {
  inherit
    (import nixpkgs-unstable {
      inherit (final.stdenv.hostPlatform) system;
      config.allowUnfreePredicate = pkg: (final.lib.getName pkg) == "claude-code";
    })
    claude-code
    ;
}
