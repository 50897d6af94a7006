//! `POST /api/login` exchanges a one-time code for a token; `POST /api/logout` gives it back.

use std::sync::Arc;

use axum::{Extension, extract::State, response::Response};
use hive_wire::{ErrorCode, WireError};
use serde::{Deserialize, Serialize};

use super::{Site, auth::Token, input::Body, output};
use crate::access::NoToken;

/// The longest code that is looked at.
const MAX_CODE: usize = 256;

#[derive(Deserialize)]
pub(super) struct Login {
    code: String,
}

#[derive(Serialize)]
struct LoggedIn {
    token: String,
}

#[derive(Serialize)]
struct LoggedOut {}

pub(super) async fn login(State(site): State<Site>, Body(login): Body<Login>) -> Response {
    let (host, audience) = (Arc::clone(&site.host), Arc::clone(&site.audience));
    let exchange = move || {
        if login.code.len() > MAX_CODE {
            return Err(NoToken::WrongCode);
        }
        host.access.exchange(&audience, &login.code)
    };
    let outcome = site.host.tasks.spawn_blocking(exchange).await;
    output::answer(match outcome {
        Ok(Ok(token)) => Ok(LoggedIn { token }),
        Ok(Err(NoToken::WrongCode)) => Err(WireError::new(
            ErrorCode::Denied,
            "this code is wrong, was used, or is too old",
        )
        .hint("get a new link with `hive-c0re link`")),
        Ok(Err(NoToken::TooManyAttempts)) => Err(WireError::new(
            ErrorCode::LimitReached,
            "too many wrong codes were tried",
        )
        .hint("wait a minute")),
        Ok(Err(NoToken::Storage(error))) => Err(storage(&error)),
        Err(error) => Err(storage(&error)),
    })
}

pub(super) async fn logout(
    State(site): State<Site>,
    Extension(Token(token)): Extension<Token>,
) -> Response {
    let host = Arc::clone(&site.host);
    let revoke = move || host.access.revoke(&token);
    let outcome = site.host.tasks.spawn_blocking(revoke).await;
    output::answer(match outcome {
        Ok(Ok(())) => Ok(LoggedOut {}),
        Ok(Err(error)) => Err(storage(&error)),
        Err(error) => Err(storage(&error)),
    })
}

fn storage(error: &dyn std::error::Error) -> WireError {
    WireError::new(
        ErrorCode::Storage,
        format!("cannot keep the session: {error}"),
    )
}
