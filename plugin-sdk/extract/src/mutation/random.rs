//! Random numbers that are the same on every run: xorshift.

/// A source of choices: the same seed makes the same choices. It is not meant for secrets.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Starts the choices of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `n`.
    ///
    /// # Panics
    ///
    /// Panics if `n` is 0.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n
    }

    /// Returns one of these texts.
    ///
    /// # Panics
    ///
    /// Panics if there are none.
    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}
