//! The suite's figures as a table for people.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use super::RuntimeResults;
use crate::report;

pub(super) fn print(results: &RuntimeResults) {
    let host = &results.host;
    println!(
        "runtimes: {} cores, Linux {}, {}{}",
        host.cores,
        host.kernel,
        host.filesystem,
        if results.quick { " (quick)" } else { "" }
    );
    println!(
        "\n{:<12} {:>12} {:>18} {:>12} {:>24}",
        "ms, median", "spawn", "until first turn", "bare tool", "over process and tool"
    );
    let shown = |ms: Option<f64>| ms.map_or("-".to_owned(), |ms| format!("{ms:.1}"));
    for start in &results.starts {
        println!(
            "  {:<10} {:>12.1} {:>18.1} {:>12} {:>24}",
            start.runtime,
            start.spawn_ms,
            start.first_turn_ms,
            shown(start.bare_ms),
            shown(start.over_bare_ms)
        );
    }
    println!(
        "\n{:<18} {:>12} {:>12} {:>14} {:>14}",
        "idle agents", "PSS MB each", "daemon MB", "daemon CPU %", "all agents %"
    );
    for crowd in &results.crowds {
        println!(
            "  {:<16} {:>12.1} {:>12.1} {:>14.2} {:>14.2}",
            format!("{} {}", crowd.agents, crowd.runtime),
            crowd.pss_mb_each,
            crowd.daemon_pss_mb,
            crowd.daemon_cpu_percent,
            crowd.agents_cpu_percent
        );
    }
    report::targets(&results.targets);
    for note in &results.notes {
        println!("note: {note}");
    }
}
