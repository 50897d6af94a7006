//! Where the fake engine is: see its own documentation in `src/bin/fake-engine.rs`.

use std::path::PathBuf;

/// The fake engine's binary: `FAKE_ENGINE_BIN`, or what cargo built next to this executable.
///
/// # Errors
/// When there is none.
pub fn fake_engine() -> anyhow::Result<PathBuf> {
    let build = "-p hive-testkit --bin fake-engine";
    crate::binary::find("fake-engine", "FAKE_ENGINE_BIN", build)
}
