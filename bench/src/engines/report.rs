//! The engine suite as a table.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use super::results::{EngineResults, middle};
use crate::report;

pub(super) fn print(results: &EngineResults) {
    let (host, settings) = (&results.host, &results.settings);
    println!(
        "engine: {} cores, Linux {}; {} rounds{}; medians",
        host.cores,
        host.kernel,
        settings.rounds,
        if settings.quick { " (quick)" } else { "" }
    );
    println!(
        "\n{:<14} {:>12} {:>11} {:>11} {:>11} {:>12}",
        "a cold turn", "wall ms", "CPU ms", "peak MB", "start ms", "installed MB"
    );
    for cost in &results.costs {
        println!(
            "  {:<12} {:>12.1} {:>11.1} {:>11.1} {:>11.1} {:>12.1}",
            cost.engine,
            middle(&cost.turns),
            middle(&cost.cpu),
            middle(&cost.peak_mb),
            middle(&cost.starts),
            cost.installed_mb
        );
    }
    let long = &results.long_session;
    println!(
        "\na session of {:.0} MB: {:.1} ms a turn, an empty one {:.1} ms (× {:.2}); peak {:.1} MB",
        long.megabytes, long.long_ms, long.short_ms, long.ratio, long.peak_mb
    );
    let crowd = &results.crowd;
    println!(
        "{} sessions at once: {:.2} s, {:.0} turns/s",
        crowd.sessions, crowd.seconds, crowd.turns_per_second
    );
    report::targets(&results.targets);
    for note in &results.notes {
        println!("note: {note}");
    }
}
