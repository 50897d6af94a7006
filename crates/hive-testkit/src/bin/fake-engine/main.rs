//! A scripted stand-in for `claude --print --output-format stream-json`, for tests, soak and bench.
//!
//! It takes the flags of a turn, `--version` and `--help`, and both input formats. It starts in
//! about a millisecond and asks nobody: what it does is written in steps.
//!
//! Where steps come from, the first that applies:
//! 1. lines of the prompt that begin with `!fake `, one step each. With a line `!fake plan NAME`,
//!    lines `!fake N: STEP` belong to the N-th run that this plan has had, over all processes with
//!    this record; the others are for every run that has no lines of its own;
//! 2. the file named by `FAKE_ENGINE_SCRIPT`: sections that begin with `on WORD` (the prompt holds
//!    WORD; `on *` fits every prompt), followed by one step per line. The first section that fits is
//!    played. `once on WORD` fits one time only, over all processes that use this file (a marker
//!    file beside it says so). `#` begins a comment;
//! 3. otherwise: `init`, `say ok`, `result ok`; for `/compact`: `init`, `compact`, `result`.
//!
//! | step | what it does |
//! |---|---|
//! | `init` | prints `system/init` |
//! | `say TEXT` | an assistant's text |
//! | `tool NAME [MS]` | a call of a tool, and its result after MS milliseconds |
//! | `context N` | input tokens of what is said from here on (default 1000) |
//! | `result [TEXT]` | a good result; the turn is over |
//! | `error STATUS CLASS REASON TEXT` | the engine's report of an API error and a result with `is_error`; `-` for none. One process per turn then exits with 1 |
//! | `limit SECONDS` | a usage limit that ends at this time since 1970 |
//! | `compact [failed TEXT]` | a compaction, or what is printed when there is none |
//! | `raw TEXT`, `stderr TEXT` | a line on stdout or stderr, as it is |
//! | `transcript FILE` | the lines of this file |
//! | `garbage` | bytes that are no UTF-8, JSON that is no object, a cut line |
//! | `long N`, `longresult N` | an assistant's text, or a good result, with N bytes of text |
//! | `flood N` | N short events |
//! | `unended TEXT` | text without a newline |
//! | `sleep MS`, `hang` | waits, for a time or for ever |
//! | `ignore SIGNAL…` | takes no notice of `INT`, `TERM` or a control request `interrupt` (`CONTROL`) from here on |
//! | `child` | starts a process with a session of its own that sleeps for ten minutes and keeps the pipes open |
//! | `touch FILE` | creates a file: a test can wait for it |
//! | `await FILE` | waits until there is such a file |
//! | `unnamed` | leaves out `user_message_uuids` from here on |
//! | `exit CODE`, `die SIGNAL` | ends like this at once |
//! | `stay` | never exits after its result, nor when its stdin is closed |
//!
//! By itself it answers SIGINT (and a control request `interrupt`) like `claude`: an `aborted`
//! result, exit code 0; and SIGTERM with exit code 143.
//!
//! `FAKE_ENGINE_RECORD` names a file to which it appends a JSON line for its start (`argv`, `env`,
//! `cwd`, `pid`, `at_us`: when, in microseconds since 1970), for every prompt (`prompt`, `uuid`, `pid`), for every result before it is printed
//! (`result`: whether it is a good one, `pid`), every `child` (`child`: its pid) and its end
//! (`exit`). `FAKE_ENGINE_LACKS` holds flags that it does not take. With `CLAUDE_CONFIG_DIR` set it
//! keeps its conversation there: `--continue` finds the session's id and its total cost again.

mod child;
mod engine;
mod events;
mod input;
mod out;
mod script;
mod session;
mod steps;

use std::{path::Path, process::ExitCode};

use serde_json::json;

use self::{
    engine::Engine,
    out::{complain, printed, record},
};

const VERSION: &str = "2.1.325 (fake engine)";
const FLAGS: [(&str, bool); 15] = [
    ("--print", false),
    ("--verbose", false),
    ("--output-format", true),
    ("--input-format", true),
    ("--model", true),
    ("--continue", false),
    ("--settings", true),
    ("--system-prompt-file", true),
    ("--system-prompt-snapshot", true),
    ("--setting-sources", true),
    ("--mcp-config", true),
    ("--strict-mcp-config", false),
    ("--tools", true),
    ("--allowedTools", true),
    ("--replay-user-messages", false),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args.first().is_some_and(|arg| arg == "fake-child") {
        return child::be();
    }
    if args.iter().any(|arg| arg == "--version") {
        return printed(format_args!("{VERSION}\n"));
    }
    if args.iter().any(|arg| arg == "--help") {
        let flags: Vec<_> = accepted().map(|(flag, _)| format!("  {flag}\n")).collect();
        return printed(format_args!(
            "Usage: fake-engine [options]\n{}",
            flags.concat()
        ));
    }
    let mut flags = Vec::new();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let Some((flag, takes_value)) = accepted().find(|(flag, _)| flag == arg) else {
            complain(&format!("error: unknown option '{arg}'"));
            return ExitCode::FAILURE;
        };
        let value = if takes_value {
            rest.next().cloned()
        } else {
            None
        };
        flags.push((flag, value.unwrap_or_default()));
    }
    for flag in ["--settings", "--system-prompt-file", "--mcp-config"] {
        let file = flags.iter().find(|(name, _)| *name == flag);
        if let Some((_, path)) = file.filter(|(_, path)| !Path::new(path).exists()) {
            complain(&format!("Error: {flag}: file not found: {path}"));
            return ExitCode::FAILURE;
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let code = match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(Engine::new(&args, &flags).run());
            // Reading stdin occupies a thread that may never come back.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            complain(&error.to_string());
            70
        }
    };
    record(&json!({"exit": code}));
    ExitCode::from(code)
}

fn accepted() -> impl Iterator<Item = (&'static str, bool)> {
    let lacks = std::env::var("FAKE_ENGINE_LACKS").unwrap_or_default();
    FLAGS
        .into_iter()
        .filter(move |(flag, _)| !lacks.split(' ').any(|lack| lack == *flag))
}
