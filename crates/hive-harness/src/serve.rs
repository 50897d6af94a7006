//! `hive serve`: receive, run a turn, end it, again (T1–T28), and the parts around it.
//!
//! Everything runs on one thread and in one task tree: the loop, the reporter, the control channel,
//! the login service and whoever looks after the background shell are joined by [`run`], and nothing
//! outlives it. While there is no mail nothing moves: the loop is parked in a receive, the control
//! channel in a poll.

mod pace;
mod receive;

use std::{fs, path::Path, time::Duration};

use anyhow::Context;
use hive_wire::{MessageId, ReqId, TurnId, agent::RequeueReason, report::HarnessStatus};
use tokio::{
    signal::unix::{SignalKind, signal},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use crate::{
    bash_daemon,
    boot::{self, BootFiles},
    bus::Bus,
    compaction::Breaker,
    control::{Answers, Desk, orders::Orders},
    credentials::LoginSentinel,
    engine::{self, Engine, command::EngineCommand},
    environment::Environment,
    forwarder::{Forwarder, Variables},
    ident::random_hex,
    lock::InstanceLock,
    login, plugins,
    prompt::brief::Occasion,
    records::Records,
    reporter,
    surface::{HostChannel, Surface, socket::SocketSurface},
};
use pace::{Complaints, OwnWait};
pub(crate) use receive::LAST_WORD;

/// Runs the harness on the agent's socket until it is told to stop by SIGTERM, SIGINT or the host.
///
/// # Errors
/// When it cannot start: the directory is taken, or the engine cannot be used.
pub async fn serve(environment: &Environment, hive: &Path) -> anyhow::Result<()> {
    let orders = Orders::default();
    let surface = SocketSurface::new(&environment.socket);
    let mut terminate = signal(SignalKind::terminate()).context("cannot watch for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot watch for SIGINT")?;
    let running = run(environment, hive, &surface, &orders);
    tokio::pin!(running);
    loop {
        // Signals that arrive while another arm runs are kept by their streams.
        tokio::select! {
            outcome = &mut running => return outcome,
            _ = terminate.recv() => orders.stop(),
            _ = interrupt.recv() => orders.stop(),
        }
    }
}

/// Runs the harness on any surface until it is told to stop. `hive` is this binary.
///
/// # Errors
/// When it cannot start: the directory is taken, or the engine cannot be used.
pub async fn run<S: Surface + HostChannel>(
    environment: &Environment,
    hive: &Path,
    surface: &S,
    orders: &Orders,
) -> anyhow::Result<()> {
    let dir = &environment.places.harness;
    fs::create_dir_all(dir)
        .with_context(|| format!("cannot make the harness directory {}", dir.display()))?;
    // Before anything is written: the files may be those of a harness that runs.
    let _lock = InstanceLock::take(dir)?;
    let boot = BootFiles::write(environment, hive)?;
    let epoch = random_hex(8)?;
    let bus = Bus::new(epoch.parse()?, environment.event_buffer);
    let answers = Answers::default();
    let done = CancellationToken::new();
    let cwd = working_directory(environment)?;
    let (forwarder, variables) = way_out(environment).await?;
    let login_command = environment.login_command.clone();
    let (desk, logins) = login::login(login_command, hive, &cwd, variables.all.clone());
    let desk = Desk {
        orders,
        answers: &answers,
        login: &desk,
        bus: &bus,
        environment,
    };
    let turns = async {
        let outcome = async {
            // Dropped, it ends the programs that it runs; none of them has to do with mail.
            let engine = tokio::select! {
                engine = start_engine(environment, hive, &cwd, &variables, &bus, surface) => engine?,
                () = orders.stopping().cancelled() => return Ok(()),
            };
            let parts = Parts {
                environment,
                surface,
                bus: &bus,
                orders,
                answers: &answers,
            };
            TurnLoop::new(parts, engine, boot, &epoch).take_mail().await;
            anyhow::Ok(())
        }
        .await;
        if let Err(error) = &outcome {
            bus.note(&format!("the harness cannot run: {error:#}"));
        }
        bus.set_status(HarnessStatus::Stopping, None);
        done.cancel();
        outcome
    };
    let (outcome, (), (), (), (), ()) = tokio::join!(
        turns,
        reporter::run(&bus, surface, &done),
        desk.run(surface, &done),
        logins.run(&bus, orders, &done),
        bash_daemon::run(environment, hive, &cwd, &variables.all, &bus, &done),
        async {
            if let Some(forwarder) = forwarder {
                forwarder.run(&done).await;
            }
        },
    );
    outcome
}

/// The port that leads to the host's gateway, where there is one, and what programs have to know of
/// it.
async fn way_out(environment: &Environment) -> anyhow::Result<(Option<Forwarder>, Variables)> {
    let Some(settings) = &environment.gateway else {
        return Ok((None, Variables::default()));
    };
    let forwarder = Forwarder::listen(&settings.socket).await?;
    let variables = forwarder.variables(settings);
    Ok((Some(forwarder), variables))
}

/// The directory of every turn: the agent's own, or the one we are in when there is none (T4).
fn working_directory(environment: &Environment) -> anyhow::Result<std::path::PathBuf> {
    let state = &environment.places.state;
    if state.is_dir() {
        return Ok(state.clone());
    }
    tracing::warn!(dir = %state.display(), "no state directory: turns run in the current one");
    std::env::current_dir().context("there is no state directory and no current one")
}

/// Finds out what the engine can do, before any turn is lost on one that cannot be used.
async fn start_engine(
    environment: &Environment,
    hive: &Path,
    cwd: &Path,
    variables: &Variables,
    bus: &Bus,
    surface: &impl Surface,
) -> anyhow::Result<Engine> {
    let settings = &environment.engine;
    let (program, args) = settings
        .command
        .split_first()
        .context("HIVE_ENGINE names no program")?;
    let mut command = EngineCommand::new(program, cwd);
    command.args = args.iter().map(Into::into).collect();
    let own = variables.all.iter().chain(&settings.env);
    let own = own
        .chain(&variables.engine)
        .map(|(name, value)| (name.into(), value.into()));
    command.env = engine::command::environment(std::env::vars_os(), &own.collect::<Vec<_>>());
    command.permission_prompt = (!settings.consent.is_zero())
        .then(|| format!("mcp__{}__permission_prompt", boot::mcp_config::HYPERHIVE));
    let profile = command.probe().await?;
    bus.set_engine(program, &profile.version);
    plugins::install(&environment.plugins, &command, &profile, bus, surface).await;
    let options = engine::Options {
        timers: engine::Timers {
            silence: settings.silence,
            result_to_exit: settings.exit,
            term_grace: settings.kill_grace,
            ..engine::Timers::default()
        },
        linger: settings.linger,
        guard: hive.to_path_buf(),
    };
    let mut engine = Engine::new(command, profile, options);
    engine.clear_leftovers().await;
    Ok(engine)
}

/// What the loop shares with the parts around it.
#[derive(Debug)]
pub(crate) struct Parts<'a, S> {
    environment: &'a Environment,
    surface: &'a S,
    bus: &'a Bus,
    orders: &'a Orders,
    answers: &'a Answers,
}

