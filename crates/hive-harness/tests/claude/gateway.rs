//! The real `claude` behind the host's gateway: it works, and no key is anywhere near it.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    time::Duration,
};

use hive_rehearsal::{Rehearsal, Scenario};
use hive_testkit::{
    claude,
    hive::{Options, TestHive},
};
use hive_wire::{
    MessageId,
    agent::{MessageState, Receipt},
    host::{Events, LookUpReceipt, Runtime, SendAsOperator, Spawn, Spend},
};
use tokio::time::{Instant, sleep};

/// What must never be found.
const KEY: &str = "sk-ant-the-operators-own-key";
/// The agent; no other test has one of this name.
const AGENT: &str = "keyless";
const PATIENCE: Duration = Duration::from_secs(120);

#[tokio::test]
async fn claude_works_through_the_gateway_and_no_key_is_inside() {
    works_without_a_key(Runtime::Process).await;
}

#[tokio::test]
async fn claude_works_through_the_gateway_in_a_network_of_its_own() {
    works_without_a_key(Runtime::Bwrap).await;
}

#[expect(
    clippy::print_stderr,
    reason = "a test that did not look everywhere says so"
)]
async fn works_without_a_key(runtime: Runtime) {
    let scenario = "[[rule]]\nanswer = { text = 'Done.', delay_ms = 500, usage = { \
        input_tokens = 1000, output_tokens = 10, cache_read_tokens = 500 } }";
    let Some(stage) = Stage::new(scenario).await else {
        return;
    };
    if !stage.spawn(runtime).await {
        return;
    }
    let id = stage.send().await;
    let (mut has_seen_engine, mut has_seen_memory) = (false, false);
    stage
        .until_acked(id, || {
            for (pid, environ) in environs() {
                assert!(
                    !holds_key(&environ),
                    "process {pid} has the key in its environment"
                );
                has_seen_engine |= is_engines(&environ);
                if is_engines(&environ) && !has_seen_memory {
                    let found = memory_holds_key(pid);
                    assert_ne!(found, Some(true), "process {pid} has the key in its memory");
                    has_seen_memory |= found.is_some();
                }
            }
        })
        .await;
    assert!(has_seen_engine, "the engine was looked at");
    // Whoever may look would have found it: the daemon has it.
    match memory_holds_key(stage.hive.pid().unwrap()) {
        Some(found) => assert!(found && has_seen_memory),
        None => eprintln!("SKIPPED: the memory of other processes may not be read here"),
    }
    let asked = stage.model.requests().len();
    assert_eq!(asked, 1, "the model was asked once, through the gateway");
    stage.check_spend().await;
    // Nothing of the agent's, no log and no event holds the key; only the operator's file does.
    let root = stage.hive.root();
    for file in files(root) {
        let is_operators = file == root.join("hive.toml");
        let bytes = fs::read(&file).unwrap_or_default();
        assert_eq!(holds_key(&bytes), is_operators, "{}", file.display());
    }
    assert!(!stage.story().await.contains(KEY));
}

#[tokio::test]
async fn a_service_that_is_away_and_a_daemon_that_restarts_lose_no_message() {
    let Some(mut stage) = Stage::new("[[rule]]\nanswer.text = 'Done.'").await else {
        return;
    };
    stage.model.refuse().await;
    assert!(stage.spawn(Runtime::Process).await);
    let id = stage.send().await;
    let deadline = Instant::now() + PATIENCE;
    while stage.receipt(id).await.deliveries == 0 {
        assert!(Instant::now() < deadline, "{}", stage.story().await);
        sleep(Duration::from_millis(50)).await;
    }
    // The turn is put off; the way to the model is there again when the daemon is.
    stage.hive.restart().await.unwrap();
    stage.model.accept_again().await;
    stage.until_acked(id, || {}).await;
}

/// A hive that has the operator's key, with `claude` as its engine and a rehearsed model.
struct Stage {
    hive: TestHive,
    model: Rehearsal,
}

impl Stage {
    /// None where there is no `claude`.
    async fn new(scenario: &str) -> Option<Self> {
        let claude = claude::claude()?;
        let scenario = Scenario::parse("test.toml", scenario).unwrap();
        let model = Rehearsal::start(scenario).await.unwrap();
        let config = format!(
            "[hive]\nroot_agent = \"\"\n[agents]\nmodel = \"claude-sonnet-4-5\"\n\
             [engine]\ndefault = {claude:?}\n[engine.env]\n\
             ANTHROPIC_API_KEY = \"{KEY}\"\nANTHROPIC_BASE_URL = \"{}\"\n",
            model.url()
        );
        let options = Options {
            config,
            env: vec![("HIVE_BIN".into(), env!("CARGO_BIN_EXE_hive").into())],
        };
        let hive = TestHive::start_with(options).await.unwrap();
        Some(Self { hive, model })
    }

