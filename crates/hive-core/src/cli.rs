//! The operator's command line: `hive-c0re [--root DIR] [--json] CMD`.
//!
//! One file per command under `cli/`, each with its arguments and what it does. A command talks to
//! the daemon over the admin socket and to nothing else: no rule of the hive is decided here, and
//! no file of a live hive is written. Data goes to stdout, everything else to stderr; what `--json`
//! prints is a promise kept in `cli/json.rs`, apart from what the wire looks like today.
//!
//! `up` and `serve` are declared here, so that help, completions and man pages have them, and run
//! by the daemon's side of this crate.

mod age;
mod answer;
mod approve;
mod compact;
mod completions;
mod confirm;
mod control;
mod dead;
mod deny;
mod destroy;
mod discard;
pub mod doctor;
mod failure;
mod history;
mod inbox;
mod interrupt;
mod json;
mod kill;
mod lifecycle;
mod lift;
mod link;
mod list;
mod live;
mod login;
mod logs;
mod man;
mod model;
mod new_session;
mod out;
mod pause;
mod pending;
mod permissions;
mod questions;
mod rebuild;
mod receipt;
mod redeliver;
mod request_spawn;
mod restart;
mod resume;
mod schedules;
mod send;
mod spawn;
mod spend;
mod start;
mod stats;
mod status;
mod stop_all;
mod table;
mod tail;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod turns;
mod update_all;
mod usage;
mod welcome;

pub use welcome::{report_fatal, welcome};

use std::{path::PathBuf, process::ExitCode};

use clap::{Args, Parser, Subcommand};
use hive_wire::client::{Client, Options};

use self::{
    failure::{Exit, Failure},
    out::Out,
};

/// The name of the binary, as help, completions and man pages give it.
const BINARY: &str = "hive-c0re";

/// Runs a hive of agents and talks to it.
#[derive(Debug, Parser)]
#[command(name = BINARY, version, max_term_width = 100)]
#[command(
    after_long_help = "Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, \
    4 daemon unreachable, 5 denied, 6 conflict or stale, 7 time-out."
)]
pub struct Cli {
    /// Keep everything of the hive under this directory.
    #[arg(
        long,
        global = true,
        env = "HIVE_ROOT",
        value_name = "DIR",
        display_order = 900
    )]
    pub root: Option<PathBuf>,

    /// Print JSON, for scripts.
    #[arg(long, global = true, display_order = 901)]
    pub json: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Cmd,
}

impl Cli {
    /// Reads the process's arguments. Asking for help or a version, and arguments that make no
    /// sense, are answered here: the error is the code to exit with.
    ///
    /// # Errors
    /// The exit code, when there is nothing left to do.
    pub fn from_args() -> Result<Self, ExitCode> {
        usage::parse(std::env::args_os())
    }
}

/// Every command: those that are the daemon, and those that talk to it.
#[derive(Debug, Subcommand)]
pub enum Cmd {
    /// Set up what is missing, run the hive in the foreground, and stop what it started at the end.
    Up(UpArgs),
    /// Run the daemon in the foreground; SIGTERM drains it and leaves agents running.
    Serve(ServeArgs),
    /// A command to a running daemon.
    #[command(flatten)]
    Client(ClientCommand),
}

/// Arguments of `up`.
#[derive(Debug, Args)]
pub struct UpArgs {
    /// The dashboard's port, instead of the configured one.
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
}

/// Arguments of `serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The dashboard's port, instead of the configured one.
    #[arg(long, value_name = "N")]
    pub port: Option<u16>,
}

/// The commands that talk to a running daemon, or need none.
#[derive(Debug, Subcommand)]
pub enum ClientCommand {
    /// List the agents.
    List(list::ListArgs),
    /// Show the daemon and what it holds.
    Status(status::StatusArgs),
    /// Create an agent.
    Spawn(spawn::SpawnArgs),
    /// Stop an agent and leave it stopped.
    Kill(kill::KillArgs),
    /// Start an agent that is stopped or failed.
    Start(start::StartArgs),
    /// Stop an agent and start it again.
    Restart(restart::RestartArgs),
    /// Make everything of an agent anew, then stop and start it.
    Rebuild(rebuild::RebuildArgs),
    /// Make every agent anew that was made with another revision of the hive.
    UpdateAll(update_all::UpdateAllArgs),
    /// Stop every agent that the hive runs.
    StopAll(stop_all::StopAllArgs),
    /// Remove an agent; its mail, state and credentials stay.
    Destroy(destroy::DestroyArgs),
    /// Show what waits for your decision, with what it would change.
    Pending(pending::PendingArgs),
    /// Say yes to a request, and have it carried out.
    Approve(approve::ApproveArgs),
    /// Say no to a request.
    Deny(deny::DenyArgs),
    /// Ask for a new agent, to be decided like any other request.
    RequestSpawn(request_spawn::RequestSpawnArgs),
    /// Send a message as the operator.
    Send(send::SendArgs),
    /// Show the operator's mail, or mark some of it as dealt with.
    Inbox(inbox::InboxArgs),
    /// Show what became of a message.
    Receipt(receipt::ReceiptArgs),
    /// Show messages of the past, newest first.
    History(history::HistoryArgs),
    /// List messages that were given up on.
    Dead(dead::DeadArgs),
    /// Put a dead letter back into its inbox.
    Redeliver(redeliver::RedeliverArgs),
    /// Throw a dead letter away.
    Discard(discard::DiscardArgs),
    /// List questions that wait for an answer.
    Questions(questions::QuestionsArgs),
    /// Answer a question.
    Answer(answer::AnswerArgs),
    /// Show or change what agents may do.
    Permissions(permissions::PermissionsArgs),
    /// Show what is scheduled for agents, or cancel one.
    Schedules(schedules::SchedulesArgs),
    /// Show the newest events, or what an agent's harness wrote.
    Logs(logs::LogsArgs),
    /// Follow events as they happen.
    Tail(tail::TailArgs),
    /// Stop the turn that an agent is in; it keeps its messages until the next one comes.
    Interrupt(interrupt::InterruptArgs),
    /// Compact an agent's session.
    Compact(compact::CompactArgs),
    /// Let an agent's next turn begin a new session.
    NewSession(new_session::NewSessionArgs),
    /// Choose the model of an agent's next turns.
    Model(model::ModelArgs),
    /// Log an agent's engine in.
    Login(login::LoginArgs),
    /// End the wait for a usage limit, for every agent on the same credential.
    Lift(lift::LiftArgs),
    /// Let an agent, or the whole hive, begin no turn; mail waits.
    Pause(pause::PauseArgs),
    /// Let an agent, or the whole hive, begin turns again.
    Resume(resume::ResumeArgs),
    /// Show what agents spent, and how today's budgets stand.
    Spend(spend::SpendArgs),
    /// Show an agent's turns, newest first.
    Turns(turns::TurnsArgs),
    /// Show what the turns add up to, by agent and day.
    Stats(stats::StatsArgs),
    /// Print a new one-time link to the dashboard or to an agent's page.
    Link(link::LinkArgs),
    /// Check this machine and this hive.
    Doctor(doctor::DoctorArgs),
    /// Print completions for a shell.
    Completions(completions::CompletionsArgs),
    /// Print the man page, or write one page per command.
    Man(man::ManArgs),
}

