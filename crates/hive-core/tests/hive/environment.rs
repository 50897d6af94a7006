//! Directories, ports and files that are not as they should be: a clear word, never silent loss.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::{MetadataExt, PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;
use tempfile::TempDir;

use crate::{
    daemon::{Daemon, refused, refused_as},
    peer::{BINARY, Doors, Peer, cli, code, hive, mail, ok, run},
};

/// A user that owns nothing.
const NOBODY: u32 = 65534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

/// Where a user who is not root has a directory of their own, and a binary that they can run.
struct UsersPlace {
    _dir: TempDir,
    binary: PathBuf,
    root: PathBuf,
}

impl UsersPlace {
    /// Whoever runs the tests is such a user, or can act as one.
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir(&root).unwrap();
        let mut binary = PathBuf::from(BINARY);
        if is_root() {
            fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
            binary = dir.path().join("hive-c0re");
            fs::hard_link(BINARY, &binary)
                .or_else(|_| fs::copy(BINARY, &binary).map(|_| ()))
                .unwrap();
            chown(&root, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Self {
            _dir: dir,
            binary,
            root,
        }
    }

    /// The binary, run by that user.
    fn command(&self) -> Command {
        if !is_root() {
            return Command::new(&self.binary);
        }
        let nobody = NOBODY.to_string();
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", &nobody, "--regid", &nobody])
            .args(["--clear-groups", "--"])
            .arg(&self.binary);
        command
    }
}

/// A directory that belongs to another user than this one; as root, who owns them all, a new one.
fn somebody_elses(new: &TempDir) -> PathBuf {
    if is_root() {
        chown(new.path(), Some(NOBODY), None).unwrap();
        return new.path().to_owned();
    }
    let own = rustix::process::geteuid().as_raw();
    let is_anothers = |dir: &PathBuf| fs::metadata(dir).unwrap().uid() != own;
    ["/usr", "/", "/proc"]
        .map(PathBuf::from)
        .into_iter()
        .find(is_anothers)
        .unwrap()
}

fn names(dir: &Path) -> BTreeSet<OsString> {
    fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect()
}

#[test]
fn a_root_that_belongs_to_somebody_else_is_refused() {
    let new = tempfile::tempdir().unwrap();
    let root = somebody_elses(&new);
    let before = names(&root);
    let said = refused(&root);
    let owner = fs::metadata(&root).unwrap().uid();
    let own = rustix::process::geteuid().as_raw();
    assert_ne!(owner, own);
    for word in [
        &format!("belongs to uid {owner}"),
        &format!("runs as uid {own}"),
        "--root",
    ] {
        assert!(said.stderr.contains(word), "{word}: {}", said.stderr);
    }
    assert_eq!(names(&root), before, "nothing was made there");
}

#[test]
fn a_root_that_everybody_can_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o777)).unwrap();
    let said = refused(dir.path());
    assert!(said.stderr.contains("chmod o-w"), "{}", said.stderr);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        0,
        "nothing was made there"
    );
}

#[test]
fn a_read_only_root_is_refused() {
    let place = UsersPlace::new();
    fs::set_permissions(&place.root, Permissions::from_mode(0o555)).unwrap();
    let said = refused_as(&place.root, &mut place.command());
    assert!(said.stderr.contains("ermission denied"), "{}", said.stderr);
    assert!(
        said.stderr.contains(place.root.to_str().unwrap()),
        "{}",
        said.stderr
    );
}

#[test]
fn c2_the_hive_runs_as_any_user() {
    let place = UsersPlace::new();
    let _daemon = Daemon::start_as(&place.root, &mut place.command());
    let spawned = run(
        place
            .command()
            .arg("--root")
            .arg(&place.root)
            .args(["spawn", "ada", "--runtime", "none"]),
        "",
    );
    assert_eq!(spawned.code, 0, "{}", spawned.stderr);
    let socket = place.root.join("run/agents/ada/mcp.sock");
    ok(Peer::connect(&socket).ask(&json!({"cmd":"status"})));
    assert_ne!(fs::metadata(socket).unwrap().uid(), 0);
}

#[tokio::test]
async fn c2_secrets_and_sockets_are_private() {
    let hive = hive(&["ada"]).await;
    let root = hive.root();
    for dir in ["state", "run", "run/agents", "run/agents/ada"] {
        assert_eq!(mode(root.join(dir)), 0o700, "{dir}");
    }
    for socket in ["run/host.sock", "run/agents/ada/mcp.sock"] {
        assert_eq!(mode(root.join(socket)), 0o600, "{socket}");
    }
    for entry in fs::read_dir(root.join("state")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            assert_eq!(mode(&path) & 0o022, 0, "{}", path.display());
        }
    }
    assert_eq!(mode(root.join("state/operator-token")), 0o600);
    let token = fs::read_to_string(root.join("state/operator-token")).unwrap();
    assert!(
        token.trim().len() >= 64,
        "{} characters",
        token.trim().len()
    );
}

#[tokio::test]
async fn c2_directories_that_were_opened_up_are_private_again_after_a_start() {
    let mut hive = hive(&["ada"]).await;
    hive.kill().await.unwrap();
    let dirs = ["state", "run", "run/agents", "run/agents/ada"];
    for dir in dirs {
        fs::set_permissions(hive.root().join(dir), Permissions::from_mode(0o755)).unwrap();
    }
    hive.restart().await.unwrap();
    for dir in ["state", "run"] {
        assert_eq!(mode(hive.root().join(dir)), 0o700, "{dir}");
    }
}

