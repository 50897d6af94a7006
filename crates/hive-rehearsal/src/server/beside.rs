//! What clients ask beside the model: which models there are, how many tokens a text has, and
//! whether anybody is there.

use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::{
    answer::{json as json_answer, other_refusal, refusal, sign},
    body::Playback,
    route::{Endpoint, api_of},
    site::Received,
};
use crate::{
    api::{self, error::ApiError},
    ask::Api,
    scenario::{Scenario, fault::ErrorKind},
    tokens,
};

/// The models that are listed when a scenario names none.
const MODELS: [&str; 3] = ["claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-5-5"];

/// Answers what is not for the script.
pub(super) fn answer(
    scenario: &Scenario,
    endpoint: Endpoint<'_>,
    received: &Received,
) -> Response<Playback> {
    let api = api_of(&received.head);
    let number = received.number;
    let mut response = match endpoint {
        Endpoint::CountTokens => return count_tokens(scenario, received),
        Endpoint::Models => {
            let names: Vec<String> = if scenario.models.is_empty() {
                MODELS.map(str::to_owned).to_vec()
            } else {
                scenario.models.clone()
            };
            json_answer(StatusCode::OK, &api::models(api, &names))
        }
        Endpoint::Model(name) if knows(scenario, name) => {
            json_answer(StatusCode::OK, &api::model(api, name))
        }
        Endpoint::Model(name) => {
            let error = ApiError {
                kind: ErrorKind::ModelNotFound,
                message: None,
                model: name.to_owned(),
            };
            return refusal(api, &error, number);
        }
        Endpoint::Hello => json_answer(StatusCode::OK, &json!({"message": "hello"})),
        Endpoint::WrongMethod => {
            let status = StatusCode::METHOD_NOT_ALLOWED;
            return other_refusal(api, status, "Method Not Allowed", number);
        }
        Endpoint::Answer(_) | Endpoint::Unknown => {
            return other_refusal(api, StatusCode::NOT_FOUND, "Not Found", number);
        }
    };
    sign(&mut response, api, number);
    response
}

fn count_tokens(scenario: &Scenario, received: &Received) -> Response<Playback> {
    let body = serde_json::from_slice::<Value>(&received.bytes)
        .map_err(|error| ApiError::bad_request(format!("not valid JSON: {error}")));
    let checked = body.and_then(|body| {
        if scenario.strict {
            api::check_count(&received.head.headers, &body)?;
        }
        Ok(json!({"input_tokens": tokens::of_bytes(received.bytes.len() as u64)}))
    });
    match checked {
        Ok(count) => {
            let mut response = json_answer(StatusCode::OK, &count);
            sign(&mut response, Api::Anthropic, received.number);
            response
        }
        Err(error) => refusal(Api::Anthropic, &error, received.number),
    }
}

/// Whether a model exists: any does, when the scenario names none.
pub(super) fn knows(scenario: &Scenario, model: &str) -> bool {
    let models = &scenario.models;
    models.is_empty() || models.iter().any(|known| known == model)
}
