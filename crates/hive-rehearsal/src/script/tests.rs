use serde_json::json;

use super::*;
use crate::ask::Api;

fn script(text: &str) -> Script {
    Script::new(Arc::new(Scenario::parse("test", text).unwrap()))
}

fn ask(text: &str) -> Ask {
    let body = json!({
        "model": "m", "max_tokens": 10, "tools": [{"name": "Read"}],
        "messages": [{"role": "user", "content": text}],
    });
    Ask::read(Api::Anthropic, &body, body.to_string().len())
}

fn text_of(cue: &Cue) -> &str {
    match &cue.act {
        Act::Reply(reply) => match reply.blocks.as_slice() {
            [Block::Text(text), ..] => text,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

fn say(script: &mut Script, text: &str) -> String {
    text_of(&script.next(&ask(text), Timestamp::UNIX_EPOCH)).to_owned()
}

#[test]
fn the_first_rule_that_matches_and_is_not_used_up_answers() {
    let mut script = script(
        "[[rule]]\nwhen.last_user = 'a'\ntimes = 2\nanswer.text = 'first'\n\
         [[rule]]\nwhen.last_user = { regex = '^a' }\nanswer.text = 'second'\n\
         [[rule]]\nanswer.text = 'last'\n",
    );
    let said: Vec<_> = ["a", "b", "ba", "a", "b"]
        .map(|text| say(&mut script, text))
        .into();
    assert_eq!(said, ["first", "last", "first", "second", "last"]);
}

#[test]
fn nth_counts_the_matches_of_the_rule_and_call_counts_all() {
    let mut script = script(
        "[[rule]]\nwhen = { last_user = 'a', nth = [2, 4] }\nanswer.text = 'nth {{nth}}'\n\
         [[rule]]\nwhen.call = { from = 5 }\nanswer.text = 'late {{call}}'\n\
         [[rule]]\nanswer.text = 'other'\n",
    );
    let said: Vec<_> = ["a", "b", "a", "a", "b", "a", "a"]
        .map(|text| say(&mut script, text))
        .into();
    assert_eq!(
        said,
        [
            "other", "other", "nth 2", "other", "late 5", "nth 4", "late 7"
        ]
    );
}

#[test]
fn every_condition_must_hold() {
    let full = "system = 'sys', model = { equals = 'm' }, tools = ['Read'], step = 0, \
                stream = false, api = 'anthropic', last_user = { contains = 'x', not = 'y' }";
    let table = [
        ("", "x", true),
        ("", "xy", false),
        (", without_tools = ['Read']", "x", false),
        (", without_tools = ['Bash']", "x", true),
        (", from = 'ada'", "x", false),
        (", from = 'ada'", "from: ada\n\nx", true),
        (", body = { equals = 'x' }", "from: ada\n\nx", true),
        (", tool_result = 'r'", "x", false),
        (", tool_error = false", "x", true),
        (", tool_error = true", "x", false),
        (", request = 'summary'", "x", false),
        (", request = 'any'", "x", true),
    ];
    for (more, text, is_match) in table {
        let mut script = script(&format!(
            "[[rule]]\nwhen = {{ {full}{more} }}\nanswer.text = 'ok'"
        ));
        let mut ask = ask(text);
        ask.system = "the sys".to_owned();
        let cue = script.next(&ask, Timestamp::UNIX_EPOCH);
        assert_eq!(cue.rule.is_some(), is_match, "{more} {text}");
    }
}

#[test]
fn tools_that_are_not_offered_are_left_out_only_when_optional() {
    let mut script = script(
        "[[rule]]\nanswer.text = 't'\nanswer.stop_reason = 'tool_use'\n\
         answer.tools = [{ name = 'Gone', optional = true }]\ntimes = 1\n\
         [[rule]]\nanswer.tools = [{ name = 'Gone' }, { name = 'Read', optional = true }]\n",
    );
    let stops = [(); 2].map(
        |()| match script.next(&ask("x"), Timestamp::UNIX_EPOCH).act {
            Act::Reply(reply) => (reply.stop, reply.blocks.len()),
            other => panic!("{other:?}"),
        },
    );
    assert_eq!(stops, [(StopReason::EndTurn, 1), (StopReason::ToolUse, 2)]);
}

#[test]
fn no_tool_is_called_after_the_last_step() {
    let mut script = script("max_steps = 2\n[[rule]]\nanswer.tools = [{ name = 'Read' }]\n");
    let calls = [0, 1, 2, 3].map(|step| {
        let ask = Ask { step, ..ask("x") };
        match script.next(&ask, Timestamp::UNIX_EPOCH).act {
            Act::Reply(reply) => reply.blocks.len(),
            other => panic!("{other:?}"),
        }
    });
    assert_eq!(calls, [1, 1, 0, 0]);
}

#[test]
fn thinking_is_shown_to_those_who_asked_for_it() {
    let mut script = script("[[rule]]\nanswer = { thinking = 'hm', text = 'ok' }");
    for wants_thinking in [false, true] {
        let ask = Ask {
            wants_thinking,
            ..ask("x")
        };
        let Act::Reply(reply) = script.next(&ask, Timestamp::UNIX_EPOCH).act else {
            panic!("no reply");
        };
        let thinks = reply.blocks.contains(&Block::Thinking("hm".into()));
        assert_eq!(thinks, wants_thinking);
    }
}

#[test]
fn what_no_rule_answers_has_a_plain_answer() {
    let mut quiet = script("");
    let summary = Ask {
        purpose: Purpose::Summary,
        ..ask("x")
    };
    let side = Ask {
        purpose: Purpose::Side,
        wants_json: true,
        ..ask("x")
    };
    assert!(say(&mut quiet, "hello").contains("no rule of the scenario `test` answers: hello"));
    let cue = quiet.next(&summary, Timestamp::UNIX_EPOCH);
    assert!(text_of(&cue).contains("<summary>"), "{cue:?}");
    let cue = quiet.next(&side, Timestamp::UNIX_EPOCH);
    assert_eq!(text_of(&cue), r#"{"title":"A rehearsed conversation"}"#);

    let mut strict = script("unmatched = 'fail'\n");
    let cue = strict.next(&ask("hello"), Timestamp::UNIX_EPOCH);
    assert!(matches!(cue.act, Act::Refuse(..)), "{cue:?}");
}

#[test]
fn a_rule_for_turns_does_not_answer_a_compaction() {
    let mut script = script(
        "[[rule]]\nanswer.text = 'x'\n[[rule]]\nwhen.request = 'summary'\nanswer.text = 'sum'",
    );
    let summary = Ask {
        purpose: Purpose::Summary,
        ..ask("x")
    };
    assert_eq!(
        text_of(&script.next(&summary, Timestamp::UNIX_EPOCH)),
        "sum"
    );
}

#[test]
fn the_same_calls_have_the_same_answers() {
    let text = "[[rule]]\nanswer.tools = [{ name = 'Read' }]\n";
    let once = || {
        let mut script = script(text);
        (0..3)
            .map(|_| format!("{:?}", script.next(&ask("x"), Timestamp::UNIX_EPOCH)))
            .collect::<Vec<_>>()
    };
    assert_eq!(once(), once());
}
