//! The exact text of every shape that scripts rely on.

use hive_wire::{
    MessageId, QuestionId,
    agent::{self, MessageState},
    host::{self, AgentState, Runtime},
};
use serde_json::json;

use super::*;
use crate::cli::failure::Failure;

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
}

fn receipt() -> agent::Receipt {
    agent::Receipt {
        message_id: MessageId(5),
        from: "ada".parse().unwrap(),
        to: "operator".into(),
        state: MessageState::Acked,
        deliveries: 2,
        turn: Some("t-1".parse().unwrap()),
        sent_at: time(0),
        acked_at: Some(time(1)),
    }
}

fn history_row() -> host::HistoryRow {
    host::HistoryRow {
        receipt: agent::Receipt {
            state: MessageState::Dead,
            turn: None,
            acked_at: None,
            ..receipt()
        },
        body: "hello".into(),
        in_reply_to: Some(MessageId(4)),
    }
}

fn agent_row() -> host::AgentRow {
    host::AgentRow {
        stale: false,
        restarts: 2,
        restarted_at: Some(time(0)),
        links: Vec::new(),
        name: "ada".parse().unwrap(),
        state: AgentState::External,
        status: "reading".into(),
        runtime: Runtime::None,
        network: None,
        engine: String::new(),
        model: String::new(),
        parent: Some("ruth".parse().unwrap()),
        unread: 2,
        inflight: 1,
        port: 8100,
        address: "ada".into(),
        socket: "/r/mcp.sock".into(),
        created_at: time(0),
        pid: Some(7),
        note: "why".into(),
    }
}

const AGENT: &str = r#"{"name":"ada","state":"external","status":"reading","runtime":"none","network":null,"engine":"","model":"","parent":"ruth","unread":2,"inflight":1,"port":8100,"address":"ada","socket":"/r/mcp.sock","created_at":"2023-11-14T22:13:20.000Z","pid":7,"note":"why","stale":false,"restarts":2,"restarted_at":"2023-11-14T22:13:20.000Z"}"#;
const ROW: &str = r#"{"id":"5","from":"ada","to":"operator","state":"dead","deliveries":2,"turn":null,"sent_at":"2023-11-14T22:13:20.000Z","acked_at":null,"body":"hello","in_reply_to":"4"}"#;

#[track_caller]
fn golden(view: impl Serialize, expected: &str) {
    assert_eq!(document(view).unwrap(), expected);
}

