# The values of options: the same as those of agent.toml, so that neither takes what the other refuses.
{ lib }:
let
  inherit (lib) types;
  described = description: type: type // { inherit description; };
  isLine = text: builtins.stringLength text <= 4000 && builtins.match "[^[:cntrl:]]+" text != null;
  # Printable ASCII without `"<>\^`, backquotes and braces, and nobody's name before the host.
  isHttp =
    url:
    builtins.stringLength url <= 2000
    && builtins.match "[]!#-;=?-[_a-z~]+" url != null
    && builtins.match "https?://[^/?#@]+([/?#].*)?" url != null;
  hasPlainNames =
    path: lib.all (name: name != "" && name != "." && name != "..") (lib.splitString "/" path);
in
{
  line = described "one line of text" (types.addCheck types.str isLine);
  shortLine = described "one line of text of at most 200 bytes" (
    types.addCheck types.str (text: isLine text && builtins.stringLength text <= 200)
  );
  lineOrNone = described "one line of text or nothing" (
    types.addCheck types.str (text: text == "" || isLine text)
  );
  word = types.strMatching "[A-Za-z0-9_.@-]{1,64}";
  httpUrl = described "http(s) address" (types.addCheck types.str isHttp);
  httpUrlOrNone = described "http(s) address or nothing" (
    types.addCheck types.str (url: url == "" || isHttp url)
  );
  mountPath = described "absolute path without `..`, `.`, `//` or `:`" (
    types.addCheck (types.strMatching "/[^:[:cntrl:]]+") (
      path: hasPlainNames (builtins.substring 1 (-1) path)
    )
  );
  isTarget = path: builtins.match "[A-Za-z0-9_][A-Za-z0-9_./-]*" path != null && hasPlainNames path;
  isServer =
    name: builtins.match "[A-Za-z0-9_-]{1,64}" name != null && builtins.match ".*__.*" name == null;
  # Variables through which an agent could reach for keys, or break the harness, are not its own.
  isFree =
    name:
    let
      upper = lib.toUpper name;
    in
    builtins.match "[A-Z_][A-Z0-9_]{0,127}" upper != null
    &&
      builtins.match "(HIVE_|HYPERHIVE_|ANTHROPIC_|CLAUDE_|OPENAI_|LD_|GIT_CONFIG|AWS_).*" upper == null
    && !(lib.hasSuffix "_PROXY" upper)
    && !(lib.elem upper [
      "PATH"
      "HOME"
      "PWD"
      "SHELL"
      "USER"
      "LOGNAME"
      "BASH_ENV"
      "ENV"
      "IFS"
      "NODE_OPTIONS"
      "NODE_EXTRA_CA_CERTS"
      "SSL_CERT_FILE"
      "SSL_CERT_DIR"
      "NIX_SSL_CERT_FILE"
    ]);
}
