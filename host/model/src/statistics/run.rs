//! The statistics of a run as a whole: its counts, its speed, and why it has ended.

use super::Statistics;
use crate::crawl::Counts;
use crate::id::Run;
use crate::resource::{CrawlSettings, Phase};

/// Counts and statistics of a run, of all shards together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunStatistics {
    /// The run.
    pub run: Run,
    /// Its counts.
    pub counts: Counts,
    /// Its statistics. They lack the pages of the second before each crash of a worker.
    pub statistics: Statistics,
    /// Reason why the run has ended, from [`why_ended`]; empty while it goes on.
    pub end: String,
}

impl RunStatistics {
    /// Returns the rate in pages per second, without pages that were not due; 0 if there are no others. Unlike
    /// [`Counts::rate`], it has a value for a run of less than a second too. Such a run counts as at least a millisecond
    /// long.
    pub fn rate(&self) -> f64 {
        let took_ms = self.counts.took_ms().max(1);
        self.counts.due_pages() as f64 * 1_000.0 / took_ms as f64
    }
}

/// Returns why a run has ended, from the phase of its resource and its counts; empty while it goes on.
pub fn why_ended(phase: &Phase, counts: &Counts, settings: &CrawlSettings) -> String {
    match phase {
        Phase::Finished => why_finished(counts, settings),
        Phase::Failed(reason) => format!("the crawl failed: {reason}"),
        Phase::Pending(_) | Phase::Running | Phase::Paused(_) => String::new(),
    }
}

/// Returns why a run that did not fail has ended.
fn why_finished(counts: &Counts, settings: &CrawlSettings) -> String {
    let (max_pages, max_bytes) = (settings.max_pages(), settings.max_bytes());
    let left = match counts.due {
        0 => return "nothing is left to fetch".to_owned(),
        1 => "1 URL is left".to_owned(),
        n => format!("{n} URLs are left"),
    };
    if counts.due_pages() >= max_pages {
        return format!("--max-pages {max_pages} is reached, and {left}");
    }
    match counts.bytes >= max_bytes {
        true => format!("--max-bytes {max_bytes} is reached, and {left}"),
        false => left,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::Done;

    #[track_caller]
    fn check(counts: Counts, settings: CrawlSettings, expected: &str) {
        let end = why_ended(&Phase::Finished, &counts, &settings);
        assert_eq!(end, expected);
    }

    #[test]
    fn the_end_of_a_run_is_told_by_its_limits() {
        let counts = |due| Counts {
            parsed: 3,
            bytes: 5,
            due,
            ..Counts::default()
        };
        let pages = |max| CrawlSettings {
            max_pages: Some(max),
            ..CrawlSettings::default()
        };
        let bytes = |max| CrawlSettings {
            max_bytes: Some(max),
            ..CrawlSettings::default()
        };
        check(counts(0), pages(3), "nothing is left to fetch");
        check(
            counts(1),
            pages(3),
            "--max-pages 3 is reached, and 1 URL is left",
        );
        check(
            counts(3),
            bytes(5),
            "--max-bytes 5 is reached, and 3 URLs are left",
        );
        check(counts(3), CrawlSettings::default(), "3 URLs are left");
    }

    #[test]
    fn only_a_run_that_is_over_has_an_end() {
        let end = |phase| why_ended(&phase, &Counts::default(), &CrawlSettings::default());
        assert_eq!(end(Phase::Running), "");
        assert_eq!(end(Phase::Paused(String::new())), "");
        assert_eq!(end(Phase::Pending("it waits".into())), "");
        let failed = end(Phase::Failed("the plugin is gone".into()));
        assert_eq!(failed, "the crawl failed: the plugin is gone");
    }

    #[test]
    fn a_short_run_has_a_rate_too() {
        let mut found = RunStatistics::default();
        assert_eq!(found.rate(), 0.0);
        found.counts.parsed = 3;
        found.counts.note_attempt(1_000, 1_000);
        assert_eq!(found.rate(), 3_000.0);
        found.counts.note_attempt(3_000, 5_000);
        assert_eq!(found.rate(), 0.75);
        found.counts.end_done(Done::NotDue);
        assert_eq!(found.rate(), 0.75);
    }
}
