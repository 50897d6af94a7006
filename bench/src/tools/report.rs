//! The tools' figures as a table for people.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use super::results::ToolsResults;
use crate::report;

pub(super) fn print(results: &ToolsResults) {
    let host = &results.host;
    println!(
        "tools: {} cores, Linux {}, {}{}",
        host.cores,
        host.kernel,
        host.filesystem,
        if results.settings.quick {
            " (quick)"
        } else {
            ""
        }
    );
    println!("\n{:<24} {:>9} {:>9}", "one call, µs", "p50", "p99");
    for calls in &results.calls {
        let latency = calls.latency;
        println!(
            "  {:<22} {:>9.1} {:>9.1}",
            calls.what, latency.p50_us, latency.p99_us
        );
    }
    let waiting = &results.waiting;
    println!(
        "\n{} agents with {} reminders and {} schedules, {} s: {:.2} % CPU",
        waiting.agents, waiting.reminders, waiting.schedules, waiting.seconds, waiting.cpu_percent
    );
    let attack = &results.attack;
    println!("\n{:<24} {:>9} {:>9}", "another's send, µs", "p50", "p99");
    let crowded = format!("{} idle beside it", attack.idle_connections);
    for (what, latency) in [
        ("quiet", attack.quiet),
        (&crowded, attack.crowded),
        ("under attack", attack.attacked),
    ] {
        println!(
            "  {what:<22} {:>9.1} {:>9.1}",
            latency.p50_us, latency.p99_us
        );
    }
    report::targets(&results.targets);
}
