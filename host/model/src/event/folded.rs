//! Events that only a worker knows: folded over a span of time, and shown in its status until the leader has told them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{EVENT_TEXT_MAX, Event, EventKind};
use crate::guest_text::GuestText;
use crate::id::{NodeId, ResourceId, Run};

/// Largest number of different texts of one folded event.
const TEXTS_MAX: usize = 5;
/// Largest number of bytes of each.
const TEXT_MAX: usize = 160;

/// Event of a resource that one worker has folded. Its worker, the incarnation of that and its number are its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldedEvent {
    /// Number of the event in its process, from 1.
    pub number: u64,
    /// Resource that it is about.
    pub resource: ResourceId,
    /// Run that it is about.
    pub run: Run,
    /// Kind of the event.
    pub kind: EventKind,
    /// Number of times that it happened.
    pub times: u64,
    /// Texts of what happened, with their numbers, as far as they are told apart.
    pub why: GuestText,
}

impl FoldedEvent {
    /// Returns the event as the history of the resource has it.
    pub fn event(&self, worker: &NodeId) -> Event {
        Event {
            worker: Some(worker.clone()),
            times: self.times,
            ..Event::of(self.kind, self.run).because(&self.why)
        }
    }

    /// Returns a number of bytes that the event does not exceed in a record.
    pub fn n_bytes(&self) -> usize {
        // JSON may escape quotes and backslashes; names of fields and numbers take less than the rest.
        2 * self.why.as_str().len() + 192
    }
}

/// Text of a folded event: what happened, and how often. Its size is bounded.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoldedText {
    by_text: BTreeMap<String, u64>,
    /// Number of times that had no room for a text of their own.
    n_others: u64,
}

impl FoldedText {
    /// Counts something that happened.
    pub fn add(&mut self, text: impl fmt::Display) {
        let text = String::from(GuestText::within(TEXT_MAX, text));
        let has_room = self.by_text.len() < TEXTS_MAX;
        match self.by_text.get_mut(&text) {
            Some(n) => *n += 1,
            None if has_room => drop(self.by_text.insert(text, 1)),
            None => self.n_others += 1,
        }
    }

    /// Returns the number of times that something happened.
    pub fn times(&self) -> u64 {
        self.by_text.values().sum::<u64>() + self.n_others
    }

    /// Returns the texts, those of most times first.
    pub fn text(&self) -> GuestText {
        let mut texts: Vec<(&String, &u64)> = self.by_text.iter().collect();
        texts.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        let mut parts: Vec<String> = Vec::new();
        for (text, n) in texts {
            parts.push(match n {
                1 => text.clone(),
                n => format!("{text} ({n} times)"),
            });
        }
        if self.n_others > 0 {
            parts.push(format!("and {} others", self.n_others));
        }
        GuestText::within(EVENT_TEXT_MAX, parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_often_is_told_first_and_counted() {
        let mut folded = FoldedText::default();
        for text in ["trapped", "out-of-fuel", "out-of-fuel"] {
            folded.add(text);
        }
        assert_eq!(folded.times(), 3);
        assert_eq!(folded.text().as_str(), "out-of-fuel (2 times), trapped");
    }

    #[test]
    fn a_folded_text_is_small_whatever_happens() {
        let mut folded = FoldedText::default();
        for n in 0..10_000 {
            folded.add(format_args!("{n}\u{1b}{}", "\"".repeat(1_000)));
        }
        assert_eq!(folded.by_text.len(), TEXTS_MAX);
        assert_eq!(folded.times(), 10_000);
        assert!(folded.text().as_str().len() <= EVENT_TEXT_MAX);
        let event = FoldedEvent {
            number: u64::MAX,
            resource: ResourceId(u64::MAX),
            run: Run(u64::MAX),
            kind: EventKind::ArchiveRefused,
            times: u64::MAX,
            why: folded.text(),
        };
        let json = serde_json::to_string(&event).unwrap();
        assert!(json.len() <= event.n_bytes(), "{} bytes", json.len());
        assert_eq!(serde_json::from_str::<FoldedEvent>(&json).unwrap(), event);
    }

    #[test]
    fn a_folded_event_names_its_worker_and_how_often_it_happened() {
        let mut folded = FoldedText::default();
        for n in 0..7 {
            folded.add(format_args!("host-{n}.test:80"));
        }
        let event = FoldedEvent {
            number: 1,
            resource: ResourceId(1),
            run: Run(2),
            kind: EventKind::BreakerOpen,
            times: folded.times(),
            why: folded.text(),
        };
        let event = event.event(&"worker-1".parse().unwrap());
        assert_eq!((event.times, event.run), (7, Run(2)));
        assert!(event.why.as_str().ends_with("host-4.test:80, and 2 others"));
        assert_eq!(event.worker.unwrap().as_str(), "worker-1");
    }
}
