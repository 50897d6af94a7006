//! Commands that run other commands: what is really run behind them.

use super::{Doubt, Simple, collect::Walk, words::shorten};

/// How a wrapper's own arguments end.
struct Wrapper {
    names: &'static [&'static str],
    /// Flags that take the next word as their value, if none is attached to them.
    valued: &'static [&'static str],
    /// Flags that stand alone. Any other makes it uncertain where the command begins.
    alone: &'static [&'static str],
    /// Words between the flags and the command.
    leading: usize,
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        names: &["sudo", "doas"],
        valued: &[
            "-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "-r", "-t", "--user", "--group",
            "--chdir", "--chroot",
        ],
        alone: &[
            "-n", "-E", "-H", "-S", "-A", "-b", "-k", "-i", "-s", "-P", "--login", "--shell",
        ],
        leading: 0,
    },
    Wrapper {
        names: &["timeout"],
        valued: &["-s", "-k", "--signal", "--kill-after"],
        alone: &["-v", "--verbose", "--foreground", "--preserve-status"],
        leading: 1,
    },
    Wrapper {
        names: &["nice"],
        valued: &["-n", "--adjustment"],
        alone: &[],
        leading: 0,
    },
    Wrapper {
        names: &["ionice"],
        valued: &["-n", "-c", "-p", "--class", "--classdata"],
        alone: &["-t", "--ignore"],
        leading: 0,
    },
    Wrapper {
        names: &["chrt"],
        valued: &["-T", "-P", "-D"],
        alone: &["-b", "-d", "-f", "-i", "-o", "-r", "-v"],
        leading: 1,
    },
    Wrapper {
        names: &["time"],
        valued: &["-o", "-f", "--output", "--format"],
        alone: &["-p", "-a", "-v", "-q"],
        leading: 0,
    },
    Wrapper {
        names: &["exec"],
        valued: &["-a"],
        alone: &["-c", "-l"],
        leading: 0,
    },
    Wrapper {
        names: &["setsid"],
        valued: &[],
        alone: &["-c", "-f", "-w", "--ctty", "--fork", "--wait"],
        leading: 0,
    },
    Wrapper {
        names: &[
            "nohup",
            "command",
            "builtin",
            "noglob",
            "busybox",
            "toybox",
            "catchsegv",
            "unbuffer",
            "fakeroot",
            "dbus-run-session",
        ],
        valued: &[],
        alone: &["-p", "-v", "-V"],
        leading: 0,
    },
    Wrapper {
        names: &["stdbuf"],
        valued: &["-i", "-o", "-e", "--input", "--output", "--error"],
        alone: &[],
        leading: 0,
    },
    Wrapper {
        names: &["xargs", "gxargs"],
        valued: &[
            "-I",
            "-n",
            "-P",
            "-L",
            "-d",
            "-a",
            "-s",
            "-E",
            "--max-args",
            "--max-procs",
            "--replace",
            "--delimiter",
            "--arg-file",
            "--max-lines",
        ],
        alone: &[
            "-0",
            "-r",
            "-t",
            "-x",
            "-p",
            "--null",
            "--no-run-if-empty",
            "--verbose",
        ],
        leading: 0,
    },
    Wrapper {
        names: &["parallel"],
        valued: &["-j", "--jobs", "-a"],
        alone: &["-k", "-0", "-q"],
        leading: 0,
    },
    Wrapper {
        names: &["watch"],
        valued: &["-n", "--interval"],
        alone: &["-d", "-t", "-g", "-e", "-c"],
        leading: 0,
    },
    Wrapper {
        names: &["flock"],
        valued: &["-w", "-E", "--timeout"],
        alone: &["-s", "-x", "-e", "-n", "-o", "-u"],
        leading: 1,
    },
    Wrapper {
        names: &[
            "chroot",
            "unshare",
            "nsenter",
            "setpriv",
            "runuser",
            "strace",
            "ltrace",
            "gdb",
            "valgrind",
            "perf",
            "proxychains",
            "torsocks",
            "systemd-run",
            "firejail",
            "bwrap",
            "start-stop-daemon",
        ],
        valued: &["-u", "-o", "-e", "-p"],
        alone: &[],
        leading: 0,
    },
];

impl Wrapper {
    /// How many words a flag takes, itself among them; `None` for one that is not known.
    fn width(&self, flag: &str) -> Option<usize> {
        if self.alone.contains(&flag) {
            return Some(1);
        }
        if self.valued.contains(&flag) {
            return Some(2);
        }
        let is_attached = match flag.split_once('=').filter(|_| flag.starts_with("--")) {
            Some((name, _)) => self.valued.contains(&name),
            None => flag
                .get(..2)
                .is_some_and(|name| self.valued.contains(&name)),
        };
        // `nice -5`.
        let is_number =
            self.names == ["nice"] && flag[1..].bytes().all(|byte| byte.is_ascii_digit());
        (is_attached || is_number).then_some(1)
    }
}

