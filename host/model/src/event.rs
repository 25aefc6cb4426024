//! Events of resources and nodes: what happened to them, one record for each write of the leader.
//!
//! Text in an event may come from callers, rules and sites: it is bounded, and escaped for terminals.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::crawl::{Counts, UnixMillis};
use super::guest_text::GuestText;
use super::id::{Generation, NodeId, Run, Shard};
use super::named_settings::{differing, named_settings};
use super::resource::ResourceSpec;

mod folded;
mod kind;
mod told_node;

pub use folded::{FoldedEvent, FoldedText};
pub use kind::{EventClass, EventKind, OtherWord};
pub use told_node::ToldNode;

/// Largest number of bytes of a text in an event.
pub const EVENT_TEXT_MAX: usize = 256;
/// Largest number of reasons of dead letters that one event names.
const DEAD_REASONS_MAX: usize = 5;

/// Numbers of the run that an event ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EventCounts {
    /// Pages that came to an end.
    pub pages: u64,
    /// Items stored.
    pub items: u64,
    /// Pages given up.
    pub dead: u64,
}

impl EventCounts {
    /// Returns the numbers of these totals.
    pub fn of(counts: &Counts) -> Self {
        Self {
            pages: counts.pages(),
            items: counts.items,
            dead: counts.dead,
        }
    }
}

/// One thing that happened to a resource or a node. Fields that say nothing about a kind are empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Kind of the event.
    pub kind: EventKind,
    /// Run that the event is about, or the present run if it is about none; 0 in an event of a node.
    #[serde(default)]
    pub run: Run,
    /// Shard that the event is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Worker that has the shard after the event, or that is to have it next; worker that has seen what is folded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worker: Option<NodeId>,
    /// Worker that had the shard before the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeId>,
    /// Name of the caller who asked for it; empty if the leader decided it.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub by: GuestText,
    /// Reason, or details such as the names of changed settings.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub why: GuestText,
    /// Generation of the spec after the event, if it has changed the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<Generation>,
    /// Numbers of the run, if the event has ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<EventCounts>,
    /// Number of times that it happened, if the event is folded; else 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub times: u64,
}

impl Event {
    /// Creates an event of a kind in a run.
    pub fn of(kind: EventKind, run: Run) -> Self {
        Self {
            kind,
            run,
            shard: None,
            worker: None,
            from: None,
            by: GuestText::default(),
            why: GuestText::default(),
            generation: None,
            counts: None,
            times: 0,
        }
    }

    /// Creates an event of a node.
    pub fn of_node(kind: EventKind) -> Self {
        Self::of(kind, Run::default())
    }

    /// Adds the name of the caller.
    #[must_use]
    pub fn by(mut self, by: &str) -> Self {
        self.by = GuestText::within(EVENT_TEXT_MAX, by);
        self
    }

    /// Adds the reason.
    #[must_use]
    pub fn because(mut self, why: impl fmt::Display) -> Self {
        self.why = GuestText::within(EVENT_TEXT_MAX, why);
        self
    }
}

/// Events of one write to the store, under `events/<id>/…` for a resource and `events/node/<id>/…` for a node. They
/// happened at once, but for folded ones, each of which tells of the time before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventRecord {
    /// Time of the clock of the leader that wrote them. The order of records is that of their writes, whatever their
    /// times are.
    pub at: UnixMillis,
    /// The events, in order.
    pub events: Vec<Event>,
}

