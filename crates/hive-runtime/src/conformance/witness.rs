//! What a test hears from an agent, and how it knows that nothing of the agent is left.

use std::{
    cell::RefCell,
    fs::{File, OpenOptions},
    io::{Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{CWD, FileType, Mode, OFlags, mknodat},
};

use super::PATIENCE;
use crate::AgentSpec;

/// The reading end of the pipe that the agent and all that it starts have open as descriptor 9.
#[derive(Debug)]
pub struct Witness {
    pipe: File,
    heard: RefCell<String>,
}

impl Witness {
    /// A witness of an agent that is not started yet. Its script has to begin with
    /// [`Self::PREAMBLE`].
    pub fn of(spec: &AgentSpec) -> Self {
        make(&spec.dirs.state.join("witness"));
        Self::again(spec)
    }

    /// A witness of the agent's next life: the one of its last knows only that all are gone, and
    /// would take that for the end of the next.
    pub fn again(spec: &AgentSpec) -> Self {
        let pipe = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(spec.dirs.state.join("witness"))
            .expect("a pipe can be opened");
        Self {
            pipe,
            heard: RefCell::default(),
        }
    }

    /// Opens the pipe in a shell, where there is one.
    pub const PREAMBLE: &'static str = "[ -p witness ] && exec 9>witness; ";

    /// Waits until the agent says this line.
    pub fn hears(&self, line: &str) {
        self.hears_all(&[line]);
    }

    /// Waits until all these lines were said, in whatever order.
    pub fn hears_all(&self, lines: &[&str]) {
        let mut heard = self.heard.borrow_mut();
        let mut left = lines.to_vec();
        loop {
            left.retain(|line| match heard.find(&format!("{line}\n")) {
                Some(at) => {
                    heard.replace_range(at..=at + line.len(), "");
                    false
                }
                None => true,
            });
            if left.is_empty() {
                return;
            }
            let more = self.read();
            assert!(
                !more.is_empty(),
                "it ended before it said {left:?}: {heard:?}"
            );
            heard.push_str(&more);
        }
    }

    /// Makes sure that no process is left that the agent started, or the agent itself.
    pub fn is_alone(&self) {
        let mut heard = self.heard.borrow_mut();
        loop {
            let more = self.read();
            if more.is_empty() {
                return;
            }
            heard.push_str(&more);
        }
    }

    /// The next that comes; empty when all are gone who could say something.
    fn read(&self) -> String {
        let patience = Timespec::try_from(PATIENCE).expect("a minute fits");
        let mut ready = [PollFd::new(&self.pipe, PollFlags::IN)];
        assert_eq!(
            poll(&mut ready, Some(&patience)),
            Ok(1),
            "nothing was said, and somebody is left who could"
        );
        let mut buffer = [0; 4096];
        let read = (&self.pipe).read(&mut buffer).expect("a pipe can be read");
        String::from_utf8_lossy(&buffer[..read]).into_owned()
    }
}

/// Makes a pipe in the agent's state directory, and holds it open so that nobody has to wait.
pub(super) fn pipe(spec: &AgentSpec, name: &str) -> File {
    let path = spec.dirs.state.join(name);
    make(&path);
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .expect("a pipe can be opened")
}

pub(super) fn say(mut pipe: &File, text: &str) {
    pipe.write_all(text.as_bytes())
        .expect("a pipe can be written");
}

fn make(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o666), 0).expect("a pipe can be made");
    // Whatever our mask is, for an agent that is another user.
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o666)).expect("it is ours");
}
