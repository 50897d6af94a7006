//! Ids in the shapes that the real APIs use, made from a number instead of chance.

/// Makes ids for one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ids(u64);

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

impl Ids {
    /// The ids of the `call`th call, whose conversation has this seed.
    pub(crate) fn new(seed: u64, call: u64) -> Self {
        Self(mix(seed ^ mix(call)))
    }

    /// `msg_01…`, `req_01…`, `toolu_01…`: one per prefix and number.
    pub(crate) fn make(self, prefix: &str, number: usize) -> String {
        let mut id = format!("{prefix}01");
        let mut state = self.0;
        for byte in prefix.bytes() {
            state = mix(state ^ u64::from(byte));
        }
        state = mix(state ^ number as u64);
        for _ in 0..22 {
            state = mix(state);
            id.push(char::from(
                ALPHABET[(state >> 32) as usize % ALPHABET.len()],
            ));
        }
        id
    }
}

/// splitmix64: every bit of the result depends on every bit of the number.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_repeat_for_the_same_call_and_for_no_other() {
        assert_eq!(
            Ids::new(1, 1).make("msg_", 0),
            Ids::new(1, 1).make("msg_", 0)
        );
        let mut seen = HashSet::new();
        for seed in 0..10 {
            for call in 0..10 {
                for number in 0..3 {
                    assert!(seen.insert(Ids::new(seed, call).make("toolu_", number)));
                }
            }
        }
        assert!(seen.iter().all(|id| id.len() == "toolu_01".len() + 22));
    }
}
