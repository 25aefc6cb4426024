//! Specification of a schedule: parsed once, from the texts and numbers that every interface takes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::cron::{Cron, Zone};
use crate::settings::SettingError;

/// Shortest interval in milliseconds.
const MIN_EVERY_MS: u64 = 60 * 1_000;
/// Longest interval in milliseconds.
const MAX_EVERY_MS: u64 = 366 * 24 * 60 * 60 * 1_000;
/// Largest jitter in milliseconds.
const MAX_JITTER_MS: u64 = 24 * 60 * 60 * 1_000;

/// Specification of a schedule by its user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "RawSchedule", into = "RawSchedule")]
pub struct ScheduleSpec {
    /// Due times.
    pub when: When,
    /// Largest delay of a start after its due time, in milliseconds.
    pub jitter_ms: u64,
    /// Treatment of a due time at which the run before is not over.
    pub overlap: Overlap,
    /// True if a due time that was noticed too late starts a run all the same.
    pub makes_up: bool,
}

/// Due times of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// Local times in a time zone.
    Cron {
        /// The times.
        cron: Cron,
        /// The time zone.
        zone: Zone,
    },
    /// Multiples of an interval, counted from the time at which the schedule was set.
    Every {
        /// The interval in milliseconds.
        every_ms: u64,
    },
}

/// Treatment of a due time at which the run before is not over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overlap {
    /// The due time starts nothing.
    #[default]
    Skip,
    /// The due time starts a run when the one before is over. Whatever is due meanwhile is part of the same start.
    Queue,
    /// The due time ends the run and starts the next.
    Restart,
}

impl Overlap {
    const ALL: [Self; 3] = [Self::Skip, Self::Queue, Self::Restart];

    /// Returns the word that users write.
    pub fn as_str(self) -> &'static str {
        match self {
            Overlap::Skip => "skip",
            Overlap::Queue => "queue",
            Overlap::Restart => "restart",
        }
    }
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Overlap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let meant = Self::ALL.into_iter().find(|word| word.as_str() == text);
        meant.ok_or_else(|| format!("takes skip, queue or restart, not {text:?}"))
    }
}

/// Specification as messages, bodies and records hold it. What is empty or 0 has its default.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RawSchedule {
    /// Five fields of cron; this or an interval.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cron: String,
    /// Name of a time zone, as IANA lists it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tz: String,
    /// Interval in milliseconds; this or a cron expression.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub every_ms: u64,
    /// Largest delay in milliseconds.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub jitter_ms: u64,
    /// Word of the treatment of a run that is not over.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub overlap: String,
    /// Word of the treatment of missed due times.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub missed: String,
}

impl TryFrom<RawSchedule> for ScheduleSpec {
    type Error = SettingError;

    fn try_from(raw: RawSchedule) -> Result<Self, SettingError> {
        let wrong = |setting| move |why| SettingError { setting, why };
        let when = match (raw.cron.as_str(), raw.every_ms) {
            ("", 0) => {
                let why = "is missing; write times like '0 3 * * *', or an interval with every";
                return Err(wrong("cron")(why.to_owned()));
            }
            ("", every_ms) => {
                if !(MIN_EVERY_MS..=MAX_EVERY_MS).contains(&every_ms) {
                    let every = humantime::format_duration(Duration::from_millis(every_ms));
                    let why = format!("is {every}; it goes from 1 minute to 366 days");
                    return Err(wrong("every")(why));
                }
                if !raw.tz.is_empty() {
                    let why = "is for cron; an interval is the same in every time zone";
                    return Err(wrong("tz")(why.to_owned()));
                }
                When::Every { every_ms }
            }
            (cron, 0) => When::Cron {
                cron: cron.parse().map_err(wrong("cron"))?,
                zone: match raw.tz.as_str() {
                    "" => Zone::utc(),
                    tz => tz.parse().map_err(wrong("tz"))?,
                },
            },
            (_, _) => {
                let why = "cannot stand beside cron; leave one of them out";
                return Err(wrong("every")(why.to_owned()));
            }
        };
        if raw.jitter_ms > MAX_JITTER_MS {
            let jitter = humantime::format_duration(Duration::from_millis(raw.jitter_ms));
            let why = format!("is {jitter}; it goes up to 1 day");
            return Err(wrong("jitter")(why));
        }
        Ok(Self {
            when,
            jitter_ms: raw.jitter_ms,
            overlap: match raw.overlap.as_str() {
                "" => Overlap::default(),
                word => word.parse().map_err(wrong("overlap"))?,
            },
            makes_up: match raw.missed.as_str() {
                "" | "once" => true,
                "skip" => false,
                word => {
                    let why = format!("takes once or skip, not {word:?}");
                    return Err(wrong("missed")(why));
                }
            },
        })
    }
}

impl From<ScheduleSpec> for RawSchedule {
    fn from(spec: ScheduleSpec) -> Self {
        let (cron, tz, every_ms) = match spec.when {
            When::Cron { cron, zone } => (cron.to_string(), zone.to_string(), 0),
            When::Every { every_ms } => (String::new(), String::new(), every_ms),
        };
        let missed = match spec.makes_up {
            true => "once",
            false => "skip",
        };
        Self {
            cron,
            tz,
            every_ms,
            jitter_ms: spec.jitter_ms,
            overlap: spec.overlap.to_string(),
            missed: missed.to_owned(),
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference over"
)]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
