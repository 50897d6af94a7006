//! Taking secrets out of what is written down.
//!
//! Headers and fields that are secret by their name, and texts that look like keys wherever they
//! stand. A masked secret keeps four hex digits of a hash, so that two keys can be told apart and
//! neither can be found again.

use std::sync::LazyLock;

use hyper::HeaderMap;
use regex::{Captures, Regex};
use serde_json::Value;

/// Names of headers and JSON fields whose value is secret.
const SECRET_NAMES: [&str; 18] = [
    "access_token",
    "api-key",
    "api_key",
    "apikey",
    "authorization",
    "client_secret",
    "cookie",
    "id_token",
    "password",
    "proxy-authorization",
    "refresh_token",
    "secret",
    "secret_key",
    "set-cookie",
    "x-amz-security-token",
    "x-api-key",
    "x-auth-token",
    "x-goog-api-key",
];

static LOOKS_SECRET: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = [
        r"\bsk-[A-Za-z0-9_-]{8,}",
        r"(?i:\bbearer\s+)[A-Za-z0-9_.~+/=-]{8,}",
        r"\bgh[pousr]_[A-Za-z0-9]{20,}",
        r"\bgithub_pat_\w{20,}",
        r"\bglpat-[\w-]{16,}",
        r"\bxox[abeprs]-[\w-]{10,}",
        r"\bAKIA[0-9A-Z]{16}\b",
        r"\bAIza[\w-]{30,}",
        r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]{4,}",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----",
    ]
    .join("|");
    Regex::new(&pattern).expect("a pattern of our own compiles")
});

static SECRET_IN_QUERY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)([?&](?:api_?key|key|token|access_token|code)=)([^&#]+)")
        .expect("a pattern of our own compiles")
});

/// The headers as a JSON object, secrets masked.
pub(crate) fn headers(headers: &HeaderMap) -> std::collections::BTreeMap<String, String> {
    headers
        .iter()
        .map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            let value = if is_secret_name(name.as_str()) {
                masked(&value)
            } else {
                text(&value)
            };
            (name.as_str().to_owned(), value)
        })
        .collect()
}

/// A path with its query, secrets masked.
pub(crate) fn path(path: &str) -> String {
    let masked = SECRET_IN_QUERY.replace_all(path, |found: &Captures<'_>| {
        format!("{}{}", &found[1], masked(&found[2]))
    });
    text(&masked)
}

/// Masks secrets in a JSON value, in place.
pub(crate) fn json(value: &mut Value) {
    match value {
        Value::String(found) => {
            if LOOKS_SECRET.is_match(found) {
                *found = text(found);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(json),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(secret) if is_secret_name(name) => *secret = masked(secret),
                    field => json(field),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text with everything that looks like a secret masked.
pub(crate) fn text(text: &str) -> String {
    LOOKS_SECRET
        .replace_all(text, |found: &Captures<'_>| masked(&found[0]))
        .into_owned()
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.binary_search(&name.as_str()).is_ok()
}

fn masked(secret: &str) -> String {
    let mut hash = 0x811c_9dc5_u32;
    for byte in secret.bytes() {
        hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    }
    format!("***{:04x}", (hash >> 16) ^ (hash & 0xffff))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_and_the_rest_is_kept() {
        #[rustfmt::skip]
        let table = [
            "sk-ant-api03-abcdefgh_IJKL-mnop",
            "sk-proj-0123456789",
            "Bearer abcdefgh.ijkl",
            "ghp_0123456789abcdefghijABCDEFGHIJ",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefg",
            "-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----",
        ];
        for secret in table {
            let masked = text(&format!("before {secret} after"));
            assert!(!masked.contains(secret), "{masked}");
            assert!(
                masked.starts_with("before ***") && masked.ends_with(" after"),
                "{masked}"
            );
        }
        for harmless in [
            "task-force",
            "risk-assessment-done",
            "bearer of news",
            "a sk-1 b",
        ] {
            assert_eq!(text(harmless), harmless);
        }
    }

    #[test]
    fn fields_are_masked_by_name_and_by_look() {
        let mut value = json!({
            "password": "x", "deep": [{"api_key": "y", "note": "use sk-ant-abcdefghijk"}],
            "properties": {"password": {"type": "string"}}, "n": 1,
        });
        json(&mut value);
        let written = value.to_string();
        assert!(
            !written.contains("sk-ant") && !written.contains("\"x\""),
            "{written}"
        );
        assert_eq!(value["properties"]["password"]["type"], "string");
        assert_ne!(masked("one"), masked("two"));
        assert_eq!(masked("one"), masked("one"));
    }

    #[test]
    fn headers_and_queries_are_masked() {
        let mut map = HeaderMap::new();
        map.insert("X-Api-Key", "short".parse().unwrap());
        map.insert("x-other", "sk-ant-abcdefghijk".parse().unwrap());
        map.insert("accept", "text/plain".parse().unwrap());
        let headers = headers(&map);
        assert!(headers["x-api-key"].starts_with("***"));
        assert!(headers["x-other"].starts_with("***"));
        assert_eq!(headers["accept"], "text/plain");
        assert!(!path("/v1/models?key=hunter2&x=1").contains("hunter2"));
        assert!(path("/v1/models?key=hunter2&x=1").ends_with("&x=1"));
    }

    #[test]
    fn the_list_is_sorted_as_the_search_needs_it() {
        assert!(SECRET_NAMES.is_sorted());
    }
}
