//! The time of `--since`: a moment, or how long ago it was.

use std::time::UNIX_EPOCH;

use crate::cli::args::millis;
use crawler_model::crawl::UnixMillis;
use crawler_process::clock::{Clock as _, SystemClock};

/// Parses a time such as `2026-11-24`, `2026-11-24T10:00:00Z` or `2h`.
pub(in crate::cli) fn since(text: &str) -> Result<UnixMillis, String> {
    since_at(text, SystemClock.unix_millis())
}

fn since_at(text: &str, now: UnixMillis) -> Result<UnixMillis, String> {
    if let Ok(ago) = millis(text) {
        return Ok(now.saturating_sub(ago));
    }
    let moment = match text.len() {
        10 => humantime::parse_rfc3339(&format!("{text}T00:00:00Z")),
        _ => humantime::parse_rfc3339(text),
    };
    let since = moment
        .ok()
        .and_then(|moment| moment.duration_since(UNIX_EPOCH).ok());
    let millis = since.and_then(|since| UnixMillis::try_from(since.as_millis()).ok());
    millis.ok_or_else(|| {
        "write a moment of UTC like 2026-11-24 or 2026-11-24T10:00:00Z, or how long ago it was, like 2h".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_moment_or_how_long_ago_it_was() {
        let now = 1_700_000_000_000;
        let check = |text: &str, expected: u64| assert_eq!(since_at(text, now), Ok(expected));
        check("2023-11-14", 1_699_920_000_000);
        check("2023-11-14T22:13:20Z", now);
        check("2023-11-14T22:13:20.5Z", now + 500);
        check("2h", now - 7_200_000);
        check("100years", 0);
        for text in [
            "",
            "yesterday",
            "2",
            "2023-13-01",
            "14.11.2023",
            "2023-11-14T22:13:20",
        ] {
            let error = since_at(text, now).unwrap_err();
            assert!(error.contains("2026-11-24T10:00:00Z"), "{text}: {error}");
        }
    }
}
