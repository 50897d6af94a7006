//! Tables for people: one line a row, columns aligned, no line wider than the terminal.
//!
//! Where a row does not fit, the widest column gives way first. Widths are those of a terminal's
//! cells, so that a name in another script does not bend the table.

use anstyle::Style;
use hive_wire::text::printable;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::out::style;

/// The widest a column gets, however wide the terminal is.
const MAX_COLUMN: usize = 200;
/// The narrowest a column is squeezed to.
const MIN_COLUMN: usize = 4;
/// The blanks between two columns.
const GAP: usize = 2;

/// One value of a row.
pub(super) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// A value in a style of its own.
    pub(super) fn styled(text: &str, style: Style) -> Self {
        Self {
            text: one_line(text),
            style,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::styled(text, style::PLAIN)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::styled(&text, style::PLAIN)
    }
}

/// Rows under a head.
pub(super) struct Table {
    head: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table with these columns.
    pub(super) fn new(head: &[&'static str]) -> Self {
        Self {
            head: head.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row with one cell per column.
    pub(super) fn row<const N: usize>(&mut self, cells: [Cell; N]) {
        debug_assert_eq!(N, self.head.len());
        self.rows.push(cells.into());
    }

    /// The table as lines of at most `width` cells, painted by `paint`.
    pub(super) fn lines(&self, width: usize, paint: impl Fn(Style, &str) -> String) -> Vec<String> {
        let widths = fit(self.natural_widths(), width);
        let head = self.head.iter().map(|text| (*text, style::HEAD));
        let mut lines = vec![line(head, &widths, &paint)];
        for row in &self.rows {
            let cells = row.iter().map(|cell| (cell.text.as_str(), cell.style));
            lines.push(line(cells, &widths, &paint));
        }
        lines
    }

    fn natural_widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|text| text.width()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.text.width()).min(MAX_COLUMN);
            }
        }
        widths
    }
}

/// Takes from the widest column until the whole fits, or nothing more can be taken.
fn fit(mut widths: Vec<usize>, total: usize) -> Vec<usize> {
    let gaps = GAP * widths.len().saturating_sub(1);
    while widths.iter().sum::<usize>().saturating_add(gaps) > total {
        match widths.iter_mut().max() {
            Some(widest) if *widest > MIN_COLUMN => *widest -= 1,
            _ => break,
        }
    }
    widths
}

fn line<'a>(
    cells: impl ExactSizeIterator<Item = (&'a str, Style)>,
    widths: &[usize],
    paint: &impl Fn(Style, &str) -> String,
) -> String {
    let last = cells.len().saturating_sub(1);
    let mut line = String::new();
    for (column, ((text, style), width)) in cells.zip(widths).enumerate() {
        let text = cut(text, *width);
        line.push_str(&paint(style, &text));
        if column < last {
            let blanks = width.saturating_sub(text.width()) + GAP;
            line.extend(std::iter::repeat_n(' ', blanks));
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// `text` on one line and without anything that steers a terminal.
pub(super) fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    printable(&words)
}

/// The beginning of `text` that fits into `width` cells, with an ellipsis where it was cut.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let mut used = 0;
    let mut cut: String = text
        .chars()
        .take_while(|c| {
            used += c.width().unwrap_or(0);
            used <= room
        })
        .collect();
    if width > 0 {
        cut.push('…');
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Table {
        let mut table = Table::new(&["ID", "FROM", "BODY"]);
        table.row([
            "5".into(),
            "ada".into(),
            "a long body that goes on\nand on".into(),
        ]);
        table.row(["12".into(), "日本".into(), "x\x1b[2Jy".into()]);
        table
    }

    fn plain(table: &Table, width: usize) -> Vec<String> {
        table.lines(width, |_, text| text.to_owned())
    }

    #[test]
    fn columns_are_aligned_by_what_a_terminal_shows() {
        assert_eq!(
            plain(&sample(), usize::MAX),
            [
                "ID  FROM  BODY",
                "5   ada   a long body that goes on and on",
                "12  日本  x\\u{1b}[2Jy",
            ]
        );
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let lines = plain(&sample(), 22);
        assert_eq!(lines[1], "5   ada   a long body…");
        for width in 16..60 {
            for line in plain(&sample(), width) {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn a_terminal_of_no_width_does_not_hang() {
        assert_eq!(plain(&sample(), 0).len(), 3);
    }

    #[test]
    fn styles_stay_out_of_the_alignment() {
        let mut table = Table::new(&["A", "B"]);
        table.row([Cell::styled("x", style::GOOD), "y".into()]);
        let lines = table.lines(80, |_, text| format!("<{text}>"));
        assert_eq!(lines, ["<A>  <B>", "<x>  <y>"]);
    }

    #[test]
    fn cutting_respects_wide_characters() {
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abc", 0), "");
    }
}
