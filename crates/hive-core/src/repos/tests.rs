use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use super::*;

/// A hive's repositories, with a proposed one of `ada` that begins as the host makes it.
struct Stage {
    dir: tempfile::TempDir,
    repos: Repos,
    name: AgentName,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let repos = Repos::new(dir.path());
        repos.prepare().unwrap();
        let name: AgentName = "ada".parse().unwrap();
        let first = Tree::of("agent.toml", "model = \"haiku\"\n");
        repos.first_proposal(&name, &first).unwrap();
        Self { dir, repos, name }
    }

    fn config(&self) -> PathBuf {
        self.repos.proposed().join("ada/config")
    }

    fn git(&self, args: &[&str]) -> String {
        git(&self.config(), args)
    }

    fn commit_all(&self) -> String {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn import(&self, commit_ref: &str) -> Result<Imported, NotImported> {
        self.repos.import(&self.name, commit_ref)
    }

    fn refusal(&self, commit_ref: &str) -> String {
        match self.import(commit_ref) {
            Ok(_) => panic!("{commit_ref} was taken"),
            Err(error) => error.to_string(),
        }
    }
}

fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir.parent().unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs(["AUTHOR", "COMMITTER"].into_iter().flat_map(|who| {
            [
                (format!("GIT_{who}_NAME"), "ruth"),
                (format!("GIT_{who}_EMAIL"), "ruth@hive.invalid"),
            ]
        }))
        .output()
        .expect("git runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        text(&output.stderr)
    );
    text(&output.stdout)
}

#[test]
fn c6_the_first_commit_is_the_hosts_and_git_finds_it_clean() {
    let stage = Stage::new();
    assert_eq!(stage.git(&["status", "--porcelain"]), "");
    assert_eq!(
        stage.git(&["log", "--format=%an %s"]),
        "hyperhive first configuration"
    );
    assert_eq!(stage.git(&["rev-parse", "--abbrev-ref", "HEAD"]), "main");
    stage.git(&["fsck", "--strict"]);
    // A second time changes nothing of what is there.
    fs::write(stage.config().join("agent.toml"), "model = \"opus\"\n").unwrap();
    let again = Tree::of("agent.toml", "");
    stage.repos.first_proposal(&stage.name, &again).unwrap();
    assert_eq!(stage.git(&["status", "--porcelain"]), "M agent.toml");
    assert!(stage.repos.has_proposal(&stage.name));
}

#[test]
fn c6_what_lies_in_the_way_of_a_first_commit_is_not_written_through() {
    let stage = Stage::new();
    let outside = stage.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, stage.repos.proposed().join("bob")).unwrap();
    let bob: AgentName = "bob".parse().unwrap();
    let error = stage
        .repos
        .first_proposal(&bob, &Tree::of("agent.toml", ""));
    assert!(error.unwrap_err().to_string().contains("in the way"));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

#[test]
fn c6_a_commit_is_taken_whole_by_hash_branch_and_head() {
    let stage = Stage::new();
    fs::create_dir_all(stage.config().join("games/x")).unwrap();
    fs::write(stage.config().join("games/x/index.html"), "<p>").unwrap();
    fs::write(stage.config().join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(stage.config().join("run.sh"), Permissions::from_mode(0o755)).unwrap();
    let commit = stage.commit_all();
    let by_hash = stage.import(&commit).unwrap();
    assert_eq!(by_hash.commit, commit);
    let paths: Vec<_> = by_hash.tree.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["agent.toml", "games/x/index.html", "run.sh"]);
    assert_eq!(by_hash.tree.get("run.sh").unwrap().mode, Mode::Executable);
    for commit_ref in ["main", "HEAD", &commit.to_uppercase()] {
        assert_eq!(stage.import(commit_ref).unwrap(), by_hash, "{commit_ref}");
    }
    // What a branch leads to is a question of the moment.
    fs::write(stage.config().join("agent.toml"), "model = \"opus\"\n").unwrap();
    let second = stage.commit_all();
    assert_eq!(stage.import("main").unwrap().commit, second);
    assert_eq!(stage.import(&commit).unwrap(), by_hash);
    // Packed, with packed branches, it is the same.
    stage.git(&["gc", "-q", "--aggressive", "--prune=now"]);
    stage.git(&["pack-refs", "--all"]);
    let loose = stage
        .config()
        .join(format!(".git/objects/{}", &commit[..2]));
    assert!(!loose.exists(), "everything is in a pack");
    assert_eq!(stage.import(&commit).unwrap(), by_hash);
    assert_eq!(stage.import("main").unwrap().commit, second);
}

