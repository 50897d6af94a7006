//! `hive-engine`: reads the command line, builds what a turn needs, runs it, exits.

use std::{collections::BTreeMap, io::Write as _, process::ExitCode};

use clap::{Parser as _, error::ErrorKind};
use hive_engine::{
    cli::{Cli, Command},
    permissions_test, run,
    sandbox::confine,
    startup::StartError,
};

fn main() -> ExitCode {
    // A process of the same user cannot read our memory or environment, where the key is.
    // Where the system refuses, nothing else is possible.
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable).ok();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let env: BTreeMap<String, String> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    match &cli.command {
        None => {}
        Some(Command::Confine(confinement)) => return fail(&confine::run(confinement)),
        Some(Command::Permissions { command }) => {
            return match permissions_test::report(command, &env) {
                Ok((text, code)) => {
                    drop(write!(std::io::stdout(), "{text}"));
                    ExitCode::from(code)
                }
                Err(StartError::Message(text)) => fail(&text),
                Err(StartError::NoSession(error, _)) => fail(&error.to_string()),
            };
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Ok(runtime) => {
            let code = runtime.block_on(run::run(cli.turn, env));
            // What still blocks, such as a search, is not waited for.
            runtime.shutdown_background();
            ExitCode::from(code)
        }
        Err(error) => fail(&format!("Error: the runtime could not be started: {error}")),
    }
}

fn fail(text: &str) -> ExitCode {
    drop(writeln!(std::io::stderr(), "{text}"));
    ExitCode::FAILURE
}

/// Mistakes on the command line end with 1 and in the words of `claude`.
fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            drop(error.print());
            ExitCode::SUCCESS
        }
        ErrorKind::UnknownArgument => {
            let name = error.get(clap::error::ContextKind::InvalidArg);
            let name = name.map_or_else(String::new, ToString::to_string);
            fail(&format!("error: unknown option '{name}'"))
        }
        _ => {
            drop(error.print());
            ExitCode::FAILURE
        }
    }
}
