//! The event log on a real disk: order, resuming, gaps, damage, bounds.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    collections::HashSet,
    env, fs,
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::Duration,
};

use hive_store::event_log::{
    Event, EventLog, EventLogError, Limits, MAX_PAGE_BYTES, Opening, Options, StreamMark, TOO_LARGE,
};
use hive_wire::{
    Timestamp,
    host::{EventPage, EventPosition},
};
use rusqlite::Connection;
use serde_json::{json, value::RawValue};
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(60);

struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            dir: TempDir::new().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("events.db")
    }

    fn open(&self) -> EventLog {
        EventLog::open(&self.path(), Limits::default()).unwrap()
    }

    fn open_limited(&self, max_events: usize, max_bytes: usize) -> EventLog {
        let limits = Limits {
            max_events,
            max_bytes,
            ..Limits::default()
        };
        EventLog::open(&self.path(), limits).unwrap()
    }

    /// What the disk holds at this moment: the state that a SIGKILL leaves behind.
    fn crash_image(&self) -> Self {
        let image = Self::new();
        for name in ["events.db", "events.db-wal"] {
            fs::copy(self.dir.path().join(name), image.dir.path().join(name)).unwrap();
        }
        image
    }

    fn asides(&self) -> Vec<PathBuf> {
        fs::read_dir(self.dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                let name = path.file_name().unwrap().to_string_lossy();
                name.starts_with("events.db.damaged-") && !name.ends_with("-wal")
            })
            .collect()
    }
}

fn event(about: &str, data: serde_json::Value) -> Event {
    Event {
        at: Timestamp::from_millis(1_700_000_000_000),
        about: about.into(),
        kind: "test".into(),
        data: data.into(),
    }
}

fn publish(log: &EventLog, range: std::ops::Range<i64>) {
    for n in range {
        log.publish(event("ada", json!(n)));
    }
    log.flush();
}

fn at(log: &EventLog, seq: i64) -> Option<EventPosition> {
    Some(EventPosition {
        epoch: log.position().epoch,
        seq,
    })
}

fn seqs(page: &EventPage) -> Vec<i64> {
    page.events.iter().map(|event| event.seq).collect()
}

/// Everything after a position, page by page, and whether any page had a gap.
fn read_on(log: &EventLog, mut after: EventPosition, about: Option<&str>) -> (Vec<i64>, bool) {
    let (mut all, mut gap) = (Vec::new(), false);
    loop {
        let page = log.read(Some(after), 7, about).unwrap();
        gap |= page.gap;
        if page.events.is_empty() {
            assert_eq!(page.next, log.position());
            return (all, gap);
        }
        all.extend(seqs(&page));
        after = page.next;
    }
}

#[test]
fn events_come_back_in_order_without_holes() {
    let place = Place::new();
    let log = place.open();
    assert_eq!(*log.opening(), Opening::Created);
    publish(&log, 0..500);
    let (all, gap) = read_on(&log, at(&log, 0).unwrap(), None);
    assert_eq!(all, (1..=500).collect::<Vec<_>>());
    assert!(!gap);
    let newest = log.read(None, 3, None).unwrap();
    assert_eq!(seqs(&newest), [498, 499, 500]);
    assert_eq!(newest.next, log.position());
    assert_eq!(newest.events[0].data, json!(497));
    assert_eq!(newest.events[0].kind, "test");
    assert_eq!(newest.events[0].about, "ada");
    assert_eq!(newest.events[0].at.millis(), 1_700_000_000_000);
    let end = log.read(Some(newest.next), 3, None).unwrap();
    assert!(end.events.is_empty() && !end.gap);
}

#[test]
fn a_reader_resumes_across_a_restart_without_a_gap() {
    let place = Place::new();
    let log = place.open();
    publish(&log, 0..10);
    let seen = log.read(at(&log, 0), 4, None).unwrap();
    log.publish(event("ada", json!("unflushed")));
    log.close().unwrap();
    assert!(matches!(
        log.read(None, 1, None),
        Err(EventLogError::Closed)
    ));
    log.publish(event("ada", json!("after the end")));
    assert_eq!(log.lost(), 1);

    let log = place.open();
    assert_eq!(*log.opening(), Opening::Resumed);
    publish(&log, 0..1);
    let (rest, gap) = read_on(&log, seen.next, None);
    assert_eq!(rest, (5..=12).collect::<Vec<_>>());
    assert!(!gap);
}

