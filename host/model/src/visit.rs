//! Visits of a page over runs: when it is due again, and how the time between two visits follows its changes.
//!
//! The time between two visits is halved if the page had changed, and grows by a half if it had not. These are the default
//! rates of StormCrawler's adaptive scheduler; Nutch has 20 % and 40 %. A page that changes at random is asked for about as
//! often as it changes.

use super::settings::CrawlSettings;
use super::time::UnixMillis;

/// Last visit of a page: its server has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Visit {
    /// Time of the answer.
    pub at: UnixMillis,
    /// Milliseconds to the next visit; 0 if none was decided, because pages were asked for in every run.
    pub interval_ms: u64,
}

/// Bounds on the time between two visits of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Intervals {
    min_ms: u64,
    max_ms: u64,
}

impl Intervals {
    /// Returns the bounds that settings ask for. `None` if every page is asked for in every run.
    pub fn of(settings: &CrawlSettings) -> Option<Self> {
        let min_ms = settings.revisit_ms.filter(|ms| *ms > 0)?;
        let max_ms = settings.revisit_max_ms.unwrap_or_default().max(min_ms);
        Some(Self { min_ms, max_ms })
    }

    fn clamp(self, interval_ms: u64) -> u64 {
        interval_ms.clamp(self.min_ms, self.max_ms)
    }
}

impl Visit {
    /// Returns a visit of a page at this moment. `before` is the visit before it, with whether the page has changed since.
    pub fn of(at: UnixMillis, before: Option<(Visit, bool)>, intervals: Option<Intervals>) -> Self {
        let Some(intervals) = intervals else {
            return Self { at, interval_ms: 0 };
        };
        let interval_ms = match before {
            None => 0,
            Some((before, has_changed)) => {
                let last = intervals.clamp(before.interval_ms);
                match has_changed {
                    true => last / 2,
                    false => last.saturating_add(last / 2),
                }
            }
        };
        Self {
            at,
            interval_ms: intervals.clamp(interval_ms),
        }
    }

    /// Returns true if the page is to be asked for now. A visit that is yet to come was noted by a clock that has been
    /// set back since.
    pub fn is_due(&self, now: UnixMillis, intervals: Intervals) -> bool {
        let next = self.at.saturating_add(intervals.clamp(self.interval_ms));
        now < self.at || now >= next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(revisit: u64, revisit_max: u64) -> Option<Intervals> {
        Intervals::of(&CrawlSettings {
            revisit_ms: Some(revisit),
            revisit_max_ms: Some(revisit_max),
            ..CrawlSettings::default()
        })
    }

    /// Returns the intervals after visits at which the page had changed or not.
    #[track_caller]
    fn check(intervals: Option<Intervals>, changes: &[bool], expected: &[u64]) {
        let mut visit = Visit::of(0, None, intervals);
        let mut found = vec![visit.interval_ms];
        for has_changed in changes {
            visit = Visit::of(0, Some((visit, *has_changed)), intervals);
            found.push(visit.interval_ms);
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn the_interval_follows_the_changes_of_a_page_within_bounds() {
        let adaptive = intervals(100, 300);
        check(
            adaptive,
            &[false, false, false, true, true, false],
            &[100, 150, 225, 300, 150, 100, 150],
        );
        check(intervals(100, 0), &[false, true, false], &[100; 4]);
        check(intervals(0, 300), &[false, true], &[0; 3]);
        check(intervals(u64::MAX, 0), &[false, true], &[u64::MAX; 3]);
    }

    #[test]
    fn a_page_is_due_once_its_interval_is_over() {
        let visit = Visit {
            at: 1_000,
            interval_ms: 150,
        };
        for (now, bounds, is_due) in [
            (1_000, intervals(100, 300), false),
            (1_149, intervals(100, 300), false),
            (1_150, intervals(100, 300), true),
            // The bounds are those of now.
            (1_120, intervals(100, 120), true),
            (1_199, intervals(200, 300), false),
            (999, intervals(100, 300), true),
        ] {
            assert_eq!(visit.is_due(now, bounds.unwrap()), is_due, "{now}");
        }
    }

    #[test]
    fn without_the_setting_a_visit_decides_nothing() {
        assert_eq!(Intervals::of(&CrawlSettings::default()), None);
        let before = Visit {
            at: 1,
            interval_ms: 900,
        };
        let visit = Visit::of(2, Some((before, false)), None);
        assert_eq!((visit.at, visit.interval_ms), (2, 0));
    }
}
