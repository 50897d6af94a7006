//! Randomness that a seed repeats: splitmix64.

use std::ops::Range;

/// A stream of pseudo-random numbers. Not for secrets.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// An independent stream for the `n`-th part of a whole, so that parts running side by side
    /// do not depend on who asks first.
    #[must_use]
    pub fn fork(&self, n: u64) -> Self {
        let mut child = Self(self.0 ^ n.wrapping_mul(0xA24B_AED4_963E_E407));
        child.draw();
        child
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number of the range, which must not be empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.draw() % (range.end - range.start)
    }

    /// An index into something of `len` elements, which must not be empty.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.draw() % len as u64).expect("smaller than a length")
    }

    /// True in `percent` of a hundred cases.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.draw() % 100 < percent
    }

    /// One of the items, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_parts_differ() {
        let three = |mut rng: Rng| [rng.draw(), rng.draw(), rng.within(3..9)];
        let rng = Rng::new(7);
        assert_eq!(three(rng.clone()), three(Rng::new(7)));
        assert_ne!(three(rng.fork(1)), three(rng.fork(2)));
    }
}
