//! Nothing of an agent changes without approval: requests, decisions, and what comes of them.

use std::{fs, path::PathBuf, process::Command};

use serde_json::{Value, json};

use crate::{
    crew::{Crew, WAITS},
    peer::{Doors, Peer, code, eventually, ok},
};

/// A hive with a root agent, and `ada`.
pub(crate) struct Stage {
    pub(crate) crew: Crew,
    /// What keeps harnesses connected.
    polls: Vec<Peer>,
}

impl Stage {
    pub(crate) async fn new(config: &str) -> Self {
        let crew = Crew::led_by("ruth", config).await;
        let shows = format!("env | sort > env; {WAITS}");
        crew.script("ada", &shows);
        crew.spawn("ada");
        let mut stage = Self {
            crew,
            polls: Vec::new(),
        };
        stage.connect("ada");
        stage
    }

    /// Stands in for an agent's harness that asks for work.
    pub(crate) fn connect(&mut self, agent: &str) {
        let mut poll = self.crew.hive.peer(agent);
        poll.say(&json!({"cmd":"control","wait_seconds":180,"hello":true,"id":1}));
        let status = poll.ask(&json!({"cmd":"status","id":2}));
        assert_eq!(status["id"], 2);
        self.polls.push(poll);
    }

    pub(crate) fn disconnect(&mut self) {
        self.polls.clear();
    }

    pub(crate) fn ruth(&self, request: &Value) -> Value {
        self.crew.hive.peer("ruth").ask(request)
    }

    pub(crate) fn config(&self, agent: &str) -> PathBuf {
        let proposed = self.crew.hive.root().join("state/proposed");
        proposed.join(agent).join("config")
    }

    /// Commits a new `agent.toml` as the root agent would; the commit.
    pub(crate) fn commit(&self, agent: &str, text: &str) -> String {
        fs::write(self.config(agent).join("agent.toml"), text).unwrap();
        self.git(agent, &["add", "-A"]);
        self.git(agent, &["commit", "-q", "-m", "change"]);
        self.git(agent, &["rev-parse", "HEAD"])
    }

