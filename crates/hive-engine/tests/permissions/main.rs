//! What is decided about shell commands: a corpus with one verdict per line, and properties.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{fs, path::Path, sync::Arc};

use hive_engine::{
    bash,
    paths::Workspace,
    permission::{Call, Decision, Effect, Mode, Origin, Policy, Rule, RuleReader, Rules},
    tool::{Access, Permission, Properties},
};
use proptest::prelude::*;
use serde_json::json;

struct Scene {
    _dir: tempfile::TempDir,
    policy: Policy,
}

fn scene(mode: Mode, rules: &[(&str, Effect)]) -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let work = root.join("work");
    for name in ["work/src", "work/secret", "work/locked", "outside", "home"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    for name in [
        "work/src/a.rs",
        "work/src/b.rs",
        "work/secret/key",
        "outside/key",
    ] {
        fs::write(root.join(name), "x").unwrap();
    }
    std::os::unix::fs::symlink(root.join("outside"), work.join("link-out")).unwrap();
    std::os::unix::fs::symlink("src", work.join("link-in")).unwrap();
    let home = root.join("home");
    let mut all = Rules::default();
    for (text, effect) in rules {
        let origin = Origin {
            source: "test".into(),
            line: None,
            base: work.clone(),
        };
        let reader = RuleReader {
            cwd: &work,
            home: &home,
        };
        all.push(Rule::parse(text, *effect, &origin, &reader).unwrap());
    }
    let workspace = Arc::new(Workspace::new(&work, &[], &home).unwrap());
    Scene {
        _dir: dir,
        policy: Policy {
            rules: all,
            mode,
            role: None,
            workspace,
        },
    }
}

const RULES: &[(&str, Effect)] = &[
    ("Bash(npm run *)", Effect::Allow),
    ("Bash(cargo:*)", Effect::Allow),
    ("Bash(git commit *)", Effect::Allow),
    ("Bash(make)", Effect::Allow),
    ("Bash(python3 -m pytest *)", Effect::Allow),
    ("Bash(cargo publish *)", Effect::Ask),
    ("Bash(rm *)", Effect::Deny),
    ("Bash(curl *)", Effect::Deny),
    ("Bash(git push *)", Effect::Deny),
    ("Read(./secret/**)", Effect::Deny),
    ("Edit(./locked/**)", Effect::Deny),
];

impl Scene {
    fn decide(&self, command: &str) -> Decision {
        let judgement = bash::judge(command, self.policy.workspace.cwd());
        self.policy.decide(&Call {
            tool: "Bash".into(),
            permission: Permission::Execute,
            properties: Properties::default(),
            accesses: vec![Access::Command(Box::new(judgement))],
            input: json!({"command": command}),
        })
    }

    fn verdict(&self, command: &str) -> &'static str {
        match self.decide(command) {
            Decision::Allow(_) => "allow",
            Decision::Ask(_) => "ask",
            Decision::Deny(_) => "deny",
        }
    }
}

fn corpus() -> Vec<(&'static str, String)> {
    include_str!("corpus.txt")
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| {
            let (verdict, command) = line.split_once(' ').expect("a verdict and a command");
            let command = command.trim_start();
            // The one line with a here-document needs its body.
            let command = if command.ends_with("<<'EOF'") {
                format!("{command}\n$(x)\nEOF")
            } else {
                command.to_owned()
            };
            (verdict, command)
        })
        .collect()
}

#[test]
fn what_is_copied_lands_under_its_own_name() {
    let scene = scene(Mode::Relaxed, &[]);
    let work = scene.policy.workspace.cwd();
    for dir in ["evil/.git", "evil/src", "new"] {
        fs::create_dir_all(work.join(dir)).unwrap();
    }
    for (command, expected) in [
        ("cp src/a.rs new", "allow"),
        ("cp src/a.rs src/c.rs", "allow"),
        ("cp src/*.rs new/", "allow"),
        ("cp -r src new", "allow"),
        ("mv src/a.rs new/", "allow"),
        ("cp -r evil/.git .", "ask"),
        ("cp -r evil/.git/ .", "ask"),
        ("cp -a evil/. .", "ask"),
        ("cp evil/.bashrc .", "ask"),
        ("cp evil/* .", "ask"),
        ("cp evil/.* .", "ask"),
        ("mv evil/lefthook.yml .", "ask"),
        // It would be laid over `src`.
        ("cp -r evil/src .", "ask"),
        ("cp -r src ..", "ask"),
    ] {
        assert_eq!(scene.verdict(command), expected, "{command}");
    }
}

