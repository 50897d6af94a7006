# Types of options: `check` says whether a value is one, `merge` puts all definitions together.
lib:
let
  inherit (builtins)
    all
    attrNames
    concatMap
    isAttrs
    isFloat
    isInt
    isList
    isPath
    isString
    ;
  inherit (lib) mergeDefs mergeEqual;
  type = description: check: {
    inherit description check;
    merge = mergeEqual;
    # For those who list all options: those of the submodules in it, and whether names are chosen.
    inner = null;
    isSet = false;
  };
  isDerivation = value: isAttrs value && value.type or null == "derivation";
  isFormat =
    value:
    if isList value then
      all isFormat value
    else if isAttrs value then
      all (name: isFormat value.${name}) (attrNames value)
    else
      value != null && !(builtins.isFunction value);
in
rec {
  bool = type "boolean" builtins.isBool;
  int = type "signed integer" isInt;
  str = type "string" isString;
  path = type "absolute path" (
    value:
    (isPath value || isString value || isDerivation value)
    && builtins.substring 0 1 (toString value) == "/"
  );
  package = type "package" isDerivation;
  enum = values: type "one of ${builtins.toJSON values}" (value: builtins.elem value values);
  strMatching =
    pattern:
    type "string matching the pattern ${pattern}" (
      value: isString value && builtins.match pattern value != null
    );
  ints = {
    between =
      low: high:
      type "integer between ${toString low} and ${toString high} (both inclusive)" (
        value: isInt value && value >= low && value <= high
      );
    positive = type "positive integer, meaning >0" (value: isInt value && value > 0);
    unsigned = type "unsigned integer, meaning >=0" (value: isInt value && value >= 0);
  };
  port = ints.between 0 65535 // {
    description = "16 bit unsigned integer; between 0 and 65535 (both inclusive)";
  };
  numbers.between =
    low: high:
    type
      "integer or floating point number between ${toString low} and ${toString high} (both inclusive)"
      (value: (isInt value || isFloat value) && value >= low && value <= high);

  # What is not looked into.
  raw = type "raw value" (_: true);
  # Several definitions make one text, each on lines of its own.
  lines = str // {
    description = "strings concatenated with \"\\n\"";
    merge = _: defs: builtins.concatStringsSep "\n" (map (def: def.value) defs);
  };
  # What a file format such as TOML can hold; sets are merged into each other.
  format = type "TOML value" isFormat // {
    merge = _: defs: builtins.foldl' (one: def: lib.recursiveUpdate one def.value) { } defs;
  };

  addCheck = of: check: of // { check = value: of.check value && check value; };
  nullOr =
    of:
    type "null or ${of.description}" (value: value == null || of.check value)
    // {
      merge = loc: defs: if all (def: def.value == null) defs then null else of.merge loc defs;
      inherit (of) inner;
    };
  either =
    one: other:
    type "${one.description} or ${other.description}" (value: one.check value || other.check value)
    // {
      merge =
        loc: defs: if all (def: one.check def.value) defs then one.merge loc defs else other.merge loc defs;
    };
  oneOf = types: builtins.foldl' either (builtins.head types) (builtins.tail types);
  listOf =
    of:
    type "list of ${of.description}" isList
    // {
      merge =
        loc: defs:
        let
          entries = concatMap (def: map (value: def // { inherit value; }) def.value) defs;
        in
        lib.imap1 (n: def: (mergeDefs (loc ++ [ "[entry ${toString n}]" ]) of [ def ]).value) entries;
      inherit (of) inner;
    };
  attrsOf =
    of:
    type "attribute set of ${of.description}" isAttrs
    // {
      merge =
        loc: defs:
        let
          names = lib.unique (concatMap (def: attrNames def.value) defs);
          under =
            name:
            concatMap (def: lib.optional (def.value ? ${name}) (def // { value = def.value.${name}; })) defs;
          merged = lib.genAttrs names (name: mergeDefs (loc ++ [ name ]) of (under name));
          defined = builtins.filter (name: merged.${name}.isDefined) names;
        in
        lib.genAttrs defined (name: merged.${name}.value);
      inherit (of) inner;
      isSet = true;
    };
  submodule =
    module:
    let
      eval =
        loc: defs:
        lib.evalModules {
          inherit loc;
          modules = [
            module
          ]
          ++ map (def: {
            _file = def.file;
            config = def.value;
          }) defs;
        };
    in
    type "submodule" isAttrs
    // {
      merge = loc: defs: (eval loc defs).config;
      inner = (eval [ ] [ ]).options;
    };
}
