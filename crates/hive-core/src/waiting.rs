//! Who waits for whose answer: agents that wait for each other in a circle wait for ever. Pure.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The shortest circle that a question from `asker` to `target` closes, given who waits for whom:
/// those in it, each once, beginning with the asker.
pub(crate) fn circle(waits: &[(String, String)], asker: &str, target: &str) -> Option<Vec<String>> {
    let mut waits_for: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to) in waits {
        waits_for.entry(from).or_default().insert(to);
    }
    // From whom each was reached, on the shortest way from the target.
    let mut reached_from: BTreeMap<&str, Option<&str>> = BTreeMap::from([(target, None)]);
    let mut next = VecDeque::from([target]);
    while let Some(agent) = next.pop_front() {
        if agent == asker {
            break;
        }
        for other in waits_for.get(agent).into_iter().flatten() {
            if !reached_from.contains_key(other) {
                reached_from.insert(other, Some(agent));
                next.push_back(other);
            }
        }
    }
    let mut circle = Vec::new();
    let mut place = Some(asker);
    while let Some(agent) = place {
        circle.push(agent.to_owned());
        place = *reached_from.get(agent)?;
    }
    // The way back is read from its end: asker, …, target; the asker is the one that waits first.
    circle[1..].reverse();
    Some(circle)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn waits(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(from, to): &(&str, &str)| ((*from).to_owned(), (*to).to_owned());
        pairs.iter().map(owned).collect()
    }

    #[test]
    fn m4_a_question_that_closes_a_circle_is_found() {
        for (pairs, asker, target, expected) in [
            (&[][..], "ada", "bob", None),
            (&[("bob", "ada")], "ada", "bob", Some("ada bob")),
            (
                &[("bob", "cid"), ("cid", "ada")],
                "ada",
                "bob",
                Some("ada bob cid"),
            ),
            (&[("bob", "cid"), ("cid", "bob")], "ada", "bob", None),
            (&[("ada", "bob")], "ada", "bob", None),
            (&[], "ada", "ada", Some("ada")),
            (
                &[
                    ("bob", "cid"),
                    ("cid", "dan"),
                    ("dan", "ada"),
                    ("bob", "dan"),
                ],
                "ada",
                "bob",
                Some("ada bob dan"),
            ),
        ] {
            let found = circle(&waits(pairs), asker, target).map(|names| names.join(" "));
            assert_eq!(found.as_deref(), expected, "{pairs:?} {asker} → {target}");
        }
    }

    proptest! {
        /// Against reachability by brute force; and what is found is a circle of real waits.
        #[test]
        fn prop_circles_are_those_that_exist(
            pairs in proptest::collection::vec((0..7_u8, 0..7_u8), 0..20),
            asker in 0..7_u8,
            target in 0..7_u8,
        ) {
            let name = |n: u8| format!("a{n}");
            let mut reach = [[false; 7]; 7];
            for (n, row) in reach.iter_mut().enumerate() {
                row[n] = true;
            }
            for (from, to) in &pairs {
                reach[*from as usize][*to as usize] = true;
            }
            for via in 0..7 {
                for from in 0..7 {
                    for to in 0..7 {
                        reach[from][to] |= reach[from][via] && reach[via][to];
                    }
                }
            }
            let waits: Vec<_> = pairs.iter().map(|(from, to)| (name(*from), name(*to))).collect();
            let found = circle(&waits, &name(asker), &name(target));
            prop_assert_eq!(found.is_some(), reach[target as usize][asker as usize]);
            if let Some(found) = found {
                prop_assert_eq!(&found[0], &name(asker));
                let distinct: BTreeSet<_> = found.iter().collect();
                prop_assert_eq!(distinct.len(), found.len());
                if asker != target {
                    prop_assert_eq!(&found[1], &name(target));
                }
                for pair in found[1..].windows(2) {
                    prop_assert!(waits.contains(&(pair[0].clone(), pair[1].clone())));
                }
                if found.len() > 1 {
                    let last = found[found.len() - 1].clone();
                    prop_assert!(waits.contains(&(last, name(asker))));
                }
            }
        }
    }
}
