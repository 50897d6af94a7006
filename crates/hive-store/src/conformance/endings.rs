//! Promises of confirming and ending turns, of dead letters and of receipts.

use hive_wire::{
    MessageId,
    agent::{MessageState, RequeueReason, TurnResult},
};

use super::{
    Op, Why,
    script::{Script, agent, bodies, closed, text},
};
use crate::mail::Verdict;

const COUNTING: [RequeueReason; 2] = [RequeueReason::Failed, RequeueReason::Crash];
const NOT_COUNTING: [RequeueReason; 5] = [
    RequeueReason::Unavailable,
    RequeueReason::RateLimited,
    RequeueReason::Auth,
    RequeueReason::Interrupted,
    RequeueReason::Shutdown,
];

pub(super) fn c3_an_ack_covers_listed_and_confirmed_messages_only(hive: &mut Script<'_>) {
    let ids: Vec<_> = (0..4)
        .map(|n| hive.say("bob", "ada", &n.to_string()))
        .collect();
    hive.recv("ada", "t1", "r1", 1);
    hive.recv("ada", "t1", "r2", 2);
    hive.recv("ada", "t1", "", 1);
    assert_eq!(hive.confirm("ada", "t1", "r2"), 2);
    assert_eq!(
        hive.ack("ada", "t1", &[ids[0]]),
        closed(TurnResult::Acked, 3, 1, 0)
    );
    hive.crash();
    let states: Vec<_> = ids.iter().map(|id| hive.state(*id)).collect();
    assert_eq!(states[..3], [MessageState::Acked; 3]);
    assert_eq!(states[3], MessageState::Stored);
    assert_eq!(hive.stands("ada"), (1, 0, String::new()));
    assert_eq!(hive.recv("ada", "t2", "", 9).messages[0].delivery, 2);
}

pub(super) fn c3_foreign_ids_in_an_ack_mean_nothing(hive: &mut Script<'_>) {
    let other = hive.say("cid", "bob", "bob's");
    hive.recv("bob", "t1", "", 9);
    hive.say("cid", "ada", "held");
    hive.recv("ada", "t1", "", 9);
    let waiting = hive.say("cid", "ada", "waiting");
    let foreign = [
        other,
        waiting,
        MessageId(0),
        MessageId(-5),
        MessageId(i64::MAX),
    ];
    assert_eq!(
        hive.ack("ada", "t1", &foreign),
        closed(TurnResult::Acked, 0, 1, 0)
    );
    assert_eq!(hive.state(other), MessageState::Leased);
    assert_eq!(hive.state(waiting), MessageState::Stored);
    assert_eq!(hive.inbox("ada").unread, 2);
}

pub(super) fn c3_confirm_says_how_many_and_may_be_repeated(hive: &mut Script<'_>) {
    hive.say("bob", "ada", "1");
    hive.say("bob", "ada", "2");
    assert_eq!(hive.confirm("ada", "t1", "r1"), 0, "no such turn");
    let current = Op::Confirm(agent("ada"), text("current"), text("r1"));
    assert_eq!(hive.refusal(current), Why::NoOpenTurn);
    hive.recv("ada", "t1", "r1", 9);
    assert_eq!(hive.confirm("ada", "t1", "other"), 0, "no such batch");
    assert_eq!(hive.confirm("ada", "t0", "r1"), 0, "no such turn");
    assert_eq!(hive.confirm("ada", "current", "r1"), 2);
    hive.crash();
    assert_eq!(hive.confirm("ada", "t1", "r1"), 2);
    assert_eq!(
        hive.ack("ada", "t1", &[]),
        closed(TurnResult::Acked, 2, 0, 0)
    );
    assert_eq!(hive.confirm("ada", "t1", "r1"), 0, "it has ended");
}

