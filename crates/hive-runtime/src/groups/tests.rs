use super::*;

/// A directory that looks like a hierarchy of control groups, to us.
fn hierarchy(root: &Path, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let dir = root.join(name);
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("cgroup.procs"), "").unwrap();
    for (file, text) in files {
        fs::write(dir.join(file), text).unwrap();
    }
    dir
}

fn mount(root: &str, point: &Path, kind: &str, options: &str) -> String {
    let point = point.display();
    format!("30 1 0:1 {root} {point} rw,relatime shared:1 - {kind} {kind} rw,{options}\n")
}

fn limits() -> Limits {
    Limits {
        memory_bytes: Some(64 << 20),
        pids: Some(100),
        cpu_percent: Some(150),
        ..Limits::default()
    }
}

fn read(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn the_second_version_bounds_everything_where_it_is_delegated() {
    let dir = tempfile::tempdir().unwrap();
    let own = hierarchy(
        dir.path(),
        "system.slice/hive.service",
        &[
            ("cgroup.controllers", "cpuset cpu io memory pids"),
            // What the kernel would say after our request.
            ("cgroup.subtree_control", "cpu memory pids"),
        ],
    );
    let groups = Groups::find(
        &mount("/", dir.path(), "cgroup2", "nsdelegate"),
        "0::/system.slice/hive.service\n",
    );
    fs::write(own.join("cgroup.subtree_control"), "cpu memory pids").unwrap();
    let groups = Groups {
        unified: groups.unified.map(|one| Unified {
            controllers: hand_on_again(&one.dir),
            ..one
        }),
        ..groups
    };
    let made = groups.make("h-ada", &limits());
    assert_eq!(made.unbounded, Vec::<String>::new());
    assert_eq!(made.dirs, [own.join("h-ada")]);
    assert_eq!(made.entrances(), [own.join("h-ada/cgroup.procs")]);
    for (file, value) in [
        ("memory.max", "67108864"),
        ("memory.oom.group", "1"),
        ("pids.max", "100"),
        ("cpu.max", "150000 100000"),
    ] {
        assert_eq!(read(own.join("h-ada").join(file)), value, "{file}");
    }
}

/// A plain file keeps what was written last, where the kernel would add it up.
fn hand_on_again(dir: &Path) -> Vec<Controller> {
    let handed = read(dir.join("cgroup.subtree_control"));
    let all = Controller::ALL.into_iter();
    all.filter(|one| handed.contains(one.name())).collect()
}

#[test]
fn the_first_version_bounds_what_the_second_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let unified = hierarchy(
        dir.path(),
        "unified",
        &[
            ("cgroup.controllers", "hugetlb"),
            ("cgroup.subtree_control", ""),
        ],
    );
    let memory = hierarchy(dir.path(), "memory/in/here", &[]);
    let cpu = hierarchy(dir.path(), "cpu,cpuacct", &[]);
    let mounts = [
        mount("/", &unified, "cgroup2", "x"),
        mount("/", &dir.path().join("memory"), "cgroup", "memory"),
        mount("/docker/1", &cpu, "cgroup", "cpu,cpuacct"),
        mount("/", &dir.path().join("gone"), "cgroup", "pids"),
        "nonsense\n".to_owned(),
    ]
    .concat();
    let own = "3:memory:/in/here\n2:cpu,cpuacct:/docker/1\n1:pids:/\n0::/\n";
    let groups = Groups::find(&mounts, own);
    let made = groups.make("h-ada", &limits());
    assert_eq!(
        made.dirs,
        [
            unified.join("h-ada"),
            memory.join("h-ada"),
            cpu.join("h-ada")
        ]
    );
    assert_eq!(read(memory.join("h-ada/memory.limit_in_bytes")), "67108864");
    assert_eq!(read(cpu.join("h-ada/cpu.cfs_quota_us")), "150000");
    assert_eq!(made.unbounded.len(), 1, "{:?}", made.unbounded);
    assert!(made.unbounded[0].starts_with("processes: "), "it is said");
    let again = groups.make("h-ada", &limits());
    assert_eq!(again, made, "what is there is used again");
}

#[test]
fn without_groups_every_limit_is_said_to_be_none() {
    let groups = Groups::find("", "0::/user.slice\n");
    assert_eq!(groups, Groups::default());
    let made = groups.make("h-ada", &limits());
    assert_eq!(made.dirs, Vec::<PathBuf>::new());
    assert_eq!(made.unbounded.len(), 3);
    assert_eq!(
        groups.make(
            "h-ada",
            &Limits {
                pids: None,
                ..Limits::default()
            }
        ),
        RunGroups::default()
    );
}

#[test]
fn a_group_of_this_host_is_made_and_removed() {
    let groups = Groups::of_host();
    let name = format!("hive-test-{}", std::process::id());
    let made = groups.make(&name, &limits());
    if made.dirs.is_empty() {
        eprintln!("SKIPPED: this user may make no control groups here");
        return;
    }
    assert!(made.dirs.iter().all(|dir| dir.is_dir()));
    remove(&made.dirs).unwrap();
    assert!(!made.dirs.iter().any(|dir| dir.exists()));
    remove(&made.dirs).unwrap();
}
