//! Counts that parts of a process keep about their work, for whoever shows them.
//!
//! A part owns its counts and adds to them as it works; they are read when somebody asks for the metrics of the process.
//! Nothing here is global, and nothing knows how metrics are written. All counts only grow for as long as the process
//! lives, and take a bounded amount of memory.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Word under which everything is counted that is beyond the bound of a [`WordCounts`].
pub const OTHERS: &str = "others";
/// Largest number of words that are told apart, besides [`OTHERS`].
pub const WORDS_MAX: usize = 64;
/// Largest number of bytes of a word. A longer one is counted under [`OTHERS`].
pub const WORD_BYTES: usize = 40;

/// Count of events.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to the count.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    /// Returns the count so far.
    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts of events by a word, such as a reason. The number of words is bounded, whatever they are made of.
#[derive(Debug, Default)]
pub struct WordCounts(Mutex<BTreeMap<String, u64>>);

impl WordCounts {
    /// Creates counts that have these words from the start, with 0. A reader of metrics sees the first event of a word only
    /// if it has read the word before.
    pub fn starting_with<'w>(words: impl IntoIterator<Item = &'w str>) -> Self {
        let words = words.into_iter().map(|word| (word.to_owned(), 0));
        Self(Mutex::new(words.collect()))
    }

    /// Adds to the count of a word. A word that is known costs no allocation.
    pub fn add(&self, word: &str, n: u64) {
        add_word(&mut self.lock(), word, n);
    }

    /// Returns the counts so far.
    pub fn read(&self) -> BTreeMap<String, u64> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds to the count of a word, within the bounds of a [`WordCounts`].
pub fn add_word(counts: &mut BTreeMap<String, u64>, word: &str, n: u64) {
    if let Some(sum) = counts.get_mut(word) {
        *sum = sum.saturating_add(n);
        return;
    }
    // The others have a place of their own from the first of them on.
    let n_told_apart = counts.len() - usize::from(counts.contains_key(OTHERS));
    let is_beyond = n_told_apart >= WORDS_MAX || word.len() > WORD_BYTES;
    let word = if is_beyond { OTHERS } else { word };
    let sum = counts.entry(word.to_owned()).or_default();
    *sum = sum.saturating_add(n);
}

/// Ends of the buckets of [`Durations`], in seconds. Longer durations are in one more bucket.
pub const BUCKETS: [f64; 13] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
];

/// Durations of events by buckets. Threads add to it without a lock.
#[derive(Debug, Default)]
pub struct Durations {
    /// Numbers of durations in each bucket, the longest of all last.
    buckets: [AtomicU64; BUCKETS.len() + 1],
    /// Sum of all durations, in nanoseconds.
    nanos: AtomicU64,
}

/// Durations up to one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct DurationsRead {
    /// Sum of all durations, in seconds.
    pub seconds: f64,
    /// Numbers of durations in each bucket, with the end of the bucket; the last one has no end.
    pub buckets: Vec<(f64, u64)>,
}

impl Durations {
    /// Adds a duration.
    pub fn add(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let bucket = BUCKETS.partition_point(|end| *end < seconds);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Returns the durations so far.
    pub fn read(&self) -> DurationsRead {
        let ends = BUCKETS.into_iter().chain([f64::INFINITY]);
        let counts = self.buckets.iter().map(|n| n.load(Ordering::Relaxed));
        DurationsRead {
            seconds: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64(),
            buckets: ends.zip(counts).collect(),
        }
    }
}

impl DurationsRead {
    /// Returns the number of durations.
    pub fn n(&self) -> u64 {
        self.buckets.iter().map(|(_, n)| n).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_beyond_the_bound_are_counted_as_others() {
        let counts = WordCounts::default();
        counts.add("first", 2);
        counts.add("first", 3);
        counts.add(&"x".repeat(WORD_BYTES + 1), 7);
        for n in 0..1_000 {
            counts.add(&format!("word-{n}"), 1);
        }
        let read = counts.read();
        assert_eq!(read.len(), WORDS_MAX + 1);
        assert_eq!(read["first"], 5);
        assert_eq!(read.values().sum::<u64>(), 5 + 7 + 1_000);
        assert_eq!(read[OTHERS], 7 + 1_000 - (WORDS_MAX as u64 - 1));
    }

    #[test]
    fn known_words_are_there_before_their_first_event() {
        let counts = WordCounts::starting_with(["ok", "error"]);
        counts.add("ok", 2);
        let expected = [("error".to_owned(), 0), ("ok".to_owned(), 2)];
        assert_eq!(counts.read(), expected.into());
    }

    #[test]
    fn a_duration_is_in_the_first_bucket_that_holds_it() {
        let durations = Durations::default();
        for millis in [0, 1, 2, 500, 501, 61_000] {
            durations.add(Duration::from_millis(millis));
        }
        let read = durations.read();
        assert_eq!(read.n(), 6);
        assert!((read.seconds - 62.004).abs() < 1e-6, "{read:?}");
        let filled = read.buckets.iter().filter(|(_, n)| *n > 0);
        let filled: Vec<_> = filled.copied().collect();
        let expected = [(0.001, 2), (0.0025, 1), (0.5, 1), (1.0, 1)];
        assert_eq!(filled[..4], expected);
        assert_eq!(filled[4], (f64::INFINITY, 1));
    }
}