#[test]
fn an_unclean_end_never_reuses_a_number() {
    let place = Place::new();
    let log = place.open();
    publish(&log, 0..5);
    let last = log.position();
    let mut image = place.crash_image();
    let mut highest = last.seq;
    for _ in 0..3 {
        let log = image.open();
        assert_eq!(*log.opening(), Opening::Recovered);
        publish(&log, 0..1);
        let page = log.read(Some(last), 10, None).unwrap();
        assert_eq!(page.next.epoch, last.epoch);
        assert!(page.gap, "what was queued may be lost");
        assert!(page.events.last().unwrap().seq > highest);
        assert_eq!(log.read(at(&log, 0), 5, None).unwrap().events.len(), 5);
        highest = log.position().seq;
        assert!(!log.read(at(&log, highest - 1), 5, None).unwrap().gap);
        let next = image.crash_image();
        drop(log);
        image = next;
    }
}

#[test]
fn a_lost_wal_never_reuses_a_number() {
    let place = Place::new();
    let log = place.open();
    publish(&log, 0..5);
    let image = place.crash_image();
    fs::write(image.dir.path().join("events.db-wal"), b"").unwrap();
    let recovered = image.open();
    assert_eq!(*recovered.opening(), Opening::Recovered);
    assert_eq!(recovered.position().epoch, log.position().epoch);
    assert!(recovered.position().seq >= log.position().seq);
    assert!(recovered.read(at(&recovered, 0), 5, None).unwrap().gap);
}

/// The child of the test below: publishes until it is killed. Does nothing in a usual run.
#[test]
fn killed_child() {
    let Some(path) = env::var_os("EVENT_LOG_CHILD") else {
        return;
    };
    let log = EventLog::open(Path::new(&path), Limits::default()).unwrap();
    for n in 0.. {
        publish(&log, n..n + 10);
        writeln!(io::stderr(), "readable {}", log.position().seq).unwrap();
    }
}

#[test]
fn numbers_stay_unique_when_the_process_is_killed() {
    let place = Place::new();
    let mut epochs = HashSet::new();
    let mut highest = 0;
    for _ in 0..3 {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "killed_child", "--nocapture"])
            .env("EVENT_LOG_CHILD", place.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let readable: Vec<i64> = lines
            .filter_map(|line| line.unwrap().strip_prefix("readable ")?.parse().ok())
            .take(5)
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(readable[0] > highest, "{readable:?} after {highest}");
        let log = EventLog::open(&place.crash_image().path(), Limits::default()).unwrap();
        epochs.insert(log.position().epoch);
        highest = log.position().seq;
        assert!(highest >= readable[4]);
        // What a reader was shown before the kill is still there after it.
        let shown = log.read(at(&log, readable[3]), 10, None).unwrap();
        assert_eq!(shown.events[0].seq, readable[3] + 1);
    }
    assert_eq!(epochs.len(), 1);
}

#[test]
fn pruning_keeps_the_newest_and_shows_the_gap() {
    let place = Place::new();
    let log = place.open_limited(100, usize::MAX);
    for round in 0..50 {
        publish(&log, round * 20..round * 20 + 20);
    }
    let page = log.read(at(&log, 10), 1000, None).unwrap();
    assert!(page.gap);
    assert!(
        (88..=100).contains(&page.events.len()),
        "{}",
        page.events.len()
    );
    assert_eq!(page.events.last().unwrap().seq, 1000);
    assert_eq!(page.events.len() as i64, 1001 - page.events[0].seq);
    let kept = page.events[0].seq;
    assert!(!log.read(at(&log, kept - 1), 1000, None).unwrap().gap);
    assert!(log.read(at(&log, kept - 2), 1000, None).unwrap().gap);
    assert!(!log.read(None, 1000, None).unwrap().gap);
}

