//! A robots.txt that outlives the process that asked for it.

use std::time::Duration;

use bytes::Bytes;

use super::crawl::UnixMillis;

/// The robots.txt of one origin, as its site answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRobots {
    /// Scheme, host and port of the site, and the proxies that it was asked through.
    pub origin: String,
    /// Product token that the file was read for, by which sites may tell crawlers apart.
    pub agent: String,
    /// Time of the answer.
    pub at: UnixMillis,
    /// The file. `None` if the site has none.
    pub file: Option<Bytes>,
}

impl KeptRobots {
    /// Time for which a file is valid before the site is asked anew (RFC 9309, 2.4).
    pub const VALID: Duration = Duration::from_secs(24 * 60 * 60);
    /// Maximum size in bytes of a file that is kept. A site with a longer one is asked anew.
    pub const MAX_FILE: usize = 64 << 10;

    /// Returns true if the file is not valid any more.
    pub fn is_over(&self, now: UnixMillis) -> bool {
        self.age(now).is_some_and(|age| age >= Self::VALID)
    }

    /// Returns the time since the answer. `None` if it is one of the future, because a clock was set back.
    pub fn age(&self, now: UnixMillis) -> Option<Duration> {
        now.checked_sub(self.at).map(Duration::from_millis)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_valid_for_a_day_after_its_answer() {
        let robots = KeptRobots {
            origin: "http://a.test".to_owned(),
            agent: "crawler".to_owned(),
            at: 1_000,
            file: None,
        };
        let day = 24 * 60 * 60 * 1_000;
        for (now, age) in [(999, None), (1_000, Some(0)), (999 + day, Some(day - 1))] {
            assert_eq!(robots.age(now), age.map(Duration::from_millis), "{now}");
            assert!(!robots.is_over(now), "{now}");
        }
        assert!(robots.is_over(1_000 + day));
    }
}
