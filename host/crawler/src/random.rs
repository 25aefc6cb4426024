//! Numbers that look random and follow from a seed: the same on every machine and in every version.

/// The splitmix64 generator. It is written out here, so that no new version of a dependency changes what is made up.
#[derive(Debug, Clone)]
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates the generator of this seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates a generator for one of many things that are made up from a seed.
    pub(crate) fn of_parts(seed: u64, parts: &[u64]) -> Self {
        let mix = |random: Self, part: &u64| Self(random.mixed() ^ part);
        Self(parts.iter().fold(Self(seed), mix).mixed())
    }

    /// Returns the next number.
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (self.roll() % u64::from(bound)) as u32
    }

    /// Returns one of these words.
    pub(crate) fn pick(&mut self, words: &[&'static str]) -> &'static str {
        words[self.below(words.len() as u32) as usize]
    }

    /// Returns the first number of a copy.
    fn mixed(&self) -> u64 {
        self.clone().roll()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_same_in_every_version() {
        // The first numbers of the reference implementation for this seed.
        let mut random = SplitMix64::new(1_234_567);
        assert_eq!(random.roll(), 6_457_827_717_110_365_317);
        assert_eq!(random.roll(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn each_thing_has_numbers_of_its_own() {
        let of = |seed, parts: &[u64]| SplitMix64::of_parts(seed, parts).roll();
        let all = [
            of(1, &[]),
            of(2, &[]),
            of(1, &[0]),
            of(1, &[1]),
            of(1, &[0, 1]),
            of(1, &[1, 0]),
        ];
        let distinct: std::collections::HashSet<u64> = all.into();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(of(7, &[1, 2]), of(7, &[1, 2]));
    }
}
