//! `lift`: ends the wait of a credential, for everybody on it (T6).

use std::sync::Arc;

use hive_wire::{
    WireError,
    host::{Lift, Lifted},
};
use serde_json::json;

use super::Host;

pub(crate) async fn run(host: Arc<Host>, command: Lift) -> Result<Lifted, WireError> {
    let (agent, everybody) = host.find(command.name).await?;
    let lifted = host.harnesses.lift(&agent, &everybody);
    let credential = lifted.credential.clone();
    host.broker
        .run(move |desk| {
            desk.report_agent(
                &agent.name,
                "limit_lifted",
                &json!({"credential": credential}),
            );
            Ok(())
        })
        .await?;
    Ok(lifted)
}