/// Where a hive's things lie, as far as the command line needs to know.
#[derive(Debug, Clone)]
pub struct Places {
    /// The directory that must exist and be the operator's own: `--root`, or the default one.
    pub root: PathBuf,
    /// The file that a running daemon keeps locked, with its pid inside.
    pub lock: PathBuf,
    /// The operator's admin socket.
    pub host_socket: PathBuf,
    /// The database, which the command line looks at and never writes.
    pub database: PathBuf,
}

/// Runs one command and says how it went, on stderr and as an exit code.
pub async fn run_client_command(command: ClientCommand, places: &Places, json: bool) -> ExitCode {
    let mut out = Out::of_process(json);
    let exit = run_in(&mut out, command, places).await;
    exit.map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// Runs one command; `None` is success. A reader that has gone has what it wanted.
async fn run_in(out: &mut Out, command: ClientCommand, places: &Places) -> Option<Exit> {
    let result = dispatch(command, places, out).await;
    match result.and_then(|()| out.flush()) {
        Ok(()) | Err(Failure::ReaderGone) => None,
        Err(Failure::Reported(report)) => {
            out.report(&report);
            Some(report.exit)
        }
    }
}

async fn dispatch(command: ClientCommand, places: &Places, out: &mut Out) -> Result<(), Failure> {
    let host = &Client::new(places.host_socket.clone(), Options::default());
    match command {
        ClientCommand::List(args) => args.run(host, out).await,
        ClientCommand::Status(args) => args.run(host, out).await,
        ClientCommand::Spawn(args) => args.run(host, out).await,
        ClientCommand::Kill(args) => args.run(host, out).await,
        ClientCommand::Start(args) => args.run(host, out).await,
        ClientCommand::Restart(args) => args.run(host, out).await,
        ClientCommand::Rebuild(args) => args.run(host, out).await,
        ClientCommand::UpdateAll(args) => args.run(host, out).await,
        ClientCommand::StopAll(args) => args.run(host, out).await,
        ClientCommand::Destroy(args) => args.run(host, out).await,
        ClientCommand::Pending(args) => args.run(host, out).await,
        ClientCommand::Approve(args) => args.run(host, out).await,
        ClientCommand::Deny(args) => args.run(host, out).await,
        ClientCommand::RequestSpawn(args) => args.run(host, out).await,
        ClientCommand::Send(args) => args.run(host, out).await,
        ClientCommand::Inbox(args) => args.run(host, out).await,
        ClientCommand::Receipt(args) => args.run(host, out).await,
        ClientCommand::History(args) => args.run(host, out).await,
        ClientCommand::Dead(args) => args.run(host, out).await,
        ClientCommand::Redeliver(args) => args.run(host, out).await,
        ClientCommand::Discard(args) => args.run(host, out).await,
        ClientCommand::Questions(args) => args.run(host, out).await,
        ClientCommand::Answer(args) => args.run(host, out).await,
        ClientCommand::Permissions(args) => args.run(host, out).await,
        ClientCommand::Schedules(args) => args.run(host, out).await,
        ClientCommand::Logs(args) => args.run(host, out).await,
        ClientCommand::Tail(args) => args.run(host, out).await,
        ClientCommand::Interrupt(args) => args.run(host, out).await,
        ClientCommand::Compact(args) => args.run(host, out).await,
        ClientCommand::NewSession(args) => args.run(host, out).await,
        ClientCommand::Model(args) => args.run(host, out).await,
        ClientCommand::Login(args) => args.run(host, out).await,
        ClientCommand::Lift(args) => args.run(host, out).await,
        ClientCommand::Pause(args) => args.run(host, out).await,
        ClientCommand::Resume(args) => args.run(host, out).await,
        ClientCommand::Spend(args) => args.run(host, out).await,
        ClientCommand::Turns(args) => args.run(host, out).await,
        ClientCommand::Stats(args) => args.run(host, out).await,
        ClientCommand::Link(args) => args.run(host, out).await,
        ClientCommand::Doctor(args) => args.run(places, host, out).await,
        ClientCommand::Completions(args) => args.run(out),
        ClientCommand::Man(args) => args.run(out),
    }
}
