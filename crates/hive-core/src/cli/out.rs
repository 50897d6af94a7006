//! Where a command's words go: data to stdout, everything else to stderr.
//!
//! Nothing else in the command line prints. Text that came from an agent passes
//! [`hive_wire::text::printable`] on its way into a line, so that it cannot steer the terminal.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
};

use anstyle::{AnsiColor, Style};
use hive_wire::text::printable;
use serde::Serialize;

use super::{
    failure::{Failure, Report},
    json,
    table::Table,
};

/// The width of lines when nobody limits it.
const UNLIMITED: usize = usize::MAX;

/// The colours of the command line.
pub(super) mod style {
    use super::{AnsiColor, Style};

    pub(in crate::cli) const PLAIN: Style = Style::new();
    pub(in crate::cli) const HEAD: Style = Style::new().bold();
    pub(in crate::cli) const FAINT: Style = Style::new().dimmed();
    pub(in crate::cli) const GOOD: Style = AnsiColor::Green.on_default();
    pub(in crate::cli) const BUSY: Style = AnsiColor::Cyan.on_default();
    pub(in crate::cli) const WARN: Style = AnsiColor::Yellow.on_default();
    pub(in crate::cli) const BAD: Style = AnsiColor::Red.on_default().bold();
}

/// One stream of the two.
struct Sink {
    writer: Box<dyn Write>,
    colour: bool,
}

impl Sink {
    fn paint(&self, style: Style, text: &str) -> String {
        if self.colour && style != Style::new() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }
}

/// The output of one command.
pub(super) struct Out {
    data: Sink,
    notes: Sink,
    json: bool,
    width: usize,
    can_ask: bool,
}

impl Out {
    /// The output of this process, as its terminal and environment want it.
    pub(super) fn of_process(json: bool) -> Self {
        let (stdout, stderr) = (io::stdout(), io::stderr());
        Self {
            width: terminal_width(&stdout),
            can_ask: io::stdin().is_terminal() && stderr.is_terminal(),
            data: Sink {
                colour: colourful(&stdout),
                writer: Box::new(io::BufWriter::new(stdout)),
            },
            notes: Sink {
                colour: colourful(&stderr),
                writer: Box::new(stderr),
            },
            json,
        }
    }

    /// An output that a test reads back.
    #[cfg(test)]
    pub(super) fn into_writers(
        data: impl Write + 'static,
        notes: impl Write + 'static,
        json: bool,
        width: usize,
    ) -> Self {
        let plain = |writer| Sink {
            writer,
            colour: false,
        };
        Self {
            data: plain(Box::new(data)),
            notes: plain(Box::new(notes)),
            json,
            width,
            can_ask: false,
        }
    }

    /// Whether the operator asked for JSON.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Whether there is somebody at a terminal who can be asked something.
    pub(super) fn can_ask(&self) -> bool {
        self.can_ask
    }

    /// Prints one JSON object with its schema number, on a line of its own.
    pub(super) fn json<T: Serialize>(&mut self, view: T) -> Result<(), Failure> {
        let line =
            json::document(view).map_err(|error| Failure::io("write JSON", &error.into()))?;
        self.line(line)
    }

    /// Prints a line of data.
    pub(super) fn line(&mut self, text: impl Display) -> Result<(), Failure> {
        writeln!(self.data.writer, "{text}").map_err(|error| Failure::output(&error))
    }

    /// Prints data as it is.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.data.writer.write_all(bytes);
        written.map_err(|error| Failure::output(&error))
    }

    /// Prints a table, no wider than the terminal.
    pub(super) fn table(&mut self, table: &Table) -> Result<(), Failure> {
        for line in table.lines(self.width, |style, text| self.data.paint(style, text)) {
            self.line(line)?;
        }
        Ok(())
    }

    /// Prints names and values, one pair a line.
    pub(super) fn fields(&mut self, fields: &[(&str, String)]) -> Result<(), Failure> {
        let widest = fields.iter().map(|(name, _)| name.len()).max();
        let widest = widest.unwrap_or(0);
        for (name, value) in fields {
            let name = self.paint(style::FAINT, &format!("{name:widest$}"));
            self.line(format_args!("{name}  {value}"))?;
        }
        Ok(())
    }

    /// `text` in a style, where colours are wanted.
    pub(super) fn paint(&self, style: Style, text: &str) -> String {
        self.data.paint(style, text)
    }

    /// The width of a line.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Tells a person something that is not data, after the data that came before it. Scripts
    /// that asked for JSON are spared.
    pub(super) fn note(&mut self, text: impl Display) {
        if !self.json {
            let text = printable(&text.to_string());
            let note = self.notes.paint(style::FAINT, &text);
            self.tell(&note);
        }
    }

    /// Tells what went wrong.
    pub(super) fn report(&mut self, report: &Report) {
        if self.json {
            if let Ok(line) = json::document(json::ErrorDocument::from(report)) {
                self.tell(&line);
            }
            return;
        }
        let message = printable(&report.message);
        let error = self.notes.paint(style::BAD, "error:");
        self.tell(&format!("{error} {message}"));
        if !report.hint.is_empty() {
            let hint = self.notes.paint(style::BUSY, "hint:");
            self.tell(&format!("{hint} {}", printable(&report.hint)));
        }
    }

    /// Hands over what was printed so far.
    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.data.writer.flush();
        flushed.map_err(|error| Failure::output(&error))
    }

    /// Writes to stderr. When that fails there is no place left to say so; when stdout fails, its
    /// next write says so.
    fn tell(&mut self, line: &str) {
        self.data.writer.flush().ok();
        writeln!(self.notes.writer, "{line}").ok();
    }
}

/// Whether a stream takes colours: a terminal that can, and no `NO_COLOR`.
fn colourful(stream: &impl anstream::stream::RawStream) -> bool {
    anstream::AutoStream::choice(stream) != anstream::ColorChoice::Never
}

/// How wide a line may be: the terminal's width, what `COLUMNS` says, or no limit for a pipe.
fn terminal_width(stdout: &io::Stdout) -> usize {
    let told = std::env::var("COLUMNS").ok();
    let told = told.and_then(|columns| columns.parse().ok());
    let measured = || {
        let size = rustix::termios::tcgetwinsize(stdout).ok()?;
        Some(usize::from(size.ws_col)).filter(|_| stdout.is_terminal())
    };
    told.or_else(measured)
        .filter(|columns| *columns > 0)
        .unwrap_or(UNLIMITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Failing(io::ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Err(self.0.into())
        }
    }

    #[test]
    fn a_closed_stdout_is_told_from_a_full_disk_even_after_a_note() {
        for (kind, quiet) in [
            (io::ErrorKind::BrokenPipe, true),
            (io::ErrorKind::StorageFull, false),
        ] {
            let data = io::BufWriter::new(Failing(kind));
            let mut out = Out::into_writers(data, io::sink(), false, 80);
            out.line("data").unwrap();
            out.note("note");
            let failure = out.flush().unwrap_err();
            assert_eq!(matches!(failure, Failure::ReaderGone), quiet, "{failure:?}");
        }
    }
}
