//! Attempts to get out, from inside: every one fails, and the host and its neighbours go on.
//!
//! The same attempts as a plain process succeed, so that they can.

use std::{
    fs,
    net::TcpListener,
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        net::UnixListener,
    },
    process::{Child, Command},
};

use hive_runtime::{
    AgentSpec, Owner,
    conformance::{PATIENCE, Subject, Witness, await_end},
};

use crate::place::{Kind, Place, WAITS};

/// Tries one thing: what succeeds is written down.
const ATTEMPT: &str = r#"
attempt() { what=$1; shift; if "$@" >/dev/null 2>&1; then echo "$what" >> /state/escaped; fi
  echo "$what" >> /state/tried; }
[ -d /state ] || { cd "$STATE"; attempt() { what=$1; shift
  if "$@" >/dev/null 2>&1; then echo "$what" >> escaped; fi; echo "$what" >> tried; }; }
"#;

/// What an agent tries that obeys every bad idea.
const ATTEMPTS: &str = r#"
attempt token cat "$HIVE/operator-token"
attempt database cat "$HIVE/hive.db"
attempt neighbour-state cat "$BOB/state/secret"
attempt neighbour-login ls "$BOB/claude/"
attempt hive-listing ls "$HIVE"
attempt admin-socket socat -u OPEN:/dev/null UNIX-CONNECT:"$HIVE/host.sock"
attempt neighbour-socket socat -u OPEN:/dev/null UNIX-CONNECT:"$BOB/run/mcp.sock"
attempt host-loopback socat -u OPEN:/dev/null TCP:127.0.0.1:"$PORT",connect-timeout=2
attempt signal kill -0 "$VICTIM"
attempt signal-all sh -c 'kill -9 "$VICTIM" && sleep 0.1'
attempt root-of-others sh -c 'for p in /proc/[0-9]*; do cat $p/root"$HIVE/operator-token" && exit 0; done; exit 1'
attempt environ-of-others sh -c 'grep -sl VICTIMS_SECRET /proc/[0-9]*/environ'
mkdir -p links; ln -sfn "$HIVE/operator-token" links/token; ln -sfn "$HIVE" links/hive
attempt link cat links/token
attempt link-dir ls links/hive/
attempt write-usr sh -c ': > /usr/escaped'
attempt write-etc sh -c ': > /etc/escaped'
attempt write-root sh -c ': > /escaped-from'
attempt write-sockets sh -c ': > "${SOCKETS:-/run/hive}/escaped"'
attempt shadow cat /etc/shadow
attempt device sh -c 'for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/kmsg /dev/mem; do head -c1 $d && exit 0; done; exit 1'
attempt new-device mknod state-device b 254 0
attempt mount mount -t tmpfs none /mnt
attempt userns-mount unshare -Urm sh -c 'cat "$HIVE/operator-token" "$BOB/state/secret"'
attempt userns-proc unshare -Urmpf sh -c 'mount -t proc proc /proc && kill -0 "$VICTIM"'
attempt privileges sh -c 'grep -q "NoNewPrivs:.0" /proc/self/status'
attempt capabilities sh -c 'grep "CapEff" /proc/self/status | grep -qv 0000000000000000'
attempt sockets sh -c 'find / -xdev -type s ! -path "/run/hive/*" ! -path "/run/hive-bash/*" 2>/dev/null | grep -q .'
echo done >&9
"#;

fn spawn_victim() -> Child {
    let mut victim = Command::new("sleep");
    victim.arg("1000").env("VICTIMS_SECRET", "1");
    victim.spawn().unwrap()
}

