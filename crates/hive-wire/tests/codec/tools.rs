//! Strategies for the commands that belong to a tool group, and for what the operator grants.

use hive_wire::{
    Recipient, ScheduleId, agent,
    grants::{Capability, Group},
    host,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::requests::{Encoded, chosen, encoded, name};

fn groups() -> impl Strategy<Value = Vec<Group>> {
    vec(select(Group::ALL), 0..4)
}

fn capabilities() -> impl Strategy<Value = Vec<Capability>> {
    vec(select(Capability::ALL), 0..3)
}

fn recipient() -> impl Strategy<Value = Recipient> {
    prop_oneof![Just(Recipient::Operator), name().prop_map(Recipient::Agent)]
}

fn schedule_id() -> impl Strategy<Value = ScheduleId> {
    any::<i64>().prop_map(ScheduleId)
}

/// One strategy for each command of an agent's socket that belongs to a tool group.
pub(crate) fn tool_requests() -> Vec<BoxedStrategy<Encoded>> {
    use agent::*;
    let word = || option::of(any::<String>());
    let child = || (name(), option::of(chosen()));
    let times = (option::of(any::<u64>()), option::of(any::<i64>()));
    vec![
        encoded(Just(GetPermissions {})),
        encoded(child().prop_map(|(name, key)| Kill { name, key })),
        encoded(child().prop_map(|(name, key)| Start { name, key })),
        encoded(child().prop_map(|(name, key)| Restart { name, key })),
        encoded(Just(ListAgents {})),
        encoded(
            (any::<String>(), times, word(), word(), option::of(chosen())).prop_map(
                |(prompt, (delay_seconds, at_unix_timestamp), cron, time_zone, key)| Schedule {
                    prompt,
                    delay_seconds,
                    at_unix_timestamp,
                    cron,
                    time_zone,
                    key,
                },
            ),
        ),
        encoded(Just(ListSchedules {})),
        encoded(
            (schedule_id(), option::of(chosen()))
                .prop_map(|(schedule_id, key)| CancelSchedule { schedule_id, key }),
        ),
        encoded(
            (word(), option::of(any::<u32>()))
                .prop_map(|(agent, max_bytes)| GetLogs { agent, max_bytes }),
        ),
        encoded(option::of(any::<u32>()).prop_map(|lines| GetHostJournal { lines })),
    ]
}

/// One strategy for each command of the operator about permissions and schedules.
pub(crate) fn host_tool_requests() -> Vec<BoxedStrategy<Encoded>> {
    use host::*;
    let set = (
        (name(), any::<bool>()),
        (groups(), groups()),
        (capabilities(), capabilities()),
        option::of(vec(recipient(), 0..3)),
    );
    vec![
        encoded(option::of(name()).prop_map(|name| ShowPermissions { name })),
        encoded(set.prop_map(
            |(
                (name, reset),
                (grant, revoke),
                (grant_capabilities, revoke_capabilities),
                recipients,
            )| {
                SetPermissions {
                    name,
                    reset,
                    grant,
                    revoke,
                    grant_capabilities,
                    revoke_capabilities,
                    recipients,
                }
            },
        )),
        encoded(option::of(name()).prop_map(|name| ShowSchedules { name })),
        encoded(schedule_id().prop_map(|schedule_id| CancelAnySchedule { schedule_id })),
    ]
}
