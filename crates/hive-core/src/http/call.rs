//! `POST /api/call`: any command of the admin socket, in its own words, for the dashboard.
//!
//! Whatever the command line can do, the page can: there is one implementation behind both.

use axum::{extract::State, response::Response};
use hive_wire::{ErrorCode, WireError, host::HostRequest};
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::{Site, input::Body, output};
use crate::host_commands::Asker;

pub(super) async fn call(
    State(site): State<Site>,
    Body(request): Body<Map<String, Value>>,
) -> Response {
    let Some(command) = request.get("cmd").and_then(Value::as_str) else {
        let error = WireError::new(ErrorCode::BadRequest, "the body names no command")
            .hint("send {\"cmd\":\"list\"}; docs/wire.md lists the commands of the host");
        return output::answer::<()>(Err(error));
    };
    let line = serde_json::to_vec(&request).unwrap_or_default();
    let request = match HostRequest::parse(command, &line) {
        Ok(request) => request,
        Err(error) => return output::answer::<()>(Err(error)),
    };
    // A page decides about what it showed; only the command line may decide unseen.
    if let HostRequest::Approve(approve) = &request
        && approve.hash.is_none()
    {
        let error = WireError::new(ErrorCode::BadRequest, "the approval is without its hash")
            .hint("send the `hash` of what was shown, as `pending` tells it");
        return output::answer::<()>(Err(error));
    }
    let (reply, answer) = oneshot::channel();
    let tasks = site.host.tasks.clone();
    site.host.run(request, Page { tasks, reply });
    match answer.await {
        Ok(answer) => answer,
        Err(_) => output::answer::<()>(Err(WireError::new(
            ErrorCode::ShuttingDown,
            "the daemon is stopping",
        ))),
    }
}

/// A page that waits for its answer.
struct Page {
    tasks: TaskTracker,
    reply: oneshot::Sender<Response>,
}

impl Asker for Page {
    fn answer<T, Work>(self, work: Work)
    where
        T: Serialize + Send + 'static,
        Work: Future<Output = Result<T, WireError>> + Send + 'static,
    {
        self.tasks.spawn(async move {
            // A page that has gone does not miss its answer.
            self.reply.send(output::answer(work.await)).ok();
        });
    }
}
