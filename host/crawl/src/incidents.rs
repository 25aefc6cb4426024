//! Incidents of crawls: what happens again and again and is told as a few events, with numbers.
//!
//! Crawls add incidents, and a worker takes them folded: all of one kind and one run of a resource in a span of time are
//! one. While incidents go on, each span is twice as long as the one before, so that a crawl in which every page goes wrong
//! has some 30 events of a kind in a day, and not one for each page.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crawler_model::event::{EventKind, FoldedText};
use crawler_model::id::{ResourceId, Run};
use crawler_process::doubling_span::DoublingSpan;

/// Largest number of kinds and runs of resources that are folded at once. Each takes a kilobyte at most.
const MAX_FOLDS: usize = 4_096;
/// Largest number of hosts of one crawl that are known to be left alone. A further one takes the place of the oldest.
const MAX_HOSTS: usize = 256;

/// Incidents of all crawls of a process. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Incidents {
    shared: Arc<Mutex<Folds>>,
}

#[derive(Debug, Default)]
struct Folds {
    by_key: BTreeMap<Key, Fold>,
    /// Number of incidents that had no room.
    n_dropped: u64,
}

/// Subject of incidents that are folded into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    resource: ResourceId,
    run: Run,
    kind: EventKind,
}

/// Incidents of the present span.
#[derive(Debug)]
struct Fold {
    text: FoldedText,
    span: DoublingSpan,
}

/// Incidents of one span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// Resource of the crawls.
    pub resource: ResourceId,
    /// Run of the crawls.
    pub run: Run,
    /// Kind of the incidents.
    pub kind: EventKind,
    /// Texts of what happened, with their numbers.
    pub text: FoldedText,
}

impl Incidents {
    /// Returns the incidents of one crawl.
    pub fn of_crawl(&self, resource: ResourceId, run: Run) -> CrawlIncidents {
        CrawlIncidents {
            all: self.clone(),
            resource,
            run,
            hosts: Arc::default(),
            n_hosts: Arc::default(),
        }
    }

    /// Gives the incidents of spans that have ended, those that ended first before others, until `take` returns false. That
    /// one and those after it go on being folded.
    pub fn take_each(&self, mut take: impl FnMut(&Folded) -> bool) {
        let now = Instant::now();
        let mut folds = self.folds();
        // A span without an incident: the next one is the first again.
        (folds.by_key).retain(|_, fold| !fold.span.has_ended(now) || fold.text.times() > 0);
        let due = folds.by_key.iter();
        let due = due.filter(|(_, fold)| fold.span.has_ended(now));
        let due = due.map(|(key, fold)| (fold.span.due_at(), *key));
        let mut due: Vec<(Instant, Key)> = due.collect();
        due.sort_unstable();
        for (_, key) in due {
            let Some(fold) = folds.by_key.get_mut(&key) else {
                continue;
            };
            let folded = Folded {
                resource: key.resource,
                run: key.run,
                kind: key.kind,
                text: std::mem::take(&mut fold.text),
            };
            if !take(&folded) {
                fold.text = folded.text;
                break;
            }
            fold.span = fold.span.next(now);
        }
    }

    /// Ends the present spans of a resource, because its crawl is over here.
    pub fn end_spans(&self, resource: ResourceId) {
        let now = Instant::now();
        let mut folds = self.folds();
        let own = folds.by_key.iter_mut();
        let own = own.filter(|(key, _)| key.resource == resource);
        own.for_each(|(_, fold)| fold.span.end(now));
    }

    /// Returns the number of incidents that had no room since the last call.
    pub fn take_dropped(&self) -> u64 {
        std::mem::take(&mut self.folds().n_dropped)
    }

    fn add(&self, key: Key, what: impl fmt::Display) {
        let mut folds = self.folds();
        if folds.by_key.len() >= MAX_FOLDS && !folds.by_key.contains_key(&key) {
            folds.n_dropped += 1;
            return;
        }
        let fold = folds.by_key.entry(key).or_insert_with(|| Fold {
            text: FoldedText::default(),
            span: DoublingSpan::first(Instant::now()),
        });
        fold.text.add(what);
    }

