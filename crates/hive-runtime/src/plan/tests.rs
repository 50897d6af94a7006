use std::{collections::BTreeMap, os::unix::fs::symlink};

use super::*;
use crate::{Command, Limits, Mount, Owner};

/// A host that every test has.
pub(crate) fn system() -> System {
    System {
        bound: vec!["/usr".into(), "/etc/ssl/certs".into()],
        links: vec![("/bin".into(), "usr/bin".into())],
        resolv_conf: Some("/run/resolv.conf".into()),
    }
}

/// An agent with directories below `root`.
pub(crate) fn agent(root: &Path) -> AgentSpec {
    let dir = |name: &str| {
        let dir = root.join("agents/ada").join(name);
        fs::create_dir_all(&dir).unwrap();
        dir
    };
    let hive = root.join("bin/hive");
    fs::create_dir_all(root.join("bin")).unwrap();
    fs::write(&hive, "").unwrap();
    AgentSpec {
        name: "ada".parse().unwrap(),
        generation: 1,
        dirs: AgentDirs {
            state: dir("state"),
            harness: dir("harness"),
            claude: dir("claude"),
            home: dir("home"),
            run: dir("run"),
        },
        command: Command {
            program: hive.clone(),
            args: vec!["serve".into()],
        },
        env: BTreeMap::from([("KEY".into(), "sk-secret".into())]),
        programs: vec![hive, "/usr/bin/env".into()],
        mounts: Vec::new(),
        network: Network::Gateway,
        owner: Owner::Daemon,
        user: User::default(),
        limits: Limits {
            tmp_bytes: 64,
            ..Limits::default()
        },
    }
}

fn plan(spec: &AgentSpec) -> Result<MountPlan, RuntimeError> {
    MountPlan::new(spec, &system(), OsStr::new("/usr/bin"))
}

#[test]
fn an_agent_sees_these_things_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let mut spec = agent(&root);
    fs::create_dir(root.join("project")).unwrap();
    spec.mounts = vec![Mount {
        source: root.join("project"),
        target: "/srv/project".into(),
        access: Access::ReadWrite,
    }];
    let shown = |plan: &MountPlan| -> Vec<String> {
        let lines = plan.entries.iter().map(|entry| match entry {
            Entry::Bind {
                source,
                target,
                access,
            } => format!("{access:?} {} {}", source.display(), target.display()),
            Entry::Link { target, to } => format!("link {} {}", to.display(), target.display()),
            Entry::File { target, .. } => format!("file {}", target.display()),
            Entry::Tmpfs { target, bytes } => format!("tmpfs {bytes} {}", target.display()),
            Entry::Dir { target } => format!("dir {}", target.display()),
        });
        lines
            .map(|line| line.replace(root.to_str().unwrap(), "DIR"))
            .collect()
    };
    let mut expected = vec![
        "ReadOnly /usr /usr",
        "ReadOnly /etc/ssl/certs /etc/ssl/certs",
        "link usr/bin /bin",
        "link /tmp /var/tmp",
        "link /run /var/run",
        "file /etc/passwd",
        "file /etc/group",
        "file /etc/hosts",
        "file /etc/hostname",
        "file /etc/nsswitch.conf",
        "tmpfs 64 /tmp",
        "tmpfs 16777216 /run",
        "dir /run/hive-bash",
        "ReadWrite DIR/agents/ada/state /state",
        "ReadWrite DIR/agents/ada/harness /harness",
        "ReadWrite DIR/agents/ada/home /home/agent",
        "ReadWrite DIR/agents/ada/claude /home/agent/.claude",
        "ReadOnly DIR/agents/ada/run /run/hive",
        "ReadOnly DIR/bin/hive DIR/bin/hive",
        "ReadWrite DIR/project /srv/project",
    ];
    assert_eq!(shown(&plan(&spec).unwrap()), expected);
    spec.network = Network::Host;
    expected.insert(3, "ReadOnly /run/resolv.conf /etc/resolv.conf");
    assert_eq!(
        shown(&plan(&spec).unwrap()),
        expected,
        "only with a network"
    );
}

#[test]
fn a_program_is_looked_for_where_the_agent_would_find_it() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let spec = agent(&root);
    let plan = plan(&spec).unwrap();
    for (inside, on_host) in [
        ("/bin/sh", Some("/usr/bin/sh".into())),
        ("/usr/bin/sh", Some("/usr/bin/sh".into())),
        ("/state/x/y", Some(root.join("agents/ada/state/x/y"))),
        (
            "/home/agent/.claude/x",
            Some(root.join("agents/ada/claude/x")),
        ),
        ("/var/tmp/x", None),
        ("/tmp/x", None),
        ("/etc/passwd", None),
        ("/opt/x", None),
    ] {
        assert_eq!(plan.on_host(Path::new(inside)), on_host, "{inside}");
    }
    plan.check_program(Path::new("/usr/bin/env")).unwrap();
    for bad in ["/nonexistent", "/usr/bin", "/state/plain"] {
        fs::write(spec.dirs.state.join("plain"), "").unwrap();
        let error = plan.check_program(Path::new(bad)).unwrap_err().to_string();
        assert!(error.contains(bad), "{error}");
    }
}

#[test]
fn a_mount_may_not_lead_elsewhere_or_cover_what_is_the_hives() {
    let dir = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(dir.path()).unwrap();
    let real = root.join("real");
    fs::create_dir(&real).unwrap();
    symlink("real", root.join("link")).unwrap();
    let (real, link) = (real.to_str().unwrap(), root.join("link"));
    let link = link.to_str().unwrap();
    for (source, target, expected) in [
        (real, "/work", None),
        (real, "/home/u/project", None),
        (real, real, None),
        (link, "/work", Some("is a link; name")),
        ("/nonexistent", "/work", Some("No such file")),
        ("relative", "/work", Some("absolute")),
        (real, "work", Some("absolute")),
        (real, "/", Some("root directory")),
        ("/", "/work", Some("root directory")),
        (real, "/srv/../etc", Some("`..`")),
        (real, "/a:b", Some("`:`")),
        (real, "/state", Some("/state is the hive's own")),
        (real, "/state/project", Some("/state")),
        (real, "/harness/x", Some("/harness")),
        (real, "/home", Some("/home/agent")),
        (real, "/home/agent/.ssh", Some("/home/agent")),
        (real, "/run/hive", Some("/run")),
        (real, "/etc/sudoers.d", Some("/etc")),
        (real, "/proc", Some("/proc")),
        (real, "/usr/local", Some("/usr")),
        (real, "/bin", Some("/bin")),
        (real, "/tmp/x", Some("/tmp")),
    ] {
        let mut spec = agent(&root);
        spec.mounts = vec![Mount {
            source: source.into(),
            target: target.into(),
            access: Access::ReadOnly,
        }];
        let found = plan(&spec).map_err(|error| error.to_string());
        match expected {
            // The tests' own directory may lie where no mount may be.
            None if target == real && real.starts_with("/tmp") => {}
            None => assert!(found.is_ok(), "{source} {target}: {found:?}"),
            Some(words) => {
                let error = found.unwrap_err();
                assert!(error.contains(words), "{source} {target}: {error}");
            }
        }
    }
}
