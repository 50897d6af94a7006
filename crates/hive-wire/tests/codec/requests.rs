//! A strategy for every command of both sockets.

use hive_wire::{
    WireError, agent,
    command::{Command, RequestId, encode_request, parse_fields},
    host,
};
use proptest::{collection::vec, option, prelude::*, sample::select};

use super::{
    approvals::{agent_approval_requests, host_approval_requests},
    reports::{harness_requests, host_harness_requests},
    tools::{host_tool_requests, tool_requests},
};

type WriteAgain = fn(&[u8], Option<&RequestId>) -> Result<Vec<u8>, WireError>;

/// A request of some type, with what is needed to check it without knowing the type.
#[derive(Clone, Debug)]
pub(crate) struct Encoded {
    pub(crate) name: &'static str,
    pub(crate) id: Option<RequestId>,
    pub(crate) line: Vec<u8>,
    /// Reads the line as its own type and writes it again.
    pub(crate) again: WriteAgain,
}

pub(crate) fn encoded<C: Command + std::fmt::Debug + 'static>(
    commands: impl Strategy<Value = C> + 'static,
) -> BoxedStrategy<Encoded> {
    (commands, option::of(request_id()))
        .prop_map(|(command, id)| Encoded {
            name: C::NAME,
            line: encode_request(&command, id.as_ref()).unwrap(),
            id,
            again: |line, id| parse_fields::<C>(line).map(|c| encode_request(&c, id).unwrap()),
        })
        .boxed()
}

fn request_id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<i64>().prop_map(RequestId::Number),
        "\\PC{0,16}".prop_map(|text| RequestId::Text(text.as_str().try_into().unwrap())),
    ]
}

/// Any value that is read from a text of printable characters, such as a turn id.
pub(crate) fn chosen<T: std::str::FromStr<Err: std::fmt::Debug> + std::fmt::Debug>()
-> impl Strategy<Value = T> {
    "\\PC{1,30}".prop_map(|text| text.parse().unwrap())
}

pub(crate) fn name() -> impl Strategy<Value = hive_wire::AgentName> {
    "[a-z][a-z0-9]{0,8}".prop_filter_map("a reserved name", |text| text.parse().ok())
}

pub(crate) fn message_id() -> impl Strategy<Value = hive_wire::MessageId> {
    any::<i64>().prop_map(hive_wire::MessageId)
}

fn question_id() -> impl Strategy<Value = hive_wire::QuestionId> {
    any::<i64>().prop_map(hive_wire::QuestionId)
}

/// One strategy for each command of an agent's socket.
pub(crate) fn agent_requests() -> Vec<BoxedStrategy<Encoded>> {
    use agent::*;
    let text = any::<String>;
    vec![
        encoded(
            (
                text(),
                text(),
                option::of(message_id()),
                option::of(chosen()),
            )
                .prop_map(|(to, body, in_reply_to, key)| Send {
                    to,
                    body,
                    in_reply_to,
                    key,
                }),
        ),
        encoded(
            (
                any::<u32>(),
                any::<u32>(),
                option::of(chosen()),
                option::of(chosen()),
            )
                .prop_map(|(wait_seconds, max, turn, req)| Recv {
                    wait_seconds,
                    max,
                    turn,
                    req,
                }),
        ),
        encoded((chosen(), chosen()).prop_map(|(turn, req)| Confirm { turn, req })),
        encoded((chosen(), vec(message_id(), 0..5)).prop_map(|(turn, ids)| AckTurn { turn, ids })),
        encoded(
            (chosen(), select(REASONS)).prop_map(|(turn, reason)| RequeueInflight { turn, reason }),
        ),
    ]
    .into_iter()
    .chain(other_agent_requests())
    .chain(harness_requests())
    .chain(tool_requests())
    .chain(agent_approval_requests())
    .collect()
}

/// Those that are not about messages and turns.
fn other_agent_requests() -> Vec<BoxedStrategy<Encoded>> {
    use agent::*;
    let text = any::<String>;
    vec![
        encoded(Just(Status {})),
        encoded(
            (text(), text(), any::<bool>(), option::of(chosen())).prop_map(
                |(from, body, transient, key)| Wake {
                    from,
                    body,
                    transient,
                    key,
                },
            ),
        ),
        encoded(
            (
                text(),
                vec(text(), 0..3),
                any::<bool>(),
                option::of(any::<u32>()),
                option::of(text()),
                any::<bool>(),
                option::of(chosen()),
            )
                .prop_map(|(question, options, multi, ttl_seconds, to, wait, key)| {
                    Ask {
                        question,
                        options,
                        multi,
                        ttl_seconds,
                        to,
                        wait,
                        key,
                    }
                }),
        ),
        encoded((question_id(), text(), option::of(chosen())).prop_map(
            |(question_id, answer, key)| Answer {
                question_id,
                answer,
                key,
            },
        )),
        encoded(option::of(text()).prop_map(|agent| GetLooseEnds { agent })),
        encoded(
            (loose_end(), option::of(chosen())).prop_map(|(row, key)| CancelLooseEnd { row, key }),
        ),
        encoded(
            (
                text(),
                option::of(any::<u64>()),
                option::of(any::<i64>()),
                option::of(chosen()),
            )
                .prop_map(|(message, delay_seconds, at_unix_timestamp, key)| Remind {
                    message,
                    delay_seconds,
                    at_unix_timestamp,
                    key,
                }),
        ),
        encoded(message_id().prop_map(|message_id| GetReceipt { message_id })),
    ]
}