    fn folds(&self) -> MutexGuard<'_, Folds> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Incidents of one crawl. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CrawlIncidents {
    all: Incidents,
    resource: ResourceId,
    run: Run,
    /// Hosts that are left alone, and since when.
    hosts: Arc<Mutex<BTreeMap<String, Instant>>>,
    /// Number of these hosts; nearly always none, and then a page takes no lock.
    n_hosts: Arc<AtomicUsize>,
}

impl Default for CrawlIncidents {
    /// Creates the incidents of a crawl of which nobody is told.
    fn default() -> Self {
        Incidents::default().of_crawl(ResourceId::default(), Run::default())
    }
}

impl CrawlIncidents {
    /// Adds an incident.
    pub fn add(&self, kind: EventKind, what: impl fmt::Display) {
        let key = Key {
            resource: self.resource,
            run: self.run,
            kind,
        };
        self.all.add(key, what);
    }

    /// Takes note that a host is left alone because it is in trouble.
    pub(crate) fn host_in_trouble(&self, host: &str) {
        {
            let mut hosts = self.hosts();
            if hosts.contains_key(host) {
                return;
            }
            if hosts.len() >= MAX_HOSTS {
                let oldest = hosts.iter().min_by_key(|(_, since)| **since);
                if let Some(oldest) = oldest.map(|(host, _)| host.clone()) {
                    hosts.remove(&oldest);
                }
            }
            hosts.insert(host.to_owned(), Instant::now());
            self.n_hosts.store(hosts.len(), Ordering::Relaxed);
        }
        self.add(EventKind::BreakerOpen, host);
    }

    /// Takes note that a host answers.
    pub(crate) fn host_answers(&self, host: impl FnOnce() -> String) {
        if self.n_hosts.load(Ordering::Relaxed) == 0 {
            return;
        }
        let host = host();
        let since = {
            let mut hosts = self.hosts();
            let since = hosts.remove(&host);
            self.n_hosts.store(hosts.len(), Ordering::Relaxed);
            since
        };
        if let Some(since) = since {
            let time = whole_seconds(since.elapsed());
            self.add(
                EventKind::BreakerClosed,
                format_args!("{host} after {time}"),
            );
        }
    }

