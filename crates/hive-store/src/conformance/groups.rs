//! Promises of groups: what is refused is undone alone and as a whole.

use hive_wire::{
    MessageId,
    agent::{MessageState, RequeueReason, TurnResult},
};

use super::{
    Op, Outcome, Why,
    script::{Script, agent, bodies, closed, ids, message, receive, text},
};
use crate::{NewMessage, Receive, mail::Verdict};

/// An operation that is always refused.
fn refused() -> Op {
    Op::Settle(MessageId(1_000_000), Verdict::Discard)
}

pub(super) fn a_refused_operation_leaves_its_neighbours_alone(hive: &mut Script<'_>) {
    let outcomes = hive.group(&[
        Op::Send(message("bob", "ada", "1")),
        Op::Receive(receive("ada", "current", "", 9)),
        Op::Send(NewMessage {
            in_reply_to: Some(MessageId(1_000_000)),
            ..message("bob", "ada", "lost")
        }),
        Op::Send(message("bob", "ada", "2")),
        refused(),
        Op::Receive(receive("ada", "t1", "", 1)),
    ]);
    let told: Vec<_> = outcomes
        .iter()
        .map(|o| matches!(o, Outcome::Refused(_)))
        .collect();
    assert_eq!(told, [false, true, true, false, true, false]);
    for crash in [false, true] {
        if crash {
            hive.crash();
        }
        assert_eq!(hive.stands("ada"), (1, 1, "t1".to_owned()));
    }
    assert_eq!(bodies(&hive.recv("ada", "t2", "", 9)), ["1", "2"]);
}

pub(super) fn an_operation_that_wrote_and_was_refused_leaves_no_trace(hive: &mut Script<'_>) {
    let held = hive.say("bob", "ada", "held");
    hive.recv("ada", "t1", "r1", 9);
    let writes = [
        Op::Send(message("bob", "ada", "x")),
        Op::Send(NewMessage {
            key: Some(text("k")),
            ..message("bob", "cid", "x")
        }),
        Op::Confirm(agent("ada"), text("t1"), text("r1")),
        Op::Receive(receive("ada", "t2", "", 9)),
        Op::Ack(agent("ada"), text("t1"), vec![held]),
        Op::Requeue(agent("ada"), text("t1"), RequeueReason::Failed),
        Op::Receive(receive("cid", "t1", "", 9)),
    ];
    let mut group = Vec::new();
    for write in &writes {
        group.push(Op::All(vec![write.clone(), refused()]));
        group.push(Op::All(vec![write.clone(), writes[0].clone(), refused()]));
    }
    let outcomes = hive.group(&group);
    assert!(
        outcomes
            .iter()
            .all(|o| *o == Outcome::Refused(Why::NotFound)),
        "{outcomes:?}"
    );
    for restart in [false, true] {
        if restart {
            hive.restart();
        }
        assert_eq!(hive.stands("ada"), (0, 1, "t1".to_owned()));
        assert_eq!(hive.stands("cid"), (0, 0, String::new()));
    }
    // Nothing of it was counted, ended, confirmed or named.
    assert_eq!(
        hive.ack("ada", "t1", &[]),
        closed(TurnResult::Acked, 0, 1, 0)
    );
    hive.recv("ada", "t2", "", 9);
    assert_eq!(hive.ack("ada", "t2", &[held]).acked, 1);
    let NewMessage { body, .. } = message("bob", "cid", "kept");
    let id = hive.send(NewMessage {
        key: Some(text("k")),
        ..message("bob", "cid", &body)
    });
    hive.restart();
    assert_eq!(ids(&hive.recv("cid", "t1", "", 9)), [id]);
}