#[test]
fn a_file_that_a_program_would_take_for_a_flag_is_asked_for() {
    let scene = scene(Mode::Normal, &[]);
    let work = scene.policy.workspace.cwd();
    fs::remove_file(work.join("link-out")).unwrap();
    for (command, expected) in [("sort *", "allow"), ("sort -u *", "allow")] {
        assert_eq!(scene.verdict(command), expected, "{command}");
    }
    fs::write(work.join("--output=.bashrc"), "").unwrap();
    for (command, expected) in [
        ("sort *", "ask"),
        ("sort [-]*", "ask"),
        ("sort -*", "ask"),
        ("find *", "ask"),
        ("sort ./*", "allow"),
        ("sort src/*", "allow"),
    ] {
        assert_eq!(scene.verdict(command), expected, "{command}");
    }
}

#[test]
fn the_corpus_is_judged_as_written() {
    let scene = scene(Mode::Normal, RULES);
    let corpus = corpus();
    assert!(corpus.len() >= 300, "{}", corpus.len());
    let wrong: Vec<String> = corpus
        .iter()
        .filter(|(expected, command)| scene.verdict(command) != *expected)
        .map(|(expected, command)| {
            format!(
                "{command}\n    expected {expected}, got {:?}",
                scene.decide(command)
            )
        })
        .collect();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn characters_that_parsers_disagree_about_are_never_silent() {
    let scene = scene(Mode::Normal, RULES);
    for command in [
        "cargo build\revil",
        "cargo build\u{1b}[2K",
        "cargo\u{0}build",
        "cargo build\u{8}",
        "cargo build\x0bevil",
    ] {
        assert_ne!(scene.verdict(command), "allow", "{command:?}");
    }
    assert_eq!(scene.verdict("cargo build\nevil"), "ask");
    assert_eq!(scene.verdict("cargo build\nrm x"), "deny");
    assert_eq!(scene.verdict("cargo \\\nbuild"), "allow");
    assert_eq!(scene.verdict("r\\\nm x"), "deny");
    let long = format!("cargo build {}", "x".repeat(20_000));
    assert_eq!(scene.verdict(&long), "ask");
    let deep = format!("{}rm x{}", "(".repeat(500), ")".repeat(500));
    assert_ne!(scene.verdict(&deep), "allow");
    let nested = (0..40).fold("rm x".to_owned(), |inner, _| format!("sudo {inner}"));
    assert_ne!(scene.verdict(&nested), "allow");
}

#[test]
fn modes() {
    let none: &[(&str, Effect)] = &[];
    for (mode, command, expected) in [
        (Mode::Safe, "ls src", "allow"),
        (Mode::Safe, "cat src/a.rs | head -3", "allow"),
        (Mode::Safe, "pwd", "deny"),
        (Mode::Safe, "cargo build", "deny"),
        (Mode::Safe, "cat /etc/passwd", "deny"),
        (Mode::Safe, "ls $(date)", "deny"),
        (Mode::Normal, "mkdir new", "ask"),
        (Mode::Relaxed, "mkdir new", "allow"),
        (Mode::Relaxed, "rm src/a.rs", "allow"),
        (Mode::Relaxed, "mv src/a.rs src/c.rs", "allow"),
        (Mode::Relaxed, "cp src/a.rs /etc/x", "ask"),
        (Mode::Relaxed, "rm ../outside/key", "ask"),
        (Mode::Relaxed, "rm link-out/key", "ask"),
        (Mode::Relaxed, "echo x > src/a.rs", "allow"),
        (Mode::Relaxed, "echo x > .git/hooks/pre-commit", "ask"),
        (Mode::Relaxed, "echo x > .bashrc", "ask"),
        (Mode::Relaxed, "echo x > .claude/settings.json", "ask"),
        (Mode::Relaxed, "evil", "ask"),
        (Mode::Relaxed, "rm -rf .", "ask"),
        (Mode::Auto, "evil", "allow"),
        (Mode::Auto, "echo $(evil)", "allow"),
        (Mode::Auto, "rm -rf /", "ask"),
        (Mode::Auto, "rm -rf ~", "ask"),
        (Mode::Auto, "rm -rf $X", "ask"),
        (Mode::Auto, "sudo rm -rf /usr", "ask"),
        (Mode::Auto, "bash -c 'rm -rf /*'", "ask"),
        (Mode::Custom, "ls", "allow"),
        (Mode::Custom, "evil", "deny"),
        (Mode::Custom, "mkdir new", "deny"),
    ] {
        let scene = scene(mode, none);
        assert_eq!(scene.verdict(command), expected, "{mode:?} {command}");
    }
    let long = format!("cat {}", "src/a.rs ".repeat(80));
    assert_eq!(scene(Mode::Safe, none).verdict(&long), "deny");
}

#[test]
fn a_rule_for_all_of_bash_does_not_hide_what_is_denied() {
    let open = scene(Mode::Normal, &[("Bash", Effect::Allow)]);
    assert_eq!(open.verdict("anything $(at all) > /tmp/x"), "allow");
    assert_eq!(open.verdict("rm -rf /"), "ask");
    let with_deny = scene(
        Mode::Normal,
        &[("Bash", Effect::Allow), ("Bash(rm *)", Effect::Deny)],
    );
    for (command, expected) in [
        ("anything", "allow"),
        ("rm x", "deny"),
        ("sudo rm x", "deny"),
        ("$CMD x", "ask"),
        ("echo x | sh", "ask"),
        ("cargo build \"", "ask"),
    ] {
        assert_eq!(with_deny.verdict(command), expected, "{command}");
    }
}

#[test]
fn rules_name_their_place() {
    let scene = scene(Mode::Normal, RULES);
    let decision = scene.decide("git push");
    assert_eq!(
        decision.why().rule.as_deref(),
        Some("Bash(git push *) (test)")
    );
    let Decision::Ask(why) = scene.decide("evil --now") else {
        panic!()
    };
    assert!(why.text.contains("evil --now"), "{}", why.text);
}

fn commands() -> impl Strategy<Value = String> {
    let all: Vec<String> = corpus()
        .into_iter()
        .map(|(_, command)| command)
        .filter(|c| !c.contains("<<"))
        .collect();
    proptest::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Adding a command to a compound never makes it more permitted.
    #[test]
    fn prop_more_commands_are_never_more_permitted(
        one in commands(), two in commands(), joint in proptest::sample::select(vec!["; ", " && ", " || ", " | ", "\n", " & "])
    ) {
        let scene = scene(Mode::Normal, RULES);
        let is_broken = |text: &str| {
            let doubts = bash::judge(text, Path::new("/")).doubts;
            doubts.iter().any(|doubt| matches!(doubt, bash::Doubt::Unparsable(_)))
        };
        // What is asked for because it is no whole command may become a part of one.
        let rank_alone = |text: &str| if is_broken(text) { 0 } else { scene.decide(text).rank() };
        let worst = rank_alone(&one).max(rank_alone(&two));
        let joined = format!("{one}{joint}{two}");
        // What no longer parses is asked for; a denial can then not be seen in it.
        let is_broken = is_broken(&joined);
        let rank = scene.decide(&joined).rank();
        prop_assert!(rank >= worst.min(if is_broken { 1 } else { 2 }), "{joined}: {rank} < {worst}");
    }

    /// Any text is judged without a panic, and what is not understood is not allowed.
    #[test]
    fn fuzz_any_text_is_judged(text in "[a-z $(){}|&;<>`'\"\\\\\n#=~*?!\\[\\]-]{0,60}") {
        let scene = scene(Mode::Normal, RULES);
        let judgement = bash::judge(&text, scene.policy.workspace.cwd());
        if !judgement.doubts.is_empty() {
            prop_assert_ne!(scene.verdict(&text), "allow");
        }
    }

    #[test]
    fn fuzz_any_unicode_is_judged(text in "\\PC{0,60}") {
        scene(Mode::Normal, RULES).verdict(&text);
    }
}
