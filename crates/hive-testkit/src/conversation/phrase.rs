//! What the agents of a conversation say: texts that are awkward to carry, and that follow from
//! their subject alone, so that one who says something again after its death says the same.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::rng::Rng;

/// What has to be escaped somewhere on its way, and what might be trimmed or cut in the middle.
const SIGNS: [char; 16] = [
    'a', 'b', 'c', ' ', ' ', '\n', '\t', '"', '\\', '\u{1}', '{', '[', '\'', 'ä', '🐝', '\u{202e}',
];
/// The most signs of most texts …
const SHORT: u64 = 200;
/// … and of one in a hundred. No text is so long that a reminder of it would go to a file.
const LONG: u64 = 3_500;

/// A text about a subject; the same for the same subject.
pub(super) fn about(subject: &str) -> String {
    let mut hasher = DefaultHasher::new();
    subject.hash(&mut hasher);
    let mut rng = Rng::new(hasher.finish());
    let most = if rng.percent(1) { LONG } else { SHORT };
    let length = rng.within(0..most);
    let signs = (0..length).map(|_| *rng.pick(&SIGNS));
    signs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_has_one_text_and_another_has_another() {
        let texts: std::collections::BTreeSet<String> =
            (0..100).map(|n| about(&format!("a1-{n}"))).collect();
        assert!(texts.len() > 95, "{}", texts.len());
        assert_eq!(about("a1-7"), about("a1-7"));
        assert!(texts.iter().any(|text| text.contains('🐝')));
    }
}