pub(super) fn c3_a_repeated_end_tells_how_the_turn_ended(hive: &mut Script<'_>) {
    let first = hive.say("bob", "ada", "1");
    hive.say("bob", "ada", "2");
    hive.recv("ada", "t1", "", 9);
    assert_eq!(
        hive.ack("ada", "t1", &[first]),
        closed(TurnResult::Acked, 1, 1, 0)
    );
    assert_eq!(
        hive.ack("ada", "t1", &[]),
        closed(TurnResult::Already, 1, 1, 0)
    );
    let other_way = hive.requeue("ada", "t1", RequeueReason::Failed);
    assert_eq!(other_way, closed(TurnResult::Superseded, 1, 1, 0));
    assert_eq!(hive.inbox("ada").unread, 1, "it ended once");

    hive.recv("ada", "t2", "", 9);
    let requeue = hive.requeue("ada", "t2", RequeueReason::Auth);
    assert_eq!(requeue, closed(TurnResult::Requeued, 0, 1, 0));
    let again = hive.requeue("ada", "t2", RequeueReason::Failed);
    assert_eq!(again, closed(TurnResult::Already, 0, 1, 0));
    assert_eq!(
        hive.ack("ada", "t2", &[]),
        closed(TurnResult::Superseded, 0, 1, 0)
    );
    assert_eq!(
        hive.ack("ada", "t9", &[]),
        closed(TurnResult::Unknown, 0, 0, 0)
    );
    let unknown = hive.requeue("bob", "t1", RequeueReason::Failed);
    assert_eq!(unknown, closed(TurnResult::Unknown, 0, 0, 0));
    for current in [
        Op::Ack(agent("ada"), text("current"), Vec::new()),
        Op::Requeue(agent("ada"), text("current"), RequeueReason::Failed),
    ] {
        assert_eq!(hive.refusal(current), Why::NoOpenTurn);
    }
}

pub(super) fn c3_a_late_end_survives_a_crash(hive: &mut Script<'_>) {
    let id = hive.say("bob", "ada", "1");
    hive.recv("ada", "t1", "", 9);
    hive.ack("ada", "t1", &[id]);
    hive.recv("ada", "t2", "", 9);
    hive.recv("ada", "t3", "", 9);
    hive.crash();
    assert_eq!(
        hive.ack("ada", "t1", &[id]),
        closed(TurnResult::Already, 1, 0, 0)
    );
    assert_eq!(
        hive.ack("ada", "t2", &[]),
        closed(TurnResult::Superseded, 0, 0, 0)
    );
    assert_eq!(
        hive.ack("ada", "t3", &[]),
        closed(TurnResult::Acked, 0, 0, 0)
    );
}

pub(super) fn c3_requeued_messages_keep_their_place(hive: &mut Script<'_>) {
    for body in ["1", "2", "3"] {
        hive.say("bob", "ada", body);
    }
    hive.recv("ada", "t1", "", 2);
    hive.requeue("ada", "t1", RequeueReason::Unavailable);
    hive.say("bob", "ada", "4");
    let received = hive.recv("ada", "t2", "", 9);
    assert_eq!(bodies(&received), ["1", "2", "3", "4"]);
    let deliveries: Vec<_> = received.messages.iter().map(|m| m.delivery).collect();
    assert_eq!(deliveries, [2, 2, 1, 1]);
}

pub(super) fn c3_only_counting_reasons_lead_to_a_dead_letter(hive: &mut Script<'_>) {
    let id = hive.say("bob", "ada", "poison");
    let mut turn = 0;
    let mut fail = |hive: &mut Script<'_>, reason| {
        turn += 1;
        hive.recv("ada", &format!("t{turn}"), "", 9);
        hive.requeue("ada", &format!("t{turn}"), reason)
    };
    for reason in NOT_COUNTING {
        assert_eq!(fail(hive, reason), closed(TurnResult::Requeued, 0, 1, 0));
    }
    for reason in COUNTING {
        assert_eq!(fail(hive, reason), closed(TurnResult::Requeued, 0, 1, 0));
    }
    hive.crash();
    let last = fail(hive, RequeueReason::default());
    assert_eq!(
        last,
        closed(TurnResult::Requeued, 0, 0, 1),
        "the third of three"
    );
    let receipt = hive.receipt(id).expect("it was stored");
    assert_eq!((receipt.state, receipt.deliveries), (MessageState::Dead, 8));
    assert_eq!(
        receipt.turn.map(|turn| turn.to_string()),
        Some("t8".to_owned())
    );
    assert_eq!(receipt.acked_at, None);
    assert_eq!(hive.stands("ada"), (0, 0, String::new()));
}

pub(super) fn c3_displacement_counts_as_a_failure(hive: &mut Script<'_>) {
    let id = hive.say("bob", "ada", "poison");
    for turn in ["t1", "t2", "t3"] {
        assert_eq!(hive.recv("ada", turn, "", 9).messages.len(), 1);
    }
    assert!(hive.recv("ada", "t4", "", 9).messages.is_empty());
    assert_eq!(hive.state(id), MessageState::Dead);
    assert_eq!(
        hive.ack("ada", "t3", &[id]),
        closed(TurnResult::Superseded, 0, 0, 1)
    );
}