#[test]
fn c6_what_is_not_there_is_said() {
    let stage = Stage::new();
    let other = Stage::new();
    fs::write(other.config().join("agent.toml"), "model = \"x\"\n").unwrap();
    let elsewhere = other.commit_all();
    let error = stage.refusal(&elsewhere);
    assert!(
        error.contains("is not in the proposed repository"),
        "{error}"
    );
    assert!(stage.refusal("feature").contains("no branch `feature`"));
    for commit_ref in [
        "",
        "abc123",
        "../../../etc/passwd",
        "-x",
        "main~1",
        "a b",
        "refs/../../x",
        "HEAD@{0}",
        "\u{1b}[2J",
    ] {
        let error = stage.refusal(commit_ref);
        assert!(
            error.contains("40 digits") || error.contains("no branch"),
            "{commit_ref:?}: {error}"
        );
        assert!(!error.contains('\u{1b}'));
    }
    let nobody: AgentName = "nobody".parse().unwrap();
    let error = stage.repos.import(&nobody, "main").unwrap_err().to_string();
    assert!(error.contains("no proposed repository"), "{error}");
    // A tree or a file is no commit.
    let tree = stage.git(&["rev-parse", "HEAD^{tree}"]);
    assert!(stage.refusal(&tree).contains("is a tree"));
}

#[test]
fn c6_nothing_of_the_repository_runs_or_leads_elsewhere() {
    let stage = Stage::new();
    let config = stage.config();
    let witness = stage.dir.path().join("witness");
    let script = config.join("evil.sh");
    fs::write(&script, format!("#!/bin/sh\ntouch {}\n", witness.display())).unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    fs::write(config.join(".gitattributes"), "* filter=evil\n").unwrap();
    let commit = stage.commit_all();
    let evil = script.display();
    let section = format!(
        "\n[core]\n\tfsmonitor = {evil}\n\thooksPath = {0}\n\tsshCommand = {evil}\n\
         \tworktree = /etc\n[filter \"evil\"]\n\tsmudge = {evil}\n\tclean = {evil}\n\
         [include]\n\tpath = /etc/passwd\n[diff]\n\texternal = {evil}\n",
        config.display()
    );
    let path = config.join(".git/config");
    let old = fs::read_to_string(&path).unwrap();
    fs::write(&path, old + &section).unwrap();
    let hooks = config.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in [
        "post-checkout",
        "pre-commit",
        "reference-transaction",
        "post-index-change",
    ] {
        fs::copy(&script, hooks.join(hook)).unwrap();
    }
    let taken = stage.import(&commit).unwrap();
    assert!(taken.tree.get(".gitattributes").is_some());
    stage
        .repos
        .apply(&stage.name, &taken.tree, "approval 1")
        .unwrap();
    assert!(!witness.exists(), "something of the repository was run");
}

