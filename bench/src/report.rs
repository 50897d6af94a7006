//! The results as a table for people and as JSON for everything else.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use std::{fs, path::Path};

use anyhow::{Context as _, Result};

use serde::Serialize;

use crate::{peer::Kind, results::Results, targets::Target};

/// Writes the results where `make bench` keeps them.
pub(crate) fn save(results: &impl Serialize, file: &Path) -> Result<()> {
    if let Some(dir) = file.parent() {
        fs::create_dir_all(dir)?;
    }
    let mut json = serde_json::to_string_pretty(results)?;
    json.push('\n');
    fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
    println!("\nWritten to {}", file.display());
    Ok(())
}

pub(crate) fn print(results: &Results) {
    header(results);
    floor(results);
    cycles(results);
    wakes(results);
    syncs(results);
    hive_alone(results);
    targets(&results.targets);
    for note in &results.notes {
        println!("note: {note}");
    }
}

fn header(results: &Results) {
    let host = &results.host;
    let settings = &results.settings;
    println!(
        "queue: {} cores, Linux {}, {}; {} rounds of {} s{}",
        host.cores,
        host.kernel,
        host.filesystem,
        settings.rounds,
        settings.seconds,
        if settings.quick { " (quick)" } else { "" }
    );
    let peers = results
        .peers
        .iter()
        .filter(|peer| peer.peer != Kind::PingPong);
    let peers: Vec<String> = peers
        .map(|peer| format!("{} {}", peer.peer, peer.version))
        .collect();
    println!(
        "peers: {}; figures are medians over rounds",
        peers.join(", ")
    );
}

fn floor(results: &Results) {
    let Some(floor) = &results.floor else { return };
    println!("\nfloor: 4 KiB + fdatasync      per s    p50 µs    p99 µs");
    for (name, row) in [("append", floor.append), ("overwrite", floor.overwrite)] {
        println!(
            "  {name:<22} {:>11.0} {:>9.0} {:>9.0}",
            row.syncs_per_s, row.latency.p50_us, row.latency.p99_us
        );
    }
    let idle = floor.idle_append;
    println!(
        "  {:<22} {:>11} {:>9.0} {:>9.0}",
        "append, idle disk", "", idle.p50_us, idle.p99_us
    );
}

fn cycles(results: &Results) {
    println!("\ncycle: send, receive, ack     per s  send p50 µs  send p99 µs  CPU µs   hive is");
    let mut load = None;
    for row in &results.cycles {
        if load.replace(row.load) != Some(row.load) {
            let plural = if row.load.clients == 1 { "" } else { "s" };
            println!(
                "  {} client{plural}, {} B",
                row.load.clients, row.load.body_bytes
            );
        }
        let mut ratios = results.ratios.iter();
        let ratio = ratios.find(|ratio| ratio.load == row.load && ratio.peer == row.peer);
        let ratio = ratio.map_or(String::new(), |ratio| {
            format!("× {:.2}", ratio.hive_over_peer)
        });
        println!(
            "    {:<20} {:>11.0} {:>12.0} {:>12.0} {:>7.1}   {ratio}",
            row.peer, row.cycles_per_s, row.send.p50_us, row.send.p99_us, row.cpu_us
        );
    }
}

fn wakes(results: &Results) {
    println!("\nwake: send → receiver has it           p50 µs    p99 µs   × idle fdatasync");
    for row in &results.wakes {
        println!(
            "  {:<33} {:>9.0} {:>9.0} {:>18.2}",
            row.peer, row.latency.p50_us, row.latency.p99_us, row.fdatasyncs
        );
    }
}

fn syncs(results: &Results) {
    if results.syncs.is_empty() {
        return;
    }
    println!("\nsyncs at 64 clients                 per cycle   per operation");
    for row in &results.syncs {
        println!(
            "  {:<33} {:>9.3} {:>15.3}",
            row.peer, row.per_cycle, row.per_operation
        );
    }
}

fn hive_alone(results: &Results) {
    if let Some(history) = &results.history {
        println!("\nhistory, 64 clients, 200 B       cycles/s");
        println!(
            "  {:<22} {:>17.0}",
            "empty store", history.empty_cycles_per_s
        );
        println!(
            "  {:<22} {:>17.0}   a cycle takes × {:.2}; starts in {:.0} ms on {:.0} MB",
            format!("{} old messages", history.messages),
            history.full_cycles_per_s,
            history.slowdown,
            history.start_ms,
            history.database_mb
        );
    }
    if let Some(idle) = &results.idle {
        println!(
            "\nidle, {} parked receivers, {} s: {:.2} % CPU, {:.1} MB RSS, {} open files",
            idle.receivers, idle.seconds, idle.cpu_percent, idle.rss_mb, idle.open_files
        );
    }
}

/// What was aimed for, and whether it was reached.
pub(crate) fn targets(targets: &[Target]) {
    println!("\ntargets                                              want      got");
    for target in targets {
        let got = target.got.map_or("-".to_owned(), |got| format!("{got:.2}"));
        let verdict = match target.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "not measured",
        };
        println!(
            "  {:<48} {:>7} {got:>8}   {verdict}",
            target.name, target.want
        );
    }
}