#[test]
fn the_file_stays_within_its_bytes() {
    let place = Place::new();
    let log = place.open_limited(usize::MAX, 1024 * 1024);
    let text = "x".repeat(1000);
    let mut sizes = Vec::new();
    for _ in 0..10 {
        for n in 0..1000 {
            log.publish(event(&format!("agent{}", n % 20), json!(text)));
        }
        log.flush();
        sizes.push(fs::metadata(place.path()).unwrap().len());
    }
    drop(log);
    sizes.push(fs::metadata(place.path()).unwrap().len());
    assert!(*sizes.iter().max().unwrap() < 4 * 1024 * 1024, "{sizes:?}");
    let stale = Connection::open(place.path())
        .unwrap()
        .query_row(
            "SELECT count(*) FROM chunk_about WHERE first NOT IN (SELECT first FROM chunk)",
            [],
            |row| row.get::<_, i64>(0),
        )
        .unwrap();
    assert_eq!(stale, 0, "the index is pruned with its chunks");
}

#[test]
fn the_wal_of_a_flood_is_written_over_and_never_cut() {
    let place = Place::new();
    let log = place.open();
    let wal = place.dir.path().join("events.db-wal");
    let text = "x".repeat(60 * 1024);
    let mut lengths = Vec::new();
    for _ in 0..24 {
        for _ in 0..64 {
            log.publish(event("ada", json!(text)));
        }
        log.flush();
        lengths.push(fs::metadata(&wal).unwrap().len() >> 20);
    }
    // Some 90 MiB went through it.
    assert!(lengths.is_sorted(), "{lengths:?}");
    assert!((40..60).contains(lengths.last().unwrap()), "{lengths:?}");
    assert_eq!(log.lost(), 0);
}

#[test]
fn lower_limits_apply_to_an_old_file() {
    let place = Place::new();
    publish(&place.open(), 0..2000);
    let log = place.open_limited(50, usize::MAX);
    publish(&log, 0..1);
    let kept = log.read(at(&log, 0), 1000, None).unwrap();
    assert!(kept.gap);
    assert!(kept.events.len() <= 50, "{}", kept.events.len());
}

