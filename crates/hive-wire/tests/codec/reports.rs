//! Strategies for the reports of a harness and the control of one.

use hive_wire::{Timestamp, agent, control, host, report};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::value::RawValue;

use super::requests::{Encoded, chosen, encoded, message_id, name};

fn time() -> impl Strategy<Value = Timestamp> {
    (0..4_000_000_000_000_i64).prop_map(Timestamp::from_millis)
}

/// Numbers that JSON carries without loss everywhere.
fn count() -> impl Strategy<Value = u64> {
    any::<u64>()
}

fn turn_counts() -> impl Strategy<Value = report::PostTurnCounts> {
    let tools = vec(
        (any::<String>(), any::<u32>()).prop_map(|(name, count)| report::ToolCount { name, count }),
        0..3,
    );
    let words = (
        any::<String>(),
        any::<String>(),
        option::of(any::<String>()),
    );
    let lists = (vec(message_id(), 0..4), tools);
    (
        (chosen(), select(report::TurnKind::ALL.to_vec()), time()),
        prop::array::uniform9(count()),
        words,
        option::of(any::<String>()),
        lists,
    )
        .prop_map(
            |(
                (turn, kind, started_at),
                n,
                (model, outcome, note),
                session_id,
                (messages, tools),
            )| {
                report::PostTurnCounts {
                    turn,
                    kind,
                    started_at,
                    duration_ms: n[0],
                    engine_ms: n[1],
                    model,
                    input_tokens: n[2],
                    output_tokens: n[3],
                    cache_read_tokens: n[4],
                    cache_creation_tokens: n[5],
                    cost_micro_usd: n[6],
                    context_tokens: n[7],
                    window: n[8],
                    outcome,
                    note,
                    session_id,
                    messages,
                    tools,
                }
            },
        )
}

fn state() -> impl Strategy<Value = report::PostState> {
    use report::{HarnessStatus as Status, TurnState};
    let word = || option::of(any::<String>());
    (
        select(vec![
            TurnState::Idle,
            TurnState::Thinking,
            TurnState::Compacting,
        ]),
        select(vec![
            Status::Online,
            Status::RateLimited,
            Status::NeedsLoginIdle,
            Status::Unavailable,
            Status::Stopping,
        ]),
        (time(), option::of(time()), any::<bool>()),
        (any::<String>(), word(), word(), word(), word()),
        (count(), count()),
    )
        .prop_map(
            |(turn_state, status, (since, resets_at, rehearsed), texts, (used, window))| {
                let (model, current_tool, engine, engine_version, credential) = texts;
                report::PostState {
                    turn_state,
                    since,
                    status,
                    model,
                    context_tokens: used,
                    window,
                    current_tool,
                    engine,
                    engine_version,
                    credential,
                    resets_at,
                    rehearsed,
                }
            },
        )
}

fn events() -> impl Strategy<Value = report::PostEvents> {
    let event = (
        any::<u64>(),
        time(),
        select(report::PostedKind::ALL.to_vec()),
        any::<String>(),
    );
    let event = event.prop_map(|(seq, at, kind, text)| report::PostedEvent {
        seq,
        at,
        kind,
        data: RawValue::from_string(serde_json::json!({"text": text}).to_string()).unwrap(),
    });
    (chosen(), vec(event, 0..4)).prop_map(|(epoch, events)| report::PostEvents { epoch, events })
}

fn action() -> impl Strategy<Value = control::ControlAction> {
    use control::ControlAction as Action;
    prop_oneof![
        select(vec![
            Action::Interrupt,
            Action::Compact,
            Action::NewSession,
            Action::LoginStart,
            Action::LoginCancel,
            Action::Release,
            Action::Resume,
            Action::Stop,
        ]),
        vec(any::<String>(), 0..3).prop_map(|groups| Action::ToolGroups { groups }),
        any::<String>().prop_map(|name| Action::Model { name }),
        any::<String>().prop_map(|text| Action::LoginInput { text }),
        (time(), any::<String>()).prop_map(|(until, reason)| Action::Hold { until, reason }),
        (any::<String>(), any::<bool>()).prop_map(|(reason, now)| Action::Pause { reason, now }),
    ]
}

fn done() -> impl Strategy<Value = control::ControlDone> {
    (any::<i64>(), any::<bool>(), option::of(any::<String>())).prop_map(|(id, ok, note)| {
        control::ControlDone {
            request_id: hive_wire::ControlId(id),
            ok,
            note,
        }
    })
}

/// One strategy for each report of an agent's socket, and for `control`.
pub(crate) fn harness_requests() -> Vec<BoxedStrategy<Encoded>> {
    use agent::*;
    let control = (any::<u32>(), any::<bool>(), vec(done(), 0..3));
    vec![
        encoded(
            (any::<String>(), option::of(chosen())).prop_map(|(text, key)| SetStatus { text, key }),
        ),
        encoded(option::of(any::<String>()).prop_map(|name| GetAgentMeta { name })),
        encoded(Just(ListPeers {})),
        encoded(turn_counts()),
        encoded(state()),
        encoded(events()),
        encoded(control.prop_map(|(wait_seconds, hello, done)| Control {
            wait_seconds,
            hello,
            done,
        })),
    ]
}

/// One strategy for each command of the operator that is about harnesses.
pub(crate) fn host_harness_requests() -> Vec<BoxedStrategy<Encoded>> {
    use host::*;
    let wait = || option::of(any::<u32>());
    let row = option::of(any::<i64>().prop_map(hive_wire::TurnRowId));
    vec![
        encoded(
            (name(), action(), wait()).prop_map(|(name, action, wait_seconds)| ControlAgent {
                name,
                action,
                wait_seconds,
            }),
        ),
        encoded(name().prop_map(|name| GetAgentState { name })),
        encoded(
            (name(), row, wait()).prop_map(|(name, before, limit)| Turns {
                name,
                before,
                limit,
            }),
        ),
        encoded(
            (option::of(name()), any::<u32>()).prop_map(|(name, days)| TurnTotals { name, days }),
        ),
        encoded(name().prop_map(|name| Lift { name })),
        encoded(option::of(any::<u32>()).prop_map(|days| Spend { days })),
        encoded(
            (
                option::of(name()),
                any::<bool>(),
                option::of(any::<String>()),
            )
                .prop_map(|(name, now, reason)| Pause { name, now, reason }),
        ),
        encoded(option::of(name()).prop_map(|name| Resume { name })),
        encoded(
            (option::of(name()), any::<bool>()).prop_map(|(name, rotate)| Link { name, rotate }),
        ),
    ]
}
