//! What engines may ask of a service: inference, and what goes with it.
//!
//! The operator's key opens more than that, such as files, batches and the organisation itself. An
//! agent's own login may also ask how much of it is used.

use hyper::Method;

use super::upstream::{Api, Login};

/// Whether a call may be made.
pub(super) fn is_open(api: Api, login: Login, method: &Method, path: &str) -> bool {
    let is = |wanted: &Method| method == wanted;
    match api {
        Api::Anthropic => match path {
            "/v1/messages" | "/v1/messages/count_tokens" => is(&Method::POST),
            "/v1/models" => is(&Method::GET),
            "/" | "/api/hello" => is(&Method::HEAD) || is(&Method::GET),
            "/api/oauth/usage" | "/api/oauth/profile" | "/api/oauth/claude_cli/roles" => {
                login == Login::Own && is(&Method::GET)
            }
            other => is(&Method::GET) && other.strip_prefix("/v1/models/").is_some_and(is_word),
        },
        Api::OpenAi => match path {
            "/chat/completions" | "/responses" => is(&Method::POST),
            "/models" => is(&Method::GET),
            other => is(&Method::GET) && other.strip_prefix("/models/").is_some_and(is_word),
        },
    }
}

/// Whether a call that may be made has a model answer, which costs something.
pub(super) fn is_inference(api: Api, path: &str) -> bool {
    match api {
        Api::Anthropic => path == "/v1/messages",
        Api::OpenAi => matches!(path, "/chat/completions" | "/responses"),
    }
}

/// Whether it is one part of a path and nothing that a server could take for more.
fn is_word(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:@".contains(&byte);
    !text.is_empty() && !text.starts_with('.') && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_inference_is_open() {
        use Api::{Anthropic, OpenAi};
        use Login::{Host, Own};
        for (api, login, method, path, expected) in [
            (Anthropic, Host, "POST", "/v1/messages", true),
            (Anthropic, Host, "POST", "/v1/messages/count_tokens", true),
            (Anthropic, Host, "GET", "/v1/models", true),
            (Anthropic, Host, "GET", "/v1/models/claude-haiku-4-5", true),
            (Anthropic, Host, "HEAD", "/api/hello", true),
            (Anthropic, Host, "HEAD", "/", true),
            (Anthropic, Own, "GET", "/api/oauth/usage", true),
            (Anthropic, Host, "GET", "/api/oauth/usage", false),
            (Anthropic, Host, "GET", "/v1/messages", false),
            (Anthropic, Host, "DELETE", "/v1/messages", false),
            (Anthropic, Host, "POST", "/v1/messages/batches", false),
            (Anthropic, Host, "POST", "/v1/messages/", false),
            (Anthropic, Host, "POST", "//v1/messages", false),
            (Anthropic, Host, "POST", "/v1/%6dessages", false),
            (Anthropic, Host, "GET", "/v1/models/..", false),
            (Anthropic, Host, "GET", "/v1/models/../files", false),
            (Anthropic, Host, "GET", "/v1/models/a%2f..", false),
            (Anthropic, Host, "GET", "/v1/models/", false),
            (Anthropic, Own, "GET", "/v1/organizations/users", false),
            (Anthropic, Host, "POST", "/v1/files", false),
            (Anthropic, Host, "GET", "/v1/organizations/api_keys", false),
            (OpenAi, Host, "POST", "/chat/completions", true),
            (OpenAi, Host, "POST", "/responses", true),
            (OpenAi, Host, "GET", "/models", true),
            (OpenAi, Host, "GET", "/models/gpt-5", true),
            (OpenAi, Host, "POST", "/files", false),
            (OpenAi, Host, "GET", "/responses/abc", false),
        ] {
            let method = method.parse().unwrap();
            assert_eq!(
                is_open(api, login, &method, path),
                expected,
                "{method} {path}"
            );
        }
    }
}