/// The loop: one agent, one turn at a time.
#[derive(Debug)]
pub(crate) struct TurnLoop<'a, S> {
    pub(crate) environment: &'a Environment,
    pub(crate) surface: &'a S,
    pub(crate) bus: &'a Bus,
    pub(crate) orders: &'a Orders,
    pub(crate) answers: &'a Answers,
    pub(crate) engine: Engine,
    pub(crate) boot: BootFiles,
    pub(crate) records: Records,
    pub(crate) turns: TurnIds,
    pub(crate) conversation: Conversation,
    pub(crate) complaints: Complaints,
    /// A turn that the operator interrupted: still open, with these messages.
    pub(crate) interrupted: Option<(TurnId, Vec<MessageId>)>,
    sentinel: LoginSentinel,
    /// A wait that the loop has taken upon itself.
    own_wait: Option<OwnWait>,
    /// Outages in a row.
    outages: u32,
    /// Failures in a row.
    failures: u32,
    /// The agent asked for another turn (T13).
    wants_to_go_on: bool,
}

/// What the harness knows of the engine's conversation.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    /// How full the context was after the last inference.
    pub(crate) context_tokens: u64,
    /// When the last turn ended.
    pub(crate) last_turn: Option<Instant>,
    /// The next turn begins a new one, with a brief.
    pub(crate) fresh: Option<Occasion>,
    /// Stops endless compaction.
    pub(crate) breaker: Breaker,
}

/// Names for turns: none is used twice, in no life of the harness.
#[derive(Debug)]
pub(crate) struct TurnIds {
    epoch: String,
    count: u64,
    reqs: u64,
}

impl TurnIds {
    /// The next name.
    pub(crate) fn next(&mut self) -> TurnId {
        self.count += 1;
        format!("t-{}-{}", self.epoch, self.count)
            .parse()
            .expect("hexadecimal digits and a number are a legal id")
    }

    /// A name for the next receive.
    fn next_req(&mut self) -> ReqId {
        self.reqs += 1;
        format!("r-{}", self.reqs)
            .parse()
            .expect("a letter and a number are a legal id")
    }
}

impl<'a, S: Surface + HostChannel> TurnLoop<'a, S> {
    fn new(parts: Parts<'a, S>, engine: Engine, boot: BootFiles, epoch: &str) -> Self {
        let places = &parts.environment.places;
        Self {
            environment: parts.environment,
            surface: parts.surface,
            bus: parts.bus,
            orders: parts.orders,
            answers: parts.answers,
            engine,
            boot,
            records: Records::open(places.harness.join("hyperhive-recent-turns.json")),
            turns: TurnIds {
                epoch: epoch.to_owned(),
                count: 0,
                reqs: 0,
            },
            conversation: Conversation::default(),
            complaints: Complaints::default(),
            interrupted: None,
            sentinel: LoginSentinel::new(&places.state, &places.credentials),
            own_wait: None,
            outages: 0,
            failures: 0,
            wants_to_go_on: false,
        }
    }

    /// Takes mail until the harness is to stop.
    async fn take_mail(mut self) {
        self.bus.set_model(&self.model(), self.window());
        if self.sentinel.is_set() {
            self.wait_for_login().await;
        }
        while !self.orders.is_stopping() {
            self.wait_out().await;
            if self.orders.is_stopping() {
                break;
            }
            self.forced_compaction().await;
            let Some(mail) = self.receive().await else {
                continue;
            };
            if self.orders.held().is_some() || self.orders.paused().is_some() {
                self.give_back(&mail.turn, RequeueReason::RateLimited).await;
                continue;
            }
            self.turn(mail).await;
            self.pause(self.environment.pace.poll).await;
        }
        if let Some((turn, _)) = self.interrupted.take() {
            self.let_go(&turn).await;
        }
        self.engine.shutdown().await;
    }

    /// A short pause that a stop cuts short.
    async fn pause(&self, time: Duration) {
        if time.is_zero() {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(time) => {}
            () = self.orders.stopping().cancelled() => {}
        }
    }
}
