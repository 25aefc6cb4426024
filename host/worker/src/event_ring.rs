//! Events of crawls that only this worker knows, until the leader has told them.
//!
//! A worker writes no events: its user of etcd may not. They go with its totals, which are written anyway, and the leader
//! tells each once, by its number. It answers nothing, so they stay for an hour, in which some leader has seen them.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

use crawler_crawl::incidents::Folded;
use crawler_model::event::FoldedEvent;

/// Time for which an event is shown.
const SHOWN_FOR: Duration = Duration::from_secs(60 * 60);
/// Largest number of bytes of the events that are shown: the record of totals is written every half minute.
const MAX_BYTES: usize = 8 << 10;

/// Latest events of a process, the oldest first.
#[derive(Debug, Default)]
pub(super) struct EventRing {
    /// Number of the last event.
    last: u64,
    events: VecDeque<(Instant, FoldedEvent)>,
    n_bytes: usize,
}

impl EventRing {
    /// Adds events. Returns how many had to go before their time.
    pub(super) fn add(&mut self, folded: Vec<Folded>, now: Instant) -> u64 {
        while let Some((since, _)) = self.events.front()
            && now.duration_since(*since) >= SHOWN_FOR
        {
            self.drop_oldest();
        }
        for folded in folded {
            self.last += 1;
            let event = FoldedEvent {
                number: self.last,
                resource: folded.resource,
                run: folded.run,
                kind: folded.kind,
                times: folded.text.times(),
                why: folded.text.text(),
            };
            self.n_bytes += event.n_bytes();
            self.events.push_back((now, event));
        }
        let mut n_dropped = 0;
        while self.n_bytes > MAX_BYTES {
            self.drop_oldest();
            n_dropped += 1;
        }
        n_dropped
    }

    /// Returns the events.
    pub(super) fn events(&self) -> Vec<FoldedEvent> {
        self.events.iter().map(|(_, event)| event.clone()).collect()
    }

    fn drop_oldest(&mut self) {
        if let Some((_, oldest)) = self.events.pop_front() {
            self.n_bytes -= oldest.n_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::event::{EventKind, FoldedText};
    use crawler_model::id::{ResourceId, Run};

    fn folded(n: usize, what: &str) -> Vec<Folded> {
        let mut text = FoldedText::default();
        text.add(what);
        let folded = Folded {
            resource: ResourceId(1),
            run: Run(1),
            kind: EventKind::RuleKilled,
            text,
        };
        vec![folded; n]
    }

    fn numbers(ring: &EventRing) -> Vec<u64> {
        ring.events().iter().map(|event| event.number).collect()
    }

    #[test]
    fn events_are_numbered_and_shown_for_an_hour() {
        let mut ring = EventRing::default();
        let start = Instant::now();
        assert_eq!(ring.add(folded(2, "trapped"), start), 0);
        assert_eq!(ring.add(folded(1, "trapped"), start + SHOWN_FOR / 2), 0);
        assert_eq!(numbers(&ring), [1, 2, 3]);
        assert_eq!(ring.add(Vec::new(), start + SHOWN_FOR), 0);
        assert_eq!(numbers(&ring), [3]);
        ring.add(Vec::new(), start + SHOWN_FOR * 2);
        assert_eq!((numbers(&ring), ring.n_bytes), (Vec::new(), 0));
        // A number never comes again.
        ring.add(folded(1, "trapped"), start + SHOWN_FOR * 2);
        assert_eq!(numbers(&ring), [4]);
    }

    #[test]
    fn events_fit_in_the_record_of_totals() {
        let mut ring = EventRing::default();
        let n_dropped = ring.add(folded(1_000, &"\"".repeat(1_000)), Instant::now());
        let events = ring.events();
        assert_eq!(events.len() as u64 + n_dropped, 1_000);
        assert_eq!(events.last().map(|event| event.number), Some(1_000));
        let json = serde_json::to_vec(&events).unwrap();
        assert!(json.len() <= MAX_BYTES, "{} bytes", json.len());
    }
}