/// Runs the attempts; those that succeeded, and how many there were.
fn attempts(place: &Place) -> (Vec<String>, usize) {
    let hive = place.path().parent().unwrap().to_path_buf();
    for (file, text) in [("operator-token", "secret"), ("hive.db", "secret")] {
        fs::write(hive.join(file), text).unwrap();
        fs::set_permissions(hive.join(file), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let bob = place.agent("bob", WAITS);
    fs::write(bob.dirs.state.join("secret"), "bob's").unwrap();
    let listening = [
        UnixListener::bind(hive.join("host.sock")).unwrap(),
        UnixListener::bind(bob.dirs.run.join("mcp.sock")).unwrap(),
    ];
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut victim = spawn_victim();
    let runtime = place.handle();
    let neighbour = Witness::of(&bob);
    runtime.start(&bob).unwrap();
    neighbour.hears("ready");

    let mut ada = place.agent("ada", &format!("{ATTEMPT}{ATTEMPTS}"));
    for (name, value) in [
        ("HIVE", hive.to_str().unwrap().to_owned()),
        ("BOB", place.path().join("bob").to_str().unwrap().to_owned()),
        ("STATE", ada.dirs.state.to_str().unwrap().to_owned()),
        ("PORT", tcp.local_addr().unwrap().port().to_string()),
        ("VICTIM", victim.id().to_string()),
    ] {
        ada.env.insert(name.into(), value);
    }
    let witness = Witness::of(&ada);
    runtime.start(&ada).unwrap();
    witness.hears("done");
    runtime.stop(&ada.name, PATIENCE).unwrap();
    let read = |name| fs::read_to_string(ada.dirs.state.join(name)).unwrap_or_default();
    let escaped: Vec<String> = read("escaped").lines().map(str::to_owned).collect();
    let tried = read("tried").lines().count();

    if !escaped.iter().any(|what| what.starts_with("signal")) {
        assert!(
            victim.try_wait().unwrap().is_none(),
            "the host's process lives"
        );
    }
    victim.kill().ok();
    victim.wait().unwrap();
    let instance = runtime.inspect(&bob.name).unwrap().unwrap();
    assert!(instance.pid().is_some(), "the neighbour goes on");
    runtime.stop(&bob.name, PATIENCE).unwrap();
    neighbour.is_alone();
    drop(listening);
    (escaped, tried)
}

/// How many attempts the script has.
fn count() -> usize {
    ATTEMPTS
        .lines()
        .filter(|line| line.starts_with("attempt "))
        .count()
}

pub(crate) fn no_attempt_gets_out(kind: Kind) {
    let Some(place) = Place::of(kind) else {
        return;
    };
    let (escaped, tried) = attempts(&place);
    assert_eq!(tried, count(), "all were tried");
    assert_eq!(escaped, Vec::<String>::new());
}

#[test]
fn as_a_plain_process_the_attempts_do_get_out() {
    let place = Place::of(Kind::Process).unwrap();
    let (escaped, tried) = attempts(&place);
    assert_eq!(tried, count());
    for what in [
        "token",
        "database",
        "neighbour-state",
        "admin-socket",
        "signal",
        "host-loopback",
    ] {
        assert!(
            escaped.iter().any(|found| found == what),
            "{what}: {escaped:?}"
        );
    }
}

/// Runs a script to its end, with limits.
fn run(place: &Place, name: &str, script: &str, limit: impl FnOnce(&mut AgentSpec)) -> AgentSpec {
    let mut spec = place.agent(name, script);
    limit(&mut spec);
    let witness = Witness::of(&spec);
    let runtime = place.handle();
    runtime.start(&spec).unwrap();
    if let Some(watched) = runtime.watch(&spec.name).unwrap() {
        await_end(watched);
    }
    witness.is_alone();
    spec
}

pub(crate) fn what_it_uses_is_bounded(kind: Kind) {
    let Some(place) = Place::of(kind) else {
        return;
    };
    // Files in memory, and everything else that could be written to.
    let script = "for at in /tmp/x /dev/shm/x /run/x /x /dev/x /run/hive-bash/x /var/x; do \
                    head -c 400000000 /dev/zero > $at; done 2>/dev/null; \
                  du -sk /tmp /run /dev 2>/dev/null | cut -f1 > used; \
                  head -c 3000000 /dev/zero > large 2>/dev/null; echo done >&9";
    let spec = run(&place, "ada", script, |spec| {
        spec.limits.tmp_bytes = 1 << 20;
        spec.limits.file_bytes = Some(2 << 20);
    });
    let used = fs::read_to_string(spec.dirs.state.join("used")).unwrap();
    let used: u64 = used.lines().map(|line| line.parse::<u64>().unwrap()).sum();
    assert!(used < 300 * 1024, "{used} KiB");
    if kind != Kind::Podman {
        let large = fs::metadata(spec.dirs.state.join("large")).unwrap().len();
        assert!(large <= 2 << 20, "{large}");
    }

    // Processes.
    let script = "i=0; while [ $i -lt 400 ]; do sleep 1000 & i=$((i+1)); done 2>/dev/null; \
                  jobs -p | wc -l > started; echo done >&9";
    let spec = run(&place, "bob", script, |spec| spec.limits.pids = Some(100));
    let started = fs::read_to_string(spec.dirs.state.join("started"));
    let started: u64 = started.map_or(0, |text| text.trim().parse().unwrap_or(0));
    assert!(started < 110, "{started} processes");
}

pub(crate) fn its_memory_is_bounded_or_that_is_said(kind: Kind) {
    let Some(place) = Place::of(kind) else {
        return;
    };
    let script = "head -c 300000000 /dev/zero | tail -c 290000000 | wc -c > held; echo done >&9";
    let mut spec = place.agent("ada", script);
    spec.limits.memory_bytes = Some(64 << 20);
    let runtime = place.handle();
    let witness = Witness::of(&spec);
    let instance = runtime.start(&spec).unwrap();
    let is_said = instance
        .unbounded
        .iter()
        .any(|what| what.starts_with("memory"));
    if let Some(watched) = runtime.watch(&spec.name).unwrap() {
        await_end(watched);
    }
    witness.is_alone();
    let held = fs::read_to_string(spec.dirs.state.join("held")).unwrap_or_default();
    let was_held = held.trim() == "290000000";
    assert!(!was_held || is_said, "{held:?} {:?}", instance.unbounded);
}

pub(crate) fn its_files_are_its_own(kind: Kind) {
    let Some(place) = Place::of(kind) else {
        return;
    };
    let script = "echo mine > file; echo x > /harness/file; echo x > ~/file; echo done >&9";
    let spec = run(&place, "ada", script, |spec| {
        spec.env.insert("HOME".into(), "/home/agent".into());
    });
    let own = match spec.owner {
        Owner::Own { uid } => uid,
        Owner::Daemon => rustix::process::geteuid().as_raw(),
    };
    for dir in [&spec.dirs.state, &spec.dirs.harness, &spec.dirs.home] {
        let found = fs::metadata(dir.join("file")).unwrap();
        assert_eq!(found.uid(), own, "{}", dir.display());
    }
}

/// The attempts of one runtime, for its module.
macro_rules! attempts_of {
    ($kind:expr) => {
        #[test]
        fn no_attempt_gets_out() {
            $crate::escape::no_attempt_gets_out($kind);
        }

        #[test]
        fn what_it_uses_is_bounded() {
            $crate::escape::what_it_uses_is_bounded($kind);
        }

        #[test]
        fn its_memory_is_bounded_or_that_is_said() {
            $crate::escape::its_memory_is_bounded_or_that_is_said($kind);
        }

        #[test]
        fn its_files_are_its_own() {
            $crate::escape::its_files_are_its_own($kind);
        }
    };
}
pub(crate) use attempts_of;
