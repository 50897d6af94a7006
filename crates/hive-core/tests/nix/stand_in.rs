//! The stand-in of nixpkgs does what these tests rely on: it merges, and refuses, as nixpkgs does.

use hive_testkit::nix;
use serde_json::json;

/// What two modules say of `a` (a text), `b` (a set of numbers) and `c` (a list of sets with an `x`
/// that is 1 unless set), and what comes of it.
const CASES: &[(&str, &str, Result<&str, &str>)] = &[
    ("a = \"x\";", "a = \"x\";", Ok("a = x")),
    ("a = \"x\";", "a = \"y\";", Err("`a' has conflicting")),
    ("a = \"x\";", "a = lib.mkForce \"y\";", Ok("a = y")),
    ("a = \"x\";", "a = lib.mkDefault \"y\";", Ok("a = x")),
    ("a = lib.mkIf false \"x\";", "a = \"y\";", Ok("a = y")),
    ("a = lib.mkMerge [ \"x\" \"x\" ];", "", Ok("a = x")),
    ("a = 1;", "", Err("`a' is not of type `string'")),
    ("a = lib.mkIf false 1;", "", Ok("a = default")),
    ("b.x = 1;", "b.y = 2;", Ok("b = x1y2")),
    ("b.x = 1;", "b.x = lib.mkForce 2;", Ok("b = x2")),
    ("b.x = 1;", "b.x = 2;", Err("`b.x' has conflicting")),
    ("b.x = lib.mkIf false 1;", "", Ok("b = ")),
    ("b = lib.mkIf false { x = \"no number\"; };", "", Ok("b = ")),
    ("b.x = \"1\";", "", Err("`b.x' is not of type")),
    ("c = [ { } ];", "c = [ { x = 2; } ];", Ok("c = 12")),
    (
        "c = [ { y = 1; } ];",
        "",
        Err("`c.[entry 1].y' does not exist"),
    ),
    ("d = 1;", "", Err("`d' does not exist")),
    ("e = 1;", "", Err("`e' is read-only")),
    ("", "", Err("`f' is used but not defined")),
    ("", "", Ok("a = default")),
];

#[test]
fn the_stand_in_of_nixpkgs_merges_and_refuses() {
    let Some(nix) = nix::find() else { return };
    for (one, other, expected) in CASES {
        // What is asked for, so that an option that is never defined is not asked for by all.
        let shown = match expected {
            Ok(shown) => &shown[..1],
            Err(error) => error.trim_start_matches('`').get(..1).unwrap(),
        };
        let result = nix.eval(&format!(
            r#"let
              inherit (lib) mkOption types;
              set = types.submodule {{ options.x = mkOption {{ type = types.int; default = 1; }}; }};
              evaluated = lib.evalModules {{ modules = [
                {{ options = {{
                  a = mkOption {{ type = types.str; default = "default"; }};
                  b = mkOption {{ type = types.attrsOf types.int; default = {{ }}; }};
                  c = mkOption {{ type = types.listOf set; default = [ ]; }};
                  e = mkOption {{ type = types.int; default = 0; readOnly = true; }};
                  f = mkOption {{ type = types.int; }};
                }}; }}
                ({{ lib, ... }}: {{ config = {{ {one} }}; }})
                ({{ lib, ... }}: {{ config = {{ {other} }}; }})
              ]; }};
              inherit (evaluated) config;
              show = {{
                a = config.a;
                b = lib.concatStrings (lib.mapAttrsToList (n: v: n + toString v) config.b);
                c = lib.concatMapStrings (one: toString one.x) config.c;
                d = config.a;
                e = toString config.e;
                f = toString config.f;
              }};
            in "{shown} = " + show.{shown}"#
        ));
        match (result, expected) {
            (Ok(value), Ok(expected)) => assert_eq!(value, json!(expected), "{one} {other}"),
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{one}: {error}"),
            (result, _) => panic!("{one} {other}: {result:?}, not {expected:?}"),
        }
    }
}
