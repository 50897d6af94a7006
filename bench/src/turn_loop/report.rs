//! The loop's figures as a table for people.

#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

use super::results::LoopResults;
use crate::report;

pub(super) fn print(results: &LoopResults) {
    let host = &results.host;
    println!(
        "loop: {} cores, Linux {}, {}{}",
        host.cores,
        host.kernel,
        host.filesystem,
        if results.settings.quick {
            " (quick)"
        } else {
            ""
        }
    );
    println!(
        "\n{:<41} {:>17} {:>18} {:>7} {:>7} {:>7}",
        "turns, ms", "send → spawn", "without engine", "turn", "engine", "bare"
    );
    println!(
        "{:>41} {:>8} {:>8} {:>9} {:>8}",
        "n", "p50", "p99", "p50", "p99"
    );
    for cost in &results.turns {
        let bare = cost.bare_ms.map_or("-".to_owned(), |ms| format!("{ms:.1}"));
        println!(
            "  {:<33} {:>5} {:>8.2} {:>8.2} {:>9.2} {:>8.2} {:>7.1} {:>7.1} {bare:>7}",
            format!("{}, {}", cost.engine, cost.way),
            cost.turns,
            cost.send_to_spawn.p50_us / 1e3,
            cost.send_to_spawn.p99_us / 1e3,
            cost.own.p50_us / 1e3,
            cost.own.p99_us / 1e3,
            cost.turn_ms,
            cost.engine_ms
        );
        if let Some(began) = cost.send_to_engine {
            println!(
                "  {:<33} {:>5} {:>8.2} {:>8.2}",
                "  until its first moment",
                "",
                began.p50_us / 1e3,
                began.p99_us / 1e3
            );
        }
    }
    println!("\nbursts                     one process per turn      warm");
    for burst in &results.bursts {
        println!(
            "  {:<24} {:>20.2} s {:>7.2} s   × {:.2}",
            format!("{} messages, {}", burst.messages, burst.engine),
            burst.process_s,
            burst.warm_s,
            burst.ratio
        );
    }
    let idle = &results.idle;
    println!(
        "\nidle harness, {} s: {:.2} % CPU, {:.1} MB RSS, {} open files",
        idle.seconds, idle.cpu_percent, idle.rss_mb, idle.open_files
    );
    report::targets(&results.targets);
    for note in &results.notes {
        println!("note: {note}");
    }
}
