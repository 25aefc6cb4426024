//! Record of the requests that a web gets: which pages were served, and which requests were not polite.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// Tolerance for the timers of two processes, and for the time that a request is on its way.
const TOLERANCE: Duration = Duration::from_millis(20);

/// Record of all requests.
#[derive(Debug)]
pub(super) struct Visits {
    promised: Promised,
    hosts: Vec<Mutex<HostVisits>>,
    /// True for each page that was served.
    served: Vec<AtomicBool>,
    /// Pages whose first request was answered by a failure.
    failed: Mutex<HashSet<u32>>,
    n_requests: AtomicU64,
    n_early: AtomicU64,
    n_forbidden: AtomicU64,
}

/// Figures about all requests to a web.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct VisitFigures {
    /// Number of requests, those for robots.txt included.
    pub requests: u64,
    /// Number of pages that were served at least once.
    pub served: u64,
    /// Number of requests that came earlier than promised: too soon after the previous answer of their host, or while another
    /// request to it was open.
    pub early: u64,
    /// Number of requests for pages that robots.txt forbids.
    pub forbidden: u64,
}

/// Times from the end of an answer to the next request to the same host that the visitor has promised. Zero promises
/// nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Promised {
    /// Time after the rules of the site: its crawl-delay is not known before.
    pub after_robots: Duration,
    /// Time after any other answer.
    pub after_page: Duration,
}

/// Answer to a request, as far as the next request depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Robots,
    Page,
}

/// State of one host.
#[derive(Debug, Default)]
struct HostVisits {
    n_open: u32,
    /// The last answer and its end.
    last: Option<(Answer, Instant)>,
}

/// Request that is being answered. Dropping it ends the answer.
pub(super) struct Visit<'a> {
    host: &'a Mutex<HostVisits>,
    answer: Answer,
}

impl Visits {
    /// Creates an empty record of a web whose visitor has promised these delays.
    pub(super) fn new(n_hosts: u32, n_pages: usize, promised: Promised) -> Self {
        Self {
            promised,
            hosts: (0..n_hosts).map(|_| Mutex::default()).collect(),
            served: (0..n_pages).map(|_| AtomicBool::new(false)).collect(),
            failed: Mutex::default(),
            n_requests: AtomicU64::new(0),
            n_early: AtomicU64::new(0),
            n_forbidden: AtomicU64::new(0),
        }
    }

    /// Records a request to a host that is answered in this way. Returns `None` if there is no such host.
    pub(super) fn begin(&self, host: u32, answer: Answer) -> Option<Visit<'_>> {
        let host = self.hosts.get(host as usize)?;
        self.n_requests.fetch_add(1, Ordering::Relaxed);
        if lock(host).begin(Instant::now(), self.promised) {
            self.n_early.fetch_add(1, Ordering::Relaxed);
        }
        Some(Visit { host, answer })
    }

    /// Records that a page is served.
    pub(super) fn serve(&self, page: u32) {
        if let Some(served) = self.served.get(page as usize) {
            served.store(true, Ordering::Relaxed);
        }
    }

    /// Records a request for a page that is forbidden.
    pub(super) fn forbid(&self) {
        self.n_forbidden.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a failure of a page. Returns true for the first one.
    pub(super) fn fail(&self, page: u32) -> bool {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.insert(page)
    }

    pub(super) fn figures(&self) -> VisitFigures {
        let served = self.served.iter();
        let served = served.filter(|served| served.load(Ordering::Relaxed));
        VisitFigures {
            requests: self.n_requests.load(Ordering::Relaxed),
            served: served.count() as u64,
            early: self.n_early.load(Ordering::Relaxed),
            forbidden: self.n_forbidden.load(Ordering::Relaxed),
        }
    }
}

impl HostVisits {
    /// Records the beginning of a request. Returns true if it is too early.
    fn begin(&mut self, now: Instant, promised: Promised) -> bool {
        let is_beside = self.n_open > 0 && !promised.after_page.is_zero();
        self.n_open += 1;
        let is_soon = self.last.is_some_and(|(answer, ended)| {
            let delay = match answer {
                Answer::Robots => promised.after_robots,
                Answer::Page => promised.after_page,
            };
            now.saturating_duration_since(ended) + TOLERANCE < delay
        });
        is_beside || is_soon
    }

    fn end(&mut self, answer: Answer, now: Instant) {
        self.n_open -= 1;
        self.last = Some((answer, now));
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        lock(self.host).end(self.answer, Instant::now());
    }
}

fn lock(host: &Mutex<HostVisits>) -> MutexGuard<'_, HostVisits> {
    host.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Plays requests that begin and end at these milliseconds, in the order of their beginnings, and checks which of
    /// them are too early. The first is for robots.txt.
    #[track_caller]
    fn check(promised: Promised, requests: &[(u64, u64)], expected: &[bool]) {
        let origin = Instant::now();
        let mut host = HostVisits::default();
        let mut open: Vec<(u64, Answer)> = Vec::new();
        let mut found = Vec::new();
        for (n, (begin, end)) in requests.iter().enumerate() {
            open.sort_unstable_by_key(|(end, _)| *end);
            let n_ended = open.partition_point(|(end, _)| end <= begin);
            for (end, answer) in open.drain(..n_ended) {
                host.end(answer, origin + MS(end));
            }
            found.push(host.begin(origin + MS(*begin), promised));
            let answer = if n == 0 { Answer::Robots } else { Answer::Page };
            open.push((*end, answer));
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn a_request_is_early_within_the_delay_or_beside_another() {
        let second = Promised {
            after_robots: MS(1_000),
            after_page: MS(1_000),
        };
        check(second, &[(0, 100), (1_100, 1_200)], &[false, false]);
        check(second, &[(0, 100), (1_070, 1_200)], &[false, true]);
        check(second, &[(0, 100), (1_085, 1_200)], &[false, false]);
        let beside = [(0, 5_000), (2_000, 2_100), (6_100, 6_200)];
        check(second, &beside, &[false, true, false]);
        let crawl_delay = Promised {
            after_robots: Duration::ZERO,
            ..second
        };
        let requests = [(0, 100), (101, 200), (300, 400), (1_400, 1_500)];
        check(crawl_delay, &requests, &[false, false, true, false]);
        let nothing = Promised::default();
        check(nothing, &[(0, 9), (1, 2), (3, 4)], &[false; 3]);
    }

    #[test]
    fn a_page_counts_once_however_often_it_is_served() {
        let visits = Visits::new(2, 3, Promised::default());
        for (host, page) in [(0, 0), (1, 1), (1, 1)] {
            let _visit = visits.begin(host, Answer::Page).unwrap();
            visits.serve(page);
        }
        assert!(visits.begin(2, Answer::Page).is_none());
        assert!(visits.fail(2));
        assert!(!visits.fail(2));
        visits.forbid();
        let expected = VisitFigures {
            requests: 3,
            served: 2,
            early: 0,
            forbidden: 1,
        };
        assert_eq!(visits.figures(), expected);
    }
}
