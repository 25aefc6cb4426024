//! The part of all traces that is recorded.

use std::fmt;

/// Part of all traces that is recorded, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleRatio(f64);

/// A ratio is never NaN.
impl Eq for SampleRatio {}

impl SampleRatio {
    /// Returns the ratio, or `None` if the number is not from 0 to 1.
    pub fn new(ratio: f64) -> Option<Self> {
        (0.0..=1.0).contains(&ratio).then_some(Self(ratio))
    }

    /// Returns true if a trace is recorded to which hashing gave this number.
    pub(super) fn takes(self, number: u64) -> bool {
        // 53 bits are those that a float tells apart.
        let drawn = (number >> 11) as f64 / (1_u64 << 53) as f64;
        drawn < self.0
    }
}

impl Default for SampleRatio {
    fn default() -> Self {
        Self(0.01)
    }
}

impl fmt::Display for SampleRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
