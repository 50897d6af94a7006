//! JSON schemas as every model's dialect takes them: one type in one place.
//!
//! A field that may be missing is written by `schemars` as one that may also be null. For what a
//! tool takes, nobody needs the second; for what it answers, it is said with `anyOf`. And it calls
//! Rust's sizes of numbers formats, which clients do not know and complain of.

use rmcp::model::JsonObject;
use serde_json::{Value, json};

const NULL: &str = "null";

/// Nothing that a tool takes is null: a field that is not needed is left out.
pub(crate) fn without_null(schema: &mut JsonObject) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != NULL);
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    if schema.get("default") == Some(&Value::Null) {
        schema.remove("default");
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.retain(|branch| branch["type"] != NULL);
        if let [Value::Object(only)] = branches.as_slice() {
            let only = only.clone();
            schema.remove("anyOf");
            schema.extend(only);
        }
    }
    each_below(schema, &without_null);
}

/// A type that may be null becomes one of two.
pub(crate) fn with_null_apart(schema: &mut JsonObject) {
    if let Some(Value::Array(types)) = schema.get("type") {
        let branches: Vec<Value> = types.iter().map(|kind| json!({"type": kind})).collect();
        schema.remove("type");
        schema.insert("anyOf".to_owned(), branches.into());
    }
    each_below(schema, &with_null_apart);
}

/// Takes the names of Rust's sizes of numbers away; what they mean for a value is said by `minimum`.
pub(crate) fn without_sizes(schema: &mut JsonObject) {
    let is_size = |format: &str| format.starts_with("int") || format.starts_with("uint");
    if schema
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(is_size)
    {
        schema.remove("format");
    }
    each_below(schema, &without_sizes);
}

fn each_below(schema: &mut JsonObject, change: &impl Fn(&mut JsonObject)) {
    for value in schema.values_mut() {
        match value {
            Value::Object(below) => change(below),
            Value::Array(list) => {
                for below in list.iter_mut().filter_map(Value::as_object_mut) {
                    change(below);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(change: impl Fn(&mut JsonObject), schema: Value) -> Value {
        let Value::Object(mut schema) = schema else {
            panic!("a schema is an object");
        };
        change(&mut schema);
        schema.into()
    }

    #[test]
    fn what_a_tool_takes_is_never_null() {
        for (given, expected) in [
            (
                json!({"type": ["integer", "null"], "default": null}),
                json!({"type": "integer"}),
            ),
            (
                json!({"type": "string", "default": ""}),
                json!({"type": "string", "default": ""}),
            ),
            (
                json!({"properties": {"a": {"type": ["string", "null"], "maxLength": 3}}}),
                json!({"properties": {"a": {"type": "string", "maxLength": 3}}}),
            ),
            (
                json!({"anyOf": [{"$ref": "#/$defs/K"}, {"type": "null"}], "description": "d"}),
                json!({"$ref": "#/$defs/K", "description": "d"}),
            ),
        ] {
            assert_eq!(changed(without_null, given), expected);
        }
    }

    #[test]
    fn what_a_tool_answers_says_null_apart() {
        let given = json!({"$defs": {"M": {"oneOf": [
            {"properties": {"at": {"type": ["string", "null"], "description": "when"}}},
        ]}}});
        let expected = json!({"$defs": {"M": {"oneOf": [{"properties": {"at": {
            "anyOf": [{"type": "string"}, {"type": "null"}], "description": "when",
        }}}]}}});
        assert_eq!(changed(with_null_apart, given), expected);
    }

    #[test]
    fn sizes_of_numbers_are_no_formats() {
        let given = json!({"properties": {
            "count": {"type": "integer", "format": "uint32", "minimum": 0},
            "at": {"type": "string", "format": "date-time"},
            // A field of that name is none of our business.
            "format": {"type": "string"},
        }});
        let expected = json!({"properties": {
            "count": {"type": "integer", "minimum": 0},
            "at": {"type": "string", "format": "date-time"},
            "format": {"type": "string"},
        }});
        assert_eq!(changed(without_sizes, given), expected);
    }
}
