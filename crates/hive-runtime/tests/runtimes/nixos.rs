//! `nixos`, against stand-ins for `nixos-container` and `systemctl` that check what they are given.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use hive_runtime::{
    AgentSpec, Exit, Network, NixosRuntime, Runtime, RuntimeError, State,
    conformance::{PATIENCE, Subject, await_end},
    nixos::Places,
};

use crate::place::{Kind, Place};

/// Containers as files in `$WORLD`: `NAME` holds the flake, `NAME.pid` the process of one that is up.
const NIXOS_CONTAINER: &str = r#"#!/bin/sh
echo "nixos-container $*" >> "$WORLD/calls"
fail() { echo "$*" >&2; exit 1; }
verb=$1 name=$2
[ ${#name} -le 11 ] || fail "container name $name is too long"
case $name in h-*) ;; *) fail "bad name $name" ;; esac
is_up() { [ -f "$WORLD/$name.pid" ] && kill -0 "$(cat "$WORLD/$name.pid")" 2>/dev/null; }
case $verb in
status)
  if is_up; then echo up; elif [ -f "$WORLD/$name" ]; then echo down; else echo gone; exit 1; fi ;;
create)
  [ -f "$WORLD/$name" ] && fail "$name exists already"
  [ "$3" = --flake ] || fail "no flake"
  case $4 in "$WORLD"/applied/*'#default') ;; *) fail "bad flake $4" ;; esac
  echo "$4" > "$WORLD/$name"
  printf 'SYSTEM_PATH=x\nPRIVATE_NETWORK=1\nHOST_ADDRESS=10.233.1.1\nLOCAL_ADDRESS=10.233.1.2\n' \
    > "$WORLD/conf/$name.conf" ;;
update) [ -f "$WORLD/$name" ] || fail "no such container"; [ "$3" = --flake ] || fail "no flake" ;;
start)
  is_up && fail "$name is running"
  . "$WORLD/conf/$name.conf"
  [ -z "$HOST_ADDRESS$LOCAL_ADDRESS" ] || fail "it would get a private network"
  [ "$PRIVATE_NETWORK" = 0 ] || [ "$PRIVATE_NETWORK" = 1 ] || fail "PRIVATE_NETWORK=$PRIVATE_NETWORK"
  for flag in $EXTRA_NSPAWN_FLAGS; do
    source=${flag#*=}; source=${source%%:*}
    [ -d "$source" ] || fail "nothing to bind at $source"
    [ "${flag##*:}" = /run/hive ] && run=$source
  done
  [ -n "$run" ] || fail "no sockets are bound"
  [ "$(stat -c %a "$run/env")" = 600 ] || fail "the environment can be read by others"
  [ -f "$WORLD/units/container@$name.service.d/hyperhive.conf" ] || fail "no limits"
  setsid sh -c "echo \$\$ > '$WORLD/$name.pid.new'; mv '$WORLD/$name.pid.new' '$WORLD/$name.pid'
    while :; do sleep 1000 & wait; done" >/dev/null 2>&1 &
  while [ ! -f "$WORLD/$name.pid" ]; do sleep 0.01; done ;;
stop|terminate)
  is_up || exit 0
  kill -9 -"$(cat "$WORLD/$name.pid")"
  rm "$WORLD/$name.pid" ;;
*) fail "unknown $verb" ;;
esac
"#;

const SYSTEMCTL: &str = r#"#!/bin/sh
case $1 in
daemon-reload) exit 0 ;;
show) unit=$4; name=${unit#container@}; name=${name%.service}
  cat "$WORLD/$name.pid" 2>/dev/null || echo 0 ;;
*) exit 1 ;;
esac
"#;

struct World {
    place: Place,
    dir: PathBuf,
}

impl World {
    fn new() -> Self {
        let place = Place::of(Kind::Process).unwrap();
        let dir = place.path().parent().unwrap().to_path_buf();
        for name in ["conf", "units", "applied"] {
            fs::create_dir(dir.join(name)).unwrap();
        }
        let script = |name: &str, text: &str| {
            let text = text.replacen(
                "#!/bin/sh",
                &format!("#!/bin/sh\nWORLD={}", dir.display()),
                1,
            );
            fs::write(dir.join(name), text).unwrap();
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        };
        script("nixos-container", NIXOS_CONTAINER);
        script("systemctl", SYSTEMCTL);
        script(
            "journalctl",
            "#!/bin/sh\necho \"first of $1\"; echo second\n",
        );
        Self { place, dir }
    }

    fn runtime(&self) -> Arc<dyn Runtime> {
        let places = Places {
            nixos_container: self.dir.join("nixos-container"),
            systemctl: self.dir.join("systemctl"),
            journalctl: self.dir.join("journalctl"),
            conf: self.dir.join("conf"),
            units: self.dir.join("units"),
        };
        let agents = self.place.path().to_path_buf();
        Arc::new(NixosRuntime::new(places, agents, self.dir.join("applied")))
    }

    fn agent(&self, name: &str) -> AgentSpec {
        let mut spec = self.place.agent(name, "");
        spec.network = Network::Host;
        spec
    }

    fn calls(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.dir.join("calls")).unwrap_or_default();
        fs::remove_file(self.dir.join("calls")).ok();
        let verbs = calls.lines().filter(|line| !line.contains(" status "));
        let shorten = |line: &str| line.replace(&self.dir.display().to_string(), "DIR");
        verbs.map(shorten).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let runtime = self.runtime();
        for instance in runtime.list().unwrap_or_default() {
            drop(runtime.stop(&instance.name, Duration::ZERO));
        }
    }
}

#[test]
fn n3_a_container_is_made_started_adopted_updated_and_stopped() {
    let world = World::new();
    let mut spec = world.agent("ada");
    spec.generation = 3;
    let first = world.runtime().start(&spec).unwrap();
    assert_eq!(first.generation, 3);
    assert_eq!(
        world.calls(),
        [
            "nixos-container create h-ada --flake DIR/applied/ada#default",
            "nixos-container start h-ada"
        ]
    );
    let conf = fs::read_to_string(world.dir.join("conf/h-ada.conf")).unwrap();
    assert!(conf.starts_with("SYSTEM_PATH=x\n"), "{conf}");

    // Another daemon finds it, and starts no second one.
    let runtime = world.runtime();
    spec.generation = 4;
    assert_eq!(runtime.start(&spec).unwrap(), first);
    assert_eq!(runtime.list().unwrap(), [first]);
    assert_eq!(world.calls(), Vec::<String>::new());
    let watched = runtime.watch(&spec.name).unwrap().unwrap();
    runtime.stop(&spec.name, PATIENCE).unwrap();
    await_end(watched);
    assert_eq!(world.calls(), ["nixos-container stop h-ada"]);
    assert_eq!(runtime.list().unwrap(), []);
    let ended = runtime.inspect(&spec.name).unwrap().unwrap();
    assert_eq!(ended.state, State::Ended(Exit::Code(0)));
    runtime.stop(&spec.name, PATIENCE).unwrap();
    assert_eq!(world.calls(), Vec::<String>::new(), "idempotent");

    // The next start makes everything anew (C7).
    fs::write(world.dir.join("conf/h-ada.conf"), "HOST_ADDRESS=10.0.0.1\n").unwrap();
    assert_eq!(runtime.start(&spec).unwrap().generation, 4);
    assert_eq!(
        world.calls(),
        [
            "nixos-container update h-ada --flake DIR/applied/ada#default",
            "nixos-container start h-ada"
        ]
    );
    assert_eq!(
        runtime.output(&spec.name, 20).unwrap(),
        b"second\n",
        "whole lines"
    );
    runtime.stop(&spec.name, Duration::ZERO).unwrap();
    assert_eq!(world.calls(), ["nixos-container terminate h-ada"]);
}

#[test]
fn n3_one_that_runs_unasked_is_stopped_before_it_is_changed() {
    let world = World::new();
    let spec = world.agent("ada");
    let runtime = world.runtime();
    runtime.start(&spec).unwrap();
    // Its record is lost, as after an older build.
    fs::remove_file(world.place.file("ada", "nixos.json")).unwrap();
    world.calls();
    runtime.start(&spec).unwrap();
    assert_eq!(world.calls()[0], "nixos-container stop h-ada");
}

#[test]
fn n3_what_cannot_be_is_said_and_leaves_nothing() {
    let world = World::new();
    let runtime = world.runtime();
    let mut spec = world.agent("ada");
    spec.dirs.run = Path::new("/nonexistent dir").into();
    assert!(matches!(
        runtime.start(&spec),
        Err(RuntimeError::Mount { .. })
    ));
    assert_eq!(runtime.list().unwrap(), []);
    fs::write(
        world.dir.join("nixos-container"),
        "#!/bin/sh\necho broken >&2; exit 3\n",
    )
    .unwrap();
    let spec = world.agent("bob");
    let error = runtime.start(&spec).unwrap_err();
    let text = hive_runtime::with_causes(&error);
    assert!(text.contains("broken"), "{text}");
}
