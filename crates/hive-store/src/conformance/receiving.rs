//! Promises of receiving: turns are opened, joined and displaced, and hold what they received.

use hive_wire::agent::{MAX_BATCH, MAX_BODY, MessageState, Messages, TurnResult};

use super::{
    Op, Why,
    script::{Script, bodies, closed, ids, message, receive},
};
use crate::{NewMessage, Received};

/// The longest line of the wire.
const LINE: usize = 1024 * 1024;

pub(super) fn m3_a_receive_brings_the_oldest_up_to_max(hive: &mut Script<'_>) {
    for body in ["1", "2", "3"] {
        hive.say("bob", "ada", body);
    }
    assert_eq!(bodies(&hive.recv("ada", "t1", "", 2)), ["1", "2"]);
    assert_eq!(bodies(&hive.recv("ada", "t1", "", 2)), ["3"]);
    assert_eq!(bodies(&hive.recv("ada", "t1", "", 2)), [""; 0]);
    assert_eq!(bodies(&hive.recv("ada", "t1", "", 0)), [""; 0]);
    assert_eq!(hive.stands("ada"), (0, 3, "t1".to_owned()));
}

fn line_of(received: &Received) -> usize {
    let messages = received.messages.clone();
    serde_json::to_string(&Messages { messages })
        .expect("it encodes")
        .len()
}

pub(super) fn m3_a_batch_fits_into_a_line(hive: &mut Script<'_>) {
    // A control character takes six bytes in a line.
    let bodies = ["x".repeat(MAX_BODY), "\u{1}".repeat(MAX_BODY / 6)];
    for body in bodies.iter().cycle().take(9) {
        hive.say("bob", "ada", body);
    }
    let mut seen = 0;
    while seen < 9 {
        let received = hive.recv("ada", "t1", "", MAX_BATCH);
        assert!(!received.messages.is_empty() && line_of(&received) < LINE - 1_000);
        seen += received.messages.len();
    }
    assert_eq!(hive.ack("ada", "t1", &[]).requeued, 9);
}

pub(super) fn m3_a_batch_of_transients_fits_into_a_line(hive: &mut Script<'_>) {
    let body = "x".repeat(MAX_BODY);
    for _ in 0..6 {
        hive.send(NewMessage {
            transient: true,
            ..message("bash-task-1", "ada", &body)
        });
        hive.say("bob", "ada", &body);
    }
    let mut seen = Vec::new();
    while seen.len() < 12 {
        let received = hive.recv("ada", "t1", "", MAX_BATCH);
        assert!(!received.messages.is_empty() && line_of(&received) < LINE - 1_000);
        seen.extend(ids(&received));
    }
    assert!(seen[..6].iter().all(|id| id.is_transient()), "{seen:?}");
}

pub(super) fn m3_without_a_turn_messages_are_acked_at_once(hive: &mut Script<'_>) {
    let first = hive.say("bob", "ada", "1");
    let second = hive.say("bob", "ada", "2");
    let received = hive.recv("ada", "", "r1", 1);
    let acked_at = hive.clock;
    assert_eq!((ids(&received), received.turn), (vec![first], None));
    hive.crash();
    let receipt = hive.receipt(first).expect("it was stored");
    assert_eq!(
        (receipt.state, receipt.deliveries),
        (MessageState::Acked, 1)
    );
    assert_eq!(receipt.acked_at.map(|at| at.millis()), Some(acked_at));
    assert_eq!(receipt.turn, None);
    assert_eq!(
        ids(&hive.recv("ada", "", "r1", 1)),
        [second],
        "no turn, no repeat"
    );
    assert_eq!(hive.stands("ada"), (0, 0, String::new()));
}

pub(super) fn c3_a_lease_survives_a_restart_and_a_crash(hive: &mut Script<'_>) {
    let id = hive.say("bob", "ada", "x");
    let before = hive.recv("ada", "t1", "r1", 9);
    for crash in [true, false] {
        if crash {
            hive.crash();
        } else {
            hive.restart();
        }
        assert_eq!(hive.stands("ada"), (0, 1, "t1".to_owned()));
        let again = hive.recv("ada", "t1", "r1", 9);
        assert_eq!(again.messages, before.messages);
        assert!(hive.recv("ada", "current", "r2", 9).messages.is_empty());
    }
    assert_eq!(
        hive.ack("ada", "t1", &[id]),
        closed(TurnResult::Acked, 1, 0, 0)
    );
    hive.crash();
    assert_eq!(hive.state(id), MessageState::Acked);
    assert!(
        hive.recv("ada", "t2", "", 9).messages.is_empty(),
        "acked is acked"
    );
}

pub(super) fn c3_current_joins_the_open_turn_or_is_refused(hive: &mut Script<'_>) {
    let current = Op::Receive(receive("ada", "current", "", 9));
    assert_eq!(hive.refusal(current.clone()), Why::NoOpenTurn);
    hive.recv("ada", "t1", "", 9);
    hive.say("bob", "ada", "x");
    let joined = hive.recv("ada", "current", "", 9);
    assert_eq!(
        joined.turn.map(|turn| turn.to_string()),
        Some("t1".to_owned())
    );
    assert_eq!((joined.displaced, joined.messages.len()), (None, 1));
    hive.ack("ada", "current", &[]);
    assert_eq!(hive.refusal(current), Why::NoOpenTurn);
    assert_eq!(hive.stands("ada"), (1, 0, String::new()));
}