#[test]
fn c6_links_submodules_and_alternates_are_refused() {
    let stage = Stage::new();
    let config = stage.config();
    fs::remove_file(config.join("agent.toml")).unwrap();
    symlink("/etc/passwd", config.join("agent.toml")).unwrap();
    let commit = stage.commit_all();
    assert!(
        stage
            .refusal(&commit)
            .contains("`agent.toml` is a symbolic link")
    );

    let stage = Stage::new();
    let head = stage.git(&["rev-parse", "HEAD"]);
    let entry = format!("160000,{head},sub");
    stage.git(&["update-index", "--add", "--cacheinfo", &entry]);
    stage.git(&["commit", "-q", "-m", "submodule"]);
    assert!(stage.refusal("main").contains("`sub` is a submodule"));

    let stage = Stage::new();
    let head = stage.git(&["rev-parse", "HEAD"]);
    let info = stage.config().join(".git/objects/info");
    fs::create_dir_all(&info).unwrap();
    fs::write(info.join("alternates"), "/somewhere/else\n").unwrap();
    assert!(stage.refusal(&head).contains("borrows objects"));

    // The repository itself somewhere else, by a link or by a file that says so.
    for plant in [
        (|git: &Path, away: &Path| symlink(away, git).unwrap()) as fn(&Path, &Path),
        |git, away| fs::write(git, format!("gitdir: {}\n", away.display())).unwrap(),
    ] {
        let stage = Stage::new();
        let (git, away) = (stage.config().join(".git"), stage.dir.path().join("away"));
        fs::rename(&git, &away).unwrap();
        plant(&git, &away);
        assert!(stage.refusal("main").contains("no plain repository"));
    }

    // Single objects and branches behind links, and queues that nobody writes to.
    let stage = Stage::new();
    let head = stage.git(&["rev-parse", "HEAD"]);
    let object = stage
        .config()
        .join(format!(".git/objects/{}/{}", &head[..2], &head[2..]));
    let away = stage.dir.path().join("object");
    fs::rename(&object, &away).unwrap();
    symlink(&away, &object).unwrap();
    assert!(stage.refusal(&head).contains("a link is on the way"));
    let branch = stage.config().join(".git/refs/heads/main");
    fs::remove_file(&branch).unwrap();
    symlink("/etc/passwd", &branch).unwrap();
    assert!(stage.refusal("main").contains("a link is on the way"));
    fs::remove_file(&branch).unwrap();
    let made = Command::new("mkfifo").arg(&branch).status().unwrap();
    assert!(made.success());
    assert!(stage.refusal("main").contains("no plain file"));
}

#[test]
fn c6_large_and_many_files_are_refused_without_reading_them() {
    let stage = Stage::new();
    let big = fs::File::create(stage.config().join("big.bin")).unwrap();
    // Many bytes of nothing are a small object on disk.
    big.set_len(64 << 20).unwrap();
    stage.git(&["-c", "core.compression=9", "add", "-A"]);
    stage.git(&["commit", "-q", "-m", "big"]);
    let error = stage.refusal("main");
    assert!(error.contains("`big.bin` has 67108864 bytes"), "{error}");
    let id = stage.git(&["rev-parse", "HEAD:big.bin"]);
    let object = stage
        .config()
        .join(format!(".git/objects/{}/{}", &id[..2], &id[2..]));
    fs::remove_file(&object).unwrap();
    fs::File::create(&object).unwrap().set_len(1 << 30).unwrap();
    let error = stage.refusal("main");
    assert!(error.contains("`big.bin` is larger than 4 MiB"), "{error}");

    let stage = Stage::new();
    // A hundred thousand names for one file: a tree object and nothing else.
    let blob = stage.git(&["hash-object", "-w", "agent.toml"]);
    let listing: String = (0..100_000)
        .map(|n| format!("100644 blob {blob}\tf{n:06}\n"))
        .collect();
    let list = stage.dir.path().join("listing");
    fs::write(&list, listing).unwrap();
    let script = format!("git mktree < {}", list.display());
    let made = Command::new("sh")
        .args(["-c", &script])
        .current_dir(stage.config())
        .output()
        .unwrap();
    let tree = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    let commit = stage.git(&["commit-tree", &tree, "-m", "many"]);
    let error = stage.refusal(&commit);
    assert!(error.contains("the top directory has"), "{error}");

    let stage = Stage::new();
    for n in 0..501 {
        fs::write(stage.config().join(format!("f{n}")), "x").unwrap();
    }
    stage.commit_all();
    assert!(stage.refusal("main").contains("more than 500 files"));
}