#[test]
fn c2_a_deep_root_has_its_sockets_behind_a_short_link() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("d".repeat(90)).join("e".repeat(90));
    let socket = root.join("run/agents/ada/mcp.sock");
    let daemon = Daemon::start(&root);
    let short = fs::read_link(root.join("run")).unwrap();
    assert_eq!(mode(&short), 0o700);
    assert_eq!(
        cli(&root, &["spawn", "ada", "--runtime", "none"], "").code,
        0
    );
    assert_eq!(cli(&root, &["send", "ada", "deep"], "").code, 0);
    ok(Peer::connect(&socket).ask(&json!({"cmd":"status"})));
    drop(daemon);

    let daemon = Daemon::start(&root);
    assert_eq!(
        fs::read_link(root.join("run")).unwrap(),
        short,
        "agents hold on to it"
    );
    let got = Peer::connect(&socket).ask(&json!({"cmd":"recv"}));
    assert_eq!(mail(&got), [("deep", 1)]);
    drop(daemon);

    // As after a reboot that emptied the place.
    fs::remove_dir_all(&short).unwrap();
    let daemon = Daemon::start(&root);
    let other = fs::read_link(root.join("run")).unwrap();
    assert_ne!(other, short);
    ok(Peer::connect(&socket).ask(&json!({"cmd":"status"})));
    drop(daemon);
    fs::remove_dir_all(other).unwrap();
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let dir = tempfile::tempdir().unwrap();
    let said = cli(dir.path(), &["serve", "--port", &port], "");
    assert_eq!(said.code, 1);
    for word in [port.as_str(), "--port", "in use"] {
        assert!(said.stderr.contains(word), "{word}: {}", said.stderr);
    }
}

#[test]
fn c15_a_bad_config_is_refused_with_its_line_and_a_guess() {
    for (config, words) in [
        (
            "[hive]\nname = \"x\"\nrot_agent = \"\"\n",
            &["line 3", "did you mean `root_agent`?"][..],
        ),
        (
            "[dashbord]\nport = 1\n",
            &["line 1", "did you mean `dashboard`?"],
        ),
        (
            "[limits]\ninbox_depth = \"many\"\n",
            &["line 2", "inbox_depth"],
        ),
        (
            "[limits]\ninbox_depth = 0\n",
            &["inbox_depth", "at least 1"],
        ),
        (
            "[limits]\nline_seconds = 0\n",
            &["line_seconds", "at least 1"],
        ),
        (
            "[limits]\nconnections_per_agent = 0\n",
            &["connections_per_agent", "at least 1"],
        ),
        ("this is no toml", &["line 1"]),
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("hive.toml"), config).unwrap();
        let said = refused(dir.path());
        assert!(said.stderr.contains("hive.toml"), "{}", said.stderr);
        for word in words {
            assert!(said.stderr.contains(word), "{word}: {}", said.stderr);
        }
    }
}

#[tokio::test]
async fn c3_a_database_that_vanishes_ends_the_daemon_and_the_next_start() {
    let mut hive = hive(&["ada", "bob"]).await;
    hive.send("ada", "bob", "precious");
    let mut waiting = hive.peer("bob");
    ok(waiting.ask(&json!({"cmd":"recv","turn":"t1"})));
    waiting.park(&json!({"cmd":"recv","turn":"t1"}));
    let database = hive.root().join("state/hive.db");
    let aside = hive.root().join("aside.db");
    fs::rename(&database, &aside).unwrap();

    // It is moved, so what is acknowledged until that is seen is not lost.
    hive.send("ada", "bob", "meanwhile");
    assert_eq!(mail(&waiting.hear()), [("meanwhile", 1)]);
    let status = hive.died().await.unwrap();
    assert_eq!(status.code(), Some(1), "{}", hive.log_tail());
    assert!(
        hive.log_tail().contains("removed or replaced"),
        "{}",
        hive.log_tail()
    );

    let said = refused(hive.root());
    assert!(said.stderr.contains("missing"), "{}", said.stderr);
    assert!(!database.exists(), "never a silent empty hive");
    fs::write(&database, "").unwrap();
    let said = refused(hive.root());
    assert!(said.stderr.contains("empty"), "{}", said.stderr);

    fs::rename(&aside, &database).unwrap();
    hive.restart().await.unwrap();
    let got = hive
        .peer("bob")
        .ask(&json!({"cmd":"recv","turn":"t2","max":9}));
    assert_eq!(
        mail(&got),
        [("precious", 2), ("meanwhile", 2)],
        "put back, everything is there"
    );

    let mut waiting = hive.peer("ada");
    waiting.park(&json!({"cmd":"recv","turn":"t3"}));
    fs::remove_file(&database).unwrap();
    let refused_send = hive
        .peer("bob")
        .ask(&json!({"cmd":"send","to":"ada","body":"into the void"}));
    assert_eq!(code(&refused_send), "storage");
    assert_eq!(code(&waiting.hear()), "storage");
    assert_eq!(hive.died().await.unwrap().code(), Some(1));
}

#[tokio::test]
async fn c2_a_token_that_was_cut_short_is_not_used() {
    let mut hive = hive(&[]).await;
    hive.kill().await.unwrap();
    fs::write(hive.root().join("state/operator-token"), "abc\n").unwrap();
    let said = refused(hive.root());
    assert!(said.stderr.contains("operator-token"), "{}", said.stderr);
}
