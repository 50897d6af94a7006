//! Reading the arguments, and answering those that make no sense.

use std::{ffi::OsString, process::ExitCode};

use clap::Parser;

use super::{
    Cli,
    failure::{Exit, Report},
    out::Out,
};

/// Reads `args`. Help and errors are printed here; with `--json` an error is JSON too.
pub(super) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, ExitCode> {
    let args: Vec<OsString> = args.into_iter().collect();
    let wants_json = args
        .iter()
        .take_while(|arg| *arg != "--")
        .any(|arg| arg == "--json");
    let error = match Cli::try_parse_from(args) {
        Ok(cli) => return Ok(cli),
        Err(error) => error,
    };
    if wants_json && error.use_stderr() {
        Out::of_process(true).report(&report(&error));
    } else {
        // There is no place left to say that stdout or stderr is closed.
        error.print().ok();
    }
    Err(if error.use_stderr() {
        Exit::Usage.into()
    } else {
        ExitCode::SUCCESS
    })
}

fn report(error: &clap::Error) -> Report {
    let text = error.render().to_string();
    let message = text.lines().next().unwrap_or_default();
    Report {
        exit: Exit::Usage,
        code: "usage",
        message: message.trim_start_matches("error: ").to_owned(),
        hint: "`hive-c0re help` lists the commands".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_of_an_error_is_what_json_says() {
        for (args, says) in [
            (
                &["hive-c0re", "--json", "spawn", "Ada"][..],
                "invalid value 'Ada'",
            ),
            (
                &["hive-c0re", "--json"],
                "'hive-c0re' requires a subcommand",
            ),
            (&["hive-c0re", "lost"], "unrecognized subcommand 'lost'"),
        ] {
            let report = report(&Cli::try_parse_from(args).unwrap_err());
            assert!(report.message.starts_with(says), "{report:?}");
            assert_eq!(report.exit, Exit::Usage);
        }
    }
}
