# The pages, which the host's binary holds and an agent's configuration may replace.
{
  lib,
  buildNpmPackage,
}:
buildNpmPackage {
  pname = "hyperhive-frontend";
  version = "0.1.0";
  src = lib.fileset.toSource {
    root = ../web;
    fileset = lib.fileset.fileFilter (file: !file.hasExt "md") ../web;
  };
  # `prefetch-npm-deps web/package-lock.json` prints it; a build with a wrong one names the right one.
  npmDepsHash = lib.fakeHash;
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
