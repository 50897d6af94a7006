//! Everything that goes out.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    process::ExitCode,
};

use serde_json::Value;

/// Stands for a long text.
pub(crate) const FILL: &str = "<fill>";

/// So many short events.
pub(crate) fn flood(count: u64) {
    let mut lines = String::new();
    for n in 0..count {
        lines.push_str(&format!(
            "{{\"type\":\"system\",\"subtype\":\"flood\",\"n\":{n}}}\n"
        ));
    }
    emit_bytes(lines.as_bytes());
}

/// Prints an event.
pub(crate) fn emit(event: &Value) {
    emit_bytes(format!("{event}\n").as_bytes());
}

/// Prints an event with every [`FILL`] in it replaced by this many bytes.
pub(crate) fn emit_filled(event: &Value, bytes: usize) {
    let event = event.to_string();
    for (n, part) in event.split(FILL).enumerate() {
        if n > 0 {
            emit_bytes(&vec![b'x'; bytes]);
        }
        emit_bytes(part.as_bytes());
    }
    emit_bytes(b"\n");
}

/// Prints bytes as they are.
pub(crate) fn emit_bytes(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        std::process::exit(74);
    }
}

/// Prints a text and is done.
pub(crate) fn printed(text: std::fmt::Arguments<'_>) -> ExitCode {
    match io::stdout().write_fmt(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// A line on stderr.
pub(crate) fn complain(text: &str) {
    writeln!(io::stderr(), "{text}").ok();
}

/// Appends a line to the record, where there is one.
pub(crate) fn record(what: &Value) {
    let Some(path) = std::env::var_os("FAKE_ENGINE_RECORD") else {
        return;
    };
    let file = OpenOptions::new().append(true).create(true).open(path);
    if let Ok(mut file) = file {
        file.write_all(format!("{what}\n").as_bytes()).ok();
    }
}
