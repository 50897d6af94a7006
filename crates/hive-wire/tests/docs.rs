//! docs/wire.md cannot drift: it names every command and every error code, its example requests
//! are read by the real parser, and its example replies by the types that clients use.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;

use hive_wire::{
    ErrorCode, WireError, agent,
    command::{Command, Head, ReplyHead},
    host, id, line, name,
};

const DOC: &str = include_str!("../../../docs/wire.md");

/// The text from one heading to the next of the same level.
fn section<'a>(doc: &'a str, heading: &str) -> &'a str {
    let level = heading.split(' ').next().unwrap();
    let start = doc
        .find(&format!("\n{heading}\n"))
        .unwrap_or_else(|| panic!("docs/wire.md has no heading {heading:?}"));
    let rest = &doc[start + 1 + heading.len()..];
    let end = rest.find(&format!("\n{level} ")).unwrap_or(rest.len());
    &rest[..end]
}

/// Lines of a section that are JSON, which in this page are examples.
fn examples(section: &str) -> impl Iterator<Item = &str> {
    section.lines().filter(|line| line.starts_with('{'))
}

/// Whether a line is a reply that clients take for that of a command.
type ReadReply = fn(&str) -> Result<(), serde_json::Error>;

fn read_reply<C: Command>(line: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<C::Reply>(line).map(drop)
}

macro_rules! replies {
    ($($command:ty),+ $(,)?) => {
        BTreeMap::from([$((<$command>::NAME, read_reply::<$command> as ReadReply)),+])
    };
}

fn check_socket(
    heading: &str,
    names: &[&str],
    replies: &BTreeMap<&str, ReadReply>,
    parse: fn(&str, &[u8]) -> Result<(), WireError>,
) {
    let socket = section(DOC, heading);
    for name in names {
        let command = section(socket, &format!("### `{name}`"));
        let (requests, answers): (Vec<&str>, Vec<&str>) =
            examples(command).partition(|line| line.contains("\"cmd\""));
        assert!(!requests.is_empty(), "`{name}` has no example request");
        assert!(!answers.is_empty(), "`{name}` has no example reply");
        for request in requests {
            let head = Head::parse(request.as_bytes()).unwrap();
            assert_eq!(head.cmd, *name, "{request}");
            parse(&head.cmd, request.as_bytes()).unwrap_or_else(|e| panic!("{request}: {e}"));
        }
        for reply in answers {
            let head: ReplyHead = serde_json::from_str(reply).unwrap();
            assert!(head.ok, "{reply}");
            replies[name](reply).unwrap_or_else(|error| panic!("{reply}: {error}"));
        }
    }
}

#[test]
fn every_command_of_the_agent_socket_is_described() {
    use agent::*;
    let replies = replies!(
        Send,
        Recv,
        Confirm,
        AckTurn,
        RequeueInflight,
        Status,
        Wake,
        Ask,
        Answer,
        GetLooseEnds,
        CancelLooseEnd,
        Remind,
        GetReceipt,
        SetStatus,
        GetAgentMeta,
        ListPeers,
        PostTurnCounts,
        PostState,
        PostEvents,
        Control,
        GetPermissions,
        Kill,
        Start,
        Restart,
        ListAgents,
        Schedule,
        ListSchedules,
        CancelSchedule,
        GetLogs,
        GetHostJournal,
        RequestSpawn,
        RequestApplyCommit,
    );
    check_socket(
        "## Agent socket",
        AgentRequest::NAMES,
        &replies,
        |cmd, line| AgentRequest::parse(cmd, line).map(drop),
    );
}

#[test]
fn every_command_of_the_host_socket_is_described() {
    use host::*;
    let replies = replies!(
        Info,
        Spawn,
        Destroy,
        Kill,
        Start,
        Restart,
        Rebuild,
        StopAll,
        TryRuntimes,
        ReadOutput,
        List,
        SendAsOperator,
        Inbox,
        AckInbox,
        LookUpReceipt,
        History,
        Dead,
        Redeliver,
        Discard,
        Questions,
        AnswerAsOperator,
        Events,
        ControlAgent,
        GetAgentState,
        Turns,
        TurnTotals,
        Lift,
        Spend,
        Pause,
        Resume,
        Link,
        ShowPermissions,
        SetPermissions,
        ShowSchedules,
        CancelAnySchedule,
        RequestSpawnAsOperator,
        Pending,
        Approve,
        Deny,
        UpdateAll,
    );
    check_socket(
        "## Host socket",
        HostRequest::NAMES,
        &replies,
        |cmd, line| HostRequest::parse(cmd, line).map(drop),
    );
}

#[test]
fn every_error_code_is_described() {
    let errors = section(DOC, "## Errors");
    for code in ErrorCode::ALL {
        assert!(
            errors.contains(&format!("| `{code}` |")),
            "docs/wire.md does not say what to do about `{code}`"
        );
    }
    for reply in examples(errors) {
        let head: ReplyHead = serde_json::from_str(reply).unwrap();
        assert_ne!(head.error.unwrap().code, ErrorCode::Unknown, "{reply}");
    }
}

#[test]
fn the_limits_are_those_of_the_code() {
    let limits = section(DOC, "## Limits");
    for (what, limit) in [
        ("a line", line::MAX_LINE),
        ("a body", agent::MAX_BODY),
        ("a wait", agent::MAX_WAIT_SECONDS as usize),
        ("a batch", agent::MAX_BATCH as usize),
        ("an agent's name", name::MAX_AGENT_NAME),
        ("a sender label", name::MAX_SENDER_LABEL),
        ("a chosen id", id::MAX_CHOSEN_ID),
        ("a request id", hive_wire::command::MAX_REQUEST_ID),
        ("a reason or note", hive_wire::approval::MAX_NOTE),
        ("an agent.toml", hive_wire::approval::MAX_AGENT_CONFIG),
        ("a commit's name", hive_wire::approval::MAX_COMMIT_REF),
        ("a status line", hive_wire::report::MAX_STATUS),
        ("posted events", hive_wire::report::MAX_POSTED_EVENTS),
        ("an event's data", hive_wire::report::MAX_EVENT_DATA),
    ] {
        let row = limits
            .lines()
            .find(|row| row.starts_with(&format!("| {what} |")))
            .unwrap_or_else(|| panic!("docs/wire.md does not limit {what}"));
        let stated = row.split(['|', ' ']).find_map(|word| word.parse().ok());
        assert_eq!(stated, Some(limit), "{row}");
    }
}
