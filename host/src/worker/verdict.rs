//! What becomes of a page: pure decisions on answers, links and errors of rules.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::fetch::FetchError;
use crate::frontier::{Ended, NewRequest};
use crate::model::crawl::{Done, Kill, Page, Request, RuleError, URL_MAX, UnixMillis};
use crate::model::resource::HostPattern;
use crate::retry::delay_after;

/// Attempts at one page before it is given up.
pub(super) const MAX_ATTEMPTS: u32 = 5;
/// After a first failure; doubled by each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// After a first refusal by the site; doubled by each further one.
const FIRST_BLOCKED_RETRY: Duration = Duration::from_secs(30);
/// The longest wait before a retry, `Retry-After` included.
pub(super) const MAX_RETRY: Duration = Duration::from_secs(300);

/// Why an attempt failed, in one short word, and how soon another may help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Hand the page to its rule.
    Parse,
    /// It is over.
    End(Ended),
}

/// What an answer's status means before any rule sees it.
pub(super) fn of_status(page: &Page, attempt: u32, now: UnixMillis) -> Verdict {
    match page.status {
        200..=299 => Verdict::Parse,
        404 | 410 => Verdict::End(Ended::Done(Done::Gone)),
        status @ (408 | 425 | 429 | 500..=599) => {
            let asked = page
                .header("retry-after")
                .and_then(|v| v.trim().parse().ok())
                .map(Duration::from_secs);
            Verdict::End(retry_or_dead(
                &format!("status-{status}"),
                asked,
                FIRST_RETRY,
                attempt,
                now,
            ))
        }
        status => Verdict::End(Ended::Dead {
            reason: format!("status-{status}"),
        }),
    }
}

/// What a fetch without an answer means.
pub(super) fn of_fetch_error(error: &FetchError, attempt: u32, now: UnixMillis) -> Ended {
    if error.is_denied() {
        Ended::Done(Done::Denied)
    } else if error.is_transient() {
        retry_or_dead(error.reason(), None, FIRST_RETRY, attempt, now)
    } else {
        Ended::Dead {
            reason: error.reason().to_owned(),
        }
    }
}

/// What a rule's error means for its page. `Fatal` also ends the crawl, which is the caller's part.
pub(super) fn of_rule_error(error: &RuleError, attempt: u32, now: UnixMillis) -> Ended {
    match error {
        RuleError::Retry { after_ms, .. } => retry_or_dead(
            "rule-retry",
            after_ms.map(Duration::from_millis),
            FIRST_RETRY,
            attempt,
            now,
        ),
        RuleError::Skip(_) => Ended::Done(Done::Skipped),
        RuleError::Blocked(_) => retry_or_dead("blocked", None, FIRST_BLOCKED_RETRY, attempt, now),
        RuleError::Fatal(_) => Ended::Dead {
            reason: "fatal".to_owned(),
        },
        RuleError::Other(..) => Ended::Dead {
            reason: "rule-error".to_owned(),
        },
    }
}

/// What a killed call means for its page. Kills by the clock are tried once more, since a busy
/// machine can cause them; the others would only happen again.
pub(super) fn of_kill(kill: Kill, attempt: u32, now: UnixMillis) -> Ended {
    match kill {
        Kill::NoRoom => retry_or_dead(kill.as_str(), None, FIRST_RETRY, attempt, now),
        Kill::OutOfCpu | Kill::OutOfTime if attempt == 1 => {
            retry_or_dead(kill.as_str(), None, FIRST_RETRY, attempt, now)
        }
        Kill::Trapped
        | Kill::StackOverflow
        | Kill::OutOfFuel
        | Kill::OutOfCpu
        | Kill::OutOfTime
        | Kill::OutOfMemory
        | Kill::OverBudget
        | Kill::Denied => Ended::Dead {
            reason: kill.as_str().to_owned(),
        },
    }
}

fn retry_or_dead(
    reason: &str,
    asked: Option<Duration>,
    first: Duration,
    attempt: u32,
    now: UnixMillis,
) -> Ended {
    if attempt >= MAX_ATTEMPTS {
        return Ended::Dead {
            reason: reason.to_owned(),
        };
    }
    let backoff = delay_after(first, MAX_RETRY, attempt.saturating_sub(1));
    let delay = asked.map_or(backoff, |asked| asked.clamp(Duration::ZERO, MAX_RETRY));
    Ended::Retry {
        at: now + delay.as_millis() as u64,
        reason: reason.to_owned(),
    }
}

/// Where a crawl may go: the hosts of its root requests, and those that the resource adds.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    pub(super) root_hosts: Vec<String>,
    pub(super) scope: Vec<HostPattern>,
    pub(super) max_depth: u32,
}