pub(super) fn c3_the_same_req_brings_the_same_batch(hive: &mut Script<'_>) {
    hive.say("bob", "ada", "1");
    let first = hive.recv("ada", "t1", "r1", 1);
    hive.say("bob", "ada", "2");
    assert_eq!(
        hive.recv("ada", "t1", "r1", 9),
        first,
        "nothing more is leased"
    );
    assert_eq!(hive.recv("ada", "current", "r1", 9), first);
    assert_eq!(hive.inbox("ada").unread, 1);
    let second = hive.recv("ada", "t1", "r2", 9);
    assert_eq!(bodies(&second), ["2"]);
    hive.crash();
    assert_eq!(hive.recv("ada", "t1", "r1", 9).messages, first.messages);
    assert_eq!(hive.recv("ada", "t1", "r2", 9).messages, second.messages);

    let next = hive.recv("ada", "t2", "r1", 9);
    assert_eq!(bodies(&next), ["1", "2"], "another turn, another req");
    assert!(next.messages.iter().all(|message| message.delivery == 2));
}

pub(super) fn c3_a_req_that_brought_nothing_may_bring_something_later(hive: &mut Script<'_>) {
    assert!(hive.recv("ada", "t1", "r1", 9).messages.is_empty());
    hive.say("bob", "ada", "x");
    assert_eq!(bodies(&hive.recv("ada", "t1", "r1", 9)), ["x"]);
}

pub(super) fn c3_a_new_turn_displaces_the_open_one(hive: &mut Script<'_>) {
    let id = hive.say("bob", "ada", "x");
    hive.recv("ada", "t1", "", 9);
    let received = hive.recv("ada", "t2", "", 9);
    assert_eq!(
        received.displaced.map(|turn| turn.to_string()),
        Some("t1".to_owned())
    );
    assert_eq!(received.messages[0].delivery, 2, "and says so");
    assert_eq!(hive.ack("ada", "t1", &[id]).result, TurnResult::Superseded);
    assert_eq!(
        hive.state(id),
        MessageState::Leased,
        "a late ack takes nothing away"
    );
    assert_eq!(
        hive.ack("ada", "t2", &[id]),
        closed(TurnResult::Acked, 1, 0, 0)
    );
    let turn = hive.receipt(id).and_then(|receipt| receipt.turn);
    assert_eq!(turn.map(|turn| turn.to_string()), Some("t2".to_owned()));
}

pub(super) fn c3_an_ended_turn_is_not_opened_again(hive: &mut Script<'_>) {
    hive.recv("ada", "acked", "", 9);
    hive.ack("ada", "acked", &[]);
    hive.recv("ada", "requeued", "", 9);
    hive.requeue("ada", "requeued", super::RequeueReason::Shutdown);
    hive.recv("ada", "displaced", "", 9);
    hive.recv("ada", "open", "", 9);
    hive.say("bob", "ada", "x");
    for crash in [false, true] {
        if crash {
            hive.crash();
        }
        for turn in ["acked", "requeued", "displaced"] {
            let again = Op::Receive(receive("ada", turn, "", 9));
            assert_eq!(hive.refusal(again), Why::TurnEnded(turn.to_owned()));
        }
        assert_eq!(
            hive.stands("ada"),
            (1, 0, "open".to_owned()),
            "and displaces nothing"
        );
    }
}

pub(super) fn c3_turns_of_different_agents_are_apart(hive: &mut Script<'_>) {
    hive.say("cid", "ada", "for ada");
    hive.say("cid", "bob", "for bob");
    assert_eq!(bodies(&hive.recv("ada", "t1", "r1", 9)), ["for ada"]);
    assert_eq!(bodies(&hive.recv("bob", "t1", "r1", 9)), ["for bob"]);
    hive.confirm("ada", "t1", "r1");
    assert_eq!(
        hive.ack("ada", "t1", &[]),
        closed(TurnResult::Acked, 1, 0, 0)
    );
    assert_eq!(hive.stands("bob"), (0, 1, "t1".to_owned()));
    assert_eq!(
        hive.ack("bob", "t1", &[]),
        closed(TurnResult::Acked, 0, 1, 0)
    );
}

pub(super) fn c3_a_parked_receive_opens_its_turn(hive: &mut Script<'_>) {
    let id = hive.say("bob", "ada", "x");
    hive.recv("ada", "t1", "", 9);
    hive.ack("ada", "t1", &[id]);
    assert_eq!(
        hive.park("ada", "t2").turn.map(|turn| turn.to_string()),
        Some("t2".to_owned())
    );
    assert_eq!(hive.stands("ada"), (0, 0, "t2".to_owned()));
    assert_eq!(hive.recv("ada", "current", "", 9).displaced, None);
    hive.say("bob", "ada", "y");
    assert_eq!(bodies(&hive.park("ada", "t2")), ["y"]);
    hive.crash();
    assert_eq!(
        hive.stands("ada"),
        (0, 1, "t2".to_owned()),
        "what was handed over is held"
    );
}

pub(super) fn c3_a_parked_turn_that_was_displaced_has_ended(hive: &mut Script<'_>) {
    hive.park("ada", "t1");
    let received = hive.park("ada", "t2");
    assert_eq!(
        received.displaced.map(|turn| turn.to_string()),
        Some("t1".to_owned())
    );
    let again = Op::Receive(receive("ada", "t1", "", 9));
    assert_eq!(hive.refusal(again.clone()), Why::TurnEnded("t1".to_owned()));
    hive.crash();
    assert_eq!(hive.refusal(again), Why::TurnEnded("t1".to_owned()));
    assert_eq!(hive.ack("ada", "t1", &[]).result, TurnResult::Superseded);
    hive.park("ada", "t3");
    assert_eq!(
        hive.ack("ada", "t3", &[]),
        closed(TurnResult::Acked, 0, 0, 0)
    );
    assert_eq!(
        hive.ack("ada", "t3", &[]),
        closed(TurnResult::Already, 0, 0, 0)
    );
}
