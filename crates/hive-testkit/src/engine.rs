//! Where the engines under test are, and what they run beside.

use std::path::PathBuf;

use crate::{bash, binary};

/// The fake engine's binary: `FAKE_ENGINE_BIN`, or what cargo built next to this executable. See
/// its own documentation in `src/bin/fake-engine/main.rs`.
///
/// # Errors
/// When there is none.
pub fn fake_engine() -> anyhow::Result<PathBuf> {
    let build = "-p hive-testkit --bin fake-engine";
    binary::find("fake-engine", "FAKE_ENGINE_BIN", build)
}

/// The native engine's binary: `HIVE_ENGINE_BIN`, or what cargo built next to this executable.
///
/// # Errors
/// When there is none.
pub fn native_engine() -> anyhow::Result<PathBuf> {
    let build = "-p hive-engine --bin hive-engine";
    binary::find("hive-engine", "HIVE_ENGINE_BIN", build)
}

/// Every program that is shipped beside `hive-c0re`.
///
/// # Errors
/// When one is missing.
pub fn beside_the_daemon() -> anyhow::Result<Vec<PathBuf>> {
    let mut programs = vec![
        binary::find("hive", "HIVE_BIN", "-p hive-harness --bin hive")?,
        binary::find(
            "hive-rehearsal",
            "HIVE_REHEARSAL_BIN",
            "-p hive-rehearsal --bin hive-rehearsal",
        )?,
        native_engine()?,
    ];
    programs.extend(bash::programs()?);
    Ok(programs)
}
