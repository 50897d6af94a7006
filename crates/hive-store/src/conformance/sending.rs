//! Promises of sending.

use std::time::Duration;

use hive_wire::{
    MessageId,
    agent::{MessageState, Sent},
};

use super::{
    Limits, Op, Outcome, Why,
    script::{Script, bodies, ids, message, text},
};
use crate::NewMessage;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn day() -> i64 {
    i64::try_from(DAY.as_millis()).expect("a day is short")
}

fn keyed(from: &str, key: &str, body: &str) -> NewMessage {
    NewMessage {
        key: Some(text(key)),
        ..message(from, "ada", body)
    }
}

fn transient(to: &str, body: &str) -> NewMessage {
    NewMessage {
        transient: true,
        ..message("bash-task-1", to, body)
    }
}

pub(super) fn c3_a_sent_message_survives_a_crash(hive: &mut Script<'_>) {
    let body = "two lines\nand \"quotes\" \u{1F41D}\0";
    let id = hive.say("bob", "ada", body);
    let sent_at = hive.clock;
    hive.crash();
    let received = hive.recv("ada", "t1", "", 9);
    let message = &received.messages[0];
    assert_eq!((message.id, message.body.as_str()), (id, body));
    assert_eq!((message.from.as_str(), message.to.as_str()), ("bob", "ada"));
    assert_eq!((message.sent_at.millis(), message.delivery), (sent_at, 1));
    assert_eq!(message.in_reply_to, None);
}

pub(super) fn c3_ids_ascend_and_are_never_given_twice(hive: &mut Script<'_>) {
    let mut last = MessageId(0);
    for round in 0..4 {
        for _ in 0..3 {
            let id = hive.say("bob", "ada", "x");
            assert!(id > last, "{id} after {last}");
            last = id;
        }
        hive.recv("ada", "", "", 9);
        if round % 2 == 0 {
            hive.crash();
        } else {
            hive.restart();
        }
    }
}

pub(super) fn c3_order_is_kept_per_sender_and_recipient(hive: &mut Script<'_>) {
    for body in ["b1", "b2", "b3"] {
        hive.say("bob", "ada", body);
        hive.say("cid", "ada", &body.replace('b', "c"));
        hive.say("bob", "cid", "not for ada");
    }
    let received = hive.recv("ada", "t1", "", 32);
    assert_eq!(bodies(&received), ["b1", "c1", "b2", "c2", "b3", "c3"]);
    assert!(ids(&received).is_sorted());
}

pub(super) fn c3_a_key_stands_for_one_message_for_a_day(hive: &mut Script<'_>) {
    let first = hive.send(keyed("bob", "k", "one"));
    let again = |hive: &mut Script<'_>| hive.run(Op::Send(keyed("bob", "k", "two")));
    let duplicate = Outcome::Sent(Sent {
        message_id: first,
        duplicate: true,
    });
    assert_eq!(again(hive), duplicate);
    hive.crash();
    assert_eq!(again(hive), duplicate);
    assert_eq!(hive.inbox("ada").unread, 1);
    hive.recv("ada", "", "", 9);
    assert_eq!(again(hive), duplicate, "also after it was acked");
    hive.clock += day() - 10_000;
    assert_eq!(again(hive), duplicate, "a repeat does not lengthen the day");
    hive.clock += 20_000;
    let second = hive.send(keyed("bob", "k", "three"));
    assert!(second > first);
    assert_eq!(bodies(&hive.recv("ada", "t1", "", 9)), ["three"]);
}

pub(super) fn c3_a_key_belongs_to_its_sender(hive: &mut Script<'_>) {
    let ids = [
        hive.send(keyed("bob", "k", "one")),
        hive.send(keyed("cid", "k", "two")),
        hive.send(keyed("bob", "l", "three")),
    ];
    assert!(ids.is_sorted());
    assert_eq!(hive.inbox("ada").unread, 3);
}

