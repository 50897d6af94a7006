# What our modules use of nixpkgs' lib, made anew for tests: as much of each function as they need.
let
  inherit (builtins)
    attrNames
    concatStringsSep
    elem
    filter
    isAttrs
    isString
    length
    replaceStrings
    ;
  lib =
    builtins
    // rec {
      types = import ./types.nix lib;

      # Lists, sets, numbers.
      min = one: other: if one < other then one else other;
      optional = condition: value: optionals condition [ value ];
      optionals = condition: list: if condition then list else [ ];
      unique = builtins.foldl' (seen: one: if elem one seen then seen else seen ++ [ one ]) [ ];
      allUnique = list: length (unique list) == length list;
      imap1 = f: list: builtins.genList (n: f (n + 1) (builtins.elemAt list n)) (length list);
      genAttrs =
        names: f:
        builtins.listToAttrs (
          map (name: {
            inherit name;
            value = f name;
          }) names
        );
      findFirst =
        f: default: list:
        builtins.head (filter f list ++ [ default ]);
      mapAttrsToList = f: set: map (name: f name set.${name}) (attrNames set);
      optionalAttrs = condition: set: if condition then set else { };
      recursiveUpdate =
        one: other:
        one
        // builtins.mapAttrs (
          name: value:
          if isAttrs value && isAttrs (one.${name} or null) then recursiveUpdate one.${name} value else value
        ) other;

      # Texts.
      optionalString = condition: text: if condition then text else "";
      concatStrings = concatStringsSep "";
      concatMapStrings = f: list: concatStringsSep "" (map f list);
      splitString = separator: text: filter isString (builtins.split separator text);
      escape = chars: replaceStrings chars (map (char: "\\${char}") chars);
      characters = text: builtins.genList (n: builtins.substring n 1 text) (builtins.stringLength text);
      toUpper = replaceStrings (characters "abcdefghijklmnopqrstuvwxyz") (
        characters "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
      );
      hasPrefix = prefix: text: builtins.substring 0 (builtins.stringLength prefix) text == prefix;
      hasSuffix =
        suffix: text:
        let
          start = builtins.stringLength text - builtins.stringLength suffix;
        in
        start >= 0 && builtins.substring start (-1) text == suffix;
      escapeShellArg =
        arg:
        if builtins.match "[[:alnum:],._+:@%/-]+" (toString arg) == null then
          "'${replaceStrings [ "'" ] [ "'\\''" ] (toString arg)}'"
        else
          toString arg;

      # Options and packages.
      literalExpression = text: {
        _type = "literalExpression";
        inherit text;
      };
      mkEnableOption =
        what:
        lib.mkOption {
          type = types.bool;
          default = false;
          description = "Whether to enable ${what}.";
        };
      mkPackageOption =
        pkgs: name: _:
        lib.mkOption {
          type = types.package;
          default = pkgs.${name};
          description = "The ${name} package to use.";
        };
      getName = package: package.pname;
      getExe = package: "${package}/bin/${package.meta.mainProgram or package.pname}";
      licenses = {
        mit = { };
        asl20 = { };
      };
      platforms.linux = [ "x86_64-linux" ];
      # A file that is named and not there is an error, as in nixpkgs.
      fileset = rec {
        toSource = { root, fileset }: builtins.seq (unions fileset) root;
        unions =
          files:
          map (
            file: if builtins.pathExists file then file else throw "${toString file} does not exist"
          ) files;
        fileFilter = _: path: [ path ];
      };

      # A system, with the packages that its own configuration asks for.
      nixosSystem =
        {
          modules,
          specialArgs ? { },
        }@arguments:
        let
          pkgs = import ./. { inherit (system.config.nixpkgs) config overlays; };
          system = lib.evalModules {
            modules = [ ./nixos.nix ] ++ modules;
            specialArgs = {
              inherit pkgs;
            }
            // specialArgs;
          };
        in
        system
        // {
          extendModules = more: nixosSystem (arguments // { modules = modules ++ more.modules; });
        };
    }
    // import ./modules.nix lib;
in
lib