impl Bounds {
    /// Why a link is not followed; none where it is.
    fn refusal(&self, request: &Request, depth: u32) -> Option<&'static str> {
        let host = request.url.host_str().unwrap_or_default();
        if !matches!(request.url.scheme(), "http" | "https") {
            Some("scheme")
        } else if request.url.as_str().len() > URL_MAX {
            Some("url-too-long")
        } else if !self.root_hosts.iter().any(|h| h == host)
            && !self.scope.iter().any(|p| p.admits(host))
        {
            Some("out-of-scope")
        } else if depth > self.max_depth {
            Some("max-depth")
        } else {
            None
        }
    }

    /// Splits links into those to follow and those refused, counted by reason.
    pub(super) fn sort(
        &self,
        requests: Vec<Request>,
        depth: u32,
    ) -> (Vec<NewRequest>, BTreeMap<&'static str, u64>) {
        let mut refused = BTreeMap::new();
        let mut admitted = Vec::with_capacity(requests.len());
        for request in requests {
            match self.refusal(&request, depth) {
                Some(reason) => *refused.entry(reason).or_default() += 1,
                None => admitted.push(NewRequest { request, depth }),
            }
        }
        (admitted, refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::crawl::PageText;

    fn page(status: u16, headers: &[(&str, &str)]) -> Page {
        let url: url::Url = "http://a.test/".parse().unwrap();
        Page {
            url: url.clone(),
            requested_url: url,
            status,
            headers: headers
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
                .collect(),
            redirects: Vec::new(),
            fetched_at: 0,
            truncated: false,
            body: bytes::Bytes::new(),
            text: PageText {
                charset: "UTF-8",
                decoded: None,
            },
        }
    }

    fn dead(reason: &str) -> Verdict {
        Verdict::End(Ended::Dead {
            reason: reason.to_owned(),
        })
    }

    fn retry(at: UnixMillis, reason: &str) -> Verdict {
        Verdict::End(Ended::Retry {
            at,
            reason: reason.to_owned(),
        })
    }

    #[test]
    fn f28_a_small_body_is_parsed_like_any_other() {
        assert_eq!(of_status(&page(200, &[]), 1, 0), Verdict::Parse);
    }

    #[test]
    fn a_page_that_is_not_there_is_done() {
        for status in [404, 410] {
            assert_eq!(
                of_status(&page(status, &[]), 1, 0),
                Verdict::End(Ended::Done(Done::Gone))
            );
        }
    }

    #[test]
    fn a_busy_server_is_asked_again_when_it_says() {
        let verdict = of_status(&page(503, &[("retry-after", "7")]), 1, 1_000);
        assert_eq!(verdict, retry(8_000, "status-503"));
        let verdict = of_status(&page(503, &[("retry-after", "999999")]), 1, 0);
        assert_eq!(verdict, retry(300_000, "status-503"));
        assert_eq!(
            of_status(&page(503, &[]), MAX_ATTEMPTS, 0),
            dead("status-503")
        );
    }

    #[test]
    fn f26_retries_wait_longer_each_time_and_end() {
        let error = FetchError::Connection {
            why: "reset".into(),
        };
        let mut last = 0;
        for attempt in [1, 3, 4] {
            let Ended::Retry { at, .. } = of_fetch_error(&error, attempt, 0) else {
                panic!("attempt {attempt}")
            };
            assert!(at > last, "attempt {attempt}: {at} after {last}");
            last = at;
        }
        assert_eq!(
            of_fetch_error(&error, MAX_ATTEMPTS, 0),
            Ended::Dead {
                reason: "connection".into()
            }
        );
    }

    #[test]
    fn a_kill_that_would_happen_again_is_not_tried_again() {
        assert_eq!(
            of_kill(Kill::OutOfFuel, 1, 0),
            Ended::Dead {
                reason: "out-of-fuel".into()
            }
        );
        assert!(matches!(of_kill(Kill::OutOfCpu, 1, 0), Ended::Retry { .. }));
        assert_eq!(
            of_kill(Kill::OutOfCpu, 2, 0),
            Ended::Dead {
                reason: "out-of-cpu".into()
            }
        );
    }

    #[test]
    fn links_that_are_not_followed_are_counted_by_reason() {
        let bounds = Bounds {
            root_hosts: vec!["a.test".into()],
            scope: vec!["*.b.test".parse().unwrap()],
            max_depth: 3,
        };
        let urls = [
            "http://a.test/1",
            "http://www.b.test/",
            "http://c.test/",
            "mailto:x@a.test",
        ];
        let long = format!("http://a.test/{}", "x".repeat(URL_MAX));
        let requests: Vec<Request> = urls
            .iter()
            .copied()
            .chain([long.as_str()])
            .map(|u| Request::get(u.parse().unwrap(), "page"))
            .collect();
        let (admitted, refused) = bounds.sort(requests.clone(), 3);
        let admitted: Vec<&str> = admitted.iter().map(|r| r.request.url.as_str()).collect();
        assert_eq!(admitted, ["http://a.test/1", "http://www.b.test/"]);
        assert_eq!(
            refused,
            BTreeMap::from([("out-of-scope", 1), ("scheme", 1), ("url-too-long", 1)])
        );
        let (admitted, refused) = bounds.sort(requests, 4);
        assert_eq!((admitted.len(), refused["max-depth"]), (0, 2));
    }
}
