//! Random choices that can be made again: every failure names the seed that led to it.

use std::hash::{BuildHasher as _, RandomState};

/// A source of choices. It is not meant for secrets.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Makes a source seeded by `CRAWLER_TEST_SEED`, or by chance; prints how to repeat the choices.
    #[expect(clippy::print_stdout, reason = "whoever sees a failure needs the seed")]
    pub fn new(test: &str) -> Self {
        let given = crate::setting("CRAWLER_TEST_SEED");
        let given = given.and_then(|seed| seed.to_str()?.parse().ok());
        let seed = given.unwrap_or_else(|| RandomState::new().hash_one(test) >> 32);
        println!("{test}: the choices of CRAWLER_TEST_SEED={seed}");
        Self(seed)
    }

    /// Makes a source from a seed: the same seed makes the same choices.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns another source, for work beside this one.
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    /// Returns a number below `n`.
    ///
    /// # Panics
    ///
    /// Panics if `n` is 0.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Returns the next number of SplitMix64.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