/// Locks the file so that the writer stands still.
fn stall(place: &Place) -> Connection {
    let other = Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

#[test]
fn an_overflow_drops_the_newest_and_shows_the_gap() {
    let place = Place::new();
    let options = Options {
        queue_events: 8,
        busy: LONG,
        ..Options::default()
    };
    let log = EventLog::open_with(&place.path(), options).unwrap();
    publish(&log, 0..2);
    let before = log.position();
    let stalled = stall(&place);
    for n in 0..100 {
        let about = if n < 4 { "bob" } else { "ada" };
        log.publish(event(about, json!(n)));
    }
    let lost = log.lost();
    assert!(lost >= 100 - 2 * 8, "{lost}");
    drop(stalled);
    log.flush();

    let page = log.read(Some(before), 1000, None).unwrap();
    assert!(page.gap);
    assert_eq!(page.next.seq, 102, "lost numbers are passed over");
    assert_eq!(page.events.len() as u64, 100 - lost);
    assert_eq!(page.events[0].seq, 3, "the oldest survive");
    assert!(
        log.read(Some(before), 1000, Some("bob")).unwrap().gap,
        "what was lost may have been about bob"
    );
    publish(&log, 0..3);
    let rest = log.read(Some(page.next), 1000, None).unwrap();
    assert_eq!(seqs(&rest), [103, 104, 105]);
    assert!(!rest.gap);
    assert!(log.read(None, 1000, None).unwrap().gap);
    assert!(!log.read(None, 3, None).unwrap().gap);
}

#[test]
fn a_group_that_cannot_be_written_is_a_gap() {
    let place = Place::new();
    let options = Options {
        busy: Duration::ZERO,
        ..Options::default()
    };
    let log = EventLog::open_with(&place.path(), options).unwrap();
    publish(&log, 0..2);
    let stalled = stall(&place);
    publish(&log, 0..3);
    assert_eq!(log.lost(), 3);
    assert_eq!(log.position().seq, 2);
    drop(stalled);
    publish(&log, 0..2);
    let page = log.read(at(&log, 2), 10, None).unwrap();
    assert_eq!((seqs(&page), page.gap), (vec![6, 7], true));

    let stalled = stall(&place);
    publish(&log, 0..3);
    assert!(matches!(
        log.close(),
        Err(EventLogError::Unwritten { events: 3 })
    ));
    drop(stalled);
    drop(log);
    let log = place.open();
    assert_eq!(*log.opening(), Opening::Recovered);
    assert!(log.position().seq >= 10);
}

#[test]
fn a_position_of_another_log_starts_from_the_oldest() {
    let place = Place::new();
    let log = place.open();
    publish(&log, 0..5);
    let EventPosition { epoch, seq } = log.position();
    for (epoch, seq) in [
        (epoch ^ 1, 3),
        (epoch, seq + 1),
        (-1, i64::MIN),
        (epoch, i64::MAX),
    ] {
        let page = log
            .read(Some(EventPosition { epoch, seq }), 10, None)
            .unwrap();
        assert!(page.gap);
        assert_eq!(seqs(&page), [1, 2, 3, 4, 5]);
    }
    let page = log.read(at(&log, i64::MIN), 10, None).unwrap();
    assert_eq!((page.events.len(), page.gap), (5, false));
}

/// Opens a log whose file was spoilt and expects a new epoch, the old file kept aside.
fn expect_replaced(spoil: impl FnOnce(&Path)) {
    let place = Place::new();
    let log = place.open();
    publish(&log, 0..2000);
    let old = log.position();
    log.close().unwrap();
    drop(log);
    spoil(&place.path());
    let spoilt = fs::read(place.path()).unwrap();

    let log = place.open();
    let Opening::Replaced { aside, reason } = log.opening() else {
        panic!("{:?}", log.opening());
    };
    assert!(!reason.is_empty());
    assert_eq!(place.asides(), std::slice::from_ref(aside));
    assert_eq!(fs::read(aside).unwrap(), spoilt);
    assert_ne!(log.position().epoch, old.epoch);
    publish(&log, 0..3);
    let page = log.read(Some(old), 10, None).unwrap();
    assert_eq!((seqs(&page), page.gap), (vec![1, 2, 3], true));
    drop(log);
    assert_eq!(*place.open().opening(), Opening::Resumed);
}

/// The size of a page of the file.
const PAGE: usize = 16384;

#[test]
fn flipped_bytes_begin_a_new_epoch() {
    for from in [0, PAGE, 2 * PAGE] {
        expect_replaced(|path| {
            let mut bytes = fs::read(path).unwrap();
            for byte in &mut bytes[from..from + 100] {
                *byte ^= 0xff;
            }
            fs::write(path, bytes).unwrap();
        });
    }
}

#[test]
fn a_truncated_file_begins_a_new_epoch() {
    for keep in [100, PAGE as u64, 3 * PAGE as u64 + 17] {
        expect_replaced(|path| {
            let file = fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(keep).unwrap();
        });
    }
}

#[test]
fn a_foreign_file_is_put_aside() {
    expect_replaced(|path| fs::write(path, "not a database").unwrap());
    expect_replaced(|path| {
        fs::remove_file(path).unwrap();
        let foreign = Connection::open(path).unwrap();
        foreign.execute_batch("CREATE TABLE mine (x)").unwrap();
    });
    expect_replaced(|path| {
        let newer = Connection::open(path).unwrap();
        newer.pragma_update(None, "user_version", 99).unwrap();
    });
}

#[test]
fn an_emptied_or_deleted_file_begins_a_new_epoch() {
    let place = Place::new();
    let mut epochs = HashSet::new();
    epochs.insert(place.open().position().epoch);
    fs::write(place.path(), b"").unwrap();
    epochs.insert(place.open().position().epoch);
    fs::remove_file(place.path()).unwrap();
    epochs.insert(place.open().position().epoch);
    assert_eq!(epochs.len(), 3);
    assert!(epochs.iter().all(|epoch| *epoch > 0));
}

#[test]
fn a_file_deleted_while_open_is_still_served() {
    let place = Place::new();
    let log = place.open();
    publish(&log, 0..2);
    for name in ["events.db", "events.db-wal", "events.db-shm"] {
        fs::remove_file(place.dir.path().join(name)).unwrap();
    }
    publish(&log, 0..2);
    for _ in 0..5 {
        assert_eq!(log.read(None, 10, None).unwrap().events.len(), 4);
    }
}

#[test]
fn a_place_that_cannot_be_written_is_a_clear_error() {
    let place = Place::new();
    let dir = place.dir.path();
    fs::create_dir(dir.join("directory")).unwrap();
    fs::write(dir.join("file"), b"").unwrap();
    let mut paths = vec![
        dir.join("missing/events.db"),
        dir.join("directory"),
        dir.join("file/events.db"),
        // Refuses files even to root, whom a directory's mode does not stop.
        PathBuf::from("/proc/events.db"),
    ];
    let read_only = dir.join("read-only");
    fs::create_dir(&read_only).unwrap();
    fs::set_permissions(&read_only, fs::Permissions::from_mode(0o500)).unwrap();
    if fs::write(read_only.join("probe"), b"").is_err() {
        paths.push(read_only.join("events.db"));
    }
    for path in paths {
        let error = EventLog::open(&path, Limits::default()).unwrap_err();
        let EventLogError::Open { path: named, .. } = &error else {
            panic!("{error:?}");
        };
        assert_eq!(*named, path);
        assert!(error.to_string().contains("check that its directory"));
    }
    assert!(place.asides().is_empty());
}

#[test]
fn the_file_is_its_owners_alone() {
    let place = Place::new();
    let log = place.open();
    publish(&log, 0..1);
    for name in ["events.db", "events.db-wal", "events.db-shm"] {
        let mode = fs::metadata(place.dir.path().join(name))
            .unwrap()
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600, "{name}");
    }
}

