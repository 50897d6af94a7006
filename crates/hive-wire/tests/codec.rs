//! The codec under fire: random and hostile bytes, split anywhere, must never panic, never hold
//! more memory than a line may have, and never be answered with something that is no reply.
//!
//! `make soak` runs the tests named `prop_…` and `fuzz_…` with `PROPTEST_CASES` raised. The
//! function `fuzz_codec` takes plain bytes, so that a coverage-guided fuzzer can call it as it is.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "codec/approvals.rs"]
mod approvals;
#[path = "codec/reports.rs"]
mod reports;
#[path = "codec/requests.rs"]
mod requests;
#[path = "codec/tools.rs"]
mod tools;

use std::collections::BTreeSet;

use bytes::Bytes;
use hive_wire::{
    ErrorCode, WireError,
    agent::{self, AgentRequest},
    command::{Head, ReplyHead, RequestId, encode_reply, unknown_command},
    host::{self, HostRequest},
    line::{LineBuffer, LineTooLong, MAX_LINE, READ_CHUNK},
};
use proptest::{
    collection::vec,
    prelude::*,
    sample::{Index, select},
    strategy::Union,
    test_runner::{FileFailurePersistence, TestRunner},
};
use requests::{Encoded, agent_requests, host_requests};

/// 256 cases unless `PROPTEST_CASES` says otherwise; a failure leaves its seed next to this file.
fn config() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource(
            "proptest-regressions",
        ))),
        ..ProptestConfig::default()
    }
}

type Cut = (Vec<Bytes>, Result<usize, LineTooLong>);

/// The lines of a stream that arrives in the given chunks, and how many bytes are left over.
fn cut(stream: &[u8], chunks: &[usize], limit: usize) -> Cut {
    let mut buffer = LineBuffer::new(limit);
    let mut lines = Vec::new();
    let mut chunks = chunks.iter().copied().cycle();
    let mut rest = stream;
    while !rest.is_empty() {
        let room = buffer.room();
        let held = room.capacity();
        assert!(held <= limit + READ_CHUNK, "{held} bytes for {limit}");
        let space = room.capacity() - room.len();
        assert!(space >= READ_CHUNK);
        let taken = chunks
            .next()
            .unwrap_or(space)
            .clamp(1, space.min(rest.len()));
        room.extend_from_slice(&rest[..taken]);
        rest = &rest[taken..];
        if let Err(error) = drain(&mut buffer, &mut lines) {
            return (lines, Err(error));
        }
    }
    (lines, Ok(buffer.partial()))
}

fn drain(buffer: &mut LineBuffer, lines: &mut Vec<Bytes>) -> Result<(), LineTooLong> {
    while let Some(line) = buffer.next_line()? {
        lines.push(line);
    }
    Ok(())
}

/// The same, with lines taken straight from what was read, but for every `refused`th.
fn cut_at_once(stream: &[u8], chunks: &[usize], limit: usize, refused: usize) -> Cut {
    let mut buffer = LineBuffer::new(limit);
    let mut lines = Vec::new();
    let mut chunks = chunks.iter().copied().cycle();
    let mut rest = stream;
    let mut offered = 0;
    while !rest.is_empty() {
        let taken = chunks.next().unwrap_or(READ_CHUNK);
        let taken = taken.clamp(1, READ_CHUNK.min(rest.len()));
        buffer.take_lines(&rest[..taken], |line| {
            offered += 1;
            let is_taken = offered % refused != 0;
            if is_taken {
                lines.push(Bytes::copy_from_slice(line));
            }
            is_taken
        });
        rest = &rest[taken..];
        if let Err(error) = drain(&mut buffer, &mut lines) {
            return (lines, Err(error));
        }
    }
    (lines, Ok(buffer.partial()))
}

