//! The daemon's own log, as agents with the capability `read_host_journal` may read it (M12): from
//! the system's journal where the daemon runs as a unit, else what the daemon remembers itself.

use std::{
    collections::VecDeque,
    io::{self, Read, Write},
    process::{Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    time::Duration,
};

use hive_wire::{
    text,
    tools::{HostJournal, JournalSource, MAX_LOG},
};

/// How many bytes of its log the daemon remembers.
const REMEMBERED: usize = 512 * 1024;
/// The longest line that is remembered whole, in bytes.
const MAX_LINE: usize = 4 * 1024;
/// How long the system's journal may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What this process logged last. There is one log of a process, and so there is one of these.
static LINES: Mutex<Lines> = Mutex::new(Lines {
    lines: VecDeque::new(),
    bytes: 0,
});

struct Lines {
    lines: VecDeque<Box<str>>,
    bytes: usize,
}

/// Where a log goes that is to be remembered: one event with every write.
#[derive(Debug, Clone, Copy, Default)]
pub struct Remembered;

impl Write for Remembered {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        lines().add(&String::from_utf8_lossy(event));
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    fn add(&mut self, event: &str) {
        for line in event.lines() {
            let line = text::printable(&line[..line.floor_char_boundary(MAX_LINE)]);
            self.bytes += line.len();
            self.lines.push_back(line.into());
        }
        while self.bytes > REMEMBERED {
            let Some(oldest) = self.lines.pop_front() else {
                return;
            };
            self.bytes -= oldest.len();
        }
    }

    /// The newest lines, oldest first.
    fn last(&self, count: usize) -> String {
        let from = self.lines.len().saturating_sub(count);
        let lines: Vec<&str> = self.lines.range(from..).map(AsRef::as_ref).collect();
        lines.join("\n")
    }
}

fn lines() -> MutexGuard<'static, Lines> {
    LINES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The newest lines of the daemon's log. Reads another process; it may take some seconds.
pub(crate) fn read(count: u32) -> HostJournal {
    let system = unit().and_then(|unit| match journalctl(&unit, count) {
        Ok(lines) => Some(lines),
        Err(error) => {
            tracing::debug!(%error, unit, "cannot read the system's journal");
            None
        }
    });
    let (source, lines) = match system {
        Some(lines) => (JournalSource::Journal, lines),
        None => (JournalSource::Daemon, lines().last(count as usize)),
    };
    HostJournal {
        source,
        journal: newest(&lines, MAX_LOG as usize),
    }
}

/// The unit of systemd that this process is, if its output goes to the journal.
fn unit() -> Option<String> {
    std::env::var_os("JOURNAL_STREAM")?;
    unit_in(&std::fs::read_to_string("/proc/self/cgroup").ok()?)
}

fn unit_in(cgroup: &str) -> Option<String> {
    let path = cgroup.lines().find_map(|line| line.strip_prefix("0::"))?;
    let unit = path.rsplit('/').find(|part| part.ends_with(".service"))?;
    let legal = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    (unit.chars().all(legal) && !unit.starts_with('-')).then(|| unit.to_owned())
}

fn journalctl(unit: &str, count: u32) -> io::Result<String> {
    let scope = if rustix::process::geteuid().is_root() {
        "--unit"
    } else {
        "--user-unit"
    };
    let mut child = Command::new("journalctl")
        .args(["--no-pager", "--quiet", "--output", "short-iso"])
        .args(["--lines", &count.to_string(), scope, unit])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("LC_ALL", "C.UTF-8")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let stdout = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let (said, heard) = mpsc::sync_channel(1);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(4 * u64::from(MAX_LOG)).read_to_end(&mut bytes);
        // Nobody waits any more when it took too long.
        drop(said.send(read.map(|_| bytes)));
    });
    let outcome = heard.recv_timeout(PATIENCE);
    // Also one that has said enough; its end is the reader's.
    let killed = child.kill();
    let status = child.wait()?;
    killed?;
    if reader.join().is_err() {
        tracing::error!("the reader of the journal panicked");
    }
    let bytes = outcome.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    if bytes.is_empty() {
        return Err(io::Error::other(format!(
            "journalctl said nothing: {status}"
        )));
    }
    let said = String::from_utf8_lossy(&bytes);
    Ok(said
        .lines()
        .map(text::printable)
        .collect::<Vec<_>>()
        .join("\n"))
}

/// The end of a text, by whole lines, that is not longer than `bytes` as JSON.
fn newest(lines: &str, bytes: usize) -> String {
    let mut left = bytes;
    let fitting = lines.lines().rev().take_while(|line| {
        let length = text::encoded_length(line) + 2;
        let fits = length <= left;
        left = left.saturating_sub(length);
        fits
    });
    let mut fitting: Vec<&str> = fitting.collect();
    fitting.reverse();
    fitting.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_holds_no_escapes() {
        let mut lines = Lines {
            lines: VecDeque::new(),
            bytes: 0,
        };
        lines.add("first\nsecond \u{1b}[31mred\n");
        assert_eq!(lines.last(1).lines().count(), 1);
        assert!(lines.last(2).starts_with("first\nsecond"));
        assert!(!lines.last(2).contains('\u{1b}'));
        for _ in 0..1_000 {
            lines.add(&"x".repeat(10_000));
        }
        assert!(lines.bytes <= REMEMBERED);
        assert!(!lines.last(usize::MAX).contains("first"));
        assert!(lines.last(1).len() <= MAX_LINE);
    }

    #[test]
    fn the_end_of_a_log_is_whole_lines_that_fit() {
        assert_eq!(newest("a\nb\nc", 7), "b\nc");
        assert_eq!(newest("a\nb\nc", 1_000), "a\nb\nc");
        assert_eq!(newest("a long line", 4), "");
    }

    #[test]
    fn the_unit_is_read_from_the_control_group() {
        for (cgroup, expected) in [
            (
                "0::/system.slice/hyperhive.service\n",
                Some("hyperhive.service"),
            ),
            (
                "0::/user.slice/user-0.slice/user@0.service/app.slice/hive@a.service/x\n",
                Some("hive@a.service"),
            ),
            ("0::/user.slice/session-1.scope\n", None),
            ("12:cpu:/x.service\n", None),
            ("0::/--evil.service\n", None),
            ("", None),
        ] {
            assert_eq!(unit_in(cgroup).as_deref(), expected, "{cgroup:?}");
        }
    }
}