fn loose_end() -> impl Strategy<Value = agent::LooseEndId> {
    use agent::LooseEndId as Id;
    prop_oneof![
        question_id().prop_map(|question_id| Id::Question { question_id }),
        any::<i64>().prop_map(|n| Id::Reminder {
            reminder_id: hive_wire::ReminderId(n)
        }),
        any::<i64>().prop_map(|n| Id::Approval {
            approval_id: hive_wire::ApprovalId(n)
        }),
    ]
}

const REASONS: &[agent::RequeueReason] = &[
    agent::RequeueReason::Failed,
    agent::RequeueReason::Crash,
    agent::RequeueReason::Unavailable,
    agent::RequeueReason::RateLimited,
    agent::RequeueReason::Auth,
    agent::RequeueReason::Interrupted,
    agent::RequeueReason::Shutdown,
];

/// One strategy for each command of the admin socket.
pub(crate) fn host_requests() -> Vec<BoxedStrategy<Encoded>> {
    use host::*;
    let text = any::<String>;
    vec![
        encoded(Just(Info {})),
        encoded(Just(List {})),
        encoded(
            (
                text(),
                text(),
                option::of(message_id()),
                option::of(chosen()),
            )
                .prop_map(|(to, body, in_reply_to, key)| SendAsOperator {
                    to,
                    body,
                    in_reply_to,
                    key,
                }),
        ),
        encoded(option::of(message_id()).prop_map(|after| Inbox { after })),
        encoded(vec(message_id(), 0..5).prop_map(|ids| AckInbox { ids })),
        encoded(message_id().prop_map(|message_id| LookUpReceipt { message_id })),
        encoded(
            (
                option::of(text()),
                option::of(message_id()),
                option::of(message_id()),
                option::of(any::<u32>()),
            )
                .prop_map(|(with, thread, before, limit)| History {
                    with,
                    thread,
                    before,
                    limit,
                }),
        ),
    ]
    .into_iter()
    .chain(lifecycle_requests())
    .chain(other_host_requests())
    .chain(host_harness_requests())
    .chain(host_tool_requests())
    .chain(host_approval_requests())
    .collect()
}

/// Those that bring agents up and down.
fn lifecycle_requests() -> Vec<BoxedStrategy<Encoded>> {
    use host::*;
    let text = any::<String>;
    let spawn = (
        name(),
        option::of(name()),
        select(Runtime::ALL.to_vec()),
        option::of(text()),
        option::of(text()),
    );
    vec![
        encoded(
            spawn.prop_map(|(name, parent, runtime, engine, model)| Spawn {
                name,
                parent,
                runtime,
                engine,
                model,
            }),
        ),
        encoded((name(), any::<bool>()).prop_map(|(name, purge)| Destroy { name, purge })),
        encoded(name().prop_map(|name| Kill { name })),
        encoded(name().prop_map(|name| Start { name })),
        encoded(name().prop_map(|name| Restart { name })),
        encoded(name().prop_map(|name| Rebuild { name })),
        encoded(Just(StopAll {})),
        encoded(Just(TryRuntimes {})),
        encoded(
            (name(), option::of(any::<u32>()))
                .prop_map(|(name, max_bytes)| ReadOutput { name, max_bytes }),
        ),
    ]
}

/// Those that are not about agents and mail.
fn other_host_requests() -> Vec<BoxedStrategy<Encoded>> {
    use host::*;
    let text = any::<String>;
    let position =
        (any::<i64>(), any::<i64>()).prop_map(|(epoch, seq)| EventPosition { epoch, seq });
    vec![
        encoded(option::of(message_id()).prop_map(|after| Dead { after })),
        encoded(message_id().prop_map(|message_id| Redeliver { message_id })),
        encoded(message_id().prop_map(|message_id| Discard { message_id })),
        encoded(
            (any::<bool>(), option::of(any::<String>()))
                .prop_map(|(all, target)| Questions { all, target }),
        ),
        encoded(
            (question_id(), text()).prop_map(|(question_id, answer)| AnswerAsOperator {
                question_id,
                answer,
            }),
        ),
        encoded(
            (
                option::of(position),
                option::of(any::<u32>()),
                any::<u32>(),
                option::of(text()),
            )
                .prop_map(|(after, limit, wait_seconds, about)| Events {
                    after,
                    limit,
                    wait_seconds,
                    about,
                }),
        ),
    ]
}