/// What [`cut`] must find, the simple way.
fn cut_naively(stream: &[u8], limit: usize) -> Cut {
    let mut lines = Vec::new();
    let mut segments: Vec<&[u8]> = stream.split(|byte| *byte == b'\n').collect();
    let unfinished = segments.pop().unwrap_or_default();
    for segment in segments {
        if segment.len() > limit {
            return (lines, Err(LineTooLong { limit }));
        }
        let line = segment.strip_suffix(b"\r").unwrap_or(segment);
        if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
            lines.push(Bytes::copy_from_slice(line));
        }
    }
    if unfinished.len() > limit {
        return (lines, Err(LineTooLong { limit }));
    }
    (lines, Ok(unfinished.len()))
}

/// Bytes among which newlines and blanks are common.
fn newline_heavy() -> impl Strategy<Value = Vec<u8>> {
    vec(
        prop_oneof![2 => select(&b"\n\r \t"[..]), 5 => any::<u8>()],
        0..300,
    )
}

/// A few lines that are longer than a read.
fn long_lines() -> impl Strategy<Value = Vec<u8>> {
    vec(0..40_000_usize, 0..6).prop_map(|lengths| {
        let mut stream = Vec::new();
        for length in lengths {
            stream.resize(stream.len() + length, b'x');
            stream.push(b'\n');
        }
        stream
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn prop_lines_do_not_depend_on_how_they_arrive(
        stream in newline_heavy(),
        chunks in vec(1..40_usize, 1..8),
        limit in 0..80_usize,
    ) {
        let expected = cut_naively(&stream, limit);
        for refused in [1, 3, usize::MAX] {
            prop_assert_eq!(&cut_at_once(&stream, &chunks, limit, refused), &expected);
        }
        prop_assert_eq!(cut(&stream, &chunks, limit), expected);
    }

    #[test]
    fn prop_long_lines_do_not_depend_on_how_they_arrive(
        stream in long_lines(),
        chunks in vec(1..50_000_usize, 1..8),
        limit in select(vec![0, 10_000, 20_000, 39_000, MAX_LINE]),
    ) {
        let expected = cut_naively(&stream, limit);
        for refused in [1, 3, usize::MAX] {
            prop_assert_eq!(&cut_at_once(&stream, &chunks, limit, refused), &expected);
        }
        prop_assert_eq!(cut(&stream, &chunks, limit), expected);
    }
}

#[test]
fn a_line_may_have_the_limit_and_not_a_byte_more() {
    for limit in [0, 1, READ_CHUNK - 1, READ_CHUNK, READ_CHUNK + 1, MAX_LINE] {
        let mut stream = vec![b'x'; limit];
        stream.push(b'\n');
        let (lines, outcome) = cut(&stream, &[], limit);
        assert_eq!(outcome, Ok(0));
        assert_eq!(lines.len(), usize::from(limit > 0));

        stream.insert(0, b'x');
        let (lines, outcome) = cut(&stream, &[], limit);
        assert_eq!((lines.len(), outcome), (0, Err(LineTooLong { limit })));
        // It is known before the newline comes.
        stream.pop();
        assert_eq!(cut(&stream, &[], limit).1, Err(LineTooLong { limit }));
    }
}

#[test]
fn a_gigabyte_without_a_newline_is_refused_after_one_line() {
    let mut buffer = LineBuffer::new(MAX_LINE);
    let mut taken = 0;
    while buffer.next_line().is_ok() {
        let room = buffer.room();
        let space = room.capacity() - room.len();
        room.resize(room.len() + space, b'x');
        taken += space;
        assert!(taken <= MAX_LINE + READ_CHUNK);
    }
    assert!(taken > MAX_LINE);
}

#[test]
fn the_last_line_needs_no_newline() {
    let mut buffer = LineBuffer::new(100);
    buffer
        .room()
        .extend_from_slice(b"{\"cmd\":1}\n{\"cmd\":2}\r");
    assert_eq!(buffer.next_line().unwrap().unwrap(), "{\"cmd\":1}");
    assert_eq!(buffer.next_line(), Ok(None));
    assert_eq!(buffer.last_line().unwrap(), "{\"cmd\":2}");
    assert_eq!(buffer.last_line(), None);
}

/// Every command has a strategy, so that none goes unchecked.
#[test]
fn the_strategies_cover_every_command() {
    for (strategies, names) in [
        (agent_requests(), AgentRequest::NAMES),
        (host_requests(), HostRequest::NAMES),
    ] {
        let mut runner = TestRunner::deterministic();
        let made: BTreeSet<&str> = strategies
            .iter()
            .map(|strategy| strategy.new_tree(&mut runner).unwrap().current().name)
            .collect();
        assert_eq!(made, names.iter().copied().collect());
    }
}

type ParseName = fn(&str, &[u8]) -> Result<&'static str, WireError>;

fn agent_command(cmd: &str, line: &[u8]) -> Result<&'static str, WireError> {
    let request = AgentRequest::parse(cmd, line);
    check_read(line, &request, AgentRequest::read);
    request.map(|request| request.name())
}

fn host_command(cmd: &str, line: &[u8]) -> Result<&'static str, WireError> {
    let request = HostRequest::parse(cmd, line);
    check_read(line, &request, HostRequest::read);
    request.map(|request| request.name())
}

