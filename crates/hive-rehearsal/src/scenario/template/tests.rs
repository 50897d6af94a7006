use serde_json::json;

use super::*;
use crate::{ask::Api, scenario::json_template::JsonTemplate};

fn ask(prompt: &str) -> Ask {
    let body = json!({
        "model": "m", "tools": [{"name": "Read"}, {"name": "Write"}],
        "messages": [{"role": "user", "content": prompt}],
    });
    Ask::read(Api::Anthropic, &body, 100)
}

fn captured() -> Captured {
    Captured {
        numbered: vec!["5 minutes".into(), "5 minutes".into()],
        named: [
            ("n".to_owned(), "42".to_owned()),
            ("none".to_owned(), String::new()),
        ]
        .into(),
    }
}

#[test]
fn placeholders_are_filled() {
    let ask = ask("Message 12 from ada.\n\n--- c0ffee\nfirst\nsecond\n--- c0ffee");
    let captured = captured();
    let scene = Scene {
        ask: &ask,
        call: 7,
        nth: 2,
        captured: &captured,
    };
    let table = [
        ("plain", "plain"),
        ("{{from}}/{{ body }}", "ada/first\nsecond"),
        ("{{body | line}}", "first"),
        (
            "{{message_id}} {{call}} {{nth}} {{step}} {{model}}",
            "12 7 2 0 m",
        ),
        ("{{tools}} in {{cwd}}", "Read, Write in ."),
        (
            "{{match.1}} {{match.n}} {{match.1 | seconds}}",
            "5 minutes 42 300",
        ),
        ("{{\"{{\"}}from}}", "{{from}}"),
        ("{{tool_result}}", ""),
        ("a } b }} c { d", "a } b }} c { d"),
    ];
    for (template, expected) in table {
        assert_eq!(
            Template::parse(template).unwrap().render(&scene),
            expected,
            "{template}"
        );
    }
}

#[test]
fn numbers_in_inputs_are_numbers_or_left_out() {
    let ask = ask("hi");
    let captured = captured();
    let scene = Scene {
        ask: &ask,
        call: 1,
        nth: 1,
        captured: &captured,
    };
    let input: JsonTemplate = serde_json::from_value(json!({
        "seconds": "{{match.1 | seconds}}",
        "n": "{{match.n | int}}",
        "in_reply_to": "{{message_id | int}}",
        "text": "n={{match.n | int}}",
        "list": ["{{from}}", 1, null],
        "flag": true,
    }))
    .unwrap();
    let expected = json!({
        "seconds": 300, "n": 42, "text": "n=42", "list": ["", 1, null], "flag": true,
    });
    assert_eq!(input.render(&scene).unwrap(), expected);
}

#[test]
fn times_are_read_as_people_write_them() {
    let table = [
        ("90", Some(90)),
        ("20 seconds", Some(20)),
        ("5m", Some(300)),
        ("2 hours", Some(7200)),
        ("1 day", Some(86400)),
        ("a minute", Some(60)),
        ("an hour", Some(3600)),
        ("", None),
        ("soon", None),
        ("5 fortnights", None),
        ("99999999999999999999", None),
        ("9223372036854775807 days", None),
    ];
    for (text, seconds) in table {
        assert_eq!(number(text, Filter::Seconds), seconds, "{text}");
    }
}
