//! A daemon that is killed at any moment: what it answered is known to the next one, and nothing
//! half done is left.

use std::{
    collections::BTreeMap,
    fs,
    hash::{BuildHasher, RandomState},
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use crate::bench::Bench;

const ROUNDS: u64 = 15;
/// Fewer in all rounds together than the daemon keeps.
const RUNS_OF_ONE_CLIENT: usize = 6;

/// The daemon's own socket, spoken to line by line: a bridge would say that a task was seen.
struct Line {
    write: OwnedWriteHalf,
    answers: Lines<BufReader<OwnedReadHalf>>,
}

impl Line {
    async fn to(socket: &Path) -> Option<Self> {
        let (read, write) = UnixStream::connect(socket).await.ok()?.into_split();
        let answers = BufReader::new(read).lines();
        Some(Self { write, answers })
    }

    /// The answer, unless the daemon was killed before it was written whole.
    async fn ask(&mut self, request: &Value) -> Option<Value> {
        let request = format!("{request}\n");
        self.write.write_all(request.as_bytes()).await.ok()?;
        let answer = self.answers.next_line().await.ok()??;
        let answer: Value = serde_json::from_str(&answer).ok()?;
        assert_eq!(answer["ok"], true, "{answer}");
        Some(answer)
    }
}

/// Runs commands until the daemon is killed: the numbers that it gave to them, in order.
async fn run_some(socket: PathBuf, name: String) -> Vec<(u64, String)> {
    let mut given = Vec::new();
    let Some(mut line) = Line::to(&socket).await else {
        return given;
    };
    // Short ones, one whose file is rewritten again and again, and one that does not end.
    let kinds = ["true", "yes | head -c 2000000", "sleep 1000"];
    for (n, kind) in kinds.iter().cycle().take(RUNS_OF_ONE_CLIENT).enumerate() {
        let cmd = format!(": {name}-{n}; {kind}");
        let request = json!({"cmd": "run", "script": cmd, "wait_seconds": 0});
        let Some(answer) = line.ask(&request).await else {
            break;
        };
        given.push((answer["task"].as_u64().unwrap(), cmd));
    }
    given
}

/// The names of all files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[tokio::test]
async fn b4_a_daemon_that_is_killed_at_any_moment_recovers_its_table() {
    let env = [
        ("HIVE_BASH_MAX_TASKS", "100"),
        ("HIVE_BASH_MAX_OUTPUT_BYTES", "65536"),
    ];
    let mut bench = Bench::start("/nowhere".into(), &env).await;
    let random = RandomState::new();
    let mut answered: BTreeMap<u64, String> = BTreeMap::new();
    for round in 0..ROUNDS {
        let client = |n: u64| run_some(bench.socket(), format!("{round}-{n}"));
        let clients = (client(0), client(1), client(2));
        let kill = async {
            // Not a wait for anything: the moment at which it happens.
            let moment = Duration::from_micros(random.hash_one(round) % 80_000);
            tokio::time::sleep(moment).await;
            bench.kill().await;
        };
        let (a, b, c, ()) = tokio::join!(clients.0, clients.1, clients.2, kill);
        let last = answered.last_key_value().map_or(0, |(last, _)| *last);
        for given in [a, b, c] {
            assert!(given.is_sorted_by_key(|(id, _)| *id), "{given:?}");
            for (id, cmd) in given {
                assert!(id > last, "{id} of round {round} is not after {last}");
                let other = answered.insert(id, cmd);
                assert_eq!(other, None, "{id} was given twice");
            }
        }
        bench.launch().await;
    }
    assert!(!answered.is_empty(), "no daemon lived long enough");

    let unfinished = files(&bench.harness());
    let unfinished = unfinished.iter().filter(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with('.')
    });
    assert_eq!(unfinished.collect::<Vec<_>>(), [""; 0].map(Path::new));
    let mut line = Line::to(&bench.socket()).await.unwrap();
    for (id, cmd) in &answered {
        let task = line.ask(&json!({"cmd": "status", "task": id})).await;
        let task = task.unwrap();
        assert_eq!(task["cmd"], cmd.as_str());
        let state = task["state"].as_str().unwrap();
        assert!(["done", "interrupted"].contains(&state), "{task}");
    }
    let next = run_some(bench.socket(), "last".to_owned()).await;
    assert!(next[0].0 > *answered.last_key_value().unwrap().0);
}