const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "rbash", "mksh",
];

/// Wrappers that leave what they run as it is, so that only the inner command counts.
const TRANSPARENT: &[&str] = &[
    "timeout", "time", "nice", "nohup", "stdbuf", "command", "builtin", "noglob",
];

/// Whether a command only runs another one, which is judged by itself.
pub fn is_transparent(simple: &Simple) -> bool {
    let known = simple.argv.iter().all(Option::is_some);
    let is_plain_xargs = simple.name() == Some("xargs")
        && simple
            .argv
            .get(1)
            .is_some_and(|word| word.as_deref().is_some_and(|word| !word.starts_with('-')));
    let first = simple.argv.get(1).and_then(|word| word.as_deref());
    let runs_something = first.is_some_and(|word| match simple.name() {
        // `-o` and `-f` write whatever one likes into any file.
        Some("time") => !word.starts_with('-') || word == "-p",
        // These say what a name means.
        Some("command") => !matches!(word, "-v" | "-V"),
        _ => true,
    });
    known
        && runs_something
        && (is_plain_xargs
            || simple
                .name()
                .is_some_and(|name| TRANSPARENT.contains(&name)))
}

/// Finds the commands behind `simple` and walks them.
pub(super) fn unwrap(walk: &mut Walk<'_>, simple: &Simple) {
    let Some(name) = simple.base_name() else {
        if !simple.argv.is_empty() {
            walk.doubt(Doubt::Dynamic("the command's name".into()));
        }
        return;
    };
    let name = name.to_owned();
    let rest = &simple.argv[1..];
    match name.as_str() {
        "env" => env(walk, rest),
        "eval" => evaluate(walk, "eval", rest),
        "source" | "." => walk.doubt(Doubt::Evaluation(shorten(&simple.text_with_gaps()))),
        "alias" | "enable" | "hash" => {
            walk.doubt(Doubt::Definition(shorten(&simple.text_with_gaps())))
        }
        "trap" => evaluate(walk, "trap", rest.get(..1).unwrap_or_default()),
        "export" | "declare" | "typeset" | "local" | "readonly" | "set" | "shopt" | "read"
        | "mapfile" | "readarray" | "getopts" | "let" | "unset" => {
            walk.doubt(Doubt::Variable(shorten(&simple.text_with_gaps())));
        }
        "printf"
            if rest
                .first()
                .is_some_and(|word| word.as_deref() == Some("-v")) =>
        {
            walk.doubt(Doubt::Variable(shorten(&simple.text_with_gaps())));
        }
        "find" | "fd" | "fdfind" => find(walk, &name, rest),
        "su" | "script" | "runuser" => with_flag(walk, &name, "-c", rest),
        "ssh" => walk.doubt(Doubt::Network(shorten(&simple.text_with_gaps()))),
        _ if SHELLS.contains(&name.as_str()) => shell(walk, &name, simple, rest),
        _ => {
            if let Some(wrapper) = WRAPPERS.iter().find(|w| w.names.contains(&name.as_str())) {
                wrapped(walk, &name, wrapper, rest);
            }
        }
    }
}

fn wrapped(walk: &mut Walk<'_>, name: &str, wrapper: &Wrapper, words: &[Option<String>]) {
    let mut at = 0;
    let mut leading = wrapper.leading;
    while let Some(word) = words.get(at) {
        let Some(word) = word.as_deref() else {
            // A flag or the command itself: not known.
            walk.doubt(Doubt::Dynamic(format!("what {name} runs")));
            return;
        };
        if word == "--" {
            at += 1;
            break;
        }
        if word.starts_with('-') && word.len() > 1 {
            at += wrapper.width(word).unwrap_or_else(|| {
                walk.doubt(Doubt::Dynamic(format!("what {name} {word} runs")));
                1
            });
        } else if word.contains('=') && (name == "sudo" || name == "doas") {
            walk.doubt(Doubt::Variable(shorten(word)));
            at += 1;
        } else if leading > 0 {
            leading -= 1;
            at += 1;
        } else {
            break;
        }
    }
    let mut inner = words.get(at..).unwrap_or_default().to_vec();
    if name == "watch" || name == "parallel" {
        // They hand their words to a shell.
        evaluate(walk, name, &inner);
    } else if !inner.is_empty() {
        if matches!(name, "xargs" | "gxargs") {
            // What its input adds may be a flag, or a path anywhere.
            inner.push(None);
        }
        walk.inner(inner, Vec::new(), name);
    }
}

