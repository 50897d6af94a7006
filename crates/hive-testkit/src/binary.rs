//! Where the programs under test are.

use std::path::PathBuf;

use anyhow::{Context, ensure};

/// The program: what the variable names, or what cargo built next to this executable. `build` is
/// what builds it.
///
/// # Errors
/// When there is none; says what to do.
pub(crate) fn find(name: &str, variable: &str, build: &str) -> anyhow::Result<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        let path = PathBuf::from(path);
        ensure!(path.is_file(), "{variable}={} is no file", path.display());
        return Ok(path);
    }
    let this = std::env::current_exe()?;
    let beside = this.ancestors().skip(1).take(2);
    let mut candidates = beside.map(|dir| dir.join(name));
    candidates.find(|path| path.is_file()).with_context(|| {
        format!(
            "there is no {name} next to {}: run `cargo build {build}` with the same profile, or \
             set {variable}",
            this.display()
        )
    })
}