/// A line that names its command itself is read in one pass as it is in two.
fn check_read<R: std::fmt::Debug>(
    line: &[u8],
    expected: &Result<R, WireError>,
    read: impl Fn(&[u8]) -> (Option<RequestId>, Result<R, WireError>),
) {
    if let Ok(head) = Head::parse(line) {
        let (id, request) = read(line);
        assert_eq!(id, head.id);
        assert_eq!(format!("{request:?}"), format!("{expected:?}"));
    }
}

fn check_round_trip(request: &Encoded, parse: ParseName) {
    let line = request.line.strip_suffix(b"\n").unwrap();
    assert!(!line.contains(&b'\n'));
    let head = Head::parse(line).unwrap();
    assert_eq!(head.cmd, request.name);
    assert_eq!(head.id, request.id);
    assert_eq!(parse(&head.cmd, line), Ok(request.name));
    assert_eq!(
        (request.again)(line, head.id.as_ref()).unwrap(),
        request.line
    );

    // A newer client may say more than this build understands, before the command or after it.
    let later = [&line[..line.len() - 1], br#","since_v9":[{}]}"#].concat();
    assert_eq!(parse(&head.cmd, &later), Ok(request.name));
    let newer = [br#"{"since_v9":{"deep":[1,{"x":null}]},"#, &line[1..]].concat();
    let head = Head::parse(&newer).unwrap();
    assert_eq!(parse(&head.cmd, &newer), Ok(request.name));
    assert_eq!(
        (request.again)(&newer, head.id.as_ref()).unwrap(),
        request.line
    );
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn prop_every_agent_request_survives_the_way(request in Union::new(agent_requests())) {
        check_round_trip(&request, agent_command);
    }

    #[test]
    fn prop_every_host_request_survives_the_way(request in Union::new(host_requests())) {
        check_round_trip(&request, host_command);
    }

    #[test]
    fn prop_unknown_commands_are_told_from_known_ones(cmd in any::<String>()) {
        prop_assume!(!AgentRequest::NAMES.contains(&cmd.as_str()));
        let error = agent_command(&cmd, b"{}").unwrap_err();
        prop_assert_eq!(error.code, ErrorCode::UnknownCommand);
        prop_assert!(!error.hint.is_empty());
    }
}

#[test]
fn what_is_said_twice_or_unreadable_is_refused_with_its_id() {
    for (line, id) in [
        (r#"{"cmd":"status","id":7,"cmd":"status"}"#, Some(7)),
        (r#"{"cmd":"status","id":7,"id":8}"#, None),
        (r#"{"cmd":"send","id":7,"to":"bob"}"#, Some(7)),
        (r#"{"id":7,"cmd":3}"#, Some(7)),
        (r#"{"id":7}"#, Some(7)),
        (r#"{"cmd":"nothing","id":7}"#, Some(7)),
    ] {
        let (read, outcome) = AgentRequest::read(line.as_bytes());
        assert!(outcome.is_err(), "{line}");
        assert_eq!(read, id.map(RequestId::Number), "{line}");
    }
}

#[test]
fn a_mistyped_command_is_answered_with_the_one_that_was_meant() {
    for (cmd, meant) in [
        ("sned", "send"),
        ("ackturn", "ack_turn"),
        ("Status", "status"),
    ] {
        let error = unknown_command(cmd, AgentRequest::NAMES);
        assert_eq!(error.hint, format!("did you mean `{meant}`?"));
    }
    let error = unknown_command("make_coffee", AgentRequest::NAMES);
    assert!(error.hint.contains("requeue_inflight"), "{}", error.hint);
}

/// Runs a whole stream, arriving in the given chunks, through everything that reads bytes of a
/// peer, and checks that whatever is answered is a reply.
fn fuzz_codec(stream: &[u8], chunks: &[usize]) {
    let (lines, _) = cut(stream, chunks, MAX_LINE);
    for line in &lines {
        for parse in [agent_command as ParseName, host_command] {
            fuzz_request(line, parse);
        }
        fuzz_reply(line);
    }
}

fn fuzz_request(line: &[u8], parse: ParseName) {
    let (id, outcome) = match Head::parse(line) {
        Ok(head) => (head.id, parse(&head.cmd, line).map(|name| (name, head.cmd))),
        Err(error) => (None, Err(error)),
    };
    match outcome {
        Ok((name, cmd)) => assert_eq!(name, cmd),
        Err(error) => {
            assert!(
                matches!(
                    error.code,
                    ErrorCode::BadRequest | ErrorCode::UnknownCommand
                ),
                "{error:?}"
            );
            let reply = encode_reply(Err::<&agent::Cancelled, _>(&error), id.as_ref());
            let reply = reply.strip_suffix(b"\n").unwrap();
            assert!(reply.len() <= 4096, "{} bytes", reply.len());
            assert!(!reply.contains(&b'\n'));
            let head: ReplyHead = serde_json::from_slice(reply).unwrap();
            assert_eq!((head.ok, head.id, head.error), (false, id, Some(error)));
        }
    }
}

/// A daemon may be of another version, so its replies are foreign too: reading one may fail and
/// must do no worse.
fn fuzz_reply(line: &[u8]) {
    fn read<T: serde::de::DeserializeOwned>(line: &[u8]) {
        drop(serde_json::from_slice::<T>(line));
    }
    read::<ReplyHead>(line);
    read::<agent::Messages>(line);
    read::<agent::TurnClosed>(line);
    read::<agent::LooseEnds>(line);
    read::<agent::Receipt>(line);
    read::<host::HiveInfo>(line);
    read::<host::Agents>(line);
    read::<host::HistoryPage>(line);
    read::<host::EventPage>(line);
    read::<host::AgentSnapshot>(line);
    read::<host::TurnPage>(line);
    read::<agent::ControlRequests>(line);
    read::<agent::EventsPosted>(line);
}

/// Pieces that are near enough to requests to get past the first check.
const PIECES: &[&[u8]] = &[
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b"\r\n",
    b"\"",
    b"\\",
    b" ",
    b"null",
    b"true",
    b"\"cmd\":",
    b"\"id\":",
    b"\"send\"",
    b"\"recv\"",
    b"\"ack_turn\"",
    b"\"requeue_inflight\"",
    b"\"cancel_loose_end\"",
    b"\"spawn\"",
    b"\"events\"",
    b"\"post_events\"",
    b"\"control\"",
    b"\"epoch\":",
    b"\"events\":",
    b"\"data\":",
    b"\"action\":",
    b"\"turn\":",
    b"\"to\":",
    b"\"body\":",
    b"\"kind\":",
    b"\"question\"",
    b"\"question_id\":",
    b"\"reason\":",
    b"\"ids\":",
    b"\"max\":",
    b"\"ok\":",
    b"\"error\":",
    b"\"messages\":",
    b"\"sent_at\":\"2023-11-14T22:13:20Z\"",
    b"-1",
    b"0",
    b"1e999",
    b"-0.0",
    b"18446744073709551615",
    b"9223372036854775808",
    b"99999999999999999999999999999999999999999",
    b"\"\\ud800\"",
    b"\"\\u0000\"",
    b"\xff\xfe",
    b"\xc0\x80",
    b"\xef\xbb\xbf",
    b"\xf0\x9f\x90\x9d",
    b"{\"a\":{\"a\":{\"a\":",
    b"[[[[[[[[",
];

fn hostile_stream() -> impl Strategy<Value = Vec<u8>> {
    let pieces = vec(select(PIECES), 0..40).prop_map(|pieces| pieces.concat());
    let requests = Union::new([agent_requests(), host_requests()].concat());
    let mutated = (requests, vec((any::<Index>(), any::<u8>(), 0..4_u8), 0..4)).prop_map(
        |(request, changes)| {
            let mut line = request.line;
            for (index, byte, kind) in changes {
                let at = index.index(line.len());
                match kind {
                    0 => line[at] = byte,
                    1 => line.insert(at, byte),
                    2 => line.extend_from_within(at..),
                    _ => line.truncate(at.max(1)),
                }
            }
            line.push(b'\n');
            line
        },
    );
    let random = vec(any::<u8>(), 0..200);
    let part = prop_oneof![3 => mutated, 2 => pieces, 1 => random];
    vec(part, 1..4).prop_map(|parts| {
        let mut stream = parts.concat();
        stream.push(b'\n');
        stream
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn fuzz_codec_with_hostile_bytes(
        stream in hostile_stream(),
        chunks in vec(1..100_usize, 1..5),
    ) {
        fuzz_codec(&stream, &chunks);
    }
}

#[test]
fn known_attacks_are_answered() {
    let deep = |open: &str, count: usize| open.repeat(count);
    let attacks: Vec<(String, ErrorCode)> = [
        // Nesting, where it is skipped, where it is read, and where it is buffered first.
        format!(r#"{{"cmd":"status","x":{}"#, deep("[", 200_000)),
        format!(r#"{{"cmd":"send","to":{}"#, deep("{\"a\":", 100_000)),
        format!(r#"{{"cmd":"cancel_loose_end","x":{}"#, deep("[", 200_000)),
        format!(
            r#"{{"cmd":"cancel_loose_end","kind":"question","question_id":1,"x":{}{}}}"#,
            deep("[", 1000),
            deep("]", 1000)
        ),
        deep("[", 500_000),
        // The same key twice could mean one thing to a check and another to what is checked.
        r#"{"cmd":"send","cmd":"status"}"#.to_owned(),
        r#"{"cmd":"send","to":"a","to":"b","body":""}"#.to_owned(),
        // Numbers.
        r#"{"cmd":"status","id":1e400}"#.to_owned(),
        r#"{"cmd":"status","id":9223372036854775808}"#.to_owned(),
        r#"{"cmd":"status","id":1.5}"#.to_owned(),
        format!(r#"{{"cmd":"recv","max":{}}}"#, "9".repeat(100_000)),
        r#"{"cmd":"recv","max":-1}"#.to_owned(),
        // Texts that are quoted in the error, where escaping makes them longer.
        format!(
            r#"{{"cmd":"requeue_inflight","turn":"t","reason":"{}"}}"#,
            "\\u0001".repeat(150_000)
        ),
        format!(r#"{{"cmd":"recv","max":"{}"}}"#, "\\u0001".repeat(150_000)),
        format!(r#"{{"cmd":"status","id":"{}"}}"#, "x".repeat(65)),
        r#"{"cmd":"send","to":"\ud800","body":""}"#.to_owned(),
        "\u{feff}{\"cmd\":\"status\"}".to_owned(),
        r#"["send","ada"]"#.to_owned(),
        "null".to_owned(),
    ]
    .map(|attack| (attack, ErrorCode::BadRequest))
    .into();
    for (attack, code) in attacks {
        let line = attack.as_bytes();
        assert!(line.len() <= MAX_LINE);
        fuzz_codec(&[line, b"\n"].concat(), &[]);
        let outcome = Head::parse(line).and_then(|head| agent_command(&head.cmd, line));
        let shown = &attack[..attack.len().min(80)];
        assert_eq!(outcome.map_err(|error| error.code), Err(code), "{shown}");
    }
    let not_utf8 = b"{\"cmd\":\"send\",\"to\":\"\xff\",\"body\":\"\"}";
    assert!(agent_command("send", not_utf8).is_err());
}
