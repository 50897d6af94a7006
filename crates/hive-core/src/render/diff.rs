//! Changes of files as lines with their numbers: from two texts, or from a unified diff.

use schemars::JsonSchema;
use serde::Serialize;
use similar::{ChangeTag, TextDiff};

use super::{node::Node, paint};

/// The most lines that are shown of a change.
const MAX_LINES: usize = 5_000;
/// How many unchanged lines stand around changed ones.
const CONTEXT: usize = 3;

/// A change of one file.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct FileChange {
    /// Which file, as far as it is known.
    pub(crate) path: String,
    /// Its lines, hunk after hunk.
    pub(crate) lines: Vec<Line>,
    /// How many lines were added …
    pub(crate) added: usize,
    /// … and removed.
    pub(crate) removed: usize,
    /// Whether more was changed than is shown.
    pub(crate) is_cut: bool,
}

/// One line of a change.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "DiffLine")]
pub(crate) struct Line {
    /// `+`, `-`, a space, or `@` before a new place in the file.
    pub(crate) sign: char,
    /// Its number before …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<usize>,
    /// … and after the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) new: Option<usize>,
    /// What it says.
    pub(crate) inside: Vec<Node>,
}

/// The change between two texts.
pub(crate) fn between(path: &str, before: &str, after: &str) -> FileChange {
    let diff = TextDiff::from_lines(before, after);
    let mut change = FileChange {
        path: path.to_owned(),
        ..FileChange::default()
    };
    for (place, group) in diff.grouped_ops(CONTEXT).iter().enumerate() {
        if place > 0 {
            change.push('@', None, None, "⋯");
        }
        for one in group
            .iter()
            .flat_map(|operation| diff.iter_changes(operation))
        {
            let sign = match one.tag() {
                ChangeTag::Equal => ' ',
                ChangeTag::Delete => '-',
                ChangeTag::Insert => '+',
            };
            let number = |index: Option<usize>| index.map(|index| index + 1);
            change.push(
                sign,
                number(one.old_index()),
                number(one.new_index()),
                one.value(),
            );
        }
    }
    change
}

/// The changes that a unified diff describes.
pub(crate) fn unified(text: &str) -> Vec<FileChange> {
    let mut changes: Vec<FileChange> = Vec::new();
    let (mut old, mut new) = (0, 0);
    // Lines that the current hunk still has: a removed `-- a` is no header.
    let (mut old_left, mut new_left) = (0_usize, 0_usize);
    for line in text.lines() {
        let in_hunk = old_left > 0 || new_left > 0;
        if !in_hunk && (line.starts_with("diff ") || is_header(line)) {
            header(&mut changes, line);
            continue;
        }
        if changes.is_empty() {
            changes.push(FileChange::default());
        }
        let Some(change) = changes.last_mut() else {
            continue;
        };
        if let Some(places) = hunk(line).filter(|_| !in_hunk) {
            ((old, old_left), (new, new_left)) = places;
            change.push('@', None, None, line);
            continue;
        }
        let (sign, rest) = match line.chars().next() {
            Some(sign @ ('+' | '-' | ' ')) if in_hunk => (sign, &line[1..]),
            None if in_hunk => (' ', ""),
            _ => {
                change.push('@', None, None, line);
                continue;
            }
        };
        let (has_old, has_new) = (sign != '+', sign != '-');
        change.push(sign, has_old.then_some(old), has_new.then_some(new), rest);
        old += usize::from(has_old);
        new += usize::from(has_new);
        old_left = old_left.saturating_sub(usize::from(has_old));
        new_left = new_left.saturating_sub(usize::from(has_new));
    }
    changes
}

impl FileChange {
    fn push(&mut self, sign: char, old: Option<usize>, new: Option<usize>, text: &str) {
        match sign {
            '+' => self.added += 1,
            '-' => self.removed += 1,
            _ => {}
        }
        if self.lines.len() >= MAX_LINES {
            self.is_cut = true;
            return;
        }
        let text = text.strip_suffix('\n').unwrap_or(text);
        self.lines.push(Line {
            sign,
            old,
            new,
            inside: paint::paint(text),
        });
    }
}

fn is_header(line: &str) -> bool {
    [
        "--- ",
        "+++ ",
        "index ",
        "new file",
        "deleted file",
        "old mode",
        "new mode",
        "similarity",
        "rename ",
    ]
    .iter()
    .any(|start| line.starts_with(start))
}

/// Takes a line that says which file follows.
fn header(changes: &mut Vec<FileChange>, line: &str) {
    let is_new = match changes.last() {
        Some(last) => !last.lines.is_empty(),
        None => true,
    };
    if is_new
        || (line.starts_with("diff ") && !changes.last().is_some_and(|last| last.path.is_empty()))
    {
        changes.push(FileChange::default());
    }
    let Some(change) = changes.last_mut() else {
        return;
    };
    for (start, prefix) in [("--- ", "a/"), ("+++ ", "b/")] {
        let Some(path) = line.strip_prefix(start) else {
            continue;
        };
        let path = path.split('\t').next().unwrap_or(path);
        if path != "/dev/null" {
            change.path = path.strip_prefix(prefix).unwrap_or(path).to_owned();
        }
    }
}

/// Where a hunk begins and how many lines it has, before and after: `@@ -1,2 +3,4 @@`.
fn hunk(line: &str) -> Option<((usize, usize), (usize, usize))> {
    let inner = line.strip_prefix("@@ -")?;
    let (old, rest) = inner.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let range = |text: &str| -> Option<(usize, usize)> {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    Some((range(old)?, range(new)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(change: &FileChange) -> String {
        change.lines.iter().map(|line| line.sign).collect()
    }

    #[test]
    fn two_texts_become_numbered_lines() {
        let change = between("a.toml", "one\ntwo\nthree\n", "one\n2\nthree\n");
        assert_eq!(signs(&change), " -+ ");
        assert_eq!((change.added, change.removed), (1, 1));
        assert_eq!((change.lines[1].old, change.lines[1].new), (Some(2), None));
        assert_eq!(
            (change.lines[3].old, change.lines[3].new),
            (Some(3), Some(3))
        );
        assert!(between("x", "same\n", "same\n").lines.is_empty());
    }

    #[test]
    fn a_unified_diff_becomes_files() {
        let text = "diff --git a/agent.toml b/agent.toml\nindex 1..2 100644\n--- a/agent.toml\n\
                    +++ b/agent.toml\n@@ -1,2 +1,2 @@\n model = \"a\"\n--- removed\n+++ added\n\
                    diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n\
                    @@ -0,0 +1 @@\n+hello\n\\ No newline at end of file\n";
        let changes = unified(text);
        let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
        assert_eq!(paths, ["agent.toml", "new"]);
        assert_eq!(
            signs(&changes[0]),
            "@ -+",
            "a removed `-- removed` is no header"
        );
        assert_eq!(signs(&changes[1]), "@+@");
        assert_eq!(changes[1].lines[1].new, Some(1));
    }

    #[test]
    fn whatever_is_given_is_shown_somehow() {
        for text in [
            "",
            "@@",
            "@@ -x +y @@\n+a",
            "+++ ",
            "just words\nmore",
            "@@ -1,9999999999999999999999 +1 @@\n a",
        ] {
            let lines: usize = unified(text).iter().map(|change| change.lines.len()).sum();
            assert!(lines <= text.lines().count(), "{text}");
        }
        let long = between("x", "", &"line\n".repeat(MAX_LINES + 10));
        assert!(long.is_cut && long.lines.len() == MAX_LINES && long.added == MAX_LINES + 10);
    }
}
