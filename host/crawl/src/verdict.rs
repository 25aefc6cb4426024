//! Verdicts on pages: pure decisions about answers, links and errors of rules.
//!
//! A page whose status is 200 to 299, or one that its request accepts, goes to its rule. Failures fall into
//! classes:
//!
//! | what failed | what follows |
//! |---|---|
//! | no address, no connection, no answer in time; 408, 425, 5xx but 501 and 505 | tried again, from 1 s on |
//! | 429; a rule says `blocked`; a robots.txt that the site does not give | tried again, from 30 s on |
//! | a rule says `retry` | tried again when it says, else from 1 s on |
//! | a call used up its time, on the first attempt only | tried again, from 1 s on |
//! | the host had no room for a call | tried again, however often it was |
//! | 404, 410; a rule says `skip`; setting `content-types` leaves it out | done |
//! | its robots.txt forbids it; every other status; any other end of a call; a redirect without end; the address policy | given up |
//!
//! Each wait is twice the one before, less a random part of up to one half. `Retry-After`, if a status that
//! is tried again carries it, and the wait that a rule asks for replace it. No wait is longer than setting
//! `max-retry-wait`, and setting `max-attempts` limits their number.

use std::collections::BTreeMap;
use std::time::Duration;

use super::peers::PeerShards;
use crawler_fetch::FetchError;
use crawler_fetch::http::retry_after;
use crawler_frontier::{Ended, HostFailure, HostStanding, NewRequest};
use crawler_model::accept_status::AcceptStatus;
use crawler_model::crawl::{Done, Kill, Page, Request, RuleError, UnixMillis};
use crawler_model::id::Shard;
use crawler_model::resource::CrawlSettings;
use crawler_model::scope::Bounds;
use crawler_model::statistics::RefusedHosts;
use crawler_process::retry::delay_after;

/// Wait after a first failure; doubled by each further one.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// Wait after a first refusal by the site; doubled by each further one.
const FIRST_BLOCKED_RETRY: Duration = Duration::from_secs(30);

/// Facts by which a failure is judged.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    /// Number of the attempt, from 1.
    n: u32,
    /// Setting `max-attempts`.
    max: u32,
    /// Setting `max-retry-wait`.
    longest_wait: Duration,
    now: UnixMillis,
}

impl Attempt {
    /// Creates the facts of an attempt that has ended now.
    pub(super) fn ended(n: u32, settings: &CrawlSettings, now: UnixMillis) -> Self {
        Self {
            n,
            max: settings.max_attempts(),
            longest_wait: settings.max_retry_wait(),
            now,
        }
    }
}

/// Verdict on an answer before any rule sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The page goes to its rule.
    Parse,
    /// The attempt has ended.
    End(Ended),
}

/// Returns the meaning of an answer's status, before any rule sees it. `accepted` are the statuses that the rule
/// of the page wants to see.
pub(super) fn of_status(page: &Page, accepted: &AcceptStatus, attempt: Attempt) -> Verdict {
    match page.status {
        status if accepted.takes(status) => Verdict::Parse,
        404 | 410 => Verdict::End(Ended::Done(Done::Gone)),
        status @ (408 | 425 | 429 | 500 | 502..=504 | 506..=599) => {
            let asked = asked_wait(page, attempt.now);
            let first = match status {
                429 => FIRST_BLOCKED_RETRY,
                _ => FIRST_RETRY,
            };
            let reason = format!("status-{status}");
            Verdict::End(retry_or_dead(&reason, asked, first, attempt))
        }
        status => Verdict::End(Ended::Dead {
            reason: format!("status-{status}"),
        }),
    }
}

/// Returns the wait that `Retry-After` asks for.
fn asked_wait(page: &Page, now: UnixMillis) -> Option<Duration> {
    retry_after(page.header("retry-after")?, now)
}

/// Returns how a page ends whose fetch brought no answer.
pub(super) fn of_fetch_error(error: &FetchError, attempt: Attempt) -> Ended {
    if error.is_transient() {
        let first = match error {
            FetchError::RobotsUnavailable { .. } => FIRST_BLOCKED_RETRY,
            _ => FIRST_RETRY,
        };
        retry_or_dead(error.reason(), None, first, attempt)
    } else if let FetchError::ContentType { .. } = error {
        Ended::Done(Done::Denied)
    } else {
        Ended::Dead {
            reason: error.reason().to_owned(),
        }
    }
}

