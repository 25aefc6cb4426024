//! Chance that is the same on every run: xorshift.

/// A source of choices: the same seed makes the same ones. Not for secrets.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// The choices of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `n`.
    ///
    /// # Panics
    ///
    /// Where `n` is 0: there is none.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n
    }

    /// One of these.
    ///
    /// # Panics
    ///
    /// Where there are none.
    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}
