# Every binary of the hive in one package: hive-c0re looks for the others beside itself.
{
  lib,
  rustPlatform,
  hyperhive-frontend,
}:
rustPlatform.buildRustPackage {
  pname = "hyperhive";
  version = "0.1.0";
  src = lib.fileset.toSource {
    root = ../.;
    fileset = lib.fileset.unions [
      ../Cargo.toml
      ../Cargo.lock
      ../clippy.toml
      ../crates
      ../bench
      ../docs
      ../web
      ../nix
    ];
  };
  cargoLock.lockFile = ../Cargo.lock;
  preBuild = ''
    rm -rf web/dist
    cp -r ${hyperhive-frontend} web/dist
    chmod -R u+w web/dist
  '';
  # The tests start containers, browsers and real engines: `make test` runs them.
  doCheck = false;
  postInstall = ''
    rm -f $out/bin/fake-engine $out/bin/bench
  '';
  meta = {
    description = "A hive of LLM agents on your own machines";
    license = with lib.licenses; [
      mit
      asl20
    ];
    mainProgram = "hive-c0re";
    platforms = lib.platforms.linux;
  };
}
