//! Conclusions from an exchange about its host, for the throttle.

use std::time::{Duration, UNIX_EPOCH};

use super::hop::Outcome;
use crate::FetchError;
use crate::throttle::HostSignal;
use crawler_model::crawl::UnixMillis;

/// Parses `Retry-After`: a number of seconds, or a moment (RFC 9110, 10.2.3). Returns `None` for any other text.
pub fn retry_after(text: &str, now: UnixMillis) -> Option<Duration> {
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        // A number too large for a time becomes the longest time: it still says that a request is to wait.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let moment = httpdate::parse_http_date(text).ok()?;
    let moment = moment.duration_since(UNIX_EPOCH).ok()?;
    Some(moment.saturating_sub(Duration::from_millis(now)))
}

/// Returns the signal that an exchange gives about its host. Returns `None` if it gives none: a page that a
/// server cannot make, or one that was not asked for. Statuses beyond 504 are what proxies say about a server
/// that they do not reach.
pub(super) fn of(
    outcome: &Result<Outcome, FetchError>,
    took: Duration,
    now: UnixMillis,
) -> Option<HostSignal> {
    match outcome {
        // A host may redirect to a page that says that it is overloaded.
        Ok(Outcome::Redirect { .. }) => None,
        Ok(Outcome::Received(answer)) => {
            let asked = answer.headers.get("retry-after");
            let pause = asked.and_then(|text| retry_after(text, now));
            match (answer.status, pause) {
                (429, pause) | (503, pause @ Some(_)) => Some(HostSignal::Busy { pause }),
                (502..=504 | 520..=526, _) => Some(HostSignal::Failing),
                (500, _) => None,
                // A rule asked for the redirect itself.
                (301 | 302 | 303 | 307 | 308, _) if answer.headers.get("location").is_some() => {
                    None
                }
                (status, _) => {
                    // Deciding that a page is unchanged takes a site the same work as making it.
                    let is_page = matches!(status, 200..=299 | 304);
                    Some(HostSignal::Healthy { took, is_page })
                }
            }
        }
        Err(
            FetchError::Connection { .. }
            | FetchError::Timeout { .. }
            | FetchError::TooSlow { .. }
            | FetchError::Resolve { .. },
        ) => Some(HostSignal::Failing),
        // The site has answered well: the exchange ended here, with the headers or within the body.
        Err(FetchError::ContentType { .. } | FetchError::FileSize { .. }) => {
            Some(HostSignal::Healthy {
                took,
                is_page: false,
            })
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::hop::Received;
    use crate::robots::Rules;
    use crawler_model::page::FetchRecord;

    fn check(status: u16, asks: Option<&str>, expected: Option<HostSignal>) {
        let asks = asks.map(|asks| ("retry-after", asks));
        let answer = Outcome::Received(Received {
            status,
            headers: asks.into_iter().collect(),
            body: bytes::Bytes::new(),
            truncated: false,
            record: FetchRecord::default(),
        });
        let found = of(&Ok(answer), Duration::from_secs(2), 5_000);
        assert_eq!(found, expected, "{status}");
    }

    #[test]
    fn an_answer_says_how_its_host_is() {
        let well = |is_page| {
            let took = Duration::from_secs(2);
            Some(HostSignal::Healthy { took, is_page })
        };
        let busy = |seconds: Option<u64>| {
            let pause = seconds.map(Duration::from_secs);
            Some(HostSignal::Busy { pause })
        };
        for (status, is_page) in [(200, true), (304, true), (403, false), (404, false)] {
            check(status, Some("7"), well(is_page));
        }
        check(429, None, busy(None));
        for nonsense in ["nonsense", "", "+7", "-7", "7.5"] {
            check(429, Some(nonsense), busy(None));
        }
        // A number too large to parse still asks for a wait.
        let longest = busy(Some(u64::MAX));
        check(429, Some("99999999999999999999"), longest);
        check(429, Some(" 7 "), busy(Some(7)));
        check(503, Some("Thu, 01 Jan 1970 00:01:00 GMT"), busy(Some(55)));
        check(503, Some("Thu, 01 Jan 1970 00:00:01 GMT"), busy(Some(0)));
        for status in [502, 503, 504, 520, 526] {
            check(status, None, Some(HostSignal::Failing));
        }
        check(500, None, None);
    }

    #[test]
    fn a_redirect_that_a_rule_asked_for_says_nothing_about_its_host() {
        let answer = Outcome::Received(Received {
            status: 302,
            headers: [("location", "/busy")].into_iter().collect(),
            body: bytes::Bytes::new(),
            truncated: false,
            record: FetchRecord::default(),
        });
        assert_eq!(of(&Ok(answer), Duration::ZERO, 0), None);
    }

    #[test]
    fn only_what_the_host_did_is_held_against_it() {
        let (limit, pause) = (Duration::ZERO, Duration::ZERO);
        let (host, name, why) = (String::new, String::new, String::new);
        let setting = "timeout";
        let rules = Rules::parse(b"user-agent: *\ndisallow: /", "crawler");
        let forbids = rules.forbidding("/").unwrap().clone();
        let failing = Some(HostSignal::Failing);
        let refused = Some(HostSignal::Healthy {
            took: Duration::from_secs(2),
            is_page: false,
        });
        for (error, expected) in [
            (FetchError::Connection { why: why() }, failing),
            (FetchError::Timeout { limit, setting }, failing),
            (
                FetchError::TooSlow {
                    n: 1,
                    time: limit,
                    least: 9,
                },
                failing,
            ),
            (
                FetchError::Resolve {
                    host: host(),
                    why: why(),
                },
                failing,
            ),
            (
                FetchError::ContentType {
                    content_type: name(),
                },
                refused,
            ),
            (FetchError::FileSize { max: 1 }, refused),
            (FetchError::Scheme { url: name() }, None),
            (
                FetchError::Address {
                    host: host(),
                    address: name(),
                },
                None,
            ),
            (
                FetchError::Port {
                    host: host(),
                    port: 1,
                },
                None,
            ),
            (FetchError::OwnNode { host: host() }, None),
            (FetchError::Request { why: why() }, None),
            (FetchError::Headers { max: 1 }, None),
            (
                FetchError::Paused {
                    host: host(),
                    pause,
                },
                None,
            ),
            (
                FetchError::AddressPaused {
                    host: host(),
                    address: name(),
                    pause,
                },
                None,
            ),
            (FetchError::Proxy { proxy: name() }, None),
            (
                FetchError::NoProxy {
                    name: name(),
                    pause,
                },
                None,
            ),
            (FetchError::OpenFiles, None),
            (FetchError::Interrupted { why: why() }, None),
            (
                FetchError::NotSetUp {
                    setting: "proxy",
                    name: name(),
                    table: "proxies",
                },
                None,
            ),
            (
                FetchError::Robots {
                    url: name(),
                    rule: forbids,
                },
                None,
            ),
            (
                FetchError::RobotsUnavailable {
                    url: name(),
                    why: why(),
                },
                None,
            ),
            (FetchError::UrlLength { length: 2, max: 1 }, None),
            (
                FetchError::Encoding {
                    encoding: name(),
                    why: why(),
                },
                None,
            ),
            (FetchError::Redirects { n: 1, last: name() }, None),
            (FetchError::NotInArchive, None),
            (FetchError::Archive { why: why() }, None),
        ] {
            let told = error.to_string();
            let signal = of(&Err(error), Duration::from_secs(2), 0);
            assert_eq!(signal, expected, "{told}");
        }
    }
}
