//! The engine suite: the same task on the native engine and on what people use instead.
//!
//! The task is one turn that goes on with a session: the model has a file read and answers. Every
//! engine asks a scripted model on this machine that answers at once, so that what is left is the
//! engine's own cost. One after the other in each round, so that a busy moment hits all of them.

#![expect(clippy::print_stderr, reason = "progress, beside the report on stdout")]

mod contender;
mod crowd;
mod long_session;
mod measure;
mod model;
mod report;
mod results;

use anyhow::Result;

use crate::{host::Host, options::Options, report as common};
use contender::Contender;
use model::Model;
use results::{Cost, EngineResults, Settings};

/// Runs the suite, prints it and saves it.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let rounds = if options.quick { 5 } else { 20 };
    let model = Model::start().await?;
    let (contenders, mut notes) = contender::all(&model).await?;
    let mut costs: Vec<Cost> = contenders.iter().map(Cost::of).collect();
    let mut lost = vec![false; contenders.len()];
    for round in 0..rounds {
        eprintln!("engines: round {} of {rounds}", round + 1);
        for (number, contender) in contenders.iter().enumerate() {
            if lost[number] {
                continue;
            }
            match sample(contender).await {
                Ok((start, turn)) => costs[number].add(start, turn),
                Err(error) => {
                    lost[number] = true;
                    let note = format!("{} is left out: {error:#}", contender.name());
                    eprintln!("note: {note}");
                    notes.push(note);
                }
            }
        }
    }
    let native = &contenders[0];
    eprintln!("a long session");
    let long_session = long_session::measure(native, rounds).await?;
    eprintln!("a crowd");
    let crowd = crowd::measure(native, if options.quick { 30 } else { 100 }).await?;
    let mut results = EngineResults {
        schema: 1,
        suite: "engine",
        host: Host::of(&std::env::temp_dir())?,
        settings: Settings {
            quick: options.quick,
            rounds,
        },
        costs: costs
            .into_iter()
            .filter(|cost| !cost.turns.is_empty())
            .collect(),
        long_session,
        crowd,
        targets: Vec::new(),
        notes,
    };
    results.targets = results.judge();
    report::print(&results);
    common::save(&results, &options.results("engine")?)
}

/// One start that does nothing, and one turn.
async fn sample(contender: &Contender) -> Result<(measure::Run, measure::Run)> {
    let start = measure::run(contender.version()).await?;
    let turn = contender.turn().await?;
    Ok((start, turn))
}
