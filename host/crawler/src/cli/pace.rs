//! Speed of a crawl and the time that it may still take, in the same words wherever a crawl is shown.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use crawler_model::crawl::Counts;

/// Time over which the present rate is measured.
const WINDOW: Duration = Duration::from_secs(10);
/// Shortest time that gives a rate.
const SHORTEST: Duration = Duration::from_secs(1);

/// Speed of a crawl, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Pace {
    /// Pages that come to an end in a second, without those that are not due.
    pub rate: Option<f64>,
    /// Estimate of the time until the pages that are known now have been fetched. A crawl that finds more of them
    /// takes longer.
    pub left: Option<Duration>,
}

impl Pace {
    /// Returns the pace of a crawl with these totals, which ends after `max_pages`.
    pub fn of(counts: &Counts, max_pages: u64, rate: Option<f64>) -> Self {
        let n_waiting = counts.due.min(max_pages.saturating_sub(counts.due_pages()));
        Self::to_the_end(n_waiting, rate)
    }

    /// Returns the pace of a crawl that ends after `n_left` further pages.
    pub(super) fn to_the_end(n_left: u64, rate: Option<f64>) -> Self {
        let left = rate.filter(|rate| *rate > 0.0 && n_left > 0);
        let left = left.map(|rate| Duration::try_from_secs_f64(n_left as f64 / rate));
        Self {
            rate,
            left: left.and_then(Result::ok),
        }
    }

    /// Returns the rate as a cell of a table; empty if it is not known.
    pub(super) fn rate_cell(&self) -> String {
        let rate = self.rate.map(|rate| format!("{rate:.1}/s"));
        rate.unwrap_or_default()
    }

    /// Returns the time left in words, if it is known.
    pub(super) fn left_words(&self) -> Option<String> {
        self.left
            .map(|left| format!("about {} left", rounded(left)))
    }

    /// Returns the time left as a cell of a table; empty if it is not known.
    pub(super) fn left_cell(&self) -> String {
        self.left.map(rounded).unwrap_or_default()
    }
}

impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = self.rate.map(|rate| format!("{rate:.1} pages/s"));
        let known: Vec<String> = rate.into_iter().chain(self.left_words()).collect();
        f.write_str(&known.join(", "))
    }
}

/// Returns a time in its largest units, rounded up.
fn rounded(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let minutes = seconds.div_ceil(60);
    let hours = minutes.div_ceil(60);
    match (seconds, minutes, hours) {
        (..60, _, _) => format!("{seconds}s"),
        (_, ..60, _) => format!("{minutes}m"),
        (_, _, ..25) => format!("{}h {}m", minutes / 60, minutes % 60),
        (_, _, hours) => format!("{}d {}h", hours / 24, hours % 24),
    }
}

/// Numbers of pages that had come to an end, at moments of the last `WINDOW`.
#[derive(Debug, Default)]
pub struct RecentPages {
    /// At most one moment is older than the window.
    seen: VecDeque<(Instant, u64)>,
}

impl RecentPages {
    /// Notes the pages of a crawl at this moment, and returns those of a second over the last `WINDOW`. `None` if the
    /// crawl has been looked at for less than `SHORTEST`.
    pub fn rate(&mut self, now: Instant, n_pages: u64) -> Option<f64> {
        if self.seen.back().is_some_and(|(_, last)| *last > n_pages) {
            // This is another run.
            self.seen.clear();
        }
        self.seen.push_back((now, n_pages));
        while let Some((second, _)) = self.seen.get(1)
            && now.duration_since(*second) >= WINDOW
        {
            self.seen.pop_front();
        }
        let (first, before) = *self.seen.front()?;
        let time = now.duration_since(first);
        (time >= SHORTEST).then(|| (n_pages - before) as f64 / time.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::crawl::Done;

    #[track_caller]
    fn check(due: u64, rate: Option<f64>, expected: &str) {
        let counts = Counts {
            parsed: 100,
            due,
            ..Counts::default()
        };
        assert_eq!(Pace::of(&counts, 10_100, rate).to_string(), expected);
    }

    #[test]
    fn the_time_left_is_that_of_the_pages_that_wait() {
        check(0, None, "");
        check(50, None, "");
        check(0, Some(12.34), "12.3 pages/s");
        check(50, Some(0.0), "0.0 pages/s");
        check(50, Some(10.0), "10.0 pages/s, about 5s left");
        // The crawl ends at --max-pages.
        let most = "10.0 pages/s, about 17m left";
        check(10_000, Some(10.0), most);
        check(1_000_000, Some(10.0), most);
        check(10, Some(1e-300), "0.0 pages/s");
    }

    #[test]
    fn pages_that_are_not_due_use_up_no_time() {
        let mut counts = Counts {
            parsed: 100,
            due: 50,
            ..Counts::default()
        };
        for _ in 0..100 {
            counts.end_done(Done::NotDue);
        }
        let pace = Pace::of(&counts, 200, Some(10.0));
        assert_eq!(pace.to_string(), "10.0 pages/s, about 5s left");
    }

    #[test]
    fn times_are_rounded_up_to_what_an_estimate_is_worth() {
        for (seconds, expected) in [
            (0.2, "1s"),
            (59.0, "59s"),
            (59.1, "1m"),
            (61.0, "2m"),
            (3_599.0, "1h 0m"),
            (5_430.0, "1h 31m"),
            (86_400.0, "24h 0m"),
            (86_401.0, "1d 1h"),
            (200_000.0, "2d 8h"),
        ] {
            let told = rounded(Duration::from_secs_f64(seconds));
            assert_eq!(told, expected, "{seconds}");
        }
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds() {
        let mut pages = RecentPages::default();
        let start = Instant::now();
        let mut rate = |second: u64, n| pages.rate(start + Duration::from_secs(second), n);
        assert_eq!(rate(0, 100), None);
        assert_eq!(rate(1, 200), Some(100.0));
        assert_eq!(rate(5, 200), Some(20.0));
        // The first second is over for longer than the window.
        assert_eq!(rate(11, 250), Some(5.0));
        assert_eq!(rate(30, 250), Some(0.0));
        // Fewer pages are those of another run.
        assert_eq!(rate(31, 10), None);
        assert_eq!(rate(33, 20), Some(5.0));
    }

    #[test]
    fn few_moments_are_remembered() {
        let mut pages = RecentPages::default();
        let start = Instant::now();
        for tenth in 0..1_000 {
            pages.rate(start + Duration::from_millis(100 * tenth), tenth);
        }
        assert!(pages.seen.len() <= 102, "{}", pages.seen.len());
    }
}