#[test]
fn a_sent_message() {
    let message_id = MessageId(5);
    let sent = |duplicate| agent::Sent {
        message_id,
        duplicate,
    };
    golden(Sent::from(&sent(false)), r#"{"schema":1,"id":"5"}"#);
    golden(
        Sent::from(&sent(true)),
        r#"{"schema":1,"id":"5","duplicate":true}"#,
    );
}

#[test]
fn the_inbox() {
    let message = agent::Message {
        id: MessageId(7),
        from: "ada".parse().unwrap(),
        to: "operator".into(),
        body: "hi \"you\"\n".into(),
        in_reply_to: None,
        sent_at: time(0),
        delivery: 1,
    };
    golden(
        InboxDocument::new(std::slice::from_ref(&message), None),
        r#"{"schema":1,"messages":[{"id":"7","from":"ada","body":"hi \"you\"\n","in_reply_to":null,"sent_at":"2023-11-14T22:13:20.000Z"}]}"#,
    );
    golden(
        InboxDocument::new(&[], Some(MessageId(7))),
        r#"{"schema":1,"messages":[],"next":"7"}"#,
    );
    golden(Acked { acked: 3 }, r#"{"schema":1,"acked":3}"#);
}

#[test]
fn a_receipt() {
    golden(
        Receipt::from(&receipt()),
        r#"{"schema":1,"id":"5","from":"ada","to":"operator","state":"acked","deliveries":2,"turn":"t-1","sent_at":"2023-11-14T22:13:20.000Z","acked_at":"2023-11-14T22:13:21.000Z"}"#,
    );
}

#[test]
fn history_and_dead_letters() {
    let rows = [history_row()];
    golden(
        MessageList::page(&rows, Some(MessageId(4))),
        &format!(r#"{{"schema":1,"messages":[{ROW}],"next":"4"}}"#),
    );
    golden(
        MessageList::page(&[], None),
        r#"{"schema":1,"messages":[],"next":null}"#,
    );
    golden(
        MessageList::whole(&rows),
        &format!(r#"{{"schema":1,"messages":[{ROW}]}}"#),
    );
    let settled = host::Settled {
        state: MessageState::Stored,
    };
    golden(
        Settled::new(MessageId(5), &settled),
        r#"{"schema":1,"id":"5","state":"stored"}"#,
    );
}

#[test]
fn agents() {
    let list = host::Agents {
        agents: vec![agent_row()],
        rehearsed: true,
    };
    golden(
        AgentList::from(&list),
        &format!(r#"{{"schema":1,"agents":[{AGENT}],"rehearsed":true}}"#),
    );
    golden(
        Spawned::from(&agent_row()),
        &format!(r#"{{"schema":1,"agent":{AGENT}}}"#),
    );
    golden(
        Destroyed {
            name: "ada",
            kept_messages: 2,
            purged: true,
        },
        r#"{"schema":1,"name":"ada","kept_messages":2,"purged":true}"#,
    );
}

#[test]
fn the_daemon() {
    let info = host::HiveInfo {
        paused: None,
        spent_today: None,
        version: "0.1.0".into(),
        pid: 42,
        started_at: time(0),
        hive: Some("pr1ma".into()),
        swarm: None,
        root: "/r".into(),
        dashboard: "127.0.0.1:7000".into(),
        sqlite: "3.51.3".into(),
        agents: 1,
        undelivered: 2,
        dead: 3,
        defaults: host::Defaults {
            runtime: Runtime::Process,
            engine: "/bin/claude".into(),
            ..host::Defaults::default()
        },
    };
    golden(
        Status::from(&info),
        r#"{"schema":1,"version":"0.1.0","pid":42,"started_at":"2023-11-14T22:13:20.000Z","hive":"pr1ma","swarm":null,"root":"/r","dashboard":"127.0.0.1:7000","sqlite":"3.51.3","agents":1,"undelivered":2,"dead":3,"runtime":"process","engine":"/bin/claude","rehearsed":false,"paused":null,"spent_today":null}"#,
    );
}

#[test]
fn questions_and_answers() {
    let list = host::QuestionList {
        more: false,
        questions: vec![host::QuestionRow {
            question_id: QuestionId(9),
            asker: "ada".parse().unwrap(),
            target: "operator".into(),
            question: "tea?".into(),
            options: vec!["yes".into()],
            multi: false,
            asked_at: time(0),
            expires_at: Some(time(60)),
            answer: None,
            answered_at: None,
        }],
    };
    golden(
        QuestionList::from(&list),
        r#"{"schema":1,"questions":[{"id":"9","asker":"ada","target":"operator","question":"tea?","options":["yes"],"multi":false,"asked_at":"2023-11-14T22:13:20.000Z","expires_at":"2023-11-14T22:14:20.000Z","answer":null,"answered_at":null}]}"#,
    );
    let id = "9".to_owned();
    golden(Answered { id }, r#"{"schema":1,"id":"9"}"#);
}

#[test]
fn events() {
    let page = host::EventPage {
        events: vec![host::EventRow {
            seq: 3,
            at: time(0),
            about: "ada".into(),
            kind: "message_stored".into(),
            data: json!({"message_id": 5}),
        }],
        next: host::EventPosition { epoch: 1, seq: 3 },
        gap: false,
    };
    let event = r#"{"seq":"3","at":"2023-11-14T22:13:20.000Z","about":"ada","kind":"message_stored","data":{"message_id":5}}"#;
    golden(
        EventLog::from(&page),
        &format!(r#"{{"schema":1,"events":[{event}],"next":{{"epoch":"1","seq":"3"}}}}"#),
    );
    golden(
        TailedEvent::from(&page.events[0]),
        &format!(r#"{{"schema":1,"event":{event}}}"#),
    );
    golden(
        Gap::from(page.next),
        r#"{"schema":1,"gap":{"after":{"epoch":"1","seq":"3"}}}"#,
    );
}

#[test]
fn an_error() {
    let failure = Failure::from(
        hive_wire::WireError::new(hive_wire::ErrorCode::NotFound, "no agent `x`").hint("look"),
    );
    golden(
        ErrorDocument::from(failure.report().unwrap()),
        r#"{"schema":1,"error":{"code":"not_found","message":"no agent `x`","hint":"look"}}"#,
    );
}

#[test]
fn nothing_in_json_steers_a_terminal_and_nothing_is_lost() {
    let id = "a\x1b[2J\u{9b}b\u{202e}é".to_owned();
    let line = document(Answered { id: id.clone() }).unwrap();
    assert!(
        line.is_ascii() || !line.contains(['\u{9b}', '\u{202e}', '\x1b']),
        "{line}"
    );
    let back: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(back["id"], id);
}
