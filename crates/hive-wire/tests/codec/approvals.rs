//! A strategy for every command about approvals.

use hive_wire::{ApprovalId, agent, host};
use proptest::{option, prelude::*};

use super::requests::{Encoded, encoded, name};

fn spawn() -> impl Strategy<Value = agent::RequestSpawn> {
    let text = any::<String>;
    (
        text(),
        option::of(name()),
        option::of(text()),
        option::of(text()),
        option::of(Just(host::Runtime::Process)),
        text(),
    )
        .prop_map(
            |(name, parent, config, model, runtime, reason)| agent::RequestSpawn {
                name,
                parent,
                config,
                engine: model.clone(),
                model,
                runtime,
                reason,
                key: None,
            },
        )
}

/// Those of an agent's socket.
pub(crate) fn agent_approval_requests() -> Vec<BoxedStrategy<Encoded>> {
    let texts = any::<[String; 3]>();
    vec![
        encoded(spawn()),
        encoded(
            texts.prop_map(|[agent, commit_ref, reason]| agent::RequestApplyCommit {
                agent,
                commit_ref,
                reason,
                key: None,
            }),
        ),
    ]
}

/// Those of the admin socket.
pub(crate) fn host_approval_requests() -> Vec<BoxedStrategy<Encoded>> {
    let id = || any::<i64>().prop_map(ApprovalId);
    vec![
        encoded(Just(host::UpdateAll {})),
        encoded(spawn().prop_map(host::RequestSpawnAsOperator)),
        encoded(any::<bool>().prop_map(|all| host::Pending { all })),
        encoded(
            (id(), option::of(any::<String>()), any::<String>()).prop_map(
                |(approval_id, hash, note)| host::Approve {
                    approval_id,
                    hash,
                    note,
                },
            ),
        ),
        encoded(
            (id(), any::<String>())
                .prop_map(|(approval_id, note)| host::Deny { approval_id, note }),
        ),
    ]
}
