# The module system, small: every module is collected, its definitions are sorted into the tree of
# options, and each option merges what it gets. Errors read as those of nixpkgs.
lib:
let
  inherit (builtins)
    concatMap
    filter
    isAttrs
    mapAttrs
    ;
  named = builtins.concatStringsSep ".";
  isA = kind: value: isAttrs value && value._type or null == kind;
  # Only what is short is shown: there may be functions in sets and lists, and paths are copied.
  shown =
    def:
    let
      isShort = builtins.elem (builtins.typeOf def.value) [
        "bool"
        "float"
        "int"
        "null"
        "string"
      ];
    in
    "\n- In `${def.file}'" + lib.optionalString isShort ": ${builtins.toJSON def.value}";
  showDefs = defs: builtins.concatStringsSep "" (map shown defs);
in
rec {
  mkOption = option: option // { _type = "option"; };
  mkIf = condition: content: {
    _type = "if";
    inherit condition content;
  };
  mkMerge = contents: {
    _type = "merge";
    inherit contents;
  };
  # The lowest number wins; a plain value has 100.
  mkOverride = priority: content: {
    _type = "override";
    inherit priority content;
  };
  mkForce = mkOverride 50;
  mkDefault = mkOverride 1000;
  mkOptionDefault = mkOverride 1500;

  # The values that are left of a value with mkIf, mkMerge and mkOverride in it.
  discharge =
    def:
    let
      inherit (def) value;
      into = content: discharge (def // { value = content; });
    in
    if isA "merge" value then
      concatMap into value.contents
    else if isA "if" value then
      if value.condition then into value.content else [ ]
    else if isA "override" value then
      map (inner: inner // { inherit (value) priority; }) (into value.content)
    else
      [ def ];

  # The same for a set of definitions, without looking at any condition: what a module sets may
  # depend on it, and only that.
  pushDown =
    value:
    if isA "merge" value then
      concatMap pushDown value.contents
    else if isA "if" value then
      map (mapAttrs (_: mkIf value.condition)) (pushDown value.content)
    else if isA "override" value then
      map (mapAttrs (_: mkOverride value.priority)) (pushDown value.content)
    else
      [ value ];

  # What the definitions of one option come to.
  mergeDefs =
    loc: type: defs:
    let
      left = map (def: { priority = 100; } // def) (concatMap discharge defs);
      best = builtins.foldl' (least: def: lib.min least def.priority) 9999 left;
      final = filter (def: def.priority == best) left;
      wrong = filter (def: !(type.check def.value)) final;
    in
    {
      inherit final;
      isDefined = final != [ ];
      value =
        if final == [ ] then
          throw "The option `${named loc}' is used but not defined."
        else if wrong != [ ] then
          throw "A definition for option `${named loc}' is not of type `${type.description}'. Definition values:${showDefs wrong}"
        else
          type.merge loc final;
    };

  # For types whose values are not taken apart: all definitions have to be the same.
  mergeEqual =
    loc: defs:
    let
      first = builtins.head defs;
    in
    if builtins.all (def: def.value == first.value) (builtins.tail defs) then
      first.value
    else
      throw "The option `${named loc}' has conflicting definition values:${showDefs defs}";

  evalOption =
    loc: option: defs:
    let
      default = {
        inherit (option) file;
        value = mkOptionDefault option.default;
      };
      all = lib.optional (option ? default) default ++ defs;
      merged = mergeDefs loc option.type all;
    in
    option
    // {
      inherit loc;
      inherit (merged) isDefined;
      files = map (def: def.file) merged.final;
      value =
        if option.readOnly or false && builtins.length all > 1 then
          throw "The option `${named loc}' is read-only, but it's set multiple times."
        else
          merged.value;
    };

  # Sorts definitions into a tree of options. `unknown` are those that no option takes.
  evalTree =
    loc: trees: defs:
    let
      sets = concatMap (def: map (value: def // { inherit value; }) (pushDown def.value)) defs;
      under =
        name: list:
        concatMap (one: lib.optional (one.value ? ${name}) (one // { value = one.value.${name}; })) list;
      namesOf = list: concatMap (one: builtins.attrNames one.value) list;
      sub =
        name:
        let
          here = loc ++ [ name ];
          declared = under name trees;
          found = filter (tree: isA "option" tree.value) declared;
        in
        if found == [ ] then
          evalTree here declared (under name sets)
        else if builtins.length declared > 1 then
          throw "The option `${named here}' is already declared."
        else
          rec {
            options = evalOption here ((builtins.head found).value // { inherit (builtins.head found) file; }) (
              under name sets
            );
            config = options.value;
            unknown = [ ];
          };
      names = lib.unique (namesOf trees);
      subs = lib.genAttrs names sub;
      strays = filter (name: !(subs ? ${name})) (lib.unique (namesOf sets));
    in
    {
      options = mapAttrs (_: one: one.options) subs;
      config = mapAttrs (_: one: one.config) subs;
      unknown =
        map (
          name: "The option `${named (loc ++ [ name ])}' does not exist.${showDefs (under name sets)}"
        ) strays
        ++ concatMap (name: subs.${name}.unknown) names;
    };

  evalModules =
    {
      modules,
      specialArgs ? { },
      loc ? [ ],
    }:
    let
      collect =
        file: module:
        let
          isFile = builtins.isPath module;
          loaded = if isFile then import module else module;
          called = if builtins.isFunction loaded then loaded args else loaded;
          from = called._file or (if isFile then toString module else file);
          isPlain = !(called ? config || called ? options);
          plain = builtins.removeAttrs called [
            "_file"
            "imports"
          ];
        in
        [
          {
            file = from;
            options = called.options or { };
            config = if isPlain then plain else called.config or { };
          }
        ]
        ++ concatMap (collect from) (called.imports or [ ]);
      all = concatMap (collect "<unknown-file>") modules;
      part = name: map (module: { inherit (module) file; } // { value = module.${name}; }) all;
      tree = evalTree loc (part "options") (part "config");
      args = {
        inherit lib;
        inherit (tree) config options;
      }
      // specialArgs;
    in
    {
      inherit (tree) options;
      config = if tree.unknown == [ ] then tree.config else throw (builtins.head tree.unknown);
    };
}