/// Returns the consequence for a host that could not be reached, after the failures that were known. It is
/// given up, with all of its URLs, after as many failures as a page has attempts; one that has answered in
/// this run after twice as many, because it is likely to come back.
pub(super) fn of_host(
    error: &FetchError,
    host: &HostStanding,
    settings: &CrawlSettings,
    now: UnixMillis,
    ready_at: UnixMillis,
) -> HostFailure {
    let n = host.n_failures.saturating_add(1);
    let max = match host.has_answered {
        true => settings.max_attempts().saturating_mul(2),
        false => settings.max_attempts(),
    };
    let longest_wait = settings.max_retry_wait();
    let gives_up = n >= max;
    let wait = match (gives_up, error) {
        (true, _) => longest_wait,
        (false, FetchError::RobotsUnavailable { .. }) => {
            delay_after(FIRST_BLOCKED_RETRY, longest_wait, n - 1)
        }
        (false, _) => delay_after(FIRST_RETRY, longest_wait, n - 1),
    };
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    HostFailure {
        until: now.saturating_add(wait).max(ready_at),
        reason: error.reason().to_owned(),
        gives_up,
    }
}

/// Returns how a page ends whose rule failed. `Fatal` also ends the crawl, which is up to the caller.
pub(super) fn of_rule_error(error: &RuleError, attempt: Attempt) -> Ended {
    match error {
        RuleError::Retry { after_ms, .. } => retry_or_dead(
            "rule-retry",
            after_ms.map(Duration::from_millis),
            FIRST_RETRY,
            attempt,
        ),
        RuleError::Skip(_) => Ended::Done(Done::Skipped),
        RuleError::Blocked(_) => retry_or_dead("blocked", None, FIRST_BLOCKED_RETRY, attempt),
        RuleError::Fatal(_) => Ended::Dead {
            reason: "fatal".to_owned(),
        },
        RuleError::Other(..) => Ended::Dead {
            reason: "rule-error".to_owned(),
        },
    }
}

