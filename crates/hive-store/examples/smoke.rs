//! x
use hive_store::{Mail, NewMessage, Receive};
use hive_wire::*;

fn main() {
    let dir = tempfile::tempdir_in("/work/main/target").unwrap();
    let (mut store, _r) =
        hive_store::sqlite::open(&dir.path().join("hive.db"), &Default::default()).unwrap();
    let a: AgentName = "ada".parse().unwrap();
    for n in [1usize, 64] {
        let t = std::time::Instant::now();
        let rounds = if n == 1 { 1000 } else { 500 };
        for r in 0..rounds {
            let mut g = store.begin(Timestamp::now()).unwrap();
            let mut ids = vec![];
            for i in 0..n {
                let agent: AgentName = format!("a{i}").parse().unwrap();
                let turn: TurnId = format!("t{n}-{r}-{i}").parse().unwrap();
                let got = g
                    .run(|tx| {
                        tx.send(NewMessage::plain(
                            (&a).into(),
                            agent.clone().into(),
                            "x".repeat(200),
                        ))?;
                        tx.receive(&Receive {
                            agent: agent.clone(),
                            turn: Some(turn.clone()),
                            req: None,
                            max: 1,
                            parks: true,
                        })
                    })
                    .unwrap();
                ids.push((agent, turn, got.messages[0].id));
            }
            g.commit().unwrap();
            let mut g = store.begin(Timestamp::now()).unwrap();
            for (a, t, i) in &ids {
                g.run(|tx| tx.ack_turn(a, t, &[*i])).unwrap();
            }
            g.commit().unwrap();
        }
        let e = t.elapsed();
        eprintln!(
            "{n}: {:.0} cycles/s, {:?} per cycle",
            (n * rounds) as f64 / e.as_secs_f64(),
            e / ((n * rounds) as u32)
        );
    }
    store.close().unwrap();
}
