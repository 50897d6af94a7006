//! `scripts/setup.sh` on machines that are not this one: what it says and how it ends.
//!
//! A copy of the script runs in a directory of its own. All that it finds are links to a handful of
//! basic tools, and made-up programs that write down how they were called. So nothing is fetched,
//! nothing is installed, and the tree is left alone.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use tempfile::TempDir;

/// What the script itself is made of; every machine has them.
const BASICS: [&str; 12] = [
    "bash", "chmod", "cut", "dirname", "env", "grep", "head", "mkdir", "sed", "sort", "true",
    "uname",
];
/// What `build` looks for, beside Rust.
const BUILD: [&str; 3] = ["cc", "git", "make"];
/// What the other purposes look for besides.
const ALL: [&str; 18] = [
    "bwrap",
    "cargo-nextest",
    "catatonit",
    "chromium",
    "newuidmap",
    "nix-instantiate",
    "node",
    "npm",
    "podman",
    "postgres",
    "redis-server",
    "runc",
    "shellcheck",
    "socat",
    "strace",
    "systemd-nspawn",
    "curl",
    "rustup",
];
/// The packages of a machine that has none of those.
const MISSING: &str = "gcc libc6-dev make git";
const PURPOSES: [&str; 7] = ["build", "up", "lint", "test", "bench", "pages", "soak"];
/// Reads everything, with nothing but the shell.
const READ: &str = "while read -r line; do :; done";
const RUSTUP: &str = "curl --proto =https --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y";

/// A machine that was made up.
struct Machine {
    dir: TempDir,
}

/// What the script said and how it ended.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: i32,
    stderr: String,
}