/// Returns how a page ends whose call was killed. Kills by the clock are tried once more, because a busy
/// machine can cause them; the others would only happen again.
pub(super) fn of_kill(kill: Kill, attempt: Attempt) -> Ended {
    match kill {
        // The page is not to blame, so it is never given up for this.
        Kill::NoRoom => {
            let attempt = Attempt {
                max: u32::MAX,
                ..attempt
            };
            retry_or_dead(kill.as_str(), None, FIRST_RETRY, attempt)
        }
        Kill::OutOfCpu | Kill::OutOfTime if attempt.n == 1 => {
            retry_or_dead(kill.as_str(), None, FIRST_RETRY, attempt)
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
    attempt: Attempt,
) -> Ended {
    if attempt.n >= attempt.max {
        return Ended::Dead {
            reason: reason.to_owned(),
        };
    }
    let backoff = || delay_after(first, attempt.longest_wait, attempt.n.saturating_sub(1));
    let wait = asked.map_or_else(backoff, |asked| asked.min(attempt.longest_wait));
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    Ended::Retry {
        at: attempt.now.saturating_add(wait),
        reason: reason.to_owned(),
    }
}

/// Links of a page, sorted by what is done with them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SortedLinks {
    /// Links that this shard follows.
    pub(super) requests: Vec<NewRequest>,
    /// Links that other shards follow.
    pub(super) for_peers: Vec<(Shard, NewRequest)>,
    /// Numbers of refused links, by reason.
    pub(super) refused: BTreeMap<&'static str, u64>,
    /// Hosts of the refused links.
    pub(super) refused_hosts: RefusedHosts,
}

/// Sorts the links found at a depth. Without peers, all of them belong to this shard.
pub(super) fn of_links(
    bounds: Bounds<'_>,
    peers: Option<&PeerShards>,
    requests: Vec<Request>,
    depth: u32,
) -> SortedLinks {
    let mut sorted = SortedLinks {
        // Nearly all links of a page are its own shard's: grown one by one, the vector would be copied ten times.
        requests: Vec::with_capacity(requests.len()),
        ..SortedLinks::default()
    };
    for request in requests {
        if let Some(refusal) = bounds.refusal(&request, depth) {
            *sorted.refused.entry(refusal.as_str()).or_default() += 1;
            if let Some(host) = request.url.host_str() {
                sorted.refused_hosts.add(refusal.as_str(), host);
            }
            continue;
        }
        let other = peers.and_then(|peers| peers.other(&request.url));
        let new = NewRequest { request, depth };
        match other {
            Some(shard) => sorted.for_peers.push((shard, new)),
            None => sorted.requests.push(new),
        }
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::guest_text::GuestText;
    use crawler_model::page::{CharsetSource, FetchRecord, PageText};
    use crawler_model::scope::RootHosts;

    fn page(status: u16, headers: &[(&str, &str)]) -> Page {
        let url: url::Url = "http://a.test/".parse().unwrap();
        Page {
            url: url.clone(),
            requested_url: url,
            status,
            headers: headers.iter().copied().collect(),
            redirects: Vec::new(),
            fetched_at: 0,
            truncated: false,
            body: bytes::Bytes::new(),
            text: PageText {
                charset: "UTF-8",
                source: CharsetSource::Valid,
                decoded: None,
            },
            record: FetchRecord::default(),
        }
    }

    #[test]
    fn a_host_that_has_answered_has_twice_the_attempts() {
        let error = FetchError::Timeout {
            limit: Duration::from_secs(30),
            setting: "timeout",
        };
        for (has_answered, max) in [(false, 5), (true, 10)] {
            let given_up = (0..20).find(|&n_failures| {
                let host = HostStanding {
                    has_answered,
                    n_failures,
                    ..HostStanding::default()
                };
                of_host(&error, &host, &CrawlSettings::default(), 0, 0).gives_up
            });
            assert_eq!(given_up, Some(max - 1));
        }
    }

    /// Returns an attempt with at most five tries and 300 s between them.
    fn attempt(n: u32, now: UnixMillis) -> Attempt {
        Attempt::ended(n, &CrawlSettings::default(), now)
    }

    /// Returns the verdict on a page whose request accepts nothing but success.
    fn usual(page: &Page, attempt: Attempt) -> Verdict {
        of_status(page, &AcceptStatus::default(), attempt)
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
        assert_eq!(usual(&page(200, &[]), attempt(1, 0)), Verdict::Parse);
    }

    #[test]
    fn a_page_that_is_not_there_is_done() {
        for status in [404, 410] {
            assert_eq!(
                usual(&page(status, &[]), attempt(1, 0)),
                Verdict::End(Ended::Done(Done::Gone))
            );
        }
    }

    #[test]
    fn f30_an_accepted_status_goes_to_the_rule_at_once() {
        let accepting = |accepted: &str, status| {
            of_status(
                &page(status, &[]),
                &accepted.parse().unwrap(),
                attempt(1, 0),
            )
        };
        for status in [200, 302, 304, 404, 410, 429, 500, 503, 999] {
            assert_eq!(accepting("any", status), Verdict::Parse, "{status}");
        }
        for status in [204, 404, 500, 599] {
            assert_eq!(accepting("404,500-599", status), Verdict::Parse, "{status}");
        }
        let gone = Verdict::End(Ended::Done(Done::Gone));
        assert_eq!(accepting("404", 410), gone);
        assert_eq!(accepting("404", 403), dead("status-403"));
    }

    #[test]
    fn a_busy_server_is_asked_again_when_it_says() {
        let verdict = usual(&page(503, &[("retry-after", "7")]), attempt(1, 1_000));
        assert_eq!(verdict, retry(8_000, "status-503"));
        let verdict = usual(&page(503, &[("retry-after", "999999")]), attempt(1, 0));
        assert_eq!(verdict, retry(300_000, "status-503"));
        let says = page(503, &[("retry-after", "Thu, 01 Jan 1970 00:01:00 GMT")]);
        let at = |now| usual(&says, attempt(1, now));
        assert_eq!(at(20_000), retry(60_000, "status-503"));
        assert_eq!(at(70_000), retry(70_000, "status-503"));
        assert_eq!(usual(&page(503, &[]), attempt(5, 0)), dead("status-503"));
    }

    #[test]
    fn f26_retries_wait_longer_each_time_and_end() {
        let error = FetchError::Connection {
            why: "reset".into(),
        };
        let mut last = 0;
        for n in [1, 3, 4] {
            let Ended::Retry { at, .. } = of_fetch_error(&error, attempt(n, 0)) else {
                panic!("attempt {n}")
            };
            assert!(at > last, "attempt {n}: {at} after {last}");
            last = at;
        }
        assert_eq!(
            of_fetch_error(&error, attempt(5, 0)),
            Ended::Dead {
                reason: "connection".into()
            }
        );
    }

    #[test]
    fn what_robots_forbid_is_given_up_at_once_and_what_they_do_not_tell_is_asked_again_later() {
        let rules = crawler_fetch::robots::Rules::parse(b"user-agent: *\ndisallow: /x", "crawler");
        let forbids = FetchError::Robots {
            url: "http://a.test/robots.txt".into(),
            rule: rules.forbidding("/x").unwrap().clone(),
        };
        assert_eq!(
            of_fetch_error(&forbids, attempt(1, 0)),
            Ended::Dead {
                reason: "robots".into()
            }
        );
        let why = "http://a.test/robots.txt forbids it: line 2, Disallow: /x";
        assert_eq!(forbids.detail(), why);
        let tells_not = FetchError::RobotsUnavailable {
            url: "http://a.test/robots.txt".into(),
            why: "it answers with status 503".into(),
        };
        let Ended::Retry { at, reason } = of_fetch_error(&tells_not, attempt(1, 0)) else {
            panic!("it is tried again")
        };
        assert!((15_000..=30_000).contains(&at), "{at}");
        assert_eq!(reason, "robots-unavailable");
    }

    #[test]
    fn what_the_guard_refuses_is_kept_with_its_reason_for_whoever_opens_the_way() {
        let host = || "a.test".to_owned();
        let address = FetchError::Address {
            host: host(),
            address: "10.0.0.1".to_owned(),
        };
        let port = FetchError::Port {
            host: host(),
            port: 25,
        };
        for (error, reason) in [
            (address, "address-denied"),
            (port, "port-denied"),
            (FetchError::OwnNode { host: host() }, "own-node"),
        ] {
            let Ended::Dead { reason: found } = of_fetch_error(&error, attempt(1, 0)) else {
                panic!("{error}")
            };
            assert_eq!(found, reason);
        }
    }

    #[test]
    fn attempts_and_waits_are_bounded_by_their_settings() {
        let settings = CrawlSettings {
            max_attempts: Some(2),
            max_retry_wait_ms: Some(500),
            ..CrawlSettings::default()
        };
        let after = |n| Attempt::ended(n, &settings, 0);
        let asks = page(503, &[("retry-after", "7")]);
        assert_eq!(usual(&asks, after(1)), retry(500, "status-503"));
        assert_eq!(usual(&asks, after(2)), dead("status-503"));
        let error = RuleError::Retry {
            after_ms: Some(u64::MAX),
            why: GuestText::default(),
        };
        let Ended::Retry { at: 500, .. } = of_rule_error(&error, after(1)) else {
            panic!("a rule waits no longer than it may")
        };
        let Ended::Retry { at: 250..=500, .. } = of_kill(Kill::NoRoom, after(1)) else {
            panic!("the back-off keeps to the longest wait")
        };
        let Ended::Retry { .. } = of_kill(Kill::NoRoom, after(9)) else {
            panic!("no page is given up for what the host lacks")
        };
        let no_longer_than_time = CrawlSettings {
            max_attempts: Some(u32::MAX),
            ..CrawlSettings::default()
        };
        let last = Attempt::ended(u32::MAX - 1, &no_longer_than_time, u64::MAX - 1);
        let Verdict::End(Ended::Retry { at: u64::MAX, .. }) = usual(&page(500, &[]), last) else {
            panic!("the end of time is not passed")
        };
    }

    #[test]
    fn a_site_that_says_no_is_left_alone_for_longer_than_one_that_fails() {
        let wait = |status| match usual(&page(status, &[]), attempt(1, 0)) {
            Verdict::End(Ended::Retry { at, .. }) => at,
            other => panic!("{status}: {other:?}"),
        };
        for status in [408, 425, 500, 502, 503, 504, 520] {
            assert!(wait(status) <= 1_000, "{status}");
        }
        assert!((15_000..=30_000).contains(&wait(429)));
        for (status, reason) in [
            (304, "status-304"),
            (403, "status-403"),
            (501, "status-501"),
            (505, "status-505"),
        ] {
            let found = usual(&page(status, &[]), attempt(1, 0));
            assert_eq!(found, dead(reason));
        }
    }

    #[test]
    fn a_kill_that_would_happen_again_is_not_tried_again() {
        assert_eq!(
            of_kill(Kill::OutOfFuel, attempt(1, 0)),
            Ended::Dead {
                reason: "out-of-fuel".into()
            }
        );
        assert!(matches!(
            of_kill(Kill::OutOfCpu, attempt(1, 0)),
            Ended::Retry { .. }
        ));
        assert_eq!(
            of_kill(Kill::OutOfCpu, attempt(2, 0)),
            Ended::Dead {
                reason: "out-of-cpu".into()
            }
        );
    }

    #[test]
    fn links_that_are_not_followed_are_counted_by_reason() {
        let root_hosts = RootHosts::of(&["http://a.test/".parse().unwrap()]);
        let settings = CrawlSettings {
            max_depth: Some(3),
            ..CrawlSettings::default()
        };
        let bounds = Bounds {
            root_hosts: &root_hosts,
            settings: &settings,
        };
        let links = ["http://a.test/1", "http://c.test/", "http://c.test/x"];
        let requests = links.map(|url| Request::get(url.parse().unwrap(), "page"));
        let sorted = of_links(bounds, None, requests.to_vec(), 3);
        let admitted = sorted.requests;
        let urls: Vec<&str> = admitted.iter().map(|r| r.request.url.as_str()).collect();
        assert_eq!((urls, admitted[0].depth), (vec!["http://a.test/1"], 3));
        assert_eq!(sorted.refused, BTreeMap::from([("out-of-scope", 2)]));
        assert_eq!(sorted.for_peers, []);
    }
}
