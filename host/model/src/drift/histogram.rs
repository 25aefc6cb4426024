//! Counts of numbers in buckets, two for each power of two. There are at most 227 buckets, so that a histogram is bounded,
//! and the sum of two is exact.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Number of buckets above and below zero each.
const BUCKETS: i16 = 113;
/// Number of the bucket in which 1 is.
const ONE: f64 = 33.0;

/// Counts of numbers by their size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Histogram(BTreeMap<i16, u64>);

impl Histogram {
    /// Counts a number. One that is not finite is left out.
    pub(super) fn add(&mut self, number: f64) {
        if number.is_finite() {
            *self.0.entry(bucket(number)).or_default() += 1;
        }
    }

    /// Adds the counts of another histogram.
    pub(super) fn merge(&mut self, other: &Self) {
        for (bucket, n) in &other.0 {
            *self.0.entry(*bucket).or_default() += n;
        }
    }

    /// Returns the number of numbers.
    pub(super) fn n(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the largest difference between the shares of numbers below any bound, from 0 to 1. It is 0 if one of the
    /// histograms is empty.
    pub(super) fn distance(&self, other: &Self) -> f64 {
        let (n, n_other) = (self.n() as f64, other.n() as f64);
        if n == 0.0 || n_other == 0.0 {
            return 0.0;
        }
        let mut steps: BTreeMap<i16, f64> = BTreeMap::new();
        for (bucket, count) in &self.0 {
            *steps.entry(*bucket).or_default() += *count as f64 / n;
        }
        for (bucket, count) in &other.0 {
            *steps.entry(*bucket).or_default() -= *count as f64 / n_other;
        }
        let mut below = 0.0_f64;
        let differences = steps.values().map(|step| {
            below += step;
            below.abs()
        });
        differences.fold(0.0, f64::max).min(1.0)
    }

    /// Returns the number below which this share of the numbers is, to about 20 %.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = (self.n() as f64 * share).ceil().max(1.0);
        let mut below = 0.0;
        let found = self.0.iter().find(|(_, n)| {
            below += **n as f64;
            below >= wanted
        });
        found.map(|(bucket, _)| middle(*bucket))
    }
}

/// Returns the bucket of a number: 0 for zero, and the same numbers above and below it.
fn bucket(number: f64) -> i16 {
    if number == 0.0 {
        return 0;
    }
    let size = (number.abs().log2() * 2.0).floor() + ONE;
    let place = size.clamp(1.0, f64::from(BUCKETS)) as i16;
    if number < 0.0 { -place } else { place }
}

/// Returns the middle of a bucket.
fn middle(bucket: i16) -> f64 {
    if bucket == 0 {
        return 0.0;
    }
    let size = ((f64::from(bucket.abs()) - ONE + 0.5) / 2.0).exp2();
    f64::from(bucket.signum()) * size
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[f64]) -> Histogram {
        let mut histogram = Histogram::default();
        numbers.iter().for_each(|number| histogram.add(*number));
        histogram
    }

    #[test]
    fn distance_is_the_share_of_numbers_that_have_moved() {
        let before = of(&[10.0, 20.0, 30.0, 40.0]);
        assert_eq!(before.distance(&before), 0.0);
        assert_eq!(before.distance(&of(&[1.0, 2.0])), 1.0);
        assert_eq!(before.distance(&of(&[1.0, 1.0, 30.0, 40.0])), 0.5);
        assert_eq!(before.distance(&of(&[])), 0.0);
    }

    #[test]
    fn numbers_of_any_size_have_a_bucket() {
        let any = [f64::MAX, f64::MIN, f64::MIN_POSITIVE, 0.0, -0.0, f64::NAN];
        let histogram = of(&any);
        assert_eq!(histogram.n(), 5);
        assert!(histogram.0.keys().all(|bucket| bucket.abs() <= BUCKETS));
        assert_eq!(of(&[0.0, -1.0, 1.0]).0.len(), 3);
    }

    #[test]
    fn quantiles_are_near_the_numbers() {
        let numbers: Vec<f64> = (1..=100).map(f64::from).collect();
        let median = of(&numbers).quantile(0.5).unwrap();
        assert!((40.0..=62.0).contains(&median), "{median}");
        let lowest = of(&[-8.0, 3.0]).quantile(0.0).unwrap();
        assert!((-11.4..=-8.0).contains(&lowest), "{lowest}");
        assert_eq!(of(&[]).quantile(0.5), None);
    }
}
