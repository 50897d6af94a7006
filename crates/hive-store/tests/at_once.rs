//! A message that is leased as it is stored ends up as one that was sent and then received; and an
//! operation without a savepoint that breaks its word costs its group, never half of it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "common/hive.rs"]
mod common;

use common::{Hive, agent, at, message, receive};
use hive_store::{Mail, NewMessage, Receive, Received, Refusal, StoreError, sqlite::AtOnce};
use hive_wire::{MessageId, agent::Sent};

/// A receive that is parked within its turn.
fn parked(hive: &mut Hive) -> Receive {
    let waiting = Receive {
        req: Some("r1".parse().unwrap()),
        parks: true,
        ..receive("ada", "t1", 1)
    };
    assert!(hive.run(|tx| tx.receive(&waiting)).messages.is_empty());
    waiting
}

fn at_once(hive: &mut Hive, message: NewMessage, waiting: &Receive) -> Option<(Sent, Received)> {
    match hive.run(|tx| tx.lease_at_once(message, waiting)) {
        AtOnce::Leased(sent, received) => Some((sent, received)),
        AtOnce::NotPossible(_) => None,
    }
}

#[test]
fn c3_it_is_the_same_as_sending_and_receiving() {
    let (mut quick, mut slow) = (Hive::new(), Hive::new());
    let waiting = parked(&mut quick);
    parked(&mut slow);
    let (sent, received) =
        at_once(&mut quick, message("bob", "ada", "hello"), &waiting).expect("nothing in the way");
    let (same_sent, same_received) = slow.run(|tx| {
        let sent = tx.send(message("bob", "ada", "hello"))?;
        Ok((sent, tx.receive(&waiting)?))
    });
    assert_eq!((&sent, &received), (&same_sent, &same_received));

    let look = |hive: &mut Hive| {
        hive.run(|tx| {
            let inbox = tx.inbox(&"ada".parse().unwrap())?;
            Ok((
                tx.receipt(sent.message_id)?,
                inbox,
                tx.receive(&waiting)?.messages,
            ))
        })
    };
    assert_eq!(
        look(&mut quick),
        look(&mut slow),
        "also when the receive is repeated"
    );
    quick.crash();
    slow.crash();
    assert_eq!(look(&mut quick), look(&mut slow), "also after a crash");
    let end = |hive: &mut Hive| {
        hive.run(|tx| tx.ack_turn(&agent("ada"), &"t1".parse().unwrap(), &[sent.message_id]))
    };
    assert_eq!(end(&mut quick), end(&mut slow));
}

/// What is in the way, how it came there, and what is special about the message.
type Case = (&'static str, fn(&mut Hive), fn(NewMessage) -> NewMessage);

#[test]
fn whatever_is_in_the_way_leaves_the_message_unsent() {
    let cases: [Case; 5] = [
        (
            "mail waits",
            |hive| assert_eq!(hive.send("bob", "ada", "first").0, 1),
            |message| message,
        ),
        (
            "another turn is open",
            |hive| drop(hive.run(|tx| tx.receive(&receive("ada", "t2", 1)))),
            |message| message,
        ),
        (
            "the turn has ended",
            |hive| {
                let turn = "t1".parse().unwrap();
                let closed = hive.run(|tx| tx.ack_turn(&agent("ada"), &turn, &[]));
                assert_eq!(closed.acked, 0);
            },
            |message| message,
        ),
        (
            "a key may stand for an earlier one",
            |_| {},
            |message| NewMessage {
                key: Some("k".parse().unwrap()),
                ..message
            },
        ),
        (
            "it is transient",
            |_| {},
            |message| NewMessage {
                transient: true,
                ..message
            },
        ),
    ];
    for (case, prepare, change) in cases {
        let mut hive = Hive::new();
        let waiting = parked(&mut hive);
        prepare(&mut hive);
        let before = hive.readers().counts().unwrap();
        let new = change(message("bob", "ada", "x"));
        assert_eq!(at_once(&mut hive, new, &waiting), None, "{case}");
        assert_eq!(hive.readers().counts().unwrap(), before, "{case}");
    }
}

#[test]
fn a_reply_into_a_foreign_conversation_is_refused() {
    let mut hive = Hive::new();
    let foreign = hive.send("cid", "dan", "between us");
    let waiting = parked(&mut hive);
    let reply = NewMessage {
        in_reply_to: Some(foreign),
        ..message("bob", "ada", "me too")
    };
    let refused = hive
        .try_run(|tx| tx.lease_at_once(reply, &waiting))
        .unwrap();
    assert!(
        matches!(refused, Err(Refusal::NotYourThread(_))),
        "{refused:?}"
    );
    assert_eq!(hive.readers().receipt(MessageId(2)).unwrap(), None);
}

#[test]
fn an_operation_that_writes_and_then_refuses_undoes_its_group() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "kept");
    let mut group = hive.store().begin(at(5));
    group
        .run_checked(|tx| tx.send(message("bob", "ada", "neighbour")))
        .unwrap();
    let refused = group.run_checked(|tx| {
        let sent = tx.send(message("bob", "ada", "half"))?;
        // Only SQLite knows: it runs what was sent before.
        assert!(tx.receipt(sent.message_id)?.is_some());
        Err::<(), _>(Refusal::NoOpenTurn)
    });
    assert!(refused.is_err());
    assert!(
        group
            .run_checked(|tx| tx.send(message("bob", "ada", "late")))
            .is_err()
    );
    assert!(matches!(group.commit(), Err(error) if error.is_passing()));
    let unread = |hive: &mut Hive| hive.run(|tx| tx.inbox(&"ada".parse().unwrap())).unread;
    assert_eq!(unread(&mut hive), 1);
    hive.restart();
    assert_eq!(unread(&mut hive), 1);
}

#[test]
fn what_sqlite_has_not_run_is_undone_alone() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "kept");
    let mut group = hive.store().begin(at(5));
    for body in ["neighbour", "half", "late"] {
        let outcome = group.run_checked(|tx| {
            tx.send(message("bob", "ada", body))?;
            if body == "half" {
                return Err(Refusal::NoOpenTurn);
            }
            Ok(())
        });
        assert_eq!(outcome.is_err(), body == "half");
    }
    group.make_durable().unwrap();
    hive.crash();
    assert_eq!(hive.take("ada", 9).len(), 3);
}

#[test]
fn a_refusal_before_any_write_costs_nobody_else() {
    let mut hive = Hive::new();
    let mut group = hive.store().begin(at(5));
    group
        .run_checked(|tx| tx.send(message("bob", "ada", "1")))
        .unwrap();
    assert!(
        group
            .run_checked(|tx| tx.receive(&receive("ada", "current", 1)))
            .is_err()
    );
    group
        .run_checked(|tx| tx.send(message("bob", "ada", "2")))
        .unwrap();
    let committed: Result<(), StoreError> = group.commit();
    committed.unwrap();
    assert_eq!(hive.run(|tx| tx.inbox(&"ada".parse().unwrap())).unread, 2);
}
