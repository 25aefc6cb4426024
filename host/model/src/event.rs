//! Events of resources: what happened to a resource, one record for each write of the leader.
//!
//! This is the only list of kinds of events. [`EventKind`] is what readers of a history are told; [`EventClass`] is the
//! coarser word that webhooks use, and each kind has one. Text in an event may come from callers, rules and sites: it
//! is bounded, and escaped for terminals.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::crawl::{Counts, UnixMillis};
use super::guest_text::GuestText;
use super::id::{Generation, NodeId, Run, Shard};
use super::resource::ResourceSpec;
use super::settings::SETTINGS;
use super::text::as_text;

/// Largest number of bytes of a text in an event.
pub const EVENT_TEXT_MAX: usize = 256;
/// Largest number of reasons of dead letters that one event names.
const DEAD_REASONS_MAX: usize = 5;

/// Word by which a webhook tells of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventClass {
    /// A resource is new.
    Added,
    /// The spec, the run or the phase of a resource is another one.
    Changed,
    /// A resource is not there any more.
    Deleted,
}

impl EventClass {
    /// All classes.
    pub const ALL: [EventClass; 3] = [EventClass::Added, EventClass::Changed, EventClass::Deleted];

    /// Returns the word of the class in settings and bodies.
    pub fn as_str(self) -> &'static str {
        match self {
            EventClass::Added => "added",
            EventClass::Changed => "changed",
            EventClass::Deleted => "deleted",
        }
    }
}

impl FromStr for EventClass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let meant = Self::ALL.into_iter().find(|class| class.as_str() == text);
        meant.ok_or_else(|| format!("an event is added, changed or deleted, not {text:?}"))
    }
}

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    /// The resource was added.
    Added,
    /// Settings of the resource were changed.
    Updated,
    /// The plugin that the resource waited for was found.
    PluginFound,
    /// The resource was paused.
    Paused,
    /// The resource was resumed.
    Resumed,
    /// A run began.
    RunStarted,
    /// A run was ended by the next one.
    RunStopped,
    /// A run came to its end.
    Finished,
    /// A run cannot go on.
    Failed,
    /// Dead letters are tried again.
    Redriven,
    /// A shard was assigned to a worker.
    Placed,
    /// A worker was told to give a shard back.
    Moving,
    /// A shard was assigned to another worker than the one that had it.
    Moved,
    /// A shard was taken from a worker, and nobody has it.
    Unplaced,
    /// A schedule was set.
    ScheduleSet,
    /// The schedule was taken away.
    ScheduleRemoved,
    /// A due time was noticed too late to start a run.
    ScheduleMissed,
    /// A due time started no run, because the resource was paused or its run went on.
    ScheduleSkipped,
    /// A due time could not start a run.
    ScheduleFailed,
    /// The resource was deleted.
    Deleted,
    /// An event of a later version.
    Unknown,
}

impl EventKind {
    /// All kinds that this version tells.
    pub const ALL: [EventKind; 20] = [
        EventKind::Added,
        EventKind::Updated,
        EventKind::PluginFound,
        EventKind::Paused,
        EventKind::Resumed,
        EventKind::RunStarted,
        EventKind::RunStopped,
        EventKind::Finished,
        EventKind::Failed,
        EventKind::Redriven,
        EventKind::Placed,
        EventKind::Moving,
        EventKind::Moved,
        EventKind::Unplaced,
        EventKind::ScheduleSet,
        EventKind::ScheduleRemoved,
        EventKind::ScheduleMissed,
        EventKind::ScheduleSkipped,
        EventKind::ScheduleFailed,
        EventKind::Deleted,
    ];

