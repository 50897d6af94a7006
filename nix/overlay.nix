# Adds the hive's packages.
final: _prev: {
  hyperhive-frontend = final.callPackage ./frontend.nix { };
  hyperhive = final.callPackage ./package.nix { };
}
