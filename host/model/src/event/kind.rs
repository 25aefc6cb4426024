//! Kinds of events, by the words that readers are told.
//!
//! This is the only list of them. [`EventKind`] is what readers of a history are told; [`EventClass`] is the coarser word by
//! which webhooks tell of the state of a resource, and kinds that change it have one. A kind of a later version keeps its
//! word.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::text::as_text;

/// Largest number of bytes of the word of a kind.
const WORD_MAX: usize = 31;

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

/// Kind of an event. Those from `RuleKilled` to `ItemsHeld` are of resources and known to workers only; those from
/// `Joined` on are of nodes.
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
    /// Held items are released or dropped.
    HeldDecided,
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
    /// Calls of rules were ended by a limit or a trap.
    RuleKilled,
    /// Hosts are left alone, because they failed, asked for it or could not be reached.
    BreakerOpen,
    /// Hosts that were left alone answer again.
    BreakerClosed,
    /// A sink takes no items.
    SinkRefused,
    /// A sink that took no items takes them again.
    SinkBack,
    /// The archive takes no pages.
    ArchiveRefused,
    /// The archive takes pages again.
    ArchiveBack,
    /// Items are held, because they are not like those of the last good run.
    ItemsHeld,
    /// A process has registered as the node.
    Joined,
    /// The process of the node is gone, and had said that it would leave.
    Left,
    /// The process of the node is gone, and had not said so.
    Lost,
    /// The worker is to give its shards to others.
    Draining,
    /// The worker that drains has no shards any more.
    Drained,
    /// The worker takes shards again.
    Undrained,
    /// The master leads.
    Leads,
    /// The master leads no longer.
    LeadsNoMore,
    /// Shards came to the worker and left it.
    Shards,
    /// The node runs another version of the program.
    Version,
    /// An event of a later version, with its word.
    Unknown(OtherWord),
}

/// Word of a kind that this version does not know. It is empty if it is not a word as kinds have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OtherWord {
    bytes: [u8; WORD_MAX],
    length: u8,
}

impl EventKind {
    /// All kinds that this version tells.
    pub const ALL: [EventKind; 39] = [
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
        EventKind::HeldDecided,
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
        EventKind::RuleKilled,
        EventKind::BreakerOpen,
        EventKind::BreakerClosed,
        EventKind::SinkRefused,
        EventKind::SinkBack,
        EventKind::ArchiveRefused,
        EventKind::ArchiveBack,
        EventKind::ItemsHeld,
        EventKind::Joined,
        EventKind::Left,
        EventKind::Lost,
        EventKind::Draining,
        EventKind::Drained,
        EventKind::Undrained,
        EventKind::Leads,
        EventKind::LeadsNoMore,
        EventKind::Shards,
        EventKind::Version,
    ];

    /// Returns the word of the kind; `unknown` for one of a later version, whose word [`Display`](fmt::Display) shows.
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
            EventKind::HeldDecided => "held-decided",
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
            EventKind::RuleKilled => "rule-killed",
            EventKind::BreakerOpen => "breaker-open",
            EventKind::BreakerClosed => "breaker-closed",
            EventKind::SinkRefused => "sink-refused",
            EventKind::SinkBack => "sink-back",
            EventKind::ArchiveRefused => "archive-refused",
            EventKind::ArchiveBack => "archive-back",
            EventKind::ItemsHeld => "items-held",
            EventKind::Joined => "joined",
            EventKind::Left => "left",
            EventKind::Lost => "lost",
            EventKind::Draining => "draining",
            EventKind::Drained => "drained",
            EventKind::Undrained => "undrained",
            EventKind::Leads => "leads",
            EventKind::LeadsNoMore => "leads-no-more",
            EventKind::Shards => "shards",
            EventKind::Version => "version",
            EventKind::Unknown(_) => "unknown",
        }
    }

    /// True if a worker may tell such an event. A later version may have further kinds.
    pub fn is_of_worker(self) -> bool {
        let known = EventKind::RuleKilled..=EventKind::ItemsHeld;
        known.contains(&self) || matches!(self, EventKind::Unknown(_))
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
            | EventKind::HeldDecided
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
            | EventKind::RuleKilled
            | EventKind::BreakerOpen
            | EventKind::BreakerClosed
            | EventKind::SinkRefused
            | EventKind::SinkBack
            | EventKind::ArchiveRefused
            | EventKind::ArchiveBack
            | EventKind::ItemsHeld
            | EventKind::Joined
            | EventKind::Left
            | EventKind::Lost
            | EventKind::Draining
            | EventKind::Drained
            | EventKind::Undrained
            | EventKind::Leads
            | EventKind::LeadsNoMore
            | EventKind::Shards
            | EventKind::Version
            | EventKind::Unknown(_) => None,
        }
    }
}

impl FromStr for EventKind {
    type Err = Infallible;

    /// Parses the word of a kind. A later version may have further kinds.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let meant = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        Ok(meant.unwrap_or_else(|| EventKind::Unknown(OtherWord::of(text))))
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventKind::Unknown(word) if !word.as_str().is_empty() => f.write_str(word.as_str()),
            kind => f.write_str(kind.as_str()),
        }
    }
}

impl OtherWord {
    /// Keeps a word of lowercase letters, digits and hyphens.
    fn of(text: &str) -> Self {
        let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        let mut word = Self::default();
        if text.len() <= WORD_MAX && text.bytes().all(is_plain) {
            word.bytes[..text.len()].copy_from_slice(text.as_bytes());
            word.length = text.len() as u8;
        }
        word
    }

    /// Returns the word.
    pub fn as_str(&self) -> &str {
        let word = self.bytes.get(..usize::from(self.length));
        std::str::from_utf8(word.unwrap_or_default()).unwrap_or_default()
    }
}

as_text!(EventKind);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_kind_has_a_word_of_its_own() {
        let words: BTreeSet<&str> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(words.len(), EventKind::ALL.len());
        for kind in EventKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!(words.iter().all(|word| word.len() <= WORD_MAX));
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
    fn workers_tell_eight_kinds_and_those_of_later_versions() {
        let own = EventKind::ALL
            .into_iter()
            .filter(|kind| kind.is_of_worker());
        assert_eq!(own.count(), 8);
        assert!(EventKind::RuleKilled.is_of_worker() && EventKind::ItemsHeld.is_of_worker());
        assert!(!EventKind::Deleted.is_of_worker() && !EventKind::Joined.is_of_worker());
        let later: EventKind = "of-a-later-version".parse().unwrap();
        assert!(later.is_of_worker());
    }

    #[test]
    fn a_kind_of_a_later_version_keeps_its_word() {
        let parsed = |text: &str| -> EventKind { text.parse().unwrap() };
        let later = parsed("of-a-later-version");
        assert_eq!((later.as_str(), later.class()), ("unknown", None));
        assert_eq!(later.to_string(), "of-a-later-version");
        assert_eq!(
            serde_json::to_string(&later).unwrap(),
            r#""of-a-later-version""#
        );
        assert_ne!(later, parsed("of-another-version"));
        for odd in [
            "",
            "Frozen",
            "\u{1b}[2J",
            "é",
            "a-word-that-is-longer-than-those-of-kinds",
        ] {
            assert_eq!(parsed(odd).to_string(), "unknown", "{odd:?}");
        }
    }
}