    /// Spawns the agent; whether this runtime works here.
    #[expect(clippy::print_stderr, reason = "a test that did not run says so")]
    async fn spawn(&self, runtime: Runtime) -> bool {
        let spawn = Spawn {
            runtime,
            ..Spawn::elsewhere(AGENT.parse().unwrap())
        };
        match self.hive.host_client().call_within(&spawn, PATIENCE).await {
            Ok(agent) => assert_eq!(agent.runtime, runtime),
            Err(error) if runtime == Runtime::Bwrap => {
                eprintln!("SKIPPED: bubblewrap does not work here: {error}");
                return false;
            }
            Err(error) => panic!("{error}\n{}", self.story().await),
        }
        true
    }

    async fn send(&self) -> MessageId {
        let send = SendAsOperator {
            to: AGENT.to_owned(),
            body: "good morning".to_owned(),
            in_reply_to: None,
            key: None,
        };
        self.hive
            .host_client()
            .call(&send)
            .await
            .unwrap()
            .message_id
    }

    async fn receipt(&self, message_id: MessageId) -> Receipt {
        let receipt = LookUpReceipt { message_id };
        self.hive.host_client().call(&receipt).await.unwrap()
    }

    /// Looks around until a message is acked.
    async fn until_acked(&self, id: MessageId, mut look: impl FnMut()) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            look();
            let receipt = self.receipt(id).await;
            match receipt.state {
                MessageState::Acked => return,
                MessageState::Dead => panic!("given up: {}", self.story().await),
                _ => {}
            }
            let is_late = Instant::now() > deadline;
            assert!(!is_late, "{receipt:?}\n{}", self.story().await);
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn check_spend(&self) {
        let spend = Spend { days: None };
        let page = self.hive.host_client().call(&spend).await.unwrap();
        let row = &page.days[0];
        assert_eq!((row.agent.as_str(), row.calls), (AGENT, 1));
        let tokens = (row.input_tokens, row.output_tokens, row.cache_read_tokens);
        assert_eq!(tokens, (1_000, 10, 500));
        assert!(row.cost_micro_usd > 0);
    }

    /// What happened so far, and the daemon's log.
    async fn story(&self) -> String {
        let events = Events {
            after: None,
            limit: Some(500),
            wait_seconds: 0,
            about: None,
        };
        let events = self.hive.host_client().call(&events).await.unwrap();
        let events = serde_json::to_string(&events).unwrap();
        format!("{events}\n{}", self.hive.log_tail())
    }
}

/// Every regular file below a directory that can be read.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => files(&entry.path()),
        Ok(kind) if kind.is_file() => vec![entry.path()],
        _ => Vec::new(),
    });
    below.collect()
}

fn holds_key(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, KEY.as_bytes()).is_some()
}

/// Whether a process has the key somewhere in memory that it can write; none when it has ended or
/// may not be looked at.
fn memory_holds_key(pid: u32) -> Option<bool> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    let pages = File::open(format!("/proc/{pid}/pagemap")).ok()?;
    let mut is_found = false;
    for line in maps.lines() {
        let mut words = line.split(' ');
        let (range, access) = (words.next()?, words.next()?);
        let (from, to) = range.split_once('-')?;
        let (from, to) = (parsed(from)?, parsed(to)?);
        if access.starts_with("rw") {
            is_found |= holds_key_between(&memory, &pages, from, to);
        }
    }
    is_found.then_some(true).or_else(|| {
        // What was looked at is a process that still ran.
        Path::new(&format!("/proc/{pid}/maps"))
            .exists()
            .then_some(false)
    })
}

fn parsed(address: &str) -> Option<u64> {
    u64::from_str_radix(address, 16).ok()
}

/// Looks through the pages that are really there: an engine reserves much more than it uses. Pieces
/// overlap by a key. What is not there any more holds nothing.
fn holds_key_between(memory: &File, pages: &File, from: u64, to: u64) -> bool {
    const PAGE: u64 = 4096;
    const PIECE: u64 = 64 * PAGE;
    const THERE: u64 = 1 << 63;
    let mut buffer = vec![0; usize::try_from(PIECE).unwrap() + KEY.len()];
    let mut entries = vec![0; 1 << 16];
    let mut at = from;
    while at < to {
        let read = pages.read_at(&mut entries, at / PAGE * 8).unwrap_or(0);
        let entries = entries[..read].chunks_exact(8);
        let is_there = |entry: &[u8]| u64::from_ne_bytes(entry.try_into().unwrap()) & THERE != 0;
        let Some(first) = entries.clone().position(is_there) else {
            at += PAGE * u64::try_from(entries.len().max(1)).unwrap();
            continue;
        };
        at += PAGE * u64::try_from(first).unwrap();
        let read = memory.read_at(&mut buffer, at).unwrap_or(0);
        if holds_key(&buffer[..read]) {
            return true;
        }
        at += PIECE;
    }
    false
}

/// The environments of all processes that can be read.
fn environs() -> Vec<(u32, Vec<u8>)> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, fs::read(format!("/proc/{pid}/environ")).ok()?)))
        .collect()
}

/// Whether this is the environment of the agent's engine.
fn is_engines(environ: &[u8]) -> bool {
    let label = format!("HIVE_LABEL={AGENT}").into_bytes();
    let has = |is_it: &dyn Fn(&[u8]) -> bool| environ.split(|byte| *byte == 0).any(is_it);
    has(&|one| one.starts_with(b"ANTHROPIC_BASE_URL=http://127.0.0.1:")) && has(&|one| one == label)
}
