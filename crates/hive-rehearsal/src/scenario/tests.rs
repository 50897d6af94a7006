//! Every mistake that a person makes in a scenario file is named with its line.

use proptest::prelude::*;

use super::*;

fn fault_of(text: &str) -> error::Fault {
    match Scenario::parse("x.toml", text) {
        Err(ScenarioError::Wrong(fault)) => *fault,
        other => panic!("{text}\n{other:?}"),
    }
}

#[test]
fn mistakes_are_named_with_line_key_and_what_was_meant() {
    #[rustfmt::skip]
    let table: &[(&str, usize, &str, Option<&str>)] = &[
        ("scema = 1", 1, "unknown field `scema`", Some("schema")),
        ("schema = 2", 1, "schema 2 is not known", None),
        ("strict = 1", 1, "invalid type", None),
        ("[[rule]]\nname = 'a'\n", 1, "needs an `answer` or a `fault`", None),
        ("[[rule]]\nanswer.text = 'a'\n\n[[rule]]\nanswr.text = 'b'\n", 5, "unknown field `answr`", Some("answer")),
        ("[[rule]]\nwhen.last_usr = 'a'\nanswer.text = 'b'", 2, "unknown field `last_usr`", Some("last_user")),
        ("[[rule]]\nwhen = { last_user = { regx = 'a' } }\nanswer.text = 'b'", 2, "unknown field `regx`", Some("regex")),
        ("[[rule]]\nanswer.text = 'b'\nwhen.last_user.regex = '(a'", 3, "no regex: error: unclosed group", None),
        ("[[rule]]\nwhen.request = 'trun'\nanswer.text = 'b'", 2, "unknown variant `trun`", Some("turn")),
        ("[[rule]]\nwhen.step = -1\nanswer.text = 'b'", 2, "-1 is below 0", None),
        ("[[rule]]\nwhen.step = { from = 3, to = 2 }\nanswer.text = 'b'", 2, "`from` is after `to`", None),
        ("[[rule]]\nwhen.step = 'one'\nanswer.text = 'b'", 2, "a number, a list of numbers", None),
        ("[[rule]]\nanswer.text = 'hi {{las_user}}'", 2, "did you mean `last_user`?", None),
        ("[[rule]]\nanswer.text = 'hi {{from | lin}}'", 2, "no filter `lin`; did you mean `line`?", None),
        ("[[rule]]\nanswer.text = 'hi {{from'", 2, "never closed", None),
        ("[[rule]]\nname = 'g'\nwhen.body.regex = '(a)'\nanswer.text = '{{match.2}}'", 1, "`{{match.2}}` is no group", None),
        ("[[rule]]\nanswer.tools = [{ name = 'x', input = { a = '{{match.b}}' } }]", 1, "`{{match.b}}` is no group", None),
        ("[[rule]]\nanswer.tools = [{ name = 'x', input = { a = 2020-01-01 } }]", 2, "JSON has no dates", None),
        ("[[rule]]\nanswer.stop_reason = 'ended'", 2, "unknown variant `ended`", None),
        ("[[rule]]\nanswer.delay_ms = 99999999999", 2, "too long", None),
        ("[[rule]]\nanswer.chunk_chars = 0", 2, "at least 1 character", None),
        ("[[rule]]\nanswer.headers = { 'a b' = 'c' }", 2, "no name of a header", None),
        ("[[rule]]\nanswer.headers = { content-length = '3' }", 2, "the server's own", None),
        ("[[rule]]\ntimes = 0\nanswer.text = 'x'", 1, "`times` must be at least 1", None),
        ("[[rule]]\nfault = 'overlaoded'", 2, "unknown variant `overlaoded`", Some("overloaded")),
        ("[[rule]]\nfault = { kind = 'stall', retry_after_secs = 3 }", 2, "`retry_after_secs` means nothing", None),
        ("[[rule]]\nfault = { kind = 'status' }", 2, "needs `status`", None),
        ("[[rule]]\nfault = { kind = 'status', status = 200 }", 2, "200 is no error status", None),
        ("[[rule]]\nfault = 'refused'", 2, "either `for_ms` or `connections`", None),
        ("[[rule]]\nfault = { kind = 'rate_limit', reset_at = 'noon' }", 2, "`noon` is no time", None),
        ("[[rule]]\nfault = 'overloaded'\nanswer.text = 'x'", 1, "no room for an `answer`", None),
        ("[[rule]\n", 1, "", None),
        ("a = \u{0}", 1, "", None),
    ];
    for (text, line, message, meant) in table {
        let fault = fault_of(text);
        assert_eq!(fault.line, *line, "{text}\n{fault}");
        assert!(fault.message.contains(message), "{text}\n{fault}");
        assert_eq!(fault.meant.as_deref(), *meant, "{text}\n{fault}");
        assert_eq!(fault.rule.is_some(), text.contains("[[rule]]"), "{fault}");
        assert!(
            fault.to_string().starts_with(&format!("x.toml:{line}:")),
            "{fault}"
        );
    }
}