pub(super) fn c3_what_an_ack_gives_back_is_not_counted(hive: &mut Script<'_>) {
    let id = hive.say("bob", "ada", "later");
    for turn in 0..6 {
        let turn = format!("t{turn}");
        assert_eq!(hive.recv("ada", &turn, "", 9).messages.len(), 1);
        assert_eq!(
            hive.ack("ada", &turn, &[]),
            closed(TurnResult::Acked, 0, 1, 0)
        );
    }
    assert_eq!(hive.state(id), MessageState::Stored);
}

pub(super) fn c3_a_dead_letter_waits_for_its_verdict(hive: &mut Script<'_>) {
    let id = hive.say("bob", "ada", "poison");
    let settle = |id, verdict| Op::Settle(id, verdict);
    let live = settle(id, Verdict::Redeliver);
    assert_eq!(hive.refusal(live), Why::NotDead(MessageState::Stored));
    for nobody in [MessageId(77), MessageId(-1)] {
        let unknown = settle(nobody, Verdict::Discard);
        assert_eq!(hive.refusal(unknown), Why::NotFound);
    }
    let mut turn = 0;
    let mut kill = |hive: &mut Script<'_>| {
        for _ in 0..3 {
            turn += 1;
            hive.recv("ada", &format!("t{turn}"), "", 9);
            hive.requeue("ada", &format!("t{turn}"), RequeueReason::Crash);
        }
    };
    kill(hive);
    assert_eq!(hive.inbox("ada").unread, 0);
    hive.crash();
    assert_eq!(hive.settle(id, Verdict::Redeliver), MessageState::Stored);
    assert_eq!(hive.inbox("ada").unread, 1);
    assert_eq!(hive.recv("ada", "again", "", 9).messages[0].delivery, 4);
    hive.requeue("ada", "again", RequeueReason::Failed);
    assert_eq!(
        hive.state(id),
        MessageState::Stored,
        "its failures were forgotten"
    );
    kill(hive);
    hive.restart();
    assert_eq!(hive.settle(id, Verdict::Discard), MessageState::Discarded);
    assert_eq!(hive.state(id), MessageState::Discarded);
    let twice = settle(id, Verdict::Redeliver);
    assert_eq!(hive.refusal(twice), Why::NotDead(MessageState::Discarded));
    assert_eq!(hive.stands("ada"), (0, 0, String::new()));
}

pub(super) fn c3_a_receipt_tells_what_became_of_a_message(hive: &mut Script<'_>) {
    assert_eq!(hive.receipt(MessageId(1)), None);
    let id = hive.say("bob", "ada", "x");
    let sent_at = hive.clock;
    let stored = hive.receipt(id).expect("it was stored");
    assert_eq!((stored.state, stored.deliveries), (MessageState::Stored, 0));
    assert_eq!((stored.from.as_str(), stored.to.as_str()), ("bob", "ada"));
    assert_eq!(
        (stored.sent_at.millis(), stored.turn, stored.acked_at),
        (sent_at, None, None)
    );
    hive.recv("ada", "t1", "", 9);
    let leased = hive.receipt(id).expect("it was stored");
    assert_eq!((leased.state, leased.deliveries), (MessageState::Leased, 1));
    assert_eq!(
        leased.turn.map(|turn| turn.to_string()),
        Some("t1".to_owned())
    );
    hive.requeue("ada", "t1", RequeueReason::Interrupted);
    let back = hive.receipt(id).expect("it was stored");
    assert_eq!(
        (back.state, back.deliveries, back.turn),
        (MessageState::Stored, 1, None)
    );
    hive.recv("ada", "t2", "", 9);
    hive.ack("ada", "t2", &[id]);
    let acked_at = hive.clock;
    let acked = hive.receipt(id).expect("it was stored");
    assert_eq!((acked.state, acked.deliveries), (MessageState::Acked, 2));
    assert_eq!(
        acked.turn.map(|turn| turn.to_string()),
        Some("t2".to_owned())
    );
    assert_eq!(acked.acked_at.map(|at| at.millis()), Some(acked_at));
}