#[test]
fn an_oversized_event_leaves_a_marker() {
    let place = Place::new();
    let log = place.open();
    let big = "x".repeat(100_000);
    log.publish(event("ada", json!({"text": big})));
    let raw = serde_json::value::to_raw_value(&"\u{1}".repeat(20_000)).unwrap();
    log.publish(Event {
        data: raw.into(),
        ..event("ada", json!(null))
    });
    log.publish(event("ada", json!("small")));
    log.flush();
    let page = log.read(None, 10, Some("ada")).unwrap();
    assert_eq!(page.events[0].kind, TOO_LARGE);
    assert_eq!(page.events[0].data["kind"], "test");
    assert_eq!(page.events[0].data["bytes"], 100_011);
    assert_eq!(page.events[1].kind, TOO_LARGE);
    assert_eq!(page.events[2].data, "small");
    assert!(!page.gap);
}

#[test]
fn a_page_fits_in_a_line_and_always_moves_on() {
    let place = Place::new();
    let limits = Limits {
        max_event_bytes: usize::MAX,
        ..Limits::default()
    };
    let log = EventLog::open(&place.path(), limits).unwrap();
    let text = "x".repeat(300_000);
    for _ in 0..7 {
        log.publish(event("ada", json!(text)));
    }
    // These numbers take four times the room when they are written as values.
    let growing = format!("[{}1e15]", "1e15,".repeat(80_000));
    log.publish(Event {
        data: RawValue::from_string(growing).unwrap().into(),
        ..event("ada", json!(null))
    });
    let deep = "[".repeat(1000) + &"]".repeat(1000);
    log.publish(Event {
        data: RawValue::from_string(deep).unwrap().into(),
        ..event("ada", json!(null))
    });
    log.flush();
    let mut after = at(&log, 0).unwrap();
    let mut all = Vec::new();
    loop {
        let page = log.read(Some(after), 1000, None).unwrap();
        assert!(serde_json::to_vec(&page).unwrap().len() <= MAX_PAGE_BYTES);
        if page.events.is_empty() {
            break;
        }
        after = page.next;
        all.extend(page.events);
    }
    assert_eq!(all.len(), 9);
    assert_eq!(all[7].kind, TOO_LARGE);
    assert!(
        serde_json::to_vec(&log.read(None, 1000, None).unwrap())
            .unwrap()
            .len()
            <= MAX_PAGE_BYTES
    );
    publish(&log, 0..2000);
    assert_eq!(log.read(None, usize::MAX, None).unwrap().events.len(), 1000);
    assert_eq!(log.read(None, 0, None).unwrap().events.len(), 1);
}

