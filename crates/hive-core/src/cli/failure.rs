//! How a command fails: an exit code for scripts, what happened and what to do for people.

use std::{io, process::ExitCode, time::Duration};

use hive_wire::{ErrorCode, WireError, client::ClientError};

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(super) enum Failure {
    /// Whoever read our output has gone (`| head`): there is nobody left to tell.
    ReaderGone,
    /// Something to tell the operator.
    Reported(Box<Report>),
}

/// What the operator and their scripts are told.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    /// The process's exit code.
    pub(super) exit: Exit,
    /// A word to react to: a code of the wire, or one of the command line's own.
    pub(super) code: &'static str,
    /// What happened.
    pub(super) message: String,
    /// What to do next; may be empty.
    pub(super) hint: String,
}

/// The exit codes that scripts rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Exit {
    Failure = 1,
    Usage = 2,
    NotFound = 3,
    Unreachable = 4,
    Denied = 5,
    Conflict = 6,
    TimedOut = 7,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// The one table from what the daemon says to what a script sees.
fn exit_of(code: ErrorCode) -> Exit {
    match code {
        ErrorCode::BadRequest | ErrorCode::LineTooLong => Exit::Usage,
        ErrorCode::NotFound => Exit::NotFound,
        ErrorCode::ShuttingDown => Exit::Unreachable,
        ErrorCode::Denied => Exit::Denied,
        ErrorCode::Conflict
        | ErrorCode::NoOpenTurn
        | ErrorCode::TurnEnded
        | ErrorCode::Replaced
        | ErrorCode::Superseded => Exit::Conflict,
        ErrorCode::Slow => Exit::TimedOut,
        ErrorCode::UnknownCommand
        | ErrorCode::LimitReached
        | ErrorCode::DiskFull
        | ErrorCode::Storage
        | ErrorCode::Unsupported
        | ErrorCode::Unknown => Exit::Failure,
    }
}

impl Failure {
    /// A failure of the command line itself.
    pub(super) fn new(exit: Exit, code: &'static str, message: impl Into<String>) -> Self {
        Self::Reported(Box::new(Report {
            exit,
            code,
            message: message.into(),
            hint: String::new(),
        }))
    }

    /// The same failure with what to do next.
    #[must_use]
    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Self::Reported(report) = &mut self {
            report.hint = hint.into();
        }
        self
    }

    /// A failure to read or write something here, named by `what`.
    pub(super) fn io(what: &str, error: &io::Error) -> Self {
        Self::new(Exit::Failure, "io", format!("cannot {what}: {error}"))
    }

    /// What to tell the operator, when there is somebody to tell.
    pub(super) fn report(&self) -> Option<&Report> {
        match self {
            Self::ReaderGone => None,
            Self::Reported(report) => Some(report),
        }
    }

    /// A failure to write to stdout.
    pub(super) fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::ReaderGone
        } else {
            Self::io("write to stdout", error)
        }
    }
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self::Reported(Box::new(Report {
            exit: exit_of(error.code),
            code: error.code.as_str(),
            message: error.message,
            hint: error.hint,
        }))
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unreachable { path, source } => {
                unreachable(&path.to_string_lossy(), &source)
            }
            ClientError::Lost => Self::new(
                Exit::Unreachable,
                "lost",
                "the daemon went away before it answered",
            )
            .hint("whether the command was carried out is not known; look, then try again"),
            ClientError::TimedOut { after } => Self::new(
                Exit::TimedOut,
                "timed_out",
                format!("the daemon did not answer within {}", seconds(after)),
            )
            .hint("whether the command was carried out is not known; look, then try again"),
            ClientError::Refused(error) => error.into(),
            ClientError::Protocol(what) => Self::new(
                Exit::Failure,
                "protocol",
                format!("cannot understand the daemon: {what}"),
            )
            .hint("`hive-c0re doctor` compares the versions of the daemon and of this command"),
        }
    }
}

fn unreachable(path: &str, source: &io::Error) -> Failure {
    let message = format!("cannot reach the daemon at {path}: {source}");
    if source.kind() == io::ErrorKind::PermissionDenied {
        return Failure::new(Exit::Denied, "denied", message)
            .hint("the hive belongs to another user: run this as that user");
    }
    Failure::new(Exit::Unreachable, "unreachable", message).hint(
        "is it running? start it with `hive-c0re serve` or `hive-c0re up`; \
         another hive is chosen with --root or HIVE_ROOT",
    )
}

fn seconds(duration: Duration) -> String {
    format!("{} s", duration.as_secs_f32())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_code_has_its_exit_code() {
        let table = [
            (ErrorCode::BadRequest, 2, "bad_request"),
            (ErrorCode::LineTooLong, 2, "line_too_long"),
            (ErrorCode::Slow, 7, "slow"),
            (ErrorCode::UnknownCommand, 1, "unknown_command"),
            (ErrorCode::NotFound, 3, "not_found"),
            (ErrorCode::Denied, 5, "denied"),
            (ErrorCode::Conflict, 6, "conflict"),
            (ErrorCode::LimitReached, 1, "limit_reached"),
            (ErrorCode::NoOpenTurn, 6, "no_open_turn"),
            (ErrorCode::TurnEnded, 6, "turn_ended"),
            (ErrorCode::Replaced, 6, "replaced"),
            (ErrorCode::Superseded, 6, "superseded"),
            (ErrorCode::DiskFull, 1, "disk_full"),
            (ErrorCode::Storage, 1, "storage"),
            (ErrorCode::ShuttingDown, 4, "shutting_down"),
            (ErrorCode::Unsupported, 1, "unsupported"),
            (ErrorCode::Unknown, 1, "unknown"),
        ];
        let covered = |code: &ErrorCode| table.iter().any(|(known, ..)| known == code);
        assert!(ErrorCode::ALL.iter().all(covered));
        for (code, exit, word) in table {
            let failure = Failure::from(WireError::new(code, "m").hint("h"));
            let report = failure.report().unwrap();
            assert_eq!(report.exit as u8, exit, "{code:?}");
            assert_eq!(report.code, word);
            assert_eq!((report.message.as_str(), report.hint.as_str()), ("m", "h"));
        }
    }

    #[test]
    fn failures_of_the_connection_have_their_exit_codes() {
        let unreachable = |kind| ClientError::Unreachable {
            path: "/run/x/host.sock".into(),
            source: io::Error::from(kind),
        };
        let after = Duration::from_millis(1500);
        let table = [
            (unreachable(io::ErrorKind::NotFound), 4, "/run/x/host.sock"),
            (
                unreachable(io::ErrorKind::ConnectionRefused),
                4,
                "/run/x/host.sock",
            ),
            (
                unreachable(io::ErrorKind::PermissionDenied),
                5,
                "/run/x/host.sock",
            ),
            (ClientError::Lost, 4, "went away"),
            (ClientError::TimedOut { after }, 7, "1.5 s"),
            (ClientError::Protocol("odd".into()), 1, "odd"),
        ];
        for (error, exit, says) in table {
            let failure = Failure::from(error);
            let report = failure.report().unwrap();
            assert_eq!(report.exit as u8, exit, "{report:?}");
            assert!(report.message.contains(says), "{report:?}");
            assert!(!report.hint.is_empty(), "{report:?}");
        }
    }

    #[test]
    fn a_gone_reader_is_no_error() {
        let gone = io::Error::from(io::ErrorKind::BrokenPipe);
        assert!(matches!(Failure::output(&gone), Failure::ReaderGone));
        let full = io::Error::from(io::ErrorKind::StorageFull);
        assert!(Failure::output(&full).report().is_some());
    }
}