#[test]
fn c6_an_object_that_lies_about_its_name_or_size_is_refused() {
    let stage = Stage::new();
    fs::write(stage.config().join("other"), "other content\n").unwrap();
    let commit = stage.commit_all();
    let path = |id: &str| {
        stage
            .config()
            .join(format!(".git/objects/{}/{}", &id[..2], &id[2..]))
    };
    let (one, two) = (
        stage.git(&["rev-parse", "HEAD:agent.toml"]),
        stage.git(&["rev-parse", "HEAD:other"]),
    );
    fs::remove_file(path(&one)).unwrap();
    fs::copy(path(&two), path(&one)).unwrap();
    let error = stage.refusal(&commit);
    assert!(
        error.contains("`agent.toml`") && error.contains("damaged"),
        "{error}"
    );
    fs::remove_file(path(&one)).unwrap();
    fs::write(path(&one), b"not zlib at all").unwrap();
    assert!(stage.refusal(&commit).contains("damaged"));
}

#[test]
fn c6_names_that_mean_something_are_refused() {
    let stage = Stage::new();
    let blob = stage.git(&["hash-object", "-w", "agent.toml"]);
    for name in [".git", ".GIT", "..", ".", "a\u{1b}b", "-rf", ".gitmodules"] {
        // Git itself refuses to make such a tree: write it by hand.
        let objects =
            gix_odb::loose::Store::at(stage.config().join(".git/objects"), gix_hash::Kind::Sha1);
        let mut tree = format!("100644 {name}\0").into_bytes();
        let id = gix_hash::ObjectId::from_hex(blob.as_bytes()).unwrap();
        tree.extend_from_slice(id.as_slice());
        use gix_object::Write as _;
        let tree = objects.write_buf(gix_object::Kind::Tree, &tree).unwrap();
        let commit = format!("tree {tree}\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n");
        let commit = objects
            .write_buf(gix_object::Kind::Commit, commit.as_bytes())
            .unwrap();
        let error = stage.refusal(&commit.to_string());
        assert!(error.contains("name"), "{name:?}: {error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
}

#[test]
fn c6_what_is_applied_has_a_history_that_git_reads() {
    let stage = Stage::new();
    assert_eq!(stage.repos.applied(&stage.name).unwrap(), None);
    let mut second = Tree::of("agent.toml", "model = \"opus\"\n");
    let file = |content: &str| File {
        mode: Mode::Plain,
        content: content.into(),
    };
    for path in ["a/b/c", "a-b", "a/d", "a.b"] {
        second.add(path.to_owned(), file(path)).unwrap();
    }
    let first = Tree::of("agent.toml", "");
    let one = stage.repos.apply(&stage.name, &first, "first").unwrap();
    let two = stage
        .repos
        .apply(&stage.name, &second, "approval 2")
        .unwrap();
    assert_ne!(one, two);
    // Carried out again after a crash, it is the same commit.
    assert_eq!(
        stage
            .repos
            .apply(&stage.name, &second, "approval 2")
            .unwrap(),
        two
    );
    let applied = stage.repos.applied(&stage.name).unwrap().unwrap();
    assert_eq!(applied.commit, two);
    assert_eq!(applied.message, "approval 2");
    assert_eq!(applied.tree, second);
    let files = stage.repos.files(&stage.name);
    assert_eq!(fs::read_to_string(files.join("a/b/c")).unwrap(), "a/b/c");
    let bare = stage.repos.history(&stage.name);
    git(&bare, &["fsck", "--strict"]);
    assert_eq!(git(&bare, &["log", "--format=%s"]), "approval 2\nfirst");
    assert_eq!(git(&bare, &["show", "applied:a/b/c"]), "a/b/c");
    // Files that are gone are gone, also from where they lie.
    stage
        .repos
        .apply(&stage.name, &first, "approval 3")
        .unwrap();
    assert!(!files.join("a").exists());
}

#[test]
fn c5_a_request_is_kept_under_its_hash_until_it_is_settled() {
    let stage = Stage::new();
    let tree = Tree::of("agent.toml", "model = \"opus\"\n");
    let hash = tree.hash(&["apply", "ada"]);
    stage.repos.keep_request(&hash, &tree).unwrap();
    stage.repos.keep_request(&hash, &tree).unwrap();
    assert_eq!(stage.repos.requested(&hash).unwrap(), tree);
    assert_eq!(stage.repos.kept_requests(), std::slice::from_ref(&hash));
    stage.repos.drop_request(&hash);
    assert!(stage.repos.requested(&hash).is_err());
    assert!(stage.repos.kept_requests().is_empty());
}

#[test]
fn c6_what_a_crash_left_half_done_is_removed_at_the_next_start() {
    let stage = Stage::new();
    let tree = Tree::of("agent.toml", "");
    let hash = tree.hash(&["apply", "ada"]);
    stage.repos.keep_request(&hash, &tree).unwrap();
    let requests = stage.dir.path().join("requests");
    for left in ["import-abc/objects/pack", "request-x/repo", "first-1"] {
        fs::create_dir_all(requests.join(left)).unwrap();
    }
    stage.repos.prepare().unwrap();
    assert_eq!(fs::read_dir(&requests).unwrap().count(), 1);
    assert_eq!(stage.repos.requested(&hash).unwrap(), tree);
}

#[test]
fn c6_a_name_of_a_file_and_a_directory_is_refused() {
    let stage = Stage::new();
    use gix_object::Write as _;
    let objects =
        gix_odb::loose::Store::at(stage.config().join(".git/objects"), gix_hash::Kind::Sha1);
    let blob = stage.git(&["hash-object", "-w", "agent.toml"]);
    let blob = gix_hash::ObjectId::from_hex(blob.as_bytes()).unwrap();
    let entry = |mode: &str, name: &str, id: &gix_hash::ObjectId| {
        let mut entry = format!("{mode} {name}\0").into_bytes();
        entry.extend_from_slice(id.as_slice());
        entry
    };
    let write = |kind, bytes: &[u8]| objects.write_buf(kind, bytes).unwrap();
    let inner = write(gix_object::Kind::Tree, &entry("100644", "b", &blob));
    let both = [
        entry("100644", "a", &blob),
        entry("100644", "agent.toml", &blob),
        entry("40000", "a", &inner),
    ]
    .concat();
    let tree = write(gix_object::Kind::Tree, &both);
    let commit = format!("tree {tree}\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n");
    let commit = write(gix_object::Kind::Commit, commit.as_bytes());
    let error = stage.refusal(&commit.to_string());
    assert!(error.contains("a file and a directory at once"), "{error}");
}

#[test]
fn c6_files_that_a_crash_left_behind_are_put_right() {
    let stage = Stage::new();
    let files = stage.repos.files(&stage.name);
    let mut tree = Tree::of("agent.toml", "model = \"opus\"\n");
    let script = File {
        mode: Mode::Executable,
        content: b"#!/bin/sh\n".to_vec(),
    };
    tree.add("bin/run.sh".to_owned(), script).unwrap();
    stage.repos.apply(&stage.name, &tree, "one").unwrap();
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = inode(&files);
    stage.repos.put_right(&stage.name, &tree).unwrap();
    assert_eq!(inode(&files), before, "what is right is left alone");
    let harms: [&dyn Fn(); 5] = [
        &|| fs::rename(&files, files.with_file_name("config.old")).unwrap(),
        &|| fs::write(files.join("agent.toml"), "model = \"haiku\"\n").unwrap(),
        &|| fs::write(files.join("another"), "").unwrap(),
        &|| fs::remove_file(files.join("bin/run.sh")).unwrap(),
        &|| fs::set_permissions(files.join("bin/run.sh"), Permissions::from_mode(0o600)).unwrap(),
    ];
    for harm in harms {
        harm();
        assert!(!tree.is_at(&files));
        stage.repos.put_right(&stage.name, &tree).unwrap();
        assert!(tree.is_at(&files));
    }
}
