//! Histogram of durations in buckets whose width grows with the duration: a percentile is at most 1/16 too long.
//!
//! It takes a fixed amount of memory, and threads add to it without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of buckets from one power of two to the next, as a power of two.
const BITS: u32 = 4;
const PER_POWER: usize = 1 << BITS;
/// Number of buckets. The last one begins after 17 minutes and has all longer durations.
const N_BUCKETS: usize = PER_POWER * 37;

/// Durations by buckets.
pub(super) struct Histogram {
    buckets: [AtomicU64; N_BUCKETS],
}

impl Histogram {
    pub(super) const fn new() -> Self {
        Self {
            buckets: [const { AtomicU64::new(0) }; N_BUCKETS],
        }
    }

    pub(super) fn clear(&self) {
        self.buckets
            .iter()
            .for_each(|bucket| bucket.store(0, Ordering::Relaxed));
    }

    pub(super) fn add(&self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.buckets[bucket_of(nanos)].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of durations.
    pub(super) fn count(&self) -> u64 {
        self.counts().sum()
    }

    /// Returns the end of the bucket that has this percentile of the durations; zero if there are no durations.
    pub(super) fn percentile(&self, percent: u64) -> Duration {
        let n_below = (self.count() * percent).div_ceil(100);
        let mut n = 0;
        let found = self.counts().position(|count| {
            n += count;
            count > 0 && n >= n_below
        });
        found.map_or(Duration::ZERO, |bucket| {
            Duration::from_nanos(end_of(bucket))
        })
    }

    fn counts(&self) -> impl Iterator<Item = u64> {
        let buckets = self.buckets.iter();
        buckets.map(|bucket| bucket.load(Ordering::Relaxed))
    }
}

/// Returns the bucket of a duration: its highest bits.
fn bucket_of(nanos: u64) -> usize {
    let n_bits = u64::BITS - nanos.leading_zeros();
    let power = n_bits.saturating_sub(BITS + 1);
    let within = usize::try_from(nanos >> power).expect("it has at most five bits");
    let bucket = within + PER_POWER * power as usize;
    bucket.min(N_BUCKETS - 1)
}

/// Returns the longest duration of a bucket, in nanoseconds.
fn end_of(bucket: usize) -> u64 {
    // The bit before the highest ones stands for the power.
    let power = (bucket / PER_POWER).saturating_sub(1);
    let within = (bucket - PER_POWER * power) as u64;
    ((within + 1) << power) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_and_are_narrow() {
        for bucket in 0..N_BUCKETS - 1 {
            let end = end_of(bucket);
            assert_eq!(bucket_of(end), bucket, "{end}");
            assert_eq!(bucket_of(end + 1), bucket + 1, "{end}");
            let width = end_of(bucket + 1) - end;
            assert!(width <= 1 + end / PER_POWER as u64, "{end} {width}");
        }
        assert_eq!(bucket_of(u64::MAX), N_BUCKETS - 1);
        let minutes = Duration::from_nanos(end_of(N_BUCKETS - 2)).as_secs() / 60;
        assert_eq!(minutes, 17);
    }

    #[track_caller]
    fn check(durations: impl IntoIterator<Item = u64>, p50: u64, p99: u64) {
        let histogram = Histogram::new();
        let mut n = 0;
        for micros in durations {
            histogram.add(Duration::from_micros(micros));
            n += 1;
        }
        assert_eq!(histogram.count(), n);
        for (percent, exact) in [(50, p50), (99, p99)] {
            let found = histogram.percentile(percent);
            let exact = Duration::from_micros(exact);
            assert!(found >= exact, "{percent}: {found:?} {exact:?}");
            assert!(
                found <= exact + exact / 16,
                "{percent}: {found:?} {exact:?}"
            );
        }
        histogram.clear();
        assert_eq!(histogram.count(), 0);
        assert_eq!(histogram.percentile(50), Duration::ZERO);
    }

    #[test]
    fn percentiles_are_those_of_the_durations() {
        check([], 0, 0);
        check([7], 7, 7);
        check([1_000, 7], 7, 1_000);
        check(1..=1_000, 500, 990);
        check((0..1_000).map(|n| n * n), 499 * 499, 989 * 989);
    }
}