fn env(walk: &mut Walk<'_>, words: &[Option<String>]) {
    let mut at = 0;
    let mut variables = Vec::new();
    while let Some(word) = words.get(at) {
        let Some(word) = word.as_deref() else {
            walk.doubt(Doubt::Dynamic("what env runs".into()));
            return;
        };
        match word {
            "--" => {
                at += 1;
                break;
            }
            "-u" | "--unset" | "-C" | "--chdir" => at += 2,
            "-S" | "--split-string" => {
                evaluate(walk, "env -S", words.get(at + 1..).unwrap_or_default());
                return;
            }
            _ if word.starts_with("-S") || word.starts_with("--split-string") => {
                walk.doubt(Doubt::Evaluation(shorten(word)));
                return;
            }
            "-" | "-i" | "-0" | "-v" | "--ignore-environment" | "--null" | "--debug" => at += 1,
            _ if word.starts_with('-') => {
                let is_attached = ["-u", "-C", "--unset=", "--chdir="]
                    .iter()
                    .any(|flag| word.starts_with(flag));
                if !is_attached {
                    walk.doubt(Doubt::Dynamic(format!("what env {word} runs")));
                }
                at += 1;
            }
            _ => match word.split_once('=') {
                Some((name, _)) => {
                    walk.doubt(Doubt::Variable(name.to_owned()));
                    variables.push(name.to_owned());
                    at += 1;
                }
                None => break,
            },
        }
    }
    let inner = words.get(at..).unwrap_or_default().to_vec();
    if !inner.is_empty() {
        walk.inner(inner, variables, "env");
    }
}

fn evaluate(walk: &mut Walk<'_>, name: &str, words: &[Option<String>]) {
    let text: Option<Vec<&str>> = words.iter().map(|word| word.as_deref()).collect();
    match text {
        Some(text) if !text.is_empty() => walk.nested(&text.join(" "), Some(name), false),
        Some(_) => {}
        None => walk.doubt(Doubt::Evaluation(format!("what {name} is given"))),
    }
}

fn shell(walk: &mut Walk<'_>, name: &str, simple: &Simple, words: &[Option<String>]) {
    let mut takes_script = false;
    for (at, word) in words.iter().enumerate() {
        let Some(word) = word.as_deref() else {
            walk.doubt(Doubt::Evaluation(format!("what {name} is given")));
            return;
        };
        if takes_script {
            walk.nested(word, Some(name), false);
            return;
        }
        if word.starts_with("--") && word.len() > 2 {
            if matches!(word, "--rcfile" | "--init-file") {
                walk.doubt(Doubt::Evaluation(shorten(word)));
                return;
            }
            continue;
        }
        if let Some(flags) = word.strip_prefix(['-', '+']) {
            takes_script |= word.starts_with('-') && flags.contains('c');
            // Flags that take a value before the script make the next word uncertain.
            if flags.contains(['o', 'O']) && !takes_script {
                walk.doubt(Doubt::Evaluation(shorten(&simple.text_with_gaps())));
                return;
            }
            continue;
        }
        // A script in a file: its content is not known here.
        let rest = words.get(at..).unwrap_or_default();
        let shown: Vec<_> = rest.iter().flatten().map(String::as_str).collect();
        walk.doubt(Doubt::Evaluation(format!(
            "{name} {}",
            shorten(&shown.join(" "))
        )));
        return;
    }
    if !takes_script {
        // It reads its commands from its input.
        walk.doubt(Doubt::Evaluation(format!("{name} reading its input")));
    }
}

fn find(walk: &mut Walk<'_>, name: &str, words: &[Option<String>]) {
    let mut at = 0;
    while at < words.len() {
        let runs = matches!(
            words[at].as_deref(),
            Some("-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch")
        );
        if !runs {
            at += 1;
            continue;
        }
        let rest = &words[at + 1..];
        let end = rest
            .iter()
            .position(|word| matches!(word.as_deref(), Some(";" | "+")))
            .unwrap_or(rest.len());
        walk.inner(rest[..end].to_vec(), Vec::new(), name);
        at += end + 2;
    }
}

fn with_flag(walk: &mut Walk<'_>, name: &str, flag: &str, words: &[Option<String>]) {
    let at = words.iter().position(|word| word.as_deref() == Some(flag));
    match at.and_then(|at| words.get(at + 1)) {
        Some(Some(script)) => walk.nested(&script.clone(), Some(name), false),
        _ => walk.doubt(Doubt::Evaluation(format!("what {name} runs"))),
    }
}
