//! Events of crawls that only this worker knows, until the leader has told them.
//!
//! A worker writes no events: its user of etcd may not. They go with its totals, which are written anyway, and the leader
//! tells each once, by its number. It answers nothing, so each is shown for two minutes, or for one if others wait for its
//! room. A leader looks more often than that, and so does the next one if it is elected in time; what was shown while no
//! master led for longer is never told. What has no room meanwhile goes on being folded.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crawler_crawl::incidents::{Folded, Incidents};
use crawler_model::event::FoldedEvent;

/// Time from the first record with an event until it is shown no more.
const SHOWN_FOR: Duration = Duration::from_secs(120);
/// The same time if others wait for its room. A leader looks every 15 seconds.
const SHOWN_AT_LEAST: Duration = Duration::from_secs(60);
/// Largest number of bytes of the events that are shown: each record of totals has them.
const MAX_BYTES: usize = 4 << 10;

/// Events of a process that are shown, the oldest first.
#[derive(Debug, Default)]
pub(super) struct EventRing {
    /// Number of the last event.
    last: u64,
    events: VecDeque<Shown>,
    n_bytes: usize,
}

#[derive(Debug)]
struct Shown {
    event: FoldedEvent,
    /// Time at which the first record with it was written.
    since: Option<Instant>,
}

impl EventRing {
    /// Takes the incidents of spans that have ended, as far as there is room. Events that were shown for long go.
    pub(super) fn take_from(&mut self, incidents: &Incidents, now: Instant) {
        while self.oldest_is_shown_for(SHOWN_FOR, now) {
            self.drop_oldest();
        }
        incidents.take_each(|folded| self.take(folded, now));
    }

    /// Takes note that these events are in a record that was written.
    pub(super) fn written(&mut self, events: &[FoldedEvent], now: Instant) {
        let Some(last) = events.last() else {
            return;
        };
        let written = self.events.iter_mut();
        let written = written.filter(|shown| shown.event.number <= last.number);
        written.for_each(|shown| shown.since = shown.since.or(Some(now)));
    }

    /// Returns the events.
    pub(super) fn events(&self) -> Vec<FoldedEvent> {
        self.events
            .iter()
            .map(|shown| shown.event.clone())
            .collect()
    }

    /// Takes an event. Returns false if there is no room.
    fn take(&mut self, folded: &Folded, now: Instant) -> bool {
        let event = FoldedEvent {
            number: self.last + 1,
            resource: folded.resource,
            run: folded.run,
            kind: folded.kind,
            times: folded.text.times(),
            why: folded.text.text(),
        };
        let n_bytes = event.n_bytes();
        while self.n_bytes + n_bytes > MAX_BYTES {
            if !self.oldest_is_shown_for(SHOWN_AT_LEAST, now) {
                return false;
            }
            self.drop_oldest();
        }
        self.last = event.number;
        self.n_bytes += n_bytes;
        self.events.push_back(Shown { event, since: None });
        true
    }

    fn oldest_is_shown_for(&self, time: Duration, now: Instant) -> bool {
        let since = self.events.front().and_then(|oldest| oldest.since);
        since.is_some_and(|since| now.duration_since(since) >= time)
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.events.pop_front() {
            self.n_bytes -= oldest.event.n_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::event::EventKind;
    use crawler_model::id::{ResourceId, Run};

    /// Incidents of the kinds of trouble of so many resources, whose spans have ended.
    fn incidents(n: u64, what: &str) -> Incidents {
        let incidents = Incidents::default();
        for n in 0..n {
            let id = ResourceId(n);
            let crawl = incidents.of_crawl(id, Run(1));
            crawl.add(EventKind::RuleKilled, what);
            incidents.end_spans(id);
        }
        incidents
    }

    /// Takes what there is and writes it into a record. Returns the numbers of the events of the record.
    fn write(ring: &mut EventRing, incidents: &Incidents, now: Instant) -> Vec<u64> {
        ring.take_from(incidents, now);
        let events = ring.events();
        ring.written(&events, now);
        events.iter().map(|event| event.number).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_numbered_and_shown_for_two_minutes() {
        let mut ring = EventRing::default();
        let start = Instant::now();
        let none = Incidents::default();
        assert_eq!(write(&mut ring, &incidents(2, "trapped"), start), [1, 2]);
        let next = start + SHOWN_FOR / 2;
        assert_eq!(write(&mut ring, &incidents(1, "trapped"), next), [1, 2, 3]);
        assert_eq!(write(&mut ring, &none, start + SHOWN_FOR), [3]);
        assert_eq!(write(&mut ring, &none, next + SHOWN_FOR), [0; 0]);
        assert_eq!(ring.n_bytes, 0);
        // A number never comes again.
        let later = start + SHOWN_FOR * 2;
        assert_eq!(write(&mut ring, &incidents(1, "trapped"), later), [4]);
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_no_record_has_is_kept() {
        let mut ring = EventRing::default();
        let start = Instant::now();
        ring.take_from(&incidents(1, "trapped"), start);
        let later = start + SHOWN_FOR * 10;
        assert_eq!(write(&mut ring, &Incidents::default(), later), [1]);
    }

    #[tokio::test(start_paused = true)]
    async fn events_fit_in_the_record_and_none_is_lost() {
        let mut ring = EventRing::default();
        let incidents = incidents(100, &"\"".repeat(1_000));
        let mut now = Instant::now();
        let mut seen: Vec<u64> = Vec::new();
        // A leader looks every 15 seconds.
        for _look in 0..200 {
            write(&mut ring, &incidents, now);
            let events = ring.events();
            let json = serde_json::to_vec(&events).unwrap();
            assert!(json.len() <= MAX_BYTES, "{} bytes", json.len());
            seen.extend(events.iter().map(|event| event.resource.0));
            now += Duration::from_secs(15);
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen, (0..100).collect::<Vec<u64>>());
    }
}