    /// Returns the word of the kind.
    pub fn as_str(self) -> &'static str {
        match self {
            EventKind::Added => "added",
            EventKind::Updated => "updated",
            EventKind::PluginFound => "plugin-found",
            EventKind::Paused => "paused",
            EventKind::Resumed => "resumed",
            EventKind::RunStarted => "run-started",
            EventKind::RunStopped => "run-stopped",
            EventKind::Finished => "finished",
            EventKind::Failed => "failed",
            EventKind::Redriven => "redriven",
            EventKind::Placed => "placed",
            EventKind::Moving => "moving",
            EventKind::Moved => "moved",
            EventKind::Unplaced => "unplaced",
            EventKind::ScheduleSet => "schedule-set",
            EventKind::ScheduleRemoved => "schedule-removed",
            EventKind::ScheduleMissed => "schedule-missed",
            EventKind::ScheduleSkipped => "schedule-skipped",
            EventKind::ScheduleFailed => "schedule-failed",
            EventKind::Deleted => "deleted",
            EventKind::Unknown => "unknown",
        }
    }

    /// Returns the word by which a webhook tells of the resource after such an event, if the event may change what webhooks
    /// tell: spec, run or phase. Returns `None` if it changes none of them.
    pub fn class(self) -> Option<EventClass> {
        match self {
            EventKind::Added => Some(EventClass::Added),
            EventKind::Updated
            | EventKind::Paused
            | EventKind::Resumed
            | EventKind::RunStarted
            | EventKind::Finished
            | EventKind::Failed
            | EventKind::Redriven
            | EventKind::Placed
            | EventKind::Moved
            | EventKind::Unplaced => Some(EventClass::Changed),
            EventKind::Deleted => Some(EventClass::Deleted),
            EventKind::PluginFound
            | EventKind::RunStopped
            | EventKind::Moving
            | EventKind::ScheduleSet
            | EventKind::ScheduleRemoved
            | EventKind::ScheduleMissed
            | EventKind::ScheduleSkipped
            | EventKind::ScheduleFailed
            | EventKind::Unknown => None,
        }
    }
}

impl FromStr for EventKind {
    type Err = Infallible;

    /// Parses the word of a kind. A later version may have further kinds.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let meant = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        Ok(meant.unwrap_or(EventKind::Unknown))
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

as_text!(EventKind);

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

/// One thing that happened to a resource. Fields that say nothing about a kind are empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Kind of the event.
    pub kind: EventKind,
    /// Run that the event is about, or the present run if it is about none.
    #[serde(default)]
    pub run: Run,
    /// Shard that the event is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// Worker that has the shard after the event, or that is to have it next.
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
        }
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

/// Events of one write to the store, under `events/<id>/…`. They happened at once.
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
    let [before, after] = [before, after]
        .map(|spec| serde_json::to_value(spec).expect("a spec has text for keys in all its maps"));
    let mut changed = Vec::new();
    for group in keys(&before, &after) {
        let (before, after) = (&before[&group], &after[&group]);
        if before == after {
            continue;
        }
        let prefix = match group.as_str() {
            "params" => "param ",
            "limits" => "limit ",
            "labels" => "label ",
            "crawl" | "placement" => "",
            // It is a single setting.
            _ => {
                changed.push(group);
                continue;
            }
        };
        for key in keys(before, after) {
            if before[&key] == after[&key] {
                continue;
            }
            let setting = SETTINGS.iter().find(|setting| setting.field == key);
            changed.push(match (group.as_str(), setting) {
                ("crawl", Some(setting)) => setting.name.to_owned(),
                _ => format!("{prefix}{key}"),
            });
        }
    }
    changed.join(", ")
}

/// Returns the keys of two objects. What is absent has none.
fn keys(one: &Value, other: &Value) -> BTreeSet<String> {
    let objects = [one, other].into_iter().filter_map(Value::as_object);
    objects.flat_map(|object| object.keys().cloned()).collect()
}

fn is_empty(text: &GuestText) -> bool {
    text.as_str().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::Done;

    #[test]
    fn each_kind_has_a_word_of_its_own() {
        let words: BTreeSet<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(words.len(), EventKind::ALL.len());
        for kind in EventKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!("of-a-later-version".parse(), Ok(EventKind::Unknown));
    }

    #[test]
    fn kinds_that_webhooks_tell_have_one_of_their_words() {
        let of_class = |class| {
            let kinds = EventKind::ALL.into_iter();
            kinds.filter(move |kind| kind.class() == Some(class))
        };
        assert!(of_class(EventClass::Added).eq([EventKind::Added]));
        assert!(of_class(EventClass::Deleted).eq([EventKind::Deleted]));
        assert_eq!(EventKind::Finished.class(), Some(EventClass::Changed));
        assert_eq!(EventKind::ScheduleMissed.class(), None);
        assert_eq!("deleted".parse(), Ok(EventClass::Deleted));
        let error = "gone".parse::<EventClass>().unwrap_err();
        assert_eq!(error, "an event is added, changed or deleted, not \"gone\"");
    }

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
        assert_eq!((event.kind, event.run), (EventKind::Unknown, Run(2)));
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
            "delay, max-pages, label team, param key, weight, plugin"
        );
    }
}
