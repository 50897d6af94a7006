//! Lists that fit into one line of the wire.

use hive_store::sqlite::MAX_ROWS;

/// How many bytes of texts a list has, so that it fits.
const LIST_BYTES: usize = 768 * 1024;

/// Cuts the end of a list off that does not fit, and says whether there was one. A first row stays,
/// however long it is.
pub(super) fn cut<Row>(rows: &mut Vec<Row>, size: impl Fn(&Row) -> usize) -> bool {
    let mut bytes = 0;
    let fitting = rows.iter().take(MAX_ROWS as usize).take_while(|row| {
        bytes += size(row);
        bytes <= LIST_BYTES
    });
    let fitting = fitting.count().max(1);
    let is_cut = fitting < rows.len();
    rows.truncate(fitting);
    is_cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_by_its_rows_and_by_its_bytes() {
        let most = MAX_ROWS as usize;
        for (what, count, size, kept, is_cut) in [
            ("empty", 0, 1, 0, false),
            ("as many as there may be", most, 1, most, false),
            ("one more", most + 1, 1, most, true),
            ("as long as it may be", 4, LIST_BYTES / 4, 4, false),
            ("a byte more", 4, LIST_BYTES / 4 + 1, 3, true),
            ("long rows only", 2, LIST_BYTES + 1, 1, true),
            ("one long row", 1, LIST_BYTES + 1, 1, false),
        ] {
            let mut rows: Vec<usize> = (0..count).collect();
            assert_eq!(cut(&mut rows, |_| size), is_cut, "{what}");
            assert!(rows.into_iter().eq(0..kept), "{what}");
        }
    }
}