    fn git(&self, agent: &str, args: &[&str]) -> String {
        let output = Command::new("git")
            .args(["-c", "user.name=ruth", "-c", "user.email=ruth@hive.invalid"])
            .args(args)
            .current_dir(self.config(agent))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn request(&self, agent: &str, commit_ref: &str) -> Value {
        self.ruth(&json!({"cmd":"request_apply_commit","agent":agent,"commit_ref":commit_ref}))
    }

    pub(crate) fn pending(&self) -> Vec<Value> {
        let list = self.crew.hive.cli_json(&["pending"]);
        list["approvals"].as_array().unwrap().clone()
    }

    pub(crate) fn approval(&self, id: &str) -> Value {
        let list = self.crew.hive.cli_json(&["pending", id]);
        list["approvals"][0].clone()
    }

    /// The helper events that the root agent was sent and has not seen yet.
    pub(crate) fn news(&self) -> Vec<Value> {
        let request = json!({"cmd":"recv","max":32,"wait_seconds":0});
        let received = ok(self.ruth(&request));
        let messages = received["messages"].as_array().unwrap().iter();
        messages
            .filter(|message| message["from"] == "system")
            .filter_map(|message| serde_json::from_str(message["body"].as_str()?).ok())
            .collect()
    }

    pub(crate) fn applied(&self, agent: &str) -> String {
        let applied = self.crew.hive.root().join("state/applied");
        fs::read_to_string(applied.join(agent).join("config/agent.toml")).unwrap()
    }

    /// What the applied repository's history says, newest first.
    fn history(&self, agent: &str) -> Vec<String> {
        let applied = self.crew.hive.root().join("state/applied");
        let output = Command::new("git")
            .args(["log", "--format=%s"])
            .current_dir(applied.join(agent).join("repo.git"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn env_has(&self, agent: &str, line: &str) {
        let file = self.crew.file(agent, "env");
        eventually(line, || {
            fs::read_to_string(&file).is_ok_and(|env| env.lines().any(|found| found == line))
        });
    }
}

pub(crate) fn id(requested: &Value) -> String {
    ok(requested.clone())["approval_id"]
        .as_i64()
        .unwrap()
        .to_string()
}

fn message(reply: &Value) -> &str {
    reply["error"]["message"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn c8_the_root_agent_is_there_from_the_first_start_and_not_made_twice() {
    let mut crew = Crew::led_by("ruth", "").await;
    crew.script("ruth", &format!("env > env; {WAITS}"));
    crew.hive.cli_json(&["restart", "ruth"]);
    let ruth = crew.agent("ruth");
    assert_eq!(ruth["parent"], Value::Null);
    let env = crew.file("ruth", "env");
    eventually("it runs", || {
        fs::read_to_string(&env).is_ok_and(|env| env.contains("HIVE_ROLE=manager"))
    });
    let agents = crew.hive.root().join("state/proposed");
    let seen = fs::read_to_string(&env).unwrap();
    assert!(
        seen.contains(&format!("HIVE_AGENTS_DIR={}\n", agents.display())),
        "{seen}"
    );
    assert!(agents.join("ruth/config/agent.toml").is_file());
    crew.hive.cli(&["destroy", "ruth", "--yes"]);
    crew.hive.restart().await.unwrap();
    assert_eq!(crew.agent("ruth"), Value::Null, "the operator removed it");
}

#[tokio::test]
async fn c5_m11_a_new_agent_is_asked_for_seen_and_approved() {
    let mut stage = Stage::new("").await;
    let requested = stage.ruth(&json!({
        "cmd":"request_spawn","name":"bob","config":"model = \"opus\"\ntool_groups = [\"lifecycle\"]\n",
        "reason":"runs the tests",
    }));
    let id = id(&requested);
    let again = stage.ruth(&json!({
        "cmd":"request_spawn","name":"bob","config":"model = \"opus\"\ntool_groups = [\"lifecycle\"]\n",
    }));
    assert_eq!(
        again["approval_id"], requested["approval_id"],
        "asked for once"
    );
    let waiting = stage.pending();
    assert_eq!(waiting.len(), 1);
    let row = &waiting[0];
    assert_eq!(
        (&row["kind"], &row["agent"], &row["requested_by"]),
        (&json!("spawn"), &json!("bob"), &json!("ruth"))
    );
    assert_eq!(row["hash"], requested["hash"]);
    let diff = row["diff"].as_str().unwrap();
    assert!(diff.contains("+model = \"opus\"\n"), "{diff}");
    assert!(diff.contains("asks for tool groups: lifecycle"), "{diff}");
    assert_eq!(
        stage.crew.agent("bob"),
        Value::Null,
        "nothing has happened yet"
    );

    let stale = stage.crew.hive.cli(&["approve", &id, "--hash", "0000"]);
    assert_eq!(stale.code, 6, "{}", stale.stderr);
    let hash = row["hash"].as_str().unwrap().to_owned();
    let hive = stage.crew.hive.root().to_owned();
    let approve = std::thread::spawn({
        let id = id.clone();
        move || crate::peer::cli(&hive, &["--json", "approve", &id, "--hash", &hash], "")
    });
    eventually("bob has a socket", || {
        stage.crew.agent("bob") != Value::Null
    });
    stage.connect("bob");
    let approved = approve.join().unwrap();
    assert_eq!(approved.code, 0, "{}", approved.stderr);
    let bob = stage.crew.agent("bob");
    assert_eq!(
        (&bob["model"], &bob["parent"]),
        (&json!("opus"), &json!("ruth"))
    );
    let news = stage.news();
    let spawned = news
        .iter()
        .find(|event| event["event"] == "spawned" && event["agent"] == "bob");
    assert_eq!(spawned.unwrap()["ok"], true);
    let resolved = news
        .iter()
        .find(|event| event["event"] == "approval_resolved")
        .unwrap();
    assert_eq!(resolved["status"], "approved");
    for verb in ["approve", "deny"] {
        let twice = stage.crew.hive.cli(&[verb, &id]);
        assert_eq!(twice.code, 6, "{}", twice.stderr);
        assert!(twice.stderr.contains("decided before"), "{}", twice.stderr);
    }
    assert!(stage.pending().is_empty());
    let said = stage.crew.hive.cli(&["pending"]);
    assert_eq!((said.code, said.stdout.as_str()), (0, ""));
}

#[tokio::test]
async fn c6_a_commit_is_pinned_shown_applied_and_the_agent_runs_with_it() {
    let stage = Stage::new("").await;
    stage.env_has("ada", "HIVE_DEFAULT_MODEL=haiku");
    let commit = stage.commit("ada", "model = \"opus\"\n[env]\nRUST_LOG = \"debug\"\n");
    let requested = stage.request("ada", "main");
    let id = id(&requested);
    assert_eq!(requested["commit"], commit.as_str());
    // The branch goes on; the request does not.
    stage.commit("ada", "model = \"evil\"\n");
    let row = &stage.pending()[0];
    let diff = row["diff"].as_str().unwrap();
    assert!(
        diff.contains("+model = \"opus\"\n") && !diff.contains("evil"),
        "{diff}"
    );
    assert_eq!(row["commit"], commit.as_str());
    let approved = stage
        .crew
        .hive
        .cli_json(&["approve", &id, "--note", "fine"]);
    assert_eq!(
        (&approved["state"], &approved["note"]),
        (&json!("approved"), &json!("fine"))
    );
    assert!(stage.applied("ada").contains("opus"));
    stage.env_has("ada", "HIVE_DEFAULT_MODEL=opus");
    stage.env_has("ada", "RUST_LOG=debug");
    assert_eq!(stage.crew.agent("ada")["model"], "opus");
    assert_eq!(
        stage.history("ada"),
        [
            format!("approval {id}: commit {commit} of the proposed repository"),
            "spawned by the operator".to_owned()
        ]
    );
    let news = stage.news();
    let rebuilt = news
        .iter()
        .find(|event| event["event"] == "rebuilt")
        .unwrap();
    assert_eq!(
        (&rebuilt["agent"], &rebuilt["ok"]),
        (&json!("ada"), &json!(true))
    );
    // What is applied already is no change.
    let nothing = stage.request("ada", &commit);
    assert_eq!(code(&nothing), "conflict");
    assert!(message(&nothing).contains("changes nothing"), "{nothing}");
}

#[tokio::test]
async fn c5_a_change_that_breaks_the_agent_is_rolled_back() {
    let mut stage = Stage::new("").await;
    stage.commit("ada", "model = \"opus\"\n");
    let first = id(&stage.request("ada", "main"));
    assert_eq!(stage.crew.hive.cli(&["approve", &first]).code, 0);
    stage.news();
    stage.disconnect();
    stage.commit("ada", "engine = \"/no/such/engine\"\n");
    let second = id(&stage.request("ada", "main"));
    let hive = stage.crew.hive.root().to_owned();
    let approve = std::thread::spawn({
        let id = second.clone();
        move || crate::peer::cli(&hive, &["--json", "approve", &id], "")
    });
    // Its harness is only there with the configuration that works.
    let applied = stage
        .crew
        .hive
        .root()
        .join("state/applied/ada/config/agent.toml");
    eventually("the new one is applied", || {
        fs::read_to_string(&applied).is_ok_and(|text| text.contains("/no/such/engine"))
            || !stage.history("ada")[0].starts_with("approval 1")
    });
    eventually("it is rolled back", || {
        fs::read_to_string(&applied).is_ok_and(|text| text.contains("opus"))
    });
    stage.connect("ada");
    let said = approve.join().unwrap();
    assert_eq!(said.code, 1, "{}", said.stderr);
    let settled = stage.approval(&second);
    assert_eq!(settled["state"], "failed");
    let note = settled["note"].as_str().unwrap();
    for words in ["/no/such/engine", "rolled back to", "it runs on it"] {
        assert!(note.contains(words), "{words}: {note}");
    }
    stage.env_has("ada", "HIVE_DEFAULT_MODEL=opus");
    assert_eq!(stage.crew.agent("ada")["model"], "opus");
    let history = stage.history("ada");
    assert!(
        history[0].starts_with(&format!("rolled back approval {second}")),
        "{history:?}"
    );
    let news = stage.news();
    let rebuilt: Vec<_> = news
        .iter()
        .filter(|event| event["event"] == "rebuilt")
        .map(|event| event["ok"].clone())
        .collect();
    assert_eq!(rebuilt, [json!(false), json!(true)]);
    let resolved = news
        .iter()
        .find(|event| event["event"] == "approval_resolved")
        .unwrap();
    assert_eq!(resolved["status"], "failed");
}

#[tokio::test]
async fn c5_a_denial_reaches_the_requester_with_its_reason() {
    let stage = Stage::new("").await;
    stage.commit("ada", "network = \"host\"\n");
    let request = stage.request("ada", "main");
    stage.news();
    let denied =
        stage
            .crew
            .hive
            .cli_json(&["deny", &id(&request), "--note", "it needs no network"]);
    assert_eq!(denied["state"], "denied");
    let news = stage.news();
    assert_eq!(news.len(), 1, "{news:?}");
    assert_eq!(news[0]["event"], "approval_resolved");
    assert_eq!(news[0]["status"], "denied");
    assert_eq!(news[0]["note"], "it needs no network");
    assert_eq!(news[0]["approval_id"], request["approval_id"]);
    assert!(!stage.applied("ada").contains("network"));
}

#[tokio::test]
async fn c5_what_changed_since_it_was_looked_at_is_looked_at_again() {
    let stage = Stage::new("").await;
    stage.commit("ada", "model = \"sonnet\"\n");
    let one = stage.request("ada", "main");
    stage.commit("ada", "model = \"opus\"\n");
    let two = stage.request("ada", "main");
    assert_eq!(stage.crew.hive.cli(&["approve", &id(&one)]).code, 0);
    // The second was shown as a change of what is no longer applied.
    let seen = two["hash"].as_str().unwrap();
    for args in [
        vec!["approve", "2", "--hash", seen],
        vec!["approve", "2", "--hash", seen],
    ] {
        let stale = stage.crew.hive.cli(&args);
        assert_eq!(stale.code, 6, "{}", stale.stderr);
        assert!(stale.stderr.contains("has changed"), "{}", stale.stderr);
    }
    assert!(stage.applied("ada").contains("sonnet"));
    let now = stage.approval("2");
    assert_ne!(now["hash"], seen);
    let diff = now["diff"].as_str().unwrap();
    assert!(
        diff.contains("-model = \"sonnet\"\n+model = \"opus\"\n"),
        "{diff}"
    );
    let hash = now["hash"].as_str().unwrap();
    assert_eq!(
        stage.crew.hive.cli(&["approve", "2", "--hash", hash]).code,
        0
    );
    assert!(stage.applied("ada").contains("opus"));
}

#[tokio::test]
async fn c5_a_request_that_nobody_decides_expires() {
    let stage = Stage::new("[limits]\napproval_seconds = 1\n").await;
    stage.commit("ada", "model = \"opus\"\n");
    let request = stage.request("ada", "main");
    let id = id(&request);
    eventually("it has expired", || {
        stage.approval(&id)["state"] == "expired"
    });
    let late = stage.crew.hive.cli(&["approve", &id]);
    assert_eq!(late.code, 6, "{}", late.stderr);
    assert!(stage.pending().is_empty());
    let resolved = stage
        .news()
        .into_iter()
        .find(|event| event["event"] == "approval_resolved");
    assert_eq!(resolved.unwrap()["status"], "expired");
}

#[tokio::test]
async fn c5_orphans_fail_and_stay_for_audit() {
    let stage = Stage::new("").await;
    stage.commit("ada", "model = \"opus\"\n");
    let one = id(&stage.request("ada", "main"));
    fs::remove_dir_all(stage.config("ada")).unwrap();
    assert!(stage.pending().is_empty());
    let orphan = stage.approval(&one);
    assert_eq!(orphan["state"], "failed");
    assert_eq!(orphan["note"], "agent state dir missing");
    assert_eq!(stage.crew.hive.cli(&["approve", &one]).code, 6);
}

#[tokio::test]
async fn c6_lies_about_commits_and_names_are_refused_with_their_reason() {
    let stage = Stage::new("").await;
    let config = stage.config("ada");
    fs::remove_file(config.join("agent.toml")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", config.join("agent.toml")).unwrap();
    stage.git("ada", &["add", "-A"]);
    stage.git("ada", &["commit", "-q", "-m", "link"]);
    let link = stage.request("ada", "main");
    assert_eq!(code(&link), "bad_request");
    assert!(
        message(&link).contains("`agent.toml` is a symbolic link"),
        "{link}"
    );
    let foreign = stage.git("ruth", &["rev-parse", "HEAD"]);
    let other = stage.request("ada", &foreign);
    assert_eq!(code(&other), "not_found");
    for name in [
        "../ruth",
        "/etc",
        "a/b",
        "",
        "UPPER",
        "toolongname",
        "ruth\n",
    ] {
        let refused = stage.request(name, "main");
        assert_eq!(code(&refused), "bad_request", "{name:?}: {refused}");
        let refused = stage.ruth(&json!({"cmd":"request_spawn","name":name}));
        assert_eq!(code(&refused), "bad_request", "{name:?}: {refused}");
    }
    let nobody = stage.request("nobody", "main");
    assert_eq!(code(&nobody), "not_found");
    fs::remove_file(config.join("agent.toml")).unwrap();
    stage.commit("ada", "modle = \"opus\"\n");
    let typo = stage.request("ada", "main");
    assert!(
        message(&typo).contains("line 1") && message(&typo).contains("did you mean `model`"),
        "{typo}"
    );
    stage.commit("ada", "runtime = \"nspawn\"\n");
    let moved = stage.request("ada", "main");
    assert!(message(&moved).contains("cannot move it"), "{moved}");
    assert!(stage.pending().is_empty());
    let taken = stage.ruth(&json!({"cmd":"request_spawn","name":"ada"}));
    assert_eq!(code(&taken), "conflict");
}

#[tokio::test]
async fn c5_others_ask_only_about_themselves_and_their_children() {
    let stage = Stage::new("").await;
    let ada = |request: Value| stage.crew.hive.peer("ada").ask(&request);
    let own = json!({"cmd":"request_apply_commit","agent":"ada","commit_ref":"main"});
    let refused = ada(own.clone());
    assert_eq!(code(&refused), "denied", "M1: it has no such tool group");
    let granted = ["permissions", "ada", "--grant", "approvals"];
    assert_eq!(stage.crew.hive.cli(&granted).code, 0);
    assert_eq!(code(&ada(own)), "conflict", "nothing has changed yet");
    let about_root = ada(json!({"cmd":"request_apply_commit","agent":"ruth","commit_ref":"main"}));
    assert_eq!(code(&about_root), "denied");
    let elsewhere = ada(json!({"cmd":"request_spawn","name":"cid","parent":"ruth"}));
    assert_eq!(code(&elsewhere), "denied");
}

#[tokio::test]
async fn m6_the_root_agent_also_sees_the_approvals_that_wait() {
    let stage = Stage::new("").await;
    let hive = &stage.crew.hive;
    let ends = |agent: &str| {
        let ends = ok(hive.peer(agent).ask(&json!({"cmd":"get_loose_ends"})));
        ends["loose_ends"].as_array().unwrap().clone()
    };
    assert_eq!(ends("ruth"), [Value::Null; 0]);
    let granted = ["permissions", "ada", "--grant", "approvals"];
    assert_eq!(hive.cli(&granted).code, 0);
    let request = json!({"cmd":"request_spawn","name":"cid","parent":"ada"});
    let requested = ok(hive.peer("ada").ask(&request));
    let seen = ends("ruth");
    assert_eq!(seen.len(), 1, "{seen:?}");
    let shown = |field: &str| seen[0][field].clone();
    assert_eq!(shown("kind"), "approval");
    assert_eq!(shown("approval_id"), requested["approval_id"]);
    assert_eq!(
        (shown("agent"), shown("requested_by")),
        (json!("cid"), json!("ada"))
    );
    assert_eq!(ends("ada"), [Value::Null; 0], "not even who asked");
    assert_eq!(hive.cli(&["deny", &id(&requested)]).code, 0);
    assert_eq!(ends("ruth"), [Value::Null; 0], "it waits no more");
}

#[tokio::test]
async fn m2_an_agent_writes_only_to_whom_its_configuration_names() {
    let stage = Stage::new("").await;
    stage.commit("ada", "allowed_recipients = [\"ada\"]\n");
    let id = id(&stage.request("ada", "main"));
    assert_eq!(stage.crew.hive.cli(&["approve", &id]).code, 0);
    let send = |to: &str| {
        stage
            .crew
            .hive
            .peer("ada")
            .ask(&json!({"cmd":"send","to":to,"body":"x"}))
    };
    assert_eq!(code(&send("ruth")), "denied");
    ok(send("ada"));
    ok(send("<parent>"));
    ok(send("operator"));
}

/// Kills the daemon at a place between a decision and its effect, and lets the next one go on.
#[expect(
    clippy::print_stderr,
    reason = "a test that did not run says so, wherever it is run"
)]
async fn crash_at(place: &str) {
    if !cfg!(feature = "failpoints") {
        eprintln!("skipped: this build has no failpoints");
        return;
    }
    let mut stage = Stage::new("").await;
    let commit = stage.commit("ada", "model = \"opus\"\n");
    let id = id(&stage.request("ada", "main"));
    let env = stage.crew.env();
    let mut deadly = env.clone();
    deadly.push(("FAILPOINTS".to_owned(), format!("{place}=100%")));
    stage.crew.hive.set_env(deadly);
    stage.crew.hive.restart().await.unwrap();
    stage.disconnect();
    stage.connect("ada");
    let lost = stage.crew.hive.cli(&["approve", &id]);
    assert_eq!(lost.code, 4, "{}", lost.stderr);
    stage.crew.hive.set_env(env);
    stage.crew.hive.restart().await.unwrap();
    stage.disconnect();
    stage.connect("ada");
    eventually("it is carried out", || {
        stage.approval(&id)["carried_out_at"] != Value::Null
    });
    assert_eq!(stage.approval(&id)["state"], "approved");
    assert!(stage.applied("ada").contains("opus"));
    let history = stage.history("ada");
    assert_eq!(history.len(), 2, "applied once: {history:?}");
    assert!(history[0].contains(&commit));
    let resolved = stage
        .news()
        .into_iter()
        .filter(|event| event["event"] == "approval_resolved");
    assert_eq!(resolved.count(), 1);
    assert_eq!(stage.crew.hive.cli(&["approve", &id]).code, 6);
}

#[tokio::test]
async fn c5_a_crash_after_the_decision_is_made_good() {
    crash_at("approvals::decided").await;
}

#[tokio::test]
async fn c5_a_crash_before_the_effect_is_made_good() {
    crash_at("approvals::before_effect").await;
}

#[tokio::test]
async fn c5_a_crash_in_the_middle_of_the_effect_is_made_good() {
    crash_at("repos::committed").await;
}

#[tokio::test]
async fn c5_a_crash_after_the_effect_does_not_repeat_it() {
    crash_at("approvals::applied").await;
}

#[tokio::test]
async fn c5_a_crash_before_the_end_is_settled_once() {
    crash_at("approvals::before_settled").await;
}

#[tokio::test]
async fn c11_agents_of_another_revision_are_made_anew_one_by_one_until_one_fails() {
    let mut stage = Stage::new("").await;
    for name in ["bob", "cid"] {
        stage.crew.spawn(name);
        stage.connect(name);
    }
    let marker = |name: &str| {
        let applied = stage.crew.hive.root().join("state/applied");
        applied.join(format!(".{name}.hyperhive-rev"))
    };
    let now = fs::read_to_string(marker("ada")).unwrap();
    let none = stage.crew.hive.cli_json(&["update-all"]);
    assert_eq!(
        none["updated"],
        json!([]),
        "all of them are of this revision"
    );
    assert_eq!(stage.crew.agent("ada")["stale"], false);
    for name in ["ada", "bob", "cid"] {
        fs::write(marker(name), "0.0.1\n").unwrap();
        assert_eq!(stage.crew.agent(name)["stale"], true);
    }
    // Bob does not survive it.
    stage.crew.script("bob", "exit 3");
    let runs = stage.crew.runs("cid", 1);
    let (ada, cid) = (marker("ada"), marker("cid"));
    stage.polls.remove(2);
    stage.polls.remove(1);
    let outcome = stage.crew.hive.cli(&["--json", "update-all"]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    let said: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(said["updated"], json!(["ada"]));
    assert_eq!(
        (&said["failed"], &said["left"]),
        (&json!("bob"), &json!(["cid"]))
    );
    assert_eq!(fs::read_to_string(ada).unwrap(), now);
    assert_eq!(fs::read_to_string(cid).unwrap(), "0.0.1\n");
    assert_eq!(stage.crew.runs("cid", 1), runs, "it was left alone");
    let news = stage.news();
    let rebuilt: Vec<_> = news
        .iter()
        .filter(|event| event["event"] == "rebuilt")
        .map(|event| (event["agent"].clone(), event["ok"].clone()))
        .collect();
    assert_eq!(
        rebuilt,
        [(json!("ada"), json!(true)), (json!("bob"), json!(false))]
    );
    // The next start goes on with those that are left, and with the one that is mended.
    stage.crew.script("bob", WAITS);
    stage.disconnect();
    stage.crew.hive.restart().await.unwrap();
    for name in ["ada", "bob", "cid"] {
        stage.connect(name);
    }
    for name in ["bob", "cid"] {
        eventually("it is updated", || stage.crew.agent(name)["stale"] == false);
    }
}

#[tokio::test]
async fn c11_a_turn_is_not_cut_short_by_an_update() {
    let stage = Stage::new("").await;
    let marker = stage
        .crew
        .hive
        .root()
        .join("state/applied/.ada.hyperhive-rev");
    let runs = stage.crew.runs("ada", 1);
    let state = |turn: &str| {
        let post = json!({
            "cmd":"post_state","turn_state":turn,"since":"2026-01-02T03:04:05.678Z",
            "status":"online","model":"haiku","context_tokens":0,"window":200000,
        });
        ok(stage.crew.hive.peer("ada").ask(&post));
    };
    state("thinking");
    fs::write(&marker, "0.0.1\n").unwrap();
    let root = stage.crew.hive.root().to_owned();
    let update = std::thread::spawn(move || crate::peer::cli(&root, &["--json", "update-all"], ""));
    // It is asked for and waits: somebody who asks later is answered first.
    assert_eq!(stage.crew.agent("ada")["stale"], true);
    assert!(!update.is_finished());
    assert_eq!(stage.crew.runs("ada", 1), runs, "the turn goes on");
    state("idle");
    let said = update.join().unwrap();
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert_eq!(stage.crew.runs("ada", 2).len(), 2);
}