#[test]
fn a_filter_shows_one_agent_and_moves_past_the_others() {
    let place = Place::new();
    let log = place.open_limited(200, usize::MAX);
    for n in 0..100 {
        let about = if n % 10 == 0 { "bob" } else { "ada" };
        log.publish(event(about, json!(n)));
    }
    log.flush();
    let (bob, gap) = read_on(&log, at(&log, 0).unwrap(), Some("bob"));
    assert_eq!(bob, (0..10).map(|n| n * 10 + 1).collect::<Vec<_>>());
    assert!(!gap);
    assert_eq!(seqs(&log.read(None, 2, Some("bob")).unwrap()), [81, 91]);
    let end = log.read(at(&log, 95), 10, Some("bob")).unwrap();
    assert!(end.events.is_empty());
    assert_eq!(end.next.seq, 100);
    let nobody = log.read(None, 10, Some("' OR 1=1 --")).unwrap();
    assert!(nobody.events.is_empty());

    publish(&log, 0..500);
    let page = log.read(Some(end.next), 10, Some("bob")).unwrap();
    assert!(page.events.is_empty() && page.gap);
    assert!(!log.read(Some(page.next), 10, Some("bob")).unwrap().gap);
}

#[test]
fn concurrent_publishers_and_readers_lose_nothing() {
    const PUBLISHERS: i64 = 4;
    const EACH: i64 = 3000;
    let place = Place::new();
    let log = place.open();
    let start = log.position();
    thread::scope(|scope| {
        for publisher in 0..PUBLISHERS {
            let log = &log;
            scope.spawn(move || {
                for n in 0..EACH {
                    log.publish(event(&format!("p{publisher}"), json!(n)));
                }
            });
        }
        for reader in 0..PUBLISHERS {
            let log = &log;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_time()
                    .build()
                    .unwrap();
                let about = format!("p{reader}");
                let mut after = start;
                let mut seen = Vec::new();
                while (seen.len() as i64) < EACH {
                    assert!(runtime.block_on(log.wait_after(after, LONG)));
                    let page = log.read(Some(after), 100, Some(&about)).unwrap();
                    assert!(!page.gap);
                    seen.extend(page.events.iter().map(|event| event.data.as_i64().unwrap()));
                    after = page.next;
                }
                assert_eq!(seen, (0..EACH).collect::<Vec<_>>());
            });
        }
    });
    assert_eq!(log.lost(), 0);
    let (all, gap) = read_on(&log, start, None);
    assert_eq!(all, (1..=PUBLISHERS * EACH).collect::<Vec<_>>());
    assert!(!gap);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_subscribes_before_the_snapshot_misses_nothing() {
    const EVENTS: i64 = 2000;
    let place = Place::new();
    let log = Arc::new(place.open());
    let publisher = thread::spawn({
        let log = Arc::clone(&log);
        move || {
            for n in 0..EVENTS {
                log.publish(event("ada", json!(n)));
                if n % 50 == 0 {
                    log.flush();
                }
            }
        }
    });
    for _ in 0..5 {
        let mut readable = log.subscribe();
        let mut page = log.read(None, 1000, None).unwrap();
        let mut seen = seqs(&page);
        while page.next.seq < EVENTS {
            let next = page.next.seq;
            let woken = readable.wait_for(|seq| *seq > next);
            let woken = *tokio::time::timeout(LONG, woken).await.unwrap().unwrap();
            page = log.read(Some(page.next), 1000, None).unwrap();
            let announced = woken.min(next + 1000);
            assert!(page.next.seq >= announced, "what is announced can be read");
            assert!(!page.gap);
            seen.extend(seqs(&page));
        }
        let first = seen[0];
        assert_eq!(seen, (first..=EVENTS).collect::<Vec<_>>());
    }
    publisher.join().unwrap();
}

#[tokio::test]
async fn a_long_poll_ends_with_an_event_the_time_or_the_log() {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    let place = Place::new();
    let log = place.open();
    let here = log.position();
    assert!(!log.wait_after(here, Duration::from_millis(1)).await);
    let elsewhere = EventPosition {
        epoch: here.epoch ^ 1,
        seq: 0,
    };
    assert!(log.wait_after(elsewhere, LONG).await);
    log.publish(event("ada", json!(1)));
    assert!(is_send(log.wait_after(here, LONG)).await);
    log.close().unwrap();
    assert!(!log.wait_after(log.position(), LONG).await);
}

fn limited(place: &Place, stream_events: usize, streams_bytes: usize) -> EventLog {
    let limits = Limits {
        stream_events,
        streams_bytes,
        ..Limits::default()
    };
    EventLog::open(&place.path(), limits).unwrap()
}

