# Turns an agent.toml into a module: the same options, their names in camel case. Names that the
# user chose (variables, servers, files) stay as they are.
path: {
  # Where values come from: see `ofTheHost` in options.nix.
  _file = "agent.toml";
  hyperhive =
    let
      camel =
        name:
        let
          words = builtins.filter builtins.isString (builtins.split "_" name);
          upper =
            word:
            let
              first = builtins.substring 0 1 word;
              rest = builtins.substring 1 (builtins.stringLength word) word;
              letters = "abcdefghijklmnopqrstuvwxyz";
              capitals = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
            in
            builtins.replaceStrings (chars letters) (chars capitals) first + rest;
          chars = text: builtins.genList (n: builtins.substring n 1 text) (builtins.stringLength text);
        in
        builtins.head words + builtins.concatStringsSep "" (map upper (builtins.tail words));
      chosen = [
        "env"
        "mcpServers"
        "extraFiles"
      ];
      # Paths of the repository, which are relative in agent.toml.
      file = name: path + "/../${name}";
      isPath =
        where:
        builtins.elem where [
          "icon"
          "frontend.dist"
          "frontend.extraFiles.*.source"
        ];
      convert =
        where: value:
        if builtins.isList value then
          map (convert "${where}.*") value
        else if builtins.isAttrs value then
          builtins.listToAttrs (
            map (
              name:
              let
                isChosen = builtins.elem (last where) chosen;
                own = if isChosen then name else camel name;
                beneath = if isChosen then "*" else own;
              in
              {
                name = own;
                value = convert (if where == "" then beneath else "${where}.${beneath}") value.${name};
              }
            ) (builtins.attrNames value)
          )
        else if isPath where then
          file value
        else
          value;
      last =
        where:
        let
          words = builtins.filter builtins.isString (builtins.split "\\." where);
        in
        builtins.elemAt words (builtins.length words - 1);
      read = builtins.fromTOML (builtins.readFile path);
    in
    convert "" (builtins.removeAttrs read [ "runtime" ]);
}
