use std::{ffi::OsStr, fs, path::Path};

use super::*;
use crate::{
    Mount,
    plan::tests::{agent, system},
};

/// The whole command line, with the hive's directory as `DIR`.
fn line(spec: &AgentSpec, root: &Path) -> Vec<String> {
    let plan = MountPlan::new(spec, &system(), OsStr::new("/usr/bin")).unwrap();
    let args = arguments(spec, &plan);
    let shorten = |arg: String| arg.replace(root.to_str().unwrap(), "DIR");
    args.into_iter().map(shorten).collect()
}

#[test]
fn the_whole_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let mut spec = agent(&root);
    fs::create_dir(root.join("project")).unwrap();
    spec.mounts = vec![Mount {
        source: root.join("project"),
        target: "/work".into(),
        access: Access::ReadOnly,
    }];
    let expected = "\
        --unshare-user --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try \
        --unshare-net --uid 1000 --gid 1000 --hostname ada --die-with-parent --new-session \
        --cap-drop ALL --proc /proc --dev /dev --size 268435456 --tmpfs /dev/shm \
        --ro-bind /tmp/0 /usr --ro-bind /tmp/1 /etc/ssl/certs --symlink usr/bin /bin \
        --symlink /tmp /var/tmp --symlink /run /var/run --ro-bind /tmp/5 /etc/passwd \
        --ro-bind /tmp/6 /etc/group --ro-bind /tmp/7 /etc/hosts --ro-bind /tmp/8 /etc/hostname \
        --ro-bind /tmp/9 /etc/nsswitch.conf --size 64 --tmpfs /tmp --size 16777216 --tmpfs /run \
        --perms 0700 --dir /run/hive-bash --bind /tmp/13 /state --bind /tmp/14 /harness \
        --bind /tmp/15 /home/agent --bind /tmp/16 /home/agent/.claude --ro-bind /tmp/17 /run/hive \
        --ro-bind /tmp/18 DIR/bin/hive --ro-bind /tmp/19 /work \
        --remount-ro /dev --remount-ro / --chdir /state -- DIR/bin/hive serve";
    let found = line(&spec, &root);
    assert_eq!(found.join(" "), expected);
    assert!(!found.iter().any(|arg| arg.contains("sk-secret")));
    spec.network = Network::Host;
    assert!(!line(&spec, &root).iter().any(|arg| arg == "--unshare-net"));
    spec.network = Network::None;
    assert_eq!(line(&spec, &root).join(" "), expected);
}

#[test]
fn what_is_staged_is_what_the_command_line_names() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let spec = agent(&root);
    let plan = MountPlan::new(&spec, &system(), OsStr::new("/usr/bin")).unwrap();
    let staged_places: Vec<String> = mounts(&plan)
        .staged
        .into_iter()
        .map(|(number, _)| staged(number))
        .collect();
    let args = arguments(&spec, &plan);
    let named: Vec<String> = args
        .windows(2)
        .filter(|pair| pair[0].ends_with("bind"))
        .map(|pair| pair[1].clone())
        .collect();
    assert_eq!(named, staged_places);
}