/// Posts events of an agent's stream, in posts of ten, numbered by their poster from `first`.
fn post(log: &EventLog, about: &str, epoch: &str, range: std::ops::Range<u64>) {
    let numbers: Vec<u64> = range.collect();
    for some in numbers.chunks(10) {
        log.publish_stream(some.iter().map(|n| {
            let mark = StreamMark {
                epoch: epoch.into(),
                next: n + 1,
            };
            (event(about, json!({"n": n, "pad": "x".repeat(500)})), mark)
        }));
        log.flush();
    }
}

/// The `n` of the events about somebody that are kept.
fn kept(log: &EventLog, about: &str) -> Vec<u64> {
    let page = log.read(None, 1000, Some(about)).unwrap();
    let numbers = page
        .events
        .iter()
        .filter_map(|event| event.data["n"].as_u64());
    numbers.collect()
}

#[test]
fn a_stream_pushes_out_only_what_is_its_own() {
    let place = Place::new();
    let log = limited(&place, 100, usize::MAX);
    publish(&log, 0..50);
    post(&log, "bob", "e", 1..31);
    let before = log.position();
    post(&log, "eve", "e", 1..2001);
    let own = log.read(None, 1000, Some("ada")).unwrap();
    assert_eq!(own.events.len(), 50, "the hive's own events are all there");
    assert_eq!(kept(&log, "bob").len(), 30);
    let eve = kept(&log, "eve");
    assert!((90..=110).contains(&eve.len()), "{} events", eve.len());
    assert_eq!(eve.last(), Some(&2000), "the newest are kept");
    let bob = log.read(Some(before), 10, Some("bob")).unwrap();
    assert!(!bob.gap, "nothing of bob's is gone");
    assert!(log.read(Some(before), 10, Some("eve")).unwrap().gap);
    assert!(log.read(Some(before), 10, None).unwrap().gap);
    let bytes = fs::metadata(place.path()).unwrap().len();
    assert!(bytes < 2 * 1024 * 1024, "{bytes} bytes on disk");
}

#[test]
fn together_streams_stay_within_their_bytes_and_the_largest_gives_way() {
    let place = Place::new();
    let log = limited(&place, usize::MAX, 100 * 1024);
    post(&log, "bob", "e", 1..11);
    post(&log, "eve", "e", 1..1001);
    assert_eq!(kept(&log, "bob").len(), 10);
    let eve = kept(&log, "eve");
    assert!(eve.len() < 200, "{} events", eve.len());
    assert_eq!(eve.last(), Some(&1000));
}

#[test]
fn a_stream_knows_after_a_crash_what_it_has() {
    let place = Place::new();
    let log = place.open();
    post(&log, "ada", "e1", 1..6);
    post(&log, "ada", "e2", 1..4);
    let image = place.crash_image();
    let log = image.open();
    let mark = &log.marks()["ada"];
    assert_eq!((&*mark.epoch, mark.next), ("e2", 4));
    assert_eq!(kept(&log, "ada"), [1, 2, 3, 4, 5, 1, 2, 3]);
}

#[test]
fn a_log_of_the_first_format_goes_on() {
    let place = Place::new();
    {
        let log = place.open();
        publish(&log, 0..5);
        log.close().unwrap();
    }
    let raw = Connection::open(place.path()).unwrap();
    raw.execute_batch(
        "DROP INDEX chunk_stream; DROP TABLE stream; ALTER TABLE chunk DROP COLUMN stream;
         PRAGMA user_version = 1;",
    )
    .unwrap();
    raw.close().unwrap();
    let log = place.open();
    assert_eq!(*log.opening(), Opening::Resumed);
    publish(&log, 5..7);
    post(&log, "bob", "e", 1..3);
    assert_eq!(log.read(None, 100, None).unwrap().events.len(), 9);
    assert_eq!(kept(&log, "bob"), [1, 2]);
}

#[tokio::test]
async fn whoever_posts_can_wait_until_it_is_readable() {
    let place = Place::new();
    let log = place.open();
    let mark = StreamMark {
        epoch: "e".into(),
        next: 2,
    };
    let position = log.publish_stream([(event("ada", json!({"n": 1})), mark)]);
    assert!(
        tokio::time::timeout(LONG, log.settled(position))
            .await
            .unwrap()
    );
    assert_eq!(kept(&log, "ada"), [1]);
}