    fn hosts(&self) -> MutexGuard<'_, BTreeMap<String, Instant>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the text of a time, without parts of a second.
pub fn whole_seconds(time: Duration) -> String {
    humantime::format_duration(Duration::from_secs(time.as_secs())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = DoublingSpan::FIRST;
    const LONGEST_SPAN: Duration = DoublingSpan::LONGEST;
    const ONE: ResourceId = ResourceId(1);

    fn taken(incidents: &Incidents) -> Vec<Folded> {
        let mut taken = Vec::new();
        incidents.take_each(|folded| {
            taken.push(folded.clone());
            true
        });
        taken
    }

    fn told(incidents: &Incidents) -> Vec<(EventKind, u64, String)> {
        let taken = taken(incidents);
        let told = taken.iter().map(|folded| {
            let text = folded.text.text().to_string();
            (folded.kind, folded.text.times(), text)
        });
        told.collect()
    }

    #[tokio::test(start_paused = true)]
    async fn what_happens_in_a_minute_is_one_event_with_a_number() {
        let incidents = Incidents::default();
        let crawl = incidents.of_crawl(ONE, Run(1));
        for what in ["out-of-fuel", "out-of-fuel", "trapped"] {
            crawl.add(EventKind::RuleKilled, what);
        }
        assert_eq!(taken(&incidents), []);
        tokio::time::advance(MINUTE).await;
        let text = "out-of-fuel (2 times), trapped".to_owned();
        assert_eq!(told(&incidents), [(EventKind::RuleKilled, 3, text)]);
        assert_eq!(taken(&incidents), []);
    }

    #[tokio::test(start_paused = true)]
    async fn what_goes_on_is_told_more_and_more_rarely() {
        let incidents = Incidents::default();
        let crawl = incidents.of_crawl(ONE, Run(1));
        let mut n_told = 0;
        let mut n_incidents = 0;
        for _minute in 0..24 * 60 {
            crawl.add(EventKind::RuleKilled, "trapped");
            tokio::time::advance(MINUTE).await;
            for folded in taken(&incidents) {
                n_told += 1;
                n_incidents += folded.text.times();
            }
        }
        assert!((20..=30).contains(&n_told), "{n_told}");
        // The last span has not ended.
        assert!(n_incidents > 23 * 60, "{n_incidents}");
        // After a while without one, the next is told within a minute.
        tokio::time::advance(2 * LONGEST_SPAN).await;
        assert_eq!(taken(&incidents).len(), 1);
        tokio::time::advance(LONGEST_SPAN).await;
        assert_eq!(taken(&incidents), []);
        crawl.add(EventKind::RuleKilled, "trapped");
        tokio::time::advance(MINUTE).await;
        assert_eq!(taken(&incidents).len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_crawl_that_ends_leaves_nothing_untold() {
        let incidents = Incidents::default();
        for resource in [ONE, ResourceId(2)] {
            let crawl = incidents.of_crawl(resource, Run(1));
            crawl.add(EventKind::RuleKilled, "trapped");
        }
        incidents.end_spans(ONE);
        let taken = taken(&incidents);
        assert_eq!(taken.len(), 1);
        assert_eq!(taken[0].resource, ONE);
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_no_room_is_folded_on_and_is_the_next() {
        let incidents = Incidents::default();
        let crawls = [3, 2, 1].map(|n| incidents.of_crawl(ResourceId(n), Run(1)));
        for crawl in &crawls {
            crawl.add(EventKind::RuleKilled, "trapped");
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        tokio::time::advance(MINUTE).await;
        let mut first = Vec::new();
        incidents.take_each(|folded| {
            if first.len() == 2 {
                return false;
            }
            first.push(folded.resource.0);
            true
        });
        assert_eq!(first, [3, 2]);
        crawls[2].add(EventKind::RuleKilled, "trapped");
        let left = taken(&incidents);
        let left: Vec<_> = left
            .iter()
            .map(|f| (f.resource.0, f.text.times()))
            .collect();
        assert_eq!(left, [(1, 2)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_host_is_told_when_it_is_left_alone_and_when_it_is_back() {
        let incidents = Incidents::default();
        let crawl = incidents.of_crawl(ONE, Run(1));
        let answers = |host: &str| crawl.host_answers(|| host.to_owned());
        answers("a.test:80");
        for _page in 0..3 {
            crawl.host_in_trouble("a.test:80");
        }
        tokio::time::advance(MINUTE).await;
        answers("b.test:80");
        answers("a.test:80");
        answers("a.test:80");
        tokio::time::advance(MINUTE).await;
        let expected = [
            (EventKind::BreakerOpen, 1, "a.test:80".to_owned()),
            (EventKind::BreakerClosed, 1, "a.test:80 after 1m".to_owned()),
        ];
        assert_eq!(told(&incidents), expected);
    }

    #[tokio::test(start_paused = true)]
    async fn incidents_are_bounded_whatever_happens() {
        let incidents = Incidents::default();
        for n in 0..MAX_FOLDS as u64 + 7 {
            let crawl = incidents.of_crawl(ResourceId(n), Run(1));
            crawl.add(EventKind::RuleKilled, "trapped");
        }
        assert_eq!(incidents.take_dropped(), 7);
        assert_eq!(incidents.take_dropped(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_host_makes_room_for_the_next() {
        let incidents = Incidents::default();
        let crawl = incidents.of_crawl(ONE, Run(1));
        for n in 0..1_000 {
            crawl.host_in_trouble(&format!("{n}.test:80"));
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(crawl.hosts().len(), MAX_HOSTS);
        crawl.host_answers(|| "0.test:80".to_owned());
        crawl.host_answers(|| "999.test:80".to_owned());
        tokio::time::advance(MINUTE).await;
        let times: Vec<_> = told(&incidents)
            .iter()
            .map(|(kind, n, _)| (*kind, *n))
            .collect();
        let expected = [
            (EventKind::BreakerOpen, 1_000),
            (EventKind::BreakerClosed, 1),
        ];
        assert_eq!(times, expected);
    }
}
