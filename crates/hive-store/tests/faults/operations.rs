//! One operation of a group that fails: the others are kept, and memory says what the disk says.

use hive_store::{Mail, NewMessage, Options, Refusal};
use hive_wire::{MessageId, Recipient, agent::InboxStatus};

use crate::common::{Hive, agent, at, message, receive, small};

fn inbox(hive: &mut Hive, of: &str) -> InboxStatus {
    let of: Recipient = of.parse().unwrap();
    hive.run(|tx| tx.inbox(&of))
}

/// What is in memory, and what a new start reads, must be the same.
fn same_after_restart(hive: &mut Hive) -> InboxStatus {
    let before = inbox(hive, "ada");
    hive.restart();
    assert_eq!(
        inbox(hive, "ada"),
        before,
        "the books differ from the database"
    );
    before
}

#[test]
fn an_operation_that_wrote_before_it_was_refused_leaves_the_books_true() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "1");
    let mut group = hive.store().begin(at(5));
    group.run(|tx| tx.send(message("bob", "ada", "2"))).unwrap();
    let refused = group.run(|tx| {
        tx.send(message("bob", "ada", "undone"))?;
        tx.receive(&receive("ada", "t1", 1))?;
        tx.ask(&hive_store::sqlite::NewQuestion {
            asker: "ada".parse().unwrap(),
            target: Recipient::Operator,
            question: "?".to_owned(),
            options: Vec::new(),
            multi: false,
            expires_at: None,
        })?;
        Err::<(), _>(Refusal::Denied("no".to_owned()))
    });
    assert!(matches!(refused, Err(Refusal::Denied(_))));
    group.run(|tx| tx.send(message("bob", "ada", "3"))).unwrap();
    group.commit().unwrap();
    let status = same_after_restart(&mut hive);
    assert_eq!((status.unread, status.turn), (3, None));
    assert!(hive.readers().questions(true, None).unwrap().is_empty());
}

#[test]
fn a_group_that_is_dropped_leaves_the_books_true() {
    let mut hive = Hive::new();
    hive.send("bob", "ada", "1");
    hive.run(|tx| tx.receive(&receive("ada", "t1", 9)));
    let mut group = hive.store().begin(at(5));
    group
        .run(|tx| tx.send(message("bob", "ada", "undone")))
        .unwrap();
    group
        .run(|tx| tx.receive(&receive("ada", "t2", 9)))
        .unwrap();
    drop(group);
    let status = same_after_restart(&mut hive);
    assert_eq!((status.unread, status.inflight), (0, 1));
    assert_eq!(status.turn, Some("t1".parse().unwrap()));
}

#[test]
fn a_statement_that_fails_undoes_its_operation_alone() {
    let mut hive = Hive::new();
    hive.raw()
        .execute_batch(
            "CREATE TRIGGER no BEFORE INSERT ON mail WHEN new.recipient = 'cid' \
             BEGIN SELECT raise(ABORT, 'planted'); END",
        )
        .unwrap();
    let wake = NewMessage {
        transient: true,
        ..message("bash-task-1", "ada", "wake")
    };
    hive.run(|tx| tx.send(wake));
    let parks = hive_store::Receive {
        parks: true,
        ..receive("bob", "parked", 9)
    };
    hive.run(|tx| tx.receive(&parks));
    let mut group = hive.store().begin(at(5));
    group.run(|tx| tx.send(message("bob", "ada", "1"))).unwrap();
    let failed = group.run(|tx| {
        tx.receive(&receive("ada", "t1", 9))?;
        tx.send(message("bob", "cid", "x"))
    });
    assert!(matches!(failed, Err(Refusal::Sqlite(_))), "{failed:?}");
    group.run(|tx| tx.send(message("bob", "ada", "2"))).unwrap();
    group.commit().unwrap();
    let bob = inbox(&mut hive, "bob");
    assert_eq!(
        bob.turn,
        Some("parked".parse().unwrap()),
        "nobody else is affected"
    );
    let received = hive.run(|tx| tx.receive(&receive("ada", "t2", 9)));
    let bodies: Vec<_> = received.messages.iter().map(|m| m.body.as_str()).collect();
    assert_eq!(bodies, ["wake", "1", "2"]);
    hive.run(|tx| tx.ack_turn(&agent("ada"), &"t2".parse().unwrap(), &[]));
    same_after_restart(&mut hive);
}

#[test]
fn an_id_that_was_undone_takes_no_other_with_it() {
    let mut hive = Hive::new();
    for n in 0..3 {
        hive.send("bob", "ada", &n.to_string());
    }
    assert_eq!(hive.take("ada", 9).len(), 3);
    let undone = hive.try_run(|tx| {
        tx.send(message("bob", "ada", "undone"))?;
        Err::<(), _>(Refusal::Denied("no".to_owned()))
    });
    assert!(undone.unwrap().is_err());
    hive.clock += 1_000_000_000;
    let retention = hive_store::sqlite::Retention {
        messages: std::time::Duration::from_secs(1),
    };
    hive.run(|tx| tx.index_correspondence(100));
    hive.run(|tx| tx.prune(retention, 100));
    hive.restart();
    let next = hive.send("bob", "ada", "next");
    assert!(next > MessageId(3), "{next} was given before");
    hive.run(|tx| tx.index_correspondence(100));
    let query = hive_store::sqlite::HistoryQuery {
        with: Some("ada".to_owned()),
        limit: 10,
        ..Default::default()
    };
    let newest = &hive.readers().history(&query).unwrap().rows[0];
    assert_eq!(
        newest.receipt.message_id, next,
        "it must not pass for indexed"
    );
}

#[test]
fn many_foreign_ids_in_an_ack_ack_nothing() {
    let mut hive = Hive::with(Options {
        inbox_depth: 100_000,
        ..small()
    });
    let mut group = hive.store().begin(at(5));
    for _ in 0..4_000 {
        group.run(|tx| tx.send(message("bob", "ada", "x"))).unwrap();
    }
    group.commit().unwrap();
    while !hive
        .run(|tx| tx.receive(&receive("ada", "t1", 1_000)))
        .messages
        .is_empty()
    {}
    // As many as fit into a line.
    let ids: Vec<_> = (1_000_000..1_120_000).map(MessageId).collect();
    let closed = hive.run(|tx| tx.ack_turn(&agent("ada"), &"t1".parse().unwrap(), &ids));
    assert_eq!((closed.acked, closed.requeued), (0, 4_000));
}
