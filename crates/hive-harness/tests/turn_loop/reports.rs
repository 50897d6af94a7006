//! Events and states across a host that goes away.

use hive_wire::report::{PostedKind, TurnState};

use crate::rig::Rig;

#[tokio::test]
async fn events_come_in_order_and_without_loss_over_an_absence_of_the_host() {
    let rig = Rig::new();
    let go = rig.path("go");
    rig.script(&format!(
        "on hello\ninit\nsay x\nawait {}\nflood 500\nresult\n",
        go.display()
    ));
    rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("work", |book| book.of(PostedKind::Stream).len() >= 2)
            .await;
        rig.host.set_away(true);
        let seen = rig.host.look(|book| book.events.len());
        std::fs::write(&go, "").unwrap();
        rig.host.wait("ack", |book| book.acks() == 1).await;
        rig.host
            .look(|book| assert_eq!(book.events.len(), seen, "it heard nothing"));
        rig.host.set_away(false);
        rig.host.turns_ended(1).await;
        rig.host.wait("row", |book| book.rows.len() == 1).await;
        rig.host
            .wait("state", |book| {
                book.states.last().unwrap().turn_state == TurnState::Idle
            })
            .await;
    })
    .await;
    rig.host.look(|book| {
        let numbers: Vec<_> = book.events.iter().map(|(seq, _, _)| *seq).collect();
        assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
        assert!(book.of(PostedKind::Stream).len() > 500);
    });
}

#[tokio::test]
async fn what_is_too_much_is_dropped_and_leaves_a_hole() {
    let rig = Rig::new().with("HIVE_EVENT_BUFFER_BYTES", "65536");
    let go = rig.path("go");
    rig.script(&format!(
        "on hello\ninit\nsay x\nawait {}\nflood 5000\nresult\n",
        go.display()
    ));
    rig.host.send("hello");
    rig.play(async {
        rig.host
            .wait("work", |book| book.of(PostedKind::Stream).len() >= 2)
            .await;
        rig.host.set_away(true);
        std::fs::write(&go, "").unwrap();
        rig.host.wait("ack", |book| book.acks() == 1).await;
        rig.host.set_away(false);
        rig.host.turns_ended(1).await;
    })
    .await;
    rig.host.look(|book| {
        let numbers: Vec<_> = book.events.iter().map(|(seq, _, _)| *seq).collect();
        assert!(numbers.is_sorted());
        let is_hole = |pair: &[u64]| pair[1] != pair[0] + 1;
        assert!(
            numbers.windows(2).any(is_hole),
            "5000 events fit into no 64 KiB"
        );
        assert_eq!(
            book.of(PostedKind::TurnEnd).len(),
            1,
            "the turn's end is kept"
        );
    });
}
