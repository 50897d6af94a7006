//! The hive over the agent's socket.
//!
//! Two connections: one for mail, so that an acknowledgement never stands in line behind a
//! megabyte of events, and one for reports and control.

use std::{path::Path, time::Duration};

use hive_wire::{
    ErrorCode, MessageId, ReqId, SendKey, TurnId, WireError,
    agent::{
        AckTurn, Message, Recv, RequeueInflight, RequeueReason, Send, Status, TurnClosed, Wake,
    },
    client::{Client, ClientError, Options},
    command::Command,
    control::{Control, ControlRequest},
    name::PARENT,
    report::{PostEvents, PostState, PostTurnCounts},
};

use super::{HostChannel, Surface, SurfaceError};

/// How long an answer may take beyond the time that the host was asked to wait.
const ANSWER: Duration = Duration::from_secs(30);
/// How long a hint may take.
const HINT: Duration = Duration::from_secs(2);
/// How long a word to the parent may take.
const WORD: Duration = Duration::from_secs(20);
/// The pause before the first repetition; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause between two repetitions.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The hive behind an agent's socket.
#[derive(Debug, Clone)]
pub struct SocketSurface {
    mail: Client,
    reports: Client,
}

impl SocketSurface {
    /// Connects when it is first used.
    pub fn new(socket: &Path) -> Self {
        Self {
            mail: Client::new(socket, Options::default()),
            reports: Client::new(socket, Options::default()),
        }
    }
}

impl Surface for SocketSurface {
    async fn recv_next(
        &self,
        turn: &TurnId,
        req: &ReqId,
        wait_seconds: u32,
    ) -> Result<Option<Message>, SurfaceError> {
        let recv = Recv {
            wait_seconds,
            max: 1,
            turn: Some(turn.clone()),
            req: Some(req.clone()),
        };
        let within = Duration::from_secs(u64::from(wait_seconds)) + ANSWER;
        let batch = insist(&self.mail, &recv, within).await?;
        Ok(batch.messages.into_iter().next())
    }

    async fn inbox_unread(&self) -> Result<u32, SurfaceError> {
        Ok(once(&self.mail, &Status {}, HINT).await?.unread)
    }

    async fn ack_turn(&self, turn: &TurnId, ids: &[MessageId]) -> Result<TurnClosed, SurfaceError> {
        let ack = AckTurn {
            turn: turn.clone(),
            ids: ids.to_vec(),
        };
        insist(&self.mail, &ack, ANSWER).await
    }

    async fn requeue_inflight(
        &self,
        turn: &TurnId,
        reason: RequeueReason,
    ) -> Result<TurnClosed, SurfaceError> {
        let requeue = RequeueInflight {
            turn: turn.clone(),
            reason,
        };
        insist(&self.mail, &requeue, ANSWER).await
    }

    async fn post_turn_counts(&self, counts: &PostTurnCounts) -> Result<(), SurfaceError> {
        once(&self.reports, counts, ANSWER).await?;
        Ok(())
    }

    async fn send_to_parent(&self, body: &str, key: &SendKey) -> Result<MessageId, SurfaceError> {
        let send = Send {
            to: PARENT.to_owned(),
            body: body.to_owned(),
            in_reply_to: None,
            key: Some(key.clone()),
        };
        match tokio::time::timeout(WORD, insist(&self.mail, &send, WORD)).await {
            Ok(sent) => Ok(sent?.message_id),
            Err(_) => Err(SurfaceError::Away),
        }
    }

    async fn wake_external(&self, from: &str, body: &str) -> Result<MessageId, SurfaceError> {
        let wake = Wake {
            from: from.to_owned(),
            body: body.to_owned(),
            transient: false,
            key: None,
        };
        Ok(once(&self.mail, &wake, ANSWER).await?.message_id)
    }
}

impl HostChannel for SocketSurface {
    async fn post_events(&self, events: &PostEvents) -> Result<u64, SurfaceError> {
        Ok(once(&self.reports, events, ANSWER).await?.next_seq)
    }

    async fn post_state(&self, state: &PostState) -> Result<(), SurfaceError> {
        once(&self.reports, state, ANSWER).await?;
        Ok(())
    }

    async fn control(&self, poll: &Control) -> Result<Vec<ControlRequest>, SurfaceError> {
        let within = Duration::from_secs(u64::from(poll.wait_seconds)) + ANSWER;
        Ok(once(&self.reports, poll, within).await?.requests)
    }
}

/// One try.
async fn once<C: Command>(
    client: &Client,
    command: &C,
    within: Duration,
) -> Result<C::Reply, SurfaceError> {
    match client.call_within(command, within).await {
        Ok(reply) => Ok(reply),
        Err(error) => Err(judge(error, C::NAME)),
    }
}

/// Repeats a command that bears repetition until it is answered.
async fn insist<C: Command>(
    client: &Client,
    command: &C,
    within: Duration,
) -> Result<C::Reply, SurfaceError> {
    let mut pause = FIRST_PAUSE;
    loop {
        match once(client, command, within).await {
            Err(SurfaceError::Away) => {}
            answered => return answered,
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What an error means to the caller.
fn judge(error: ClientError, name: &str) -> SurfaceError {
    match error {
        ClientError::Refused(error) if passes(&error) => {
            tracing::debug!(%error, command = name, "the host cannot now");
            SurfaceError::Away
        }
        ClientError::Refused(error) if error.code == ErrorCode::TurnEnded => SurfaceError::TurnOver,
        ClientError::Refused(error) => SurfaceError::Refused(error),
        error @ ClientError::Protocol(_) => {
            tracing::warn!(%error, command = name, "the host speaks otherwise; is it of this version?");
            SurfaceError::Away
        }
        error @ (ClientError::Unreachable { .. }
        | ClientError::Lost
        | ClientError::TimedOut { .. }) => {
            tracing::debug!(%error, command = name, "no answer from the host");
            SurfaceError::Away
        }
    }
}

/// Whether the host may say otherwise a little later.
fn passes(error: &WireError) -> bool {
    matches!(
        error.code,
        ErrorCode::ShuttingDown
            | ErrorCode::LimitReached
            | ErrorCode::DiskFull
            | ErrorCode::Storage
            | ErrorCode::Slow
            | ErrorCode::Replaced
            | ErrorCode::Superseded
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn t15_what_passes_is_repeated_and_what_stays_is_told() {
        let refused = |code| ClientError::Refused(WireError::new(code, "no"));
        assert_eq!(judge(ClientError::Lost, "recv"), SurfaceError::Away);
        assert_eq!(
            judge(refused(ErrorCode::ShuttingDown), "recv"),
            SurfaceError::Away
        );
        assert_eq!(
            judge(refused(ErrorCode::DiskFull), "ack_turn"),
            SurfaceError::Away
        );
        assert_eq!(
            judge(refused(ErrorCode::TurnEnded), "recv"),
            SurfaceError::TurnOver
        );
        let denied = judge(refused(ErrorCode::Denied), "send");
        assert!(matches!(denied, SurfaceError::Refused(_)), "{denied:?}");
    }
}
