//! What can be done to an agent: sending as the operator, and what its harness is asked.

use std::sync::Arc;

use axum::{extract::State, response::Response};
use hive_wire::{
    AgentName, MessageId, SendKey,
    control::ControlAction,
    host::{ControlAgent, Lift, SendAsOperator},
};
use serde::Deserialize;

use super::{
    Site,
    input::{Body, Target},
    output,
};
use crate::host_commands::{control_agent, lift as lifting, send as sending};

/// How long an action waits for the harness unless told otherwise.
const WAIT_SECONDS: u32 = 10;

#[derive(Deserialize)]
pub(super) struct Message {
    body: String,
    in_reply_to: Option<MessageId>,
    key: Option<SendKey>,
}

#[derive(Deserialize)]
pub(super) struct MessageTo {
    to: String,
    #[serde(flatten)]
    message: Message,
}

#[derive(Deserialize)]
pub(super) struct Wait {
    wait_seconds: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Model {
    name: String,
    wait_seconds: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Input {
    text: String,
    wait_seconds: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Nothing {}

pub(super) async fn send(
    State(site): State<Site>,
    Target(name): Target,
    Body(message): Body<Message>,
) -> Response {
    deliver(&site, name.to_string(), message).await
}

pub(super) async fn send_to(State(site): State<Site>, Body(body): Body<MessageTo>) -> Response {
    deliver(&site, body.to, body.message).await
}

async fn deliver(site: &Site, to: String, message: Message) -> Response {
    let command = SendAsOperator {
        to,
        body: message.body,
        in_reply_to: message.in_reply_to,
        key: message.key,
    };
    output::answer(sending::run(Arc::clone(&site.host), command).await)
}

pub(super) async fn interrupt(site: State<Site>, target: Target, body: Body<Wait>) -> Response {
    control(site, target, ControlAction::Interrupt, body.0.wait_seconds).await
}

pub(super) async fn compact(site: State<Site>, target: Target, body: Body<Wait>) -> Response {
    control(site, target, ControlAction::Compact, body.0.wait_seconds).await
}

pub(super) async fn new_session(site: State<Site>, target: Target, body: Body<Wait>) -> Response {
    control(site, target, ControlAction::NewSession, body.0.wait_seconds).await
}

pub(super) async fn model(site: State<Site>, target: Target, body: Body<Model>) -> Response {
    let Body(Model { name, wait_seconds }) = body;
    control(site, target, ControlAction::Model { name }, wait_seconds).await
}

pub(super) async fn login_start(site: State<Site>, target: Target, body: Body<Wait>) -> Response {
    control(site, target, ControlAction::LoginStart, body.0.wait_seconds).await
}

pub(super) async fn login_input(site: State<Site>, target: Target, body: Body<Input>) -> Response {
    let Body(Input { text, wait_seconds }) = body;
    control(
        site,
        target,
        ControlAction::LoginInput { text },
        wait_seconds,
    )
    .await
}

pub(super) async fn login_cancel(site: State<Site>, target: Target, body: Body<Wait>) -> Response {
    control(
        site,
        target,
        ControlAction::LoginCancel,
        body.0.wait_seconds,
    )
    .await
}

pub(super) async fn lift(
    State(site): State<Site>,
    Target(name): Target,
    Body(Nothing {}): Body<Nothing>,
) -> Response {
    output::answer(lifting::run(Arc::clone(&site.host), Lift { name }).await)
}

async fn control(
    State(site): State<Site>,
    Target(name): Target,
    action: ControlAction,
    wait_seconds: Option<u32>,
) -> Response {
    let command = ask(name, action, wait_seconds);
    output::answer(control_agent::run(Arc::clone(&site.host), command).await)
}

fn ask(name: AgentName, action: ControlAction, wait_seconds: Option<u32>) -> ControlAgent {
    ControlAgent {
        name,
        action,
        wait_seconds: Some(wait_seconds.unwrap_or(WAIT_SECONDS)),
    }
}
