//! Long outputs: head and tail stay, the whole goes to a file.

use std::{
    fs::DirBuilder,
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

/// The longest text that a tool hands to the model.
pub(super) const MAX_TEXT: usize = 30_000;

/// `text`, cut in the middle if it is long, with a note that says where the whole is.
pub(super) fn fit(text: &str, spill_dir: &Path) -> String {
    if text.len() <= MAX_TEXT {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(MAX_TEXT / 2)];
    let tail = &text[text.ceil_char_boundary(text.len() - MAX_TEXT / 2)..];
    let left_out = text.len() - head.len() - tail.len();
    let place = match spill(text.as_bytes(), spill_dir) {
        Ok(path) => format!("the whole output is in {path}"),
        Err(error) => format!("the whole output could not be kept: {error}"),
    };
    format!("{head}\n\n… {left_out} bytes left out; {place} …\n\n{tail}")
}

fn spill(bytes: &[u8], dir: &Path) -> std::io::Result<String> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let path = dir.join(format!("{}.txt", uuid::Uuid::new_v4().simple()));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    file.write_all(bytes)?;
    Ok(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_stay_and_the_whole_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!("BEGIN{}END", "ü".repeat(40_000));
        let cut = fit(&text, dir.path());
        assert!(cut.starts_with("BEGIN") && cut.ends_with("END") && cut.len() < 31_000);
        let file = std::fs::read_dir(dir.path())
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .path();
        assert!(cut.contains(file.to_str().unwrap()));
        assert_eq!(std::fs::read_to_string(file).unwrap(), text);
        assert_eq!(fit("short", dir.path()), "short");
    }
}