/// Returns what there is to tell of a run that is over: that no request gave a page, with what each gave instead, and the
/// reasons for which pages were given up. The text is empty if there is nothing to tell.
pub fn end_reasons(counts: &Counts) -> String {
    let outcomes = counts.outcomes.iter();
    let outcomes: Vec<String> = outcomes.map(|(word, n)| format!("{word} {n}")).collect();
    let no_page = match (
        counts.pages() > 0 && counts.has_no_page(),
        outcomes.is_empty(),
    ) {
        (false, _) => String::new(),
        (true, true) => "no request gave a page".to_owned(),
        (true, false) => format!("no request gave a page: {}", outcomes.join(", ")),
    };
    let mut parts = vec![no_page, dead_reasons(counts)];
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

/// Returns the reasons for which pages of a run were given up, with their numbers: those of most pages first, and how many
/// further reasons there are. The text is empty if no page was given up.
fn dead_reasons(counts: &Counts) -> String {
    let mut reasons: Vec<(&String, &u64)> = counts.dead_by_reason.iter().collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let n_more = reasons.len().saturating_sub(DEAD_REASONS_MAX);
    let told = reasons.iter().take(DEAD_REASONS_MAX);
    let mut told: Vec<String> = told.map(|(reason, n)| format!("{reason} {n}")).collect();
    match n_more {
        0 => {}
        1 => told.push("1 other reason".to_owned()),
        n => told.push(format!("{n} other reasons")),
    }
    match told.is_empty() {
        true => String::new(),
        false => format!("given up: {}", told.join(", ")),
    }
}

/// Returns the names of the settings in which two specs differ, as users write them, with commas in between. Values may be
/// secret, such as those of params, and are not shown.
pub fn changed_settings(before: &ResourceSpec, after: &ResourceSpec) -> String {
    differing(&named_settings(before), &named_settings(after)).join(", ")
}

fn is_empty(text: &GuestText) -> bool {
    text.as_str().is_empty()
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::Done;

    #[test]
    fn a_record_is_small_whatever_callers_and_rules_write() {
        let text = "é\u{1b}[2J".repeat(10_000);
        let event = Event::of(EventKind::Failed, Run(u64::MAX));
        let event = event.by(&text).because(&text);
        assert!(!event.why.as_str().contains('\u{1b}'));
        let at = UnixMillis::MAX;
        let events = vec![event];
        let record = EventRecord { at, events };
        let json = serde_json::to_string(&record).unwrap();
        assert!(json.len() < 1_500, "{} bytes", json.len());
        assert_eq!(serde_json::from_str::<EventRecord>(&json).unwrap(), record);
    }

    #[test]
    fn pages_that_were_given_up_are_folded_by_reason() {
        #[track_caller]
        fn check(reasons: &[(&str, u64)], expected: &str) {
            let reasons = reasons.iter();
            let counts = Counts {
                dead_by_reason: reasons.map(|(why, n)| ((*why).to_owned(), *n)).collect(),
                ..Counts::default()
            };
            assert_eq!(dead_reasons(&counts), expected);
        }
        check(&[], "");
        check(&[("fuel", 31)], "given up: fuel 31");
        check(
            &[("connect", 2), ("fuel", 31), ("timeout", 2)],
            "given up: fuel 31, connect 2, timeout 2",
        );
        let six = [("a", 6), ("b", 5), ("c", 4), ("d", 3), ("e", 2), ("f", 1)];
        check(&six, "given up: a 6, b 5, c 4, d 3, e 2, 1 other reason");
    }

    #[test]
    fn a_run_without_a_page_tells_what_requests_gave() {
        #[track_caller]
        fn check(ends: &[Result<Done, &str>], expected: &str) {
            let mut counts = Counts::default();
            for end in ends {
                match end {
                    Ok(done) => counts.end_done(*done),
                    Err(reason) => counts.end_dead(reason),
                }
            }
            assert_eq!(end_reasons(&counts), expected, "{ends:?}");
        }
        check(&[], "");
        check(&[Ok(Done::Gone)], "no request gave a page: gone 1");
        check(
            &[Ok(Done::Gone), Ok(Done::Redirected), Err("fuel")],
            "no request gave a page: gone 1, redirected 1; given up: fuel 1",
        );
        check(&[Err("fuel")], "no request gave a page; given up: fuel 1");
        check(&[Ok(Done::Parsed), Ok(Done::Gone)], "");
        check(&[Ok(Done::NotModified), Ok(Done::Gone)], "");
    }

    #[test]
    fn an_event_of_a_later_version_is_read() {
        let json = r#"{"at":1,"events":[{"kind":"frozen","run":2,"why":"it is cold","new":1}]}"#;
        let record: EventRecord = serde_json::from_str(json).unwrap();
        let event = &record.events[0];
        assert_eq!((event.kind.as_str(), event.run), ("unknown", Run(2)));
        assert_eq!(event.kind.to_string(), "frozen");
        assert_eq!(event.why.as_str(), "it is cold");
    }

    #[test]
    fn changed_settings_are_named_and_not_shown() {
        let spec = r#"{"name":"books","plugin":"books","params":{"start":"a","key":"secret"}}"#;
        let before: ResourceSpec = serde_json::from_str(spec).unwrap();
        assert_eq!(changed_settings(&before, &before), "");
        let mut after = before.clone();
        after.params.insert("key".into(), "other".into());
        after.crawl.max_pages = Some(7);
        after.crawl.delay_ms = Some(9);
        after.placement.weight = 3;
        after.labels.insert("team".into(), "shop".into());
        after.plugin = "books@1.0.0".parse().unwrap();
        assert_eq!(
            changed_settings(&before, &after),
            "delay, label team, max-pages, param key, plugin, weight"
        );
    }
}