#[test]
fn an_error_shows_the_place() {
    let text = "[[rule]]\nanswer.text = 'a'\n\n[[rule]]\nfault = 'overlaoded'\n";
    let shown = fault_of(text).to_string();
    assert!(
        shown.contains("(in rule 2); did you mean `overloaded`?"),
        "{shown}"
    );
    assert!(
        shown.ends_with("\n 5 | fault = 'overlaoded'\n   |         ^"),
        "{shown}"
    );
}

#[test]
fn names_that_are_none_are_answered_with_those_there_are() {
    let error = Scenario::find("tuor").unwrap_err().to_string();
    assert!(error.contains("did you mean `tour`?"), "{error}");
    let error = Scenario::find("quite-another").unwrap_err().to_string();
    assert!(error.contains("tour, echo, weather"), "{error}");
    let error = Scenario::find("./no/such.toml").unwrap_err().to_string();
    assert!(
        error.contains("cannot read the scenario ./no/such.toml"),
        "{error}"
    );
}

#[test]
fn what_is_built_in_can_be_played() {
    for builtin in builtin::ALL {
        let scenario = Scenario::find(builtin.name).unwrap();
        assert!(!scenario.description.is_empty() && !scenario.rules.is_empty());
        let names: std::collections::HashSet<_> =
            scenario.rules.iter().map(|rule| &rule.name).collect();
        assert_eq!(
            names.len(),
            scenario.rules.len(),
            "{}: names are unique",
            builtin.name
        );
    }
}

/// Words of the format in any order: nearer to real files than random characters.
fn words() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("[[rule]]\n".to_owned()),
        Just("\nwhen.last_user = ".to_owned()),
        Just("\nwhen.step = ".to_owned()),
        Just("\nanswer.text = ".to_owned()),
        Just("\nanswer.tools = ".to_owned()),
        Just("\nfault = ".to_owned()),
        Just("{ kind = 'rate_limit', reset_at = ".to_owned()),
        Just("{ regex = '(a".to_owned()),
        Just("{ from = 1, to = ".to_owned()),
        Just("'{{match.1}} {{from|line}} {{'".to_owned()),
        Just("[{ name = 'x', input = { a = [1, 'b'] } }]".to_owned()),
        Just("}".to_owned()),
        Just("'overloaded'".to_owned()),
        "[ -~\u{e9}\u{1f600}\n]{0,8}",
        any::<i64>().prop_map(|number| number.to_string()),
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn prop_no_file_makes_the_reader_panic(text in words()) {
        if let Err(error) = Scenario::parse("x.toml", &text) {
            prop_assert!(error.to_string().contains("x.toml:"));
        }
    }

    #[test]
    fn prop_no_text_makes_the_reader_panic(text in "\\PC{0,60}") {
        drop(Scenario::parse("x.toml", &text));
        drop(template::Template::parse(&text));
    }

    #[test]
    fn prop_an_escaped_text_says_itself(text in "[a-z{}\" \n|]{0,30}") {
        let escaped = template::Template::escape(&text);
        let template = template::Template::parse(&escaped).unwrap();
        let ask = crate::ask::Ask::read(
            crate::ask::Api::Anthropic, &serde_json::json!({"messages": []}), 0);
        let captured = when::Captured::default();
        let scene = template::Scene { ask: &ask, call: 1, nth: 1, captured: &captured };
        prop_assert_eq!(template.render(&scene), text);
    }
}