pub(super) fn c3_a_reply_needs_a_message_of_its_sender(hive: &mut Script<'_>) {
    let question = hive.say("bob", "ada", "well?");
    let reply = |from: &str, to: &str, parent| NewMessage {
        in_reply_to: Some(parent),
        ..message(from, to, "re")
    };
    let answer = hive.send(reply("ada", "bob", question));
    hive.send(reply("bob", "ada", answer));
    let received = hive.recv("bob", "t1", "", 9);
    assert_eq!(received.messages[0].in_reply_to, Some(question));
    let stranger = Op::Send(reply("cid", "bob", question));
    assert_eq!(hive.refusal(stranger), Why::NotYourThread);
    for nobody in [MessageId(0), MessageId(1_000_000)] {
        let lost = Op::Send(reply("ada", "bob", nobody));
        assert_eq!(hive.refusal(lost), Why::NotFound);
    }
    assert_eq!(hive.inbox("bob").unread, 0);
}

pub(super) fn c15_a_full_inbox_refuses_bounded_messages_only(hive: &mut Script<'_>) {
    hive.limit(Limits {
        inbox_depth: 2,
        ..Limits::default()
    });
    hive.say("bob", "ada", "1");
    hive.say("bob", "ada", "2");
    let third = Op::Send(message("bob", "ada", "3"));
    assert_eq!(hive.refusal(third.clone()), Why::InboxFull);
    hive.say("bob", "cid", "another inbox");
    hive.send(NewMessage {
        bounded: false,
        ..message("system", "ada", "news")
    });
    hive.crash();
    assert_eq!(hive.refusal(third.clone()), Why::InboxFull);
    let received = hive.recv("ada", "t1", "", 2);
    assert_eq!(bodies(&received), ["1", "2"]);
    assert!(
        matches!(hive.run(third), Outcome::Sent(_)),
        "leased messages wait no more"
    );
}

pub(super) fn m16_a_transient_message_comes_once_and_first(hive: &mut Script<'_>) {
    hive.say("bob", "ada", "durable");
    let wake = hive.send(transient("ada", "wake"));
    let second = hive.send(transient("ada", "wake 2"));
    assert!(wake.is_transient() && second.is_transient() && wake != second);
    assert_eq!(hive.stands("ada"), (3, 0, String::new()));
    let received = hive.recv("ada", "t1", "r1", 9);
    assert_eq!(bodies(&received), ["wake", "wake 2", "durable"]);
    assert_eq!(hive.recv("ada", "t1", "r1", 9), received, "repeated");
    assert_eq!(hive.stands("ada"), (0, 3, "t1".to_owned()));
    assert_eq!(hive.receipt(wake), None);

    let closed = hive.ack("ada", "t1", &[wake]);
    assert_eq!((closed.acked, closed.requeued), (1, 1));
    let received = hive.recv("ada", "t2", "", 9);
    assert_eq!(
        bodies(&received),
        ["durable"],
        "the other one was handed over once"
    );
}

pub(super) fn m16_a_transient_message_is_lost_with_the_process(hive: &mut Script<'_>) {
    hive.send(transient("ada", "wake"));
    let held = hive.send(transient("bob", "wake"));
    let received = hive.recv("bob", "t1", "r1", 9);
    assert_eq!(ids(&received), [held]);
    hive.say("cid", "ada", "durable");
    hive.crash();
    assert_eq!(bodies(&hive.recv("ada", "t1", "", 9)), ["durable"]);
    assert_eq!(
        hive.stands("bob"),
        (0, 0, "t1".to_owned()),
        "its turn is not"
    );
    assert_eq!(hive.ack("bob", "t1", &[held]).acked, 0);
}

pub(super) fn m16_transient_messages_are_bounded(hive: &mut Script<'_>) {
    let wakes = vec![Op::Send(transient("ada", "wake")); 1_200];
    let outcomes = hive.group(&wakes);
    let refused = outcomes
        .iter()
        .filter(|outcome| matches!(outcome, Outcome::Refused(Why::InboxFull)))
        .count();
    assert!(refused > 0, "memory is not without end");
    assert_eq!(hive.inbox("ada").unread as usize, wakes.len() - refused);
    let id = hive.say("bob", "ada", "a durable one has room of its own");
    assert_eq!(hive.state(id), MessageState::Stored);
    let held = hive.recv("ada", "t1", "", 32).messages;
    assert_eq!(held.len(), 32);
    let more = Op::Send(transient("ada", "what a turn holds takes room too"));
    assert_eq!(hive.refusal(more), Why::InboxFull);
    let ids: Vec<_> = held.iter().map(|message| message.id).collect();
    assert_eq!(hive.ack("ada", "t1", &ids).acked, 32);
    hive.send(transient("ada", "there is room again"));
}
