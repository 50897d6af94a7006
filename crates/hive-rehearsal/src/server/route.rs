//! What is served under which path.

use hyper::{Method, http::request::Parts};

use crate::ask::Api;

/// What a request wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Endpoint<'a> {
    Answer(Api),
    CountTokens,
    Models,
    Model(&'a str),
    Hello,
    WrongMethod,
    Unknown,
}

pub(super) fn endpoint<'a>(method: &Method, path: &'a str) -> Endpoint<'a> {
    let post = |endpoint| match *method {
        Method::POST => endpoint,
        _ => Endpoint::WrongMethod,
    };
    let get = |endpoint| match *method {
        Method::GET | Method::HEAD => endpoint,
        _ => Endpoint::WrongMethod,
    };
    match path {
        "/v1/messages" => post(Endpoint::Answer(Api::Anthropic)),
        "/v1/messages/count_tokens" => post(Endpoint::CountTokens),
        "/v1/chat/completions" => post(Endpoint::Answer(Api::OpenAi)),
        "/v1/models" => get(Endpoint::Models),
        // What `claude` looks at before it asks anything.
        "/" | "/api/hello" | "/v1/oauth/hello" => get(Endpoint::Hello),
        _ => match path.strip_prefix("/v1/models/") {
            Some(name) if !name.is_empty() => get(Endpoint::Model(name)),
            _ => Endpoint::Unknown,
        },
    }
}

/// The API that a client of a shared path knows.
pub(super) fn api_of(head: &Parts) -> Api {
    let is_openai = head.uri.path().starts_with("/v1/chat/")
        || (head.uri.path().starts_with("/v1/models")
            && !head.headers.contains_key("anthropic-version")
            && !head.headers.contains_key("x-api-key"));
    if is_openai {
        Api::OpenAi
    } else {
        Api::Anthropic
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_where_the_real_ones_do() {
        let table = [
            ("POST", "/v1/messages", Endpoint::Answer(Api::Anthropic)),
            ("GET", "/v1/messages", Endpoint::WrongMethod),
            ("POST", "/v1/messages/count_tokens", Endpoint::CountTokens),
            (
                "POST",
                "/v1/chat/completions",
                Endpoint::Answer(Api::OpenAi),
            ),
            ("GET", "/v1/models", Endpoint::Models),
            ("GET", "/v1/models/claude-x", Endpoint::Model("claude-x")),
            ("GET", "/v1/models/", Endpoint::Unknown),
            ("HEAD", "/", Endpoint::Hello),
            ("HEAD", "/api/hello", Endpoint::Hello),
            ("POST", "/v1/responses", Endpoint::Unknown),
        ];
        for (method, path, expected) in table {
            let method = method.parse().unwrap();
            assert_eq!(endpoint(&method, path), expected, "{method} {path}");
        }
    }
}
