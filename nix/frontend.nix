# The pages, which the host's binary holds and an agent's configuration may replace.
{
  lib,
  buildNpmPackage,
  importNpmLock,
}:
buildNpmPackage {
  pname = "hyperhive-frontend";
  version = "0.1.0";
  src = lib.fileset.toSource {
    root = ../web;
    fileset = lib.fileset.fileFilter (file: !file.hasExt "md") ../web;
  };
  # The lock file names every hash already.
  npmDeps = importNpmLock { npmRoot = ../web; };
  inherit (importNpmLock) npmConfigHook;
  installPhase = ''
    runHook preInstall
    cp -r dist $out
    runHook postInstall
  '';
  meta = {
    description = "Pages of hyperhive";
    license = with lib.licenses; [
      mit
      asl20
    ];
  };
}
