//! What a pattern of the shell matches, so that each file can be judged.

use std::path::{Path, PathBuf};

use globset::Glob;

/// More matches than this are not looked at one by one.
const MAX_MATCHES: usize = 1_000;

/// The paths that `word` stands for, itself among them; `None` when there are too many.
///
/// Whether a word was quoted is not known any more, so it may be a pattern or a plain name.
pub(super) fn expand(cwd: &Path, word: &str) -> Option<Vec<String>> {
    let mut out = vec![word.to_owned()];
    if !word.contains(['*', '?', '[']) {
        return Some(out);
    }
    let start = if word.starts_with('/') {
        PathBuf::from("/")
    } else {
        cwd.to_owned()
    };
    let mut found = vec![start];
    for part in word.split('/').filter(|part| !part.is_empty()) {
        if !part.contains(['*', '?', '[']) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        // Extended patterns and odd classes are beyond this; nothing is known about them.
        let matcher = Glob::new(part).ok()?.compile_matcher();
        let mut next = Vec::new();
        for dir in &found {
            let Ok(entries) = std::fs::read_dir(dir) else {
                continue;
            };
            for entry in entries.flatten() {
                if matcher.is_match(entry.file_name()) {
                    next.push(dir.join(entry.file_name()));
                }
                if next.len() > MAX_MATCHES {
                    return None;
                }
            }
        }
        found = next;
    }
    for path in found {
        // A name that is not UTF-8 cannot be judged as text.
        out.push(path.to_str()?.to_owned());
    }
    Some(out)
}