pub(super) fn a_refused_operation_gives_transient_messages_back(hive: &mut Script<'_>) {
    let wake = |body: &str| NewMessage {
        transient: true,
        ..message("bash-task-1", "ada", body)
    };
    hive.send(wake("1"));
    hive.send(wake("2"));
    let take = |turn| Op::Receive(receive("ada", turn, "r1", 1));
    for operations in [
        vec![take("t1")],
        vec![take("")],
        vec![take("t1"), Op::Send(wake("3")), take("t2"), take("")],
        vec![
            Op::Send(wake("3")),
            Op::Receive(receive("ada", "t1", "", 9)),
        ],
    ] {
        let refused = [operations, vec![refused()]].concat();
        assert_eq!(hive.refusal(Op::All(refused)), Why::NotFound);
        assert_eq!(hive.stands("ada"), (2, 0, String::new()));
    }
    assert_eq!(bodies(&hive.recv("ada", "t1", "r1", 1)), ["1"]);
    let end = Op::Ack(agent("ada"), text("t1"), Vec::new());
    let confirm = Op::Confirm(agent("ada"), text("t1"), text("r1"));
    assert_eq!(
        hive.refusal(Op::All(vec![confirm, end, refused()])),
        Why::NotFound
    );
    assert_eq!(hive.stands("ada"), (1, 1, "t1".to_owned()));
    assert_eq!(
        bodies(&hive.recv("ada", "t1", "r1", 1)),
        ["1"],
        "held as before"
    );
    assert_eq!(hive.ack("ada", "t1", &[]).acked, 0, "it was not confirmed");
    assert_eq!(bodies(&hive.recv("ada", "t2", "", 9)), ["2"]);
}

pub(super) fn a_refused_operation_restores_a_parked_turn(hive: &mut Script<'_>) {
    hive.park("ada", "parked");
    let park = |turn| {
        Op::Receive(Receive {
            parks: true,
            ..receive("ada", turn, "", 9)
        })
    };
    let operations = vec![
        park("other"),
        Op::Send(message("bob", "ada", "x")),
        park("other"),
        refused(),
    ];
    assert_eq!(hive.refusal(Op::All(operations)), Why::NotFound);
    // A neighbour's refusal must not make it forgotten either.
    let ended = Op::All(vec![
        Op::Ack(agent("ada"), text("parked"), Vec::new()),
        refused(),
    ]);
    assert_eq!(hive.refusal(ended), Why::NotFound);
    assert_eq!(hive.stands("ada"), (0, 0, "parked".to_owned()));
    let received = hive.recv("ada", "next", "", 9);
    assert_eq!(
        received.displaced.map(|turn| turn.to_string()),
        Some("parked".to_owned())
    );
}

pub(super) fn a_clock_that_jumps_changes_no_order(hive: &mut Script<'_>) {
    let jumps = [
        0,
        400 * 86_400_000,
        -900 * 86_400_000,
        1,
        -1_700_000_000_000,
    ];
    let mut sent = Vec::new();
    for jump in jumps {
        hive.clock += jump;
        sent.push(hive.say("bob", "ada", "x"));
        hive.restart();
    }
    assert!(sent.is_sorted());
    let received = hive.recv("ada", "t1", "", 9);
    assert_eq!(ids(&received), sent);
    assert_eq!(hive.ack("ada", "t1", &sent).acked, 5);
    assert_eq!(hive.ack("ada", "t1", &sent).result, TurnResult::Already);
    assert_eq!(hive.state(sent[0]), MessageState::Acked);
}

pub(super) fn the_depth_is_right_whoever_asks_first(hive: &mut Script<'_>) {
    let dead = hive.say("bob", "ada", "poison");
    for turn in ["t1", "t2", "t3"] {
        hive.recv("ada", turn, "", 9);
        hive.requeue("ada", turn, RequeueReason::Failed);
    }
    let held = hive.say("bob", "ada", "held");
    hive.recv("ada", "t4", "", 9);
    hive.say("bob", "ada", "waits");
    let firsts = [
        (Op::Settle(dead, Verdict::Redeliver), (2, 1)),
        (Op::Send(message("bob", "ada", "x")), (3, 1)),
        (Op::Receive(receive("ada", "t4", "", 1)), (2, 2)),
        (Op::Ack(agent("ada"), text("t4"), vec![held]), (3, 0)),
        (Op::Receive(receive("ada", "t5", "", 2)), (1, 2)),
        (
            Op::Requeue(agent("ada"), text("t5"), RequeueReason::Auth),
            (3, 0),
        ),
        (Op::Receive(receive("ada", "", "", 1)), (2, 0)),
    ];
    for (first, (unread, inflight)) in firsts {
        hive.restart();
        hive.run(first.clone());
        let status = hive.inbox("ada");
        assert_eq!(
            (status.unread, status.inflight),
            (unread, inflight),
            "{first:?}"
        );
    }
}
