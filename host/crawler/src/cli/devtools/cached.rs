//! Note that a page is an older answer of the cache.

use std::time::Duration;

use crawler_model::crawl::{Page, UnixMillis};
use crawler_process::clock::{Clock as _, SystemClock};

/// Returns the note if the answer of a page came from the cache.
pub(super) fn from_cache(page: &Page) -> Option<String> {
    let stored_at = page.record.stored_at?;
    Some(note(stored_at, SystemClock.unix_millis()))
}

fn note(stored_at: UnixMillis, now: UnixMillis) -> String {
    let age = Duration::from_secs(now.saturating_sub(stored_at) / 1_000);
    let age = humantime::format_duration(age);
    format!("from the cache, stored {age} ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_an_answer_is_told_in_whole_seconds() {
        for (now, age) in [(5_000, "0s"), (4_000, "0s"), (186_999, "3m 1s")] {
            assert_eq!(
                note(5_000, now),
                format!("from the cache, stored {age} ago")
            );
        }
    }
}
