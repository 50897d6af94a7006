//! Commands that are known to only look, and commands that are known to only change files.
//!
//! A table of names with the flags that would make each of them do more. A command that is not in
//! the table, or has a flag that is not understood to be harmless, is unknown.

use std::path::Path;

use super::{Simple, words};

/// What a simple command does, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Safety {
    /// It looks at these paths and changes nothing.
    ReadOnly {
        /// What it looks at.
        reads: Vec<String>,
    },
    /// It changes these files and nothing else.
    Files {
        /// What it looks at.
        reads: Vec<String>,
        /// What it changes.
        writes: Vec<String>,
        /// What it makes if its target is a directory, by the names of its sources.
        makes: Vec<String>,
    },
    /// Anything.
    Unknown,
}

/// How a command's plain words are to be understood.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Words {
    /// Paths to look at.
    Paths,
    /// The first is a pattern, the rest are paths.
    PatternThenPaths,
    /// Just text.
    Text,
}

struct Reader {
    name: &'static str,
    words: Words,
    /// Flags that make it write, run or connect; a prefix of a long flag counts too.
    bad: &'static [&'static str],
}

const fn reader(name: &'static str, words: Words, bad: &'static [&'static str]) -> Reader {
    Reader { name, words, bad }
}

/// Commands that only look.
const READERS: &[Reader] = &[
    reader("ls", Words::Paths, &[]),
    reader("cat", Words::Paths, &[]),
    reader("head", Words::Paths, &[]),
    reader(
        "tail",
        Words::Paths,
        &["-f", "-F", "--follow", "--pid", "--retry"],
    ),
    reader("wc", Words::Paths, &["--files0-from"]),
    reader("nl", Words::Paths, &[]),
    reader("od", Words::Paths, &[]),
    reader("hexdump", Words::Paths, &["-f"]),
    reader("strings", Words::Paths, &[]),
    reader("stat", Words::Paths, &[]),
    reader(
        "du",
        Words::Paths,
        &[
            "--files0-from",
            "-X",
            "--exclude-from",
            "-L",
            "--dereference",
        ],
    ),
    reader("df", Words::Paths, &[]),
    reader(
        "file",
        Words::Paths,
        &[
            "-m",
            "--magic-file",
            "-f",
            "--files-from",
            "-C",
            "--compile",
            "-z",
            "-Z",
        ],
    ),
    reader(
        "diff",
        Words::Paths,
        &[
            "--to-file",
            "--from-file",
            "-l",
            "--paginate",
            "-r",
            "--recursive",
        ],
    ),
    reader("cmp", Words::Paths, &[]),
    reader("comm", Words::Paths, &[]),
    reader(
        "sort",
        Words::Paths,
        &[
            "-o",
            "--output",
            "-T",
            "--temporary-directory",
            "--compress-program",
            "--files0-from",
            "-S",
        ],
    ),
    reader("cut", Words::Paths, &[]),
    reader("paste", Words::Paths, &[]),
    reader("tac", Words::Paths, &[]),
    reader("rev", Words::Paths, &[]),
    reader("md5sum", Words::Paths, &["-c", "--check"]),
    reader("sha1sum", Words::Paths, &["-c", "--check"]),
    reader("sha256sum", Words::Paths, &["-c", "--check"]),
    reader("realpath", Words::Paths, &[]),
    reader("readlink", Words::Paths, &[]),
    reader(
        "tree",
        Words::Paths,
        &["-o", "--output", "-R", "--fromfile", "--infofile", "-l"],
    ),
    reader(
        "grep",
        Words::PatternThenPaths,
        &[
            "-f",
            "--file",
            "--exclude-from",
            "-R",
            "--dereference-recursive",
        ],
    ),
    reader(
        "egrep",
        Words::PatternThenPaths,
        &[
            "-f",
            "--file",
            "--exclude-from",
            "-R",
            "--dereference-recursive",
        ],
    ),
    reader(
        "fgrep",
        Words::PatternThenPaths,
        &[
            "-f",
            "--file",
            "--exclude-from",
            "-R",
            "--dereference-recursive",
        ],
    ),
    reader(
        "rg",
        Words::PatternThenPaths,
        &[
            "--pre",
            "--hostname-bin",
            "-f",
            "--file",
            "--ignore-file",
            "-z",
            "--search-zip",
            "-L",
            "--follow",
        ],
    ),
    reader(
        "jq",
        Words::PatternThenPaths,
        &[
            "-f",
            "--from-file",
            "-L",
            "--slurpfile",
            "--rawfile",
            "--args",
            "--jsonargs",
        ],
    ),
    reader("tr", Words::Text, &[]),
    reader("echo", Words::Text, &[]),
    reader("printf", Words::Text, &["-v"]),
    reader("pwd", Words::Text, &[]),
    reader("true", Words::Text, &[]),
    reader("false", Words::Text, &[]),
    reader(":", Words::Text, &[]),
    reader("seq", Words::Text, &[]),
    reader("whoami", Words::Text, &[]),
    reader("id", Words::Text, &[]),
    reader("groups", Words::Text, &[]),
    reader("uname", Words::Text, &[]),
    reader("nproc", Words::Text, &[]),
    reader("arch", Words::Text, &[]),
    reader("uptime", Words::Text, &[]),
    reader("basename", Words::Text, &[]),
    reader("dirname", Words::Text, &[]),
    reader("which", Words::Text, &[]),
    reader("type", Words::Text, &[]),
    reader("expr", Words::Text, &[]),
    reader("sleep", Words::Text, &[]),
    reader(
        "date",
        Words::Text,
        &["-s", "--set", "-f", "--file", "-r", "--reference"],
    ),
    reader("test", Words::Text, &["-v", "-R"]),
    reader("[", Words::Text, &["-v", "-R"]),
];

/// Options of `find` that run or write.
const FIND_BAD: &[&str] = &[
    "-exec",
    "-execdir",
    "-ok",
    "-okdir",
    "-delete",
    "-fls",
    "-fprint",
    "-fprint0",
    "-fprintf",
    "-files0-from",
];

/// What `git` may be asked to show.
const GIT_READS: &[&str] = &[
    "status",
    "diff",
    "log",
    "show",
    "rev-parse",
    "ls-files",
    "ls-tree",
    "blame",
    "describe",
    "shortlog",
    "rev-list",
    "cat-file",
    "merge-base",
    "name-rev",
    "show-ref",
    "for-each-ref",
    "count-objects",
    "whatchanged",
];
/// Flags of those that write, run a program or read somewhere else.
const GIT_BAD: &[&str] = &[
    "--output",
    "-O",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
    "--no-index",
    "--contents",
    "--filters",
    "--batch",
    "--exec",
    "--upload-pack",
    "--receive-pack",
];

/// Flags of file commands that are known to do nothing else.
const FILE_COMMANDS: &[&str] = &["mkdir", "touch", "rm", "rmdir", "mv", "cp"];

/// What a simple command does.
pub fn safety(simple: &Simple) -> Safety {
    let words: Option<Vec<&str>> = simple.argv.iter().map(|word| word.as_deref()).collect();
    let Some(words) = words else {
        return Safety::Unknown;
    };
    let Some((&name, args)) = words.split_first() else {
        // Redirections alone; they are judged as files.
        return if simple.variables.is_empty() {
            Safety::ReadOnly { reads: Vec::new() }
        } else {
            Safety::Unknown
        };
    };
    let name = name
        .strip_prefix("/usr/bin/")
        .or_else(|| name.strip_prefix("/bin/"))
        .unwrap_or(name);
    match name {
        "find" => find(args),
        "git" => git(args),
        "cd" => Safety::ReadOnly { reads: plain(args) },
        "uniq" if plain(args).len() <= 1 => Safety::ReadOnly { reads: plain(args) },
        "sed" => sed(args),
        _ if FILE_COMMANDS.contains(&name) => file_command(name, args),
        _ => match READERS.iter().find(|reader| reader.name == name) {
            Some(reader) => read(reader, args),
            None => Safety::Unknown,
        },
    }
}

/// Whether `arg` is one of the flags: exactly, with a value attached, as one of several short ones,
/// or as the beginning of a long one, which GNU programs accept.
fn is_flag(arg: &str, flags: &[&str]) -> bool {
    flags.iter().any(|flag| {
        if let Some(long) = flag.strip_prefix("--") {
            let given = arg
                .strip_prefix("--")
                .map(|rest| rest.split('=').next().unwrap_or(rest));
            given.is_some_and(|given| !given.is_empty() && long.starts_with(given))
        } else if flag.len() == 2 {
            let letter = &flag[1..];
            arg.starts_with('-') && !arg.starts_with("--") && arg[1..].contains(letter)
        } else {
            arg == *flag
        }
    })
}

fn read(reader: &Reader, args: &[&str]) -> Safety {
    if args
        .iter()
        .any(|arg| arg.starts_with('-') && is_flag(arg, reader.bad))
    {
        return Safety::Unknown;
    }
    let is_more = match reader.name {
        // A name of a variable is evaluated, with what stands in its index.
        "test" | "[" => args.iter().any(|arg| words::is_live(arg)),
        // Modules are read from wherever the program says.
        "jq" => args
            .iter()
            .any(|arg| arg.contains("import") || arg.contains("include")),
        // A file with further arguments.
        "strings" => args.iter().any(|arg| arg.starts_with('@')),
        _ => false,
    };
    if is_more {
        return Safety::Unknown;
    }
    let mut reads = match reader.words {
        Words::Paths => plain(args),
        Words::PatternThenPaths => {
            // Then there is no pattern among the words. `rg --files` takes none.
            let gives_pattern = |arg: &&str| is_flag(arg, &["-e", "--regexp", "--files"]);
            let has_pattern_flag = reader.name != "jq" && args.iter().any(gives_pattern);
            plain(args)
                .into_iter()
                .skip(usize::from(!has_pattern_flag))
                .collect()
        }
        Words::Text => Vec::new(),
    };
    reads.extend(attached(args));
    Safety::ReadOnly { reads }
}

/// Words that are no flags.
fn plain(args: &[&str]) -> Vec<String> {
    let mut is_past_flags = false;
    args.iter()
        .filter(|arg| {
            if **arg == "--" && !is_past_flags {
                is_past_flags = true;
                return false;
            }
            is_past_flags || !arg.starts_with('-') || arg.len() == 1
        })
        .filter(|arg| **arg != "-")
        .map(|arg| (*arg).to_owned())
        .collect()
}

/// Paths that are attached to flags, such as `--include=../x` or `-I/etc`.
fn attached(args: &[&str]) -> Vec<String> {
    args.iter()
        .filter(|arg| arg.starts_with('-'))
        .filter_map(|arg| {
            let value = arg.split_once('=').map(|(_, value)| value);
            let slash = arg.find(['/', '~']).map(|at| &arg[at..]);
            value.filter(|value| value.contains(['/', '~'])).or(slash)
        })
        .map(str::to_owned)
        .collect()
}

fn find(args: &[&str]) -> Safety {
    if args.iter().any(|arg| FIND_BAD.contains(arg)) {
        return Safety::Unknown;
    }
    let is_expression = |arg: &str| arg.starts_with('-') || matches!(arg, "(" | ")" | "!" | ",");
    let start = args
        .iter()
        .position(|arg| !matches!(*arg, "-L" | "-H" | "-P"))
        .unwrap_or(args.len());
    // Paths follow these too, and further words after `-D`.
    let is_option = |arg: &&str| *arg == "--" || arg.starts_with("-O") || *arg == "-D";
    if args[start..].first().is_some_and(is_option) {
        return Safety::Unknown;
    }
    let mut reads: Vec<String> = args[start..]
        .iter()
        .take_while(|arg| !is_expression(arg))
        .map(|arg| (*arg).to_owned())
        .collect();
    // `-newer FILE`, `-samefile FILE` and the like look at files too.
    for pair in args.windows(2) {
        if pair[0].starts_with("-newer") || pair[0] == "-samefile" {
            reads.push(pair[1].to_owned());
        }
    }
    if args.iter().any(|arg| matches!(*arg, "-L" | "-follow")) {
        return Safety::Unknown;
    }
    Safety::ReadOnly { reads }
}

fn git(args: &[&str]) -> Safety {
    let Some((&verb, rest)) = args.split_first() else {
        return Safety::ReadOnly { reads: Vec::new() };
    };
    // Global flags choose another repository, program or configuration.
    if verb.starts_with('-') {
        return if verb == "--version" {
            Safety::ReadOnly { reads: Vec::new() }
        } else {
            Safety::Unknown
        };
    }
    if rest
        .iter()
        .any(|arg| arg.starts_with('-') && is_flag(arg, GIT_BAD))
    {
        return Safety::Unknown;
    }
    let only_flags = |allowed: &[&str]| rest.iter().all(|arg| allowed.contains(arg));
    let is_reading = match verb {
        "branch" => only_flags(&[
            "-a",
            "-r",
            "-v",
            "-vv",
            "--all",
            "--remotes",
            "--list",
            "--show-current",
            "--verbose",
        ]),
        "remote" => only_flags(&["-v", "--verbose"]),
        "tag" => only_flags(&["-l", "--list"]),
        "stash" => rest.first() == Some(&"list"),
        "worktree" => rest == ["list"],
        "config" => matches!(
            rest,
            ["--get" | "--get-all" | "get", _] | ["--list" | "-l" | "list"]
        ),
        _ => GIT_READS.contains(&verb),
    };
    if !is_reading {
        return Safety::Unknown;
    }
    let mut reads: Vec<String> = plain(rest)
        .into_iter()
        .filter(|arg| looks_like_path(arg))
        .collect();
    reads.extend(attached(rest));
    Safety::ReadOnly { reads }
}

/// Absolute, from home, or upwards: what might lead outside.
fn looks_like_path(arg: &str) -> bool {
    arg.starts_with(['/', '~']) || arg.split('/').any(|part| part == "..")
}

/// Only plain substitutions and prints: `sed` can also write files and run programs.
fn sed(args: &[&str]) -> Safety {
    let is_in_place = args.contains(&"-i");
    let mut flags = args.iter().filter(|arg| arg.starts_with('-'));
    if flags.any(|flag| !matches!(*flag, "-n" | "-i" | "-E" | "-r")) {
        return Safety::Unknown;
    }
    let mut words = plain(args).into_iter();
    let Some(script) = words.next() else {
        return Safety::Unknown;
    };
    if !is_plain_sed(&script) {
        return Safety::Unknown;
    }
    let files: Vec<String> = words.collect();
    if is_in_place {
        Safety::Files {
            reads: Vec::new(),
            writes: files,
            makes: Vec::new(),
        }
    } else {
        Safety::ReadOnly { reads: files }
    }
}

/// `s/a/b/g` or `1,20p` and nothing more.
fn is_plain_sed(script: &str) -> bool {
    let is_print = script.ends_with('p')
        && script[..script.len() - 1]
            .chars()
            .all(|c| c.is_ascii_digit() || c == ',' || c == '$');
    let is_substitution = || {
        let mut chars = script.chars();
        if chars.next() != Some('s') {
            return false;
        }
        let Some(separator) = chars.next().filter(|c| matches!(c, '/' | '|' | '#' | ',')) else {
            return false;
        };
        if script.contains(['\n', '\\']) {
            return false;
        }
        let parts: Vec<&str> = script[2..].split(separator).collect();
        parts.len() == 3 && matches!(parts[2], "" | "g" | "i" | "gi" | "I" | "gI")
    };
    is_print || is_substitution()
}

fn file_command(name: &str, args: &[&str]) -> Safety {
    let known: &[&str] = match name {
        "rm" => &[
            "-r",
            "-f",
            "-rf",
            "-fr",
            "-R",
            "-v",
            "-i",
            "--recursive",
            "--force",
            "-d",
        ],
        "mkdir" => &["-p", "-v", "--parents"],
        "cp" => &[
            "-r",
            "-R",
            "-a",
            "-p",
            "-f",
            "-v",
            "-n",
            "--recursive",
            "--archive",
        ],
        "mv" => &["-f", "-n", "-v"],
        "rmdir" => &["-p", "-v"],
        _ => &["-a", "-m", "-c"],
    };
    if args
        .iter()
        .any(|arg| arg.starts_with('-') && *arg != "--" && !known.contains(arg))
    {
        return Safety::Unknown;
    }
    let mut paths = plain(args);
    let makes = match name {
        "cp" | "mv" => landings(&paths),
        _ => Some(Vec::new()),
    };
    let Some(makes) = makes else {
        return Safety::Unknown;
    };
    let (reads, writes) = if name == "cp" {
        let target = paths.pop();
        (paths, target.into_iter().collect())
    } else {
        (Vec::new(), paths)
    };
    Safety::Files {
        reads,
        writes,
        makes,
    }
}

/// Where sources land when the last path is a directory; `None` when that is not told by their
/// names, as with `dir/.`, whose content lands there.
fn landings(paths: &[String]) -> Option<Vec<String>> {
    let Some((target, sources)) = paths.split_last() else {
        return Some(Vec::new());
    };
    let landing = |source: &String| {
        let source = source.trim_end_matches('/');
        let name = source.rsplit('/').next().unwrap_or(source);
        let is_name = !matches!(name, "" | "." | ".." | "~");
        is_name.then(|| format!("{target}/{name}"))
    };
    sources.iter().map(landing).collect()
}

/// Whether it removes a tree that nobody wants removed: the root, a directory right under it, the
/// home, or the working directory and what is above it.
pub fn is_critical_removal(simple: &Simple, cwd: &Path, home: &Path) -> bool {
    if !matches!(simple.base_name(), Some("rm" | "rmdir")) {
        return false;
    }
    simple.argv[1..].iter().any(|word| {
        // An unknown word may be anything.
        let Some(word) = word.as_deref() else {
            return true;
        };
        if word.starts_with('-') {
            return false;
        }
        let path = match word.strip_prefix('~') {
            Some(rest) => home.join(rest.trim_start_matches('/')),
            None => cwd.join(word),
        };
        let path = crate::paths::normal(&path);
        // `dir/*` empties `dir`.
        let target = match path.file_name() {
            Some(name) if name == "*" || name == ".*" => {
                path.parent().unwrap_or(Path::new("/")).to_owned()
            }
            _ => path,
        };
        target.components().count() <= 2 || cwd.starts_with(&target) || home.starts_with(&target)
    })
}
