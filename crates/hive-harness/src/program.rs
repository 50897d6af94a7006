//! Where the companions of this binary are.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The program's path, when it is there: as given, or by its name beside this binary and in PATH.
pub(crate) fn find(program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_path_buf());
    }
    let beside = env::current_exe()
        .ok()
        .and_then(|exe| exe.parent().map(Path::to_path_buf));
    let path = env::var_os("PATH").unwrap_or_default();
    let mut dirs = beside.into_iter().chain(env::split_paths(&path));
    dirs.find_map(|dir| Some(dir.join(program)).filter(|found| found.is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b5_a_name_is_looked_for_beside_this_binary_and_a_path_taken_as_it_is() {
        let this = env::current_exe().unwrap();
        let name = Path::new(this.file_name().unwrap());
        assert_eq!(find(name), Some(this.clone()));
        assert_eq!(find(&this), Some(this));
        assert_eq!(find(Path::new("no-such-program")), None);
        assert_eq!(find(Path::new("/no/such/program")), None);
    }
}