impl Machine {
    /// One of an ordinary user, with a Rust that is new enough and nothing else.
    fn new() -> Self {
        let machine = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for dir in ["tree/scripts", "bin"] {
            fs::create_dir_all(machine.path(dir)).unwrap();
        }
        for file in ["scripts/setup.sh", "Cargo.toml"] {
            fs::copy(tree.join(file), machine.path("tree").join(file)).unwrap();
        }
        for tool in BASICS {
            symlink(find(tool), machine.path("bin").join(tool)).unwrap();
        }
        machine.program("id", "echo 1000");
        machine.program("cargo", "");
        machine.rust(&wanted_rust());
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    /// A program that does this; all it finds are the others of this machine.
    fn program(&self, name: &str, text: &str) {
        self.program_at(&self.path("bin").join(name), text);
    }

    fn program_at(&self, path: &Path, text: &str) {
        let calls = self.path("calls");
        let name = path.file_name().unwrap().to_str().unwrap();
        let text = format!(
            "#!/bin/sh\n(IFS='|'; printf '%s\\n' \"{name}|$*\" >>'{}')\n{text}\n",
            calls.display()
        );
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Programs that succeed, once they have read what they are given: else whoever gives it to
    /// them would fail.
    fn programs(&self, names: &[&str]) {
        names.iter().for_each(|name| self.program(name, READ));
    }

    fn rust(&self, version: &str) {
        self.program(
            "rustc",
            &format!("echo 'rustc {version} (0123 2026-01-02)'"),
        );
    }

    /// What the tests run that comes from npm, in these versions.
    fn npm_packages(&self) {
        let cpu = cpu();
        let claude =
            format!("the target/claude/node_modules/@anthropic-ai/claude-code-linux-{cpu}");
        let version = pinned("CLAUDE_VERSION");
        let program = self.path(&claude).join("claude");
        self.program_at(&program, &format!("echo '{version} (Claude Code)'"));
        for (package, version) in mcp_tools() {
            let dir = self.path("the target/mcp-tools/node_modules").join(package);
            fs::create_dir_all(&dir).unwrap();
            let text = format!("{{\n  \"version\": \"{version}\"\n}}\n");
            fs::write(dir.join("package.json"), text).unwrap();
        }
        let (codex, gemini) = (pinned("CODEX_VERSION"), pinned("GEMINI_VERSION"));
        fs::create_dir_all(self.path("the target/engines")).unwrap();
        let done = format!("the target/engines/installed-{codex}-{gemini}");
        fs::write(self.path(&done), "").unwrap();
    }

    fn setup(&self, purpose: &str) -> Said {
        let script = self.path("tree/scripts/setup.sh");
        let said = self.bash(&[script.to_str().unwrap(), purpose]);
        let mut tree: Vec<_> = fs::read_dir(self.path("tree"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        tree.sort();
        assert_eq!(tree, ["Cargo.toml", "scripts"], "it wrote into the tree");
        said
    }

    fn bash(&self, args: &[&str]) -> Said {
        let output = Command::new(find("bash"))
            .args(args)
            .env_clear()
            .env("PATH", self.path("bin"))
            .env("HOME", self.dir.path())
            .env("CARGO_HOME", self.path("cargo"))
            .env("CARGO_TARGET_DIR", self.path("the target"))
            .current_dir(self.dir.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(output.stdout, b"", "what it says goes to standard error");
        Said {
            code: output.status.code().unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// How the programs that install something were called, since the last time.
    fn installs(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("calls")).unwrap_or_default();
        fs::write(self.path("calls"), "").unwrap();
        let starts = ["apt-get|", "npm|", "rustup|", "cargo|install|"];
        let is_install = |call: &&str| starts.iter().any(|start| call.starts_with(start));
        calls
            .lines()
            .filter(is_install)
            .map(str::to_owned)
            .collect()
    }
}

/// Where this machine has a tool.
fn find(tool: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let mut places = std::env::split_paths(&path).map(|dir| dir.join(tool));
    places.find(|place| place.is_file()).unwrap()
}

/// This machine as npm names it.
fn cpu() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn script() -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/setup.sh");
    fs::read_to_string(script).unwrap()
}

/// A version that the script names.
fn pinned(name: &str) -> String {
    let script = script();
    let (_, rest) = script.split_once(&format!("{name}=")).unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

fn wanted_rust() -> String {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.toml");
    let manifest = fs::read_to_string(manifest).unwrap();
    let line = manifest
        .lines()
        .find(|line| line.starts_with("rust-version"));
    line.unwrap().split('"').nth(1).unwrap().to_owned()
}

fn mcp_tools() -> [(String, String); 3] {
    [
        (
            "@modelcontextprotocol/inspector".to_owned(),
            pinned("INSPECTOR_VERSION"),
        ),
        (
            "@modelcontextprotocol/conformance".to_owned(),
            pinned("CONFORMANCE_VERSION"),
        ),
        (format!("node-linux-{}", cpu()), pinned("NODE_VERSION")),
    ]
}

/// The line that brings Debian's packages.
fn apt(sudo: &str, packages: &str) -> String {
    format!("{sudo}apt-get update && {sudo}apt-get install -y --no-install-recommends {packages}")
}

/// How apt-get is called to do so.
fn apt_calls(packages: &str) -> [String; 2] {
    let apt = "apt-get|-q|-o|DPkg::Lock::Timeout=300|-o|Acquire::Retries=3";
    let packages = packages.replace(' ', "|");
    [
        format!("{apt}|update"),
        format!("{apt}|install|-y|--no-install-recommends|{packages}"),
    ]
}

/// What is said when something is missing that one command line brings.
fn asks_for(purpose: &str, line: &str) -> String {
    format!(
        "setup: `make {purpose}` needs something that is missing here; install it with:\n  {line}\n"
    )
}

fn failed(stderr: impl Into<String>) -> Said {
    Said {
        code: 1,
        stderr: stderr.into(),
    }
}

fn silent() -> Said {
    Said {
        code: 0,
        stderr: String::new(),
    }
}

#[test]
fn nothing_is_said_or_done_when_nothing_is_missing() {
    let machine = Machine::new();
    machine.programs(&BUILD);
    machine.programs(&ALL);
    machine.program("apt-get", "exit 1");
    machine.npm_packages();
    for purpose in PURPOSES {
        assert_eq!(machine.setup(purpose), silent(), "{purpose}");
    }
    assert_eq!(machine.installs(), [""; 0]);
}

#[test]
fn a_user_without_sudo_gets_one_command_line_and_nothing_is_tried() {
    for sudo in [None, Some("exit 1")] {
        let machine = Machine::new();
        machine.program("apt-get", "");
        if let Some(text) = sudo {
            machine.program("sudo", text);
        }
        let line = apt("sudo ", MISSING);
        assert_eq!(machine.setup("build"), failed(asks_for("build", &line)));
        assert_eq!(machine.installs(), [""; 0], "{sudo:?}");
    }
}

#[test]
fn the_command_line_is_one_that_can_be_run() {
    let machine = Machine::new();
    machine.program("apt-get", "");
    machine.program("cargo", "[ \"$1\" != install ]");
    machine.program("catatonit", "");
    let said = machine.setup("test");
    assert_eq!(said.code, 1);
    let nextest = format!("cargo-nextest@{}", pinned("NEXTEST_VERSION"));
    let lines: Vec<_> = said.stderr.lines().collect();
    assert_eq!(
        lines[..lines.len() - 1],
        [
            &format!("setup: building {nextest} (some minutes, once)"),
            "setup: cargo install failed",
            "setup: `make test` needs something that is missing here; install it with:",
        ]
    );
    machine.installs();

    // Now whoever reads it has the right to do it.
    machine.programs(&["cargo", "npm"]);
    machine.program("sudo", "exec \"$@\"");
    assert_eq!(machine.bash(&["-c", lines.last().unwrap()]), silent());
    let packages = "gcc|libc6-dev|make|git|shellcheck|socat|strace|nix-bin|bubblewrap|\
                    systemd-container|podman|runc|uidmap|nodejs|npm|chromium";
    let npm = "npm|install|--force|--ignore-scripts|--no-save|--prefix";
    let target = machine.path("the target");
    let claude = format!("@anthropic-ai/claude-code@{}", pinned("CLAUDE_VERSION"));
    let tools = mcp_tools().map(|(name, version)| format!("{name}@{version}"));
    assert_eq!(
        machine.installs(),
        [
            "apt-get|update".to_owned(),
            format!("apt-get|install|-y|--no-install-recommends|{packages}"),
            format!("cargo|install|--locked|{nextest}"),
            format!("{npm}|{}|{claude}", target.join("claude").display()),
            format!(
                "{npm}|{}|{}",
                target.join("mcp-tools").display(),
                tools.join("|")
            ),
        ]
    );
}

#[test]
fn without_apt_get_the_packages_are_named() {
    let machine = Machine::new();
    machine.program("sudo", "exec \"$@\"");
    let names =
        format!("setup: install with your package manager (named as in Debian): {MISSING}\n");
    assert_eq!(machine.setup("build"), failed(&names));

    // What does not come from there is a command line all the same.
    machine.program("cargo", "[ \"$1\" != install ]");
    let nextest = format!("cargo-nextest@{}", pinned("NEXTEST_VERSION"));
    let tried =
        format!("setup: building {nextest} (some minutes, once)\nsetup: cargo install failed\n");
    let line = asks_for("soak", &format!("cargo install --locked {nextest}"));
    assert_eq!(machine.setup("soak"), failed(tried + &names + &line));
}

#[test]
fn an_old_rust_is_the_users_to_replace() {
    let machine = Machine::new();
    machine.programs(&BUILD);
    machine.program("apt-get", "");
    let wanted = wanted_rust();
    let (major, minor) = wanted.split_once('.').unwrap();
    let older = format!("{major}.{}.9", minor.parse::<u32>().unwrap() - 1);
    let lacks = |line: &str| failed(asks_for("build", line));
    for (version, expected) in [
        (
            older.as_str(),
            lacks(&format!(
                "{} && {RUSTUP}",
                apt("sudo ", "curl ca-certificates")
            )),
        ),
        (
            "1.9.0",
            lacks(&format!(
                "{} && {RUSTUP}",
                apt("sudo ", "curl ca-certificates")
            )),
        ),
        ("1.1000.0", silent()),
        ("2.0.0", silent()),
        ("1.1000.0-nightly", silent()),
    ] {
        machine.rust(version);
        assert_eq!(machine.setup("build"), expected, "{version}");
    }
    machine.rust(&older);
    machine.program("curl", "");
    assert_eq!(machine.setup("build"), lacks(RUSTUP));
    fs::remove_file(machine.path("bin/rustc")).unwrap();
    assert_eq!(machine.setup("build"), lacks(RUSTUP));
    fs::remove_file(machine.path("bin/cargo")).unwrap();
    assert_eq!(machine.setup("build"), lacks(RUSTUP));
    machine.program("rustup", "");
    assert_eq!(machine.setup("build"), lacks("rustup update stable"));

    // Components and tools are for the right toolchain to bring.
    machine.program("shellcheck", "");
    let line = asks_for("lint", "rustup update stable");
    assert_eq!(machine.setup("lint"), failed(line));
    let line = asks_for("soak", "rustup update stable");
    assert_eq!(machine.setup("soak"), failed(line));
    assert_eq!(machine.installs(), [""; 0], "a toolchain is never fetched");
}

#[test]
fn who_may_install_does_so_and_what_fails_is_printed() {
    let installs = |machine: &Machine| {
        let text = "case \"$*\" in *install*) for name in cc git make; do\n\
                    printf '#!/bin/sh\\nREAD\\n' >\"BIN/$name\"; chmod +x \"BIN/$name\"; done; esac";
        text.replace("BIN", machine.path("bin").to_str().unwrap())
            .replace("READ", READ)
    };
    let begins = format!("setup: installing packages: {MISSING}\n");
    for (id, sudo, prefix) in [("0", "exit 1", ""), ("1000", "shift; exec \"$@\"", "sudo ")] {
        let machine = Machine::new();
        machine.program("id", &format!("echo {id}"));
        machine.program("sudo", sudo);
        machine.program("apt-get", &installs(&machine));
        let done = Said {
            code: 0,
            stderr: begins.clone(),
        };
        assert_eq!(machine.setup("build"), done);
        assert_eq!(machine.installs(), apt_calls(MISSING));
        assert_eq!(machine.setup("build"), silent());

        BUILD
            .iter()
            .for_each(|name| fs::remove_file(machine.path("bin").join(name)).unwrap());
        machine.program("apt-get", "exit 100");
        let said = "setup: apt-get update failed; trying with the lists at hand\n\
                    setup: apt-get install failed\n";
        let line = asks_for("build", &apt(prefix, MISSING));
        assert_eq!(
            machine.setup("build"),
            failed(format!("{begins}{said}{line}"))
        );
    }
}

#[test]
fn a_hive_goes_up_without_isolation_and_says_so() {
    let machine = Machine::new();
    machine.programs(&BUILD);
    machine.program("apt-get", "");
    let said = machine.setup("up");
    let words = "setup: agents run WITHOUT ISOLATION until you install: bubblewrap\n";
    assert_eq!((said.code, said.stderr.as_str()), (0, words));
    assert_eq!(machine.installs(), [""; 0]);
}

#[test]
fn an_unknown_purpose_is_told_the_known_ones() {
    let machine = Machine::new();
    machine.program("id", "echo 0");
    machine.program("apt-get", "");
    for purpose in ["bild", "build up", "--help"] {
        let usage = Said {
            code: 2,
            stderr: format!("usage: setup.sh [{}]\n", PURPOSES.join("|")),
        };
        assert_eq!(machine.setup(purpose), usage, "{purpose}");
    }
    assert_eq!(machine.installs(), [""; 0]);
}
