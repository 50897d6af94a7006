//! State, order and bounds of the bus.

use serde_json::Value;

use super::*;

fn bus(max_bytes: usize) -> Bus {
    Bus::new("e1".parse().unwrap(), max_bytes)
}

fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

fn data(event: &PostedEvent) -> Value {
    serde_json::from_str(event.data.get()).unwrap()
}

#[test]
fn t28_the_state_carries_the_time_it_began() {
    let bus = bus(1 << 20);
    let before = bus.state();
    assert_eq!(before.turn_state, TurnState::Idle);
    bus.set_turn_state(TurnState::Thinking);
    let thinking = bus.state();
    assert_eq!(thinking.turn_state, TurnState::Thinking);
    assert!(thinking.since >= before.since);
    bus.set_turn_state(TurnState::Thinking);
    assert_eq!(bus.state(), thinking, "saying it twice changes nothing");
    let states: Vec<_> = bus.take_work().unwrap().events.iter().map(data).collect();
    assert_eq!(states.len(), 1);
    assert_eq!(states[0]["turn_state"], "thinking");
}

#[test]
fn t28_tools_and_context_are_state_but_no_events() {
    let bus = bus(1 << 20);
    bus.take_work();
    bus.set_tool(Some("Read"));
    bus.set_context(5);
    let work = bus.take_work().unwrap();
    assert_eq!(work.state.unwrap().current_tool.as_deref(), Some("Read"));
    assert!(work.events.is_empty());
    assert!(bus.take_work().is_none());
    bus.repeat_state();
    assert!(
        bus.take_work().unwrap().state.is_some(),
        "said again after a reconnect"
    );
}

#[test]
fn t5_events_are_numbered_in_order_and_go_out_in_batches() {
    let bus = bus(1 << 20);
    for n in 0..MAX_BATCH + 10 {
        bus.stream(&raw(&format!("{{\"n\":{n}}}")));
    }
    let first = bus.take_work().unwrap().events;
    let second = bus.take_work().unwrap().events;
    assert_eq!((first.len(), second.len()), (MAX_BATCH, 10));
    let numbers: Vec<_> = first.iter().chain(&second).map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=MAX_BATCH as u64 + 10).collect::<Vec<_>>());
    assert_eq!(data(&second[9])["value"]["n"], MAX_BATCH + 9);
}

#[test]
fn t5_a_line_that_is_too_long_is_cut_and_says_so() {
    let bus = bus(1 << 20);
    bus.stream(&raw(&format!(
        "{{\"x\":\"{}\"}}",
        "y".repeat(MAX_EVENT_DATA)
    )));
    let events = bus.take_work().unwrap().events;
    let value = &data(&events[0])["value"];
    assert_eq!(value["cut"], true);
    assert_eq!(value["bytes"], MAX_EVENT_DATA + 8);
    assert!(events[0].data.get().len() < 10_000);
}

#[test]
fn t3_the_body_in_turn_start_is_cut_between_characters() {
    let bus = bus(1 << 20);
    let turn = "t1".parse().unwrap();
    let body = format!("x{}", "é".repeat(4_000));
    bus.turn_start(&TurnStart {
        turn: &turn,
        from: "bob",
        body: &body,
        unread: 3,
        message_ids: &[MessageId(7)],
        delivery: 2,
    });
    let data = data(&bus.take_work().unwrap().events[0]);
    assert_eq!(data["body"].as_str().unwrap().len(), 4_095);
    assert_eq!(data["unread"], 3);
    assert_eq!(data["message_ids"][0], 7);
}

#[test]
fn events_are_bounded_and_what_is_dropped_leaves_a_hole_in_the_numbers() {
    let bus = bus(20_000);
    let turn = "t1".parse().unwrap();
    bus.turn_start(&TurnStart {
        turn: &turn,
        from: "bob",
        body: "b",
        unread: 0,
        message_ids: &[],
        delivery: 1,
    });
    for _ in 0..1_000 {
        bus.stream(&raw("{\"some\":\"line of an engine\"}"));
    }
    let events = bus.take_work().unwrap().events;
    assert_eq!(
        events[0].kind,
        PostedKind::TurnStart,
        "what a turn was is kept"
    );
    assert!(
        events[1].seq > 800,
        "the oldest lines went: {}",
        events[1].seq
    );
    assert_eq!(events.last().unwrap().seq, 1_001);
    let bytes: usize = events.iter().map(cost).sum();
    assert!(bytes <= 20_000, "{bytes}");
}

#[test]
fn t12_rows_wait_for_the_host_within_bounds() {
    let bus = bus(1 << 20);
    bus.take_work();
    let row = |n: i64| PostTurnCounts {
        turn: "t".parse().unwrap(),
        kind: hive_wire::report::TurnKind::Mail,
        started_at: Timestamp::from_millis(n),
        duration_ms: 0,
        engine_ms: 0,
        model: String::new(),
        input_tokens: 0,
        output_tokens: 0,
        cache_read_tokens: 0,
        cache_creation_tokens: 0,
        cost_micro_usd: 0,
        context_tokens: 0,
        window: 0,
        outcome: "ok".to_owned(),
        note: None,
        session_id: None,
        messages: Vec::new(),
        tools: Vec::new(),
    };
    for n in 0..300 {
        bus.counts(row(n));
    }
    let oldest = bus.take_work().unwrap().row.unwrap();
    assert_eq!(oldest, row(300 - 256));
    assert_eq!(
        bus.take_work().unwrap().row.unwrap(),
        oldest,
        "until it is reported"
    );
    bus.row_done(&oldest);
    assert_eq!(bus.take_work().unwrap().row.unwrap(), row(300 - 255));
}
