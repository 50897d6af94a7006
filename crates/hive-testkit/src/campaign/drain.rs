//! After the last restart: empty every inbox and read what became of every message.

use std::collections::BTreeSet;

use anyhow::{Context, ensure};
use hive_wire::{
    MessageId, TurnId,
    agent::{MAX_BATCH, MessageState},
    client::{Client, ClientError},
    host::{Dead, Discard, LookUpReceipt},
};

use super::exchange::{Caller, Clock, Manner};
use crate::{
    behaviour::ack,
    history::{Call, History, Op, Outcome},
    hive::TestHive,
};

/// Takes and acks everything that waits for the agent.
///
/// # Errors
/// When a reply is lost, which nothing excuses any more.
pub(super) async fn inbox(hive: &TestHive, agent: &str, clock: Clock) -> anyhow::Result<Vec<Op>> {
    let mut caller = Caller::new(u32::MAX, agent, hive.agent_socket(agent), clock);
    let mut ops = Vec::new();
    for number in 0.. {
        let turn: TurnId = format!("drain{number}").parse()?;
        let recv = Call::Recv {
            turn: Some(turn.clone()),
            req: None,
            max: MAX_BATCH,
            outcome: Outcome::Unknown,
        };
        let recv = certain(&mut caller, recv).await?;
        let Call::Recv {
            outcome: Outcome::Ok(batch),
            ..
        } = &recv.call
        else {
            anyhow::bail!("the drain was refused: {recv:?}");
        };
        let ids: Vec<_> = batch.iter().map(|delivery| delivery.id).collect();
        let done = ids.is_empty();
        ops.push(recv);
        ops.push(certain(&mut caller, ack(turn, ids)).await?);
        if done {
            break;
        }
    }
    Ok(ops)
}

async fn certain(caller: &mut Caller, call: Call) -> anyhow::Result<Op> {
    let op = caller.call(call, 0, Manner::Patient).await?;
    let op = op.context("the daemon is not there for the drain")?;
    ensure!(
        !op.call.is_unknown(),
        "a reply was lost in the drain: {op:?}"
    );
    Ok(op)
}

/// Reads the receipts of all messages that clients know of, and the dead letters.
///
/// # Errors
/// When the daemon does not answer.
pub(super) async fn receipts(hive: &TestHive, history: &mut History) -> anyhow::Result<()> {
    let host = hive.host_client();
    for id in known(history) {
        match host.call(&LookUpReceipt { message_id: id }).await {
            Ok(receipt) => history.receipts.push(receipt),
            // A message without a receipt is what the checker looks for.
            Err(ClientError::Refused(_)) => {}
            Err(error) => return Err(error).context("cannot read the receipts"),
        }
    }
    dead_letters(&host, history).await
}

/// Lists the dead letters page by page, and discards them.
async fn dead_letters(host: &Client, history: &mut History) -> anyhow::Result<()> {
    let mut page = Dead::default();
    loop {
        let shown = host.call(&page).await?;
        for row in shown.messages {
            let message_id = row.receipt.message_id;
            let settled = host.call(&Discard { message_id }).await?;
            ensure!(
                settled.state == MessageState::Discarded,
                "message {message_id} is {:?} after it was discarded",
                settled.state
            );
            history.dead.push(message_id);
        }
        if shown.next.is_none() {
            return Ok(());
        }
        page.after = shown.next;
    }
}

fn known(history: &History) -> BTreeSet<MessageId> {
    let ids = history.ops.iter().flat_map(|op| match &op.call {
        Call::Send { outcome, .. } => outcome.ok().copied().into_iter().collect(),
        Call::Recv { outcome, .. } => {
            let batch = outcome.ok().map_or(&[][..], Vec::as_slice);
            batch.iter().map(|delivery| delivery.id).collect()
        }
        _ => Vec::new(),
    });
    ids.collect()
}
