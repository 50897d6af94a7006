//! What would change, for a person to read: a unified diff in which nothing is left out silently.

use sha2::{Digest, Sha256};
use similar::TextDiff;

use super::tree::{File, Tree, hex};

/// The most bytes of a file whose lines are shown.
const MAX_SHOWN_FILE: usize = 64 * 1024;
/// The most bytes of a whole diff; files beyond it are shown by their size and hash.
const MAX_SHOWN: usize = 256 * 1024;

/// The differences between what is and what would be. Files that are too large or no text are shown
/// by their size and hash, so that every changed file has at least a line.
pub(crate) fn readable(old: &Tree, new: &Tree) -> String {
    let mut paths: Vec<&String> = old.iter().chain(new.iter()).map(|(path, _)| path).collect();
    // The configuration itself comes first: it is what matters most.
    paths.sort_by_key(|path| (!path.starts_with("agent."), path.as_str()));
    paths.dedup();
    let mut shown = String::new();
    for path in paths {
        let (before, after) = (old.get(path), new.get(path));
        if before == after {
            continue;
        }
        let lines = file(path, before, after);
        if shown.len() + lines.len() > MAX_SHOWN {
            shown.push_str(&summary(path, before, after));
        } else {
            shown.push_str(&lines);
        }
    }
    shown
}

fn file(path: &str, before: Option<&File>, after: Option<&File>) -> String {
    let (Some(old), Some(new)) = (text(before), text(after)) else {
        return summary(path, before, after);
    };
    let mut lines = String::new();
    if let (Some(before), Some(after)) = (before, after)
        && before.mode != after.mode
    {
        lines.push_str(&format!(
            "mode of {path}: {} → {}\n",
            before.mode.octal(),
            after.mode.octal()
        ));
    }
    let name = |side: &str, there: bool| match there {
        true => format!("{side}/{path}"),
        false => "/dev/null".to_owned(),
    };
    if old == new && before.is_some() == after.is_some() {
        return lines;
    }
    let diff = TextDiff::from_lines(old, new);
    let mut unified = diff.unified_diff();
    let unified = unified
        .context_radius(3)
        .header(&name("a", before.is_some()), &name("b", after.is_some()));
    let unified = unified.to_string();
    if unified.is_empty() {
        // An empty file comes or goes.
        return lines + &summary(path, before, after);
    }
    lines.push_str(&unified);
    lines
}

/// A file as text that a terminal and a page can show; `None` when it is none.
fn text(file: Option<&File>) -> Option<&str> {
    let Some(file) = file else {
        return Some("");
    };
    if file.content.len() > MAX_SHOWN_FILE {
        return None;
    }
    let text = std::str::from_utf8(&file.content).ok()?;
    let is_plain = |c: char| c == '\n' || c == '\t' || !is_deceptive(c);
    text.chars().all(is_plain).then_some(text)
}

/// Characters that make a text look like another: controls, and marks that turn its direction or
/// take no room.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn summary(path: &str, before: Option<&File>, after: Option<&File>) -> String {
    let side = |file: Option<&File>| match file {
        None => "not there".to_owned(),
        Some(file) => format!(
            "{} bytes, mode {}, sha256 {}",
            file.content.len(),
            file.mode.octal(),
            hex(&Sha256::digest(&file.content))
        ),
    };
    format!("not shown: {path}\n-{}\n+{}\n", side(before), side(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c6_every_change_has_a_line() {
        let old = Tree::of("agent.toml", "model = \"haiku\"\n");
        let new = Tree::of("agent.toml", "model = \"opus\"\n");
        assert_eq!(readable(&old, &old), "");
        let diff = readable(&old, &new);
        assert_eq!(
            diff,
            "--- a/agent.toml\n+++ b/agent.toml\n@@ -1 +1 @@\n-model = \"haiku\"\n+model = \"opus\"\n"
        );
        let added = readable(&Tree::default(), &new);
        assert!(
            added.starts_with("--- /dev/null\n+++ b/agent.toml\n"),
            "{added}"
        );
        let removed = readable(&new, &Tree::default());
        assert!(removed.contains("+++ /dev/null\n"), "{removed}");
        for content in [
            vec![0_u8, 1, 2],
            vec![b'x'; MAX_SHOWN_FILE + 1],
            b"\x1b[2Jgone".to_vec(),
            "a\u{202e}b".as_bytes().to_vec(),
            Vec::new(),
        ] {
            let diff = readable(&Tree::default(), &Tree::of("blob", content));
            assert!(diff.starts_with("not shown: blob\n-not there\n+"), "{diff}");
            assert!(diff.contains("sha256 "), "{diff}");
            assert!(!diff.contains('\u{1b}'), "{diff}");
        }
    }

    #[test]
    fn a_long_diff_shows_the_configuration_and_the_rest_by_hash() {
        let mut new = Tree::of("agent.toml", "model = \"opus\"\n");
        for n in 0..10 {
            let file = Tree::of("x", "line\n".repeat(10_000))
                .get("x")
                .unwrap()
                .clone();
            new.add(format!("a{n}"), file).unwrap();
        }
        let diff = readable(&Tree::default(), &new);
        assert!(diff.starts_with("--- /dev/null\n+++ b/agent.toml"));
        assert!(diff.len() < MAX_SHOWN + 10_000);
        for n in 0..10 {
            assert!(diff.contains(&format!("a{n}\n")), "a{n}");
        }
    }
}
