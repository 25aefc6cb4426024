//! Times of cron, and the instants that they are in a time zone.
//!
//! A local time that does not exist, because clocks are put forward over it, stands for the instant of the change. A
//! local time that exists twice stands for the first of both. So each local time stands for one instant, and later local
//! times never stand for earlier instants. The rules of time zones are part of the program, and no file is read.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::{AmbiguousOffset, TimeZone};

use crate::crawl::UnixMillis;
use crate::text::as_text;

/// Number of days that are searched for a time: 29 February on one day of the week comes back after 40 years at most.
const DAYS: usize = 50 * 366;
/// Largest number of bytes of an expression: lists of all values fit.
const TEXT_MAX: usize = 512;
const HOURS_OF_DAY: u16 = 24;
const MINUTES_OF_HOUR: u16 = 60;

/// Local times that five fields name: minute, hour, day of the month, month, and day of the week.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cron {
    /// The fields as written, with one blank between them.
    text: String,
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    /// Days of the week, from Sunday, which is 0.
    weekdays: u64,
    /// True if a day has to be named by one of both fields only, because neither begins with a star.
    is_either_day: bool,
}

/// Time zone by its name in the list of IANA, such as `Europe/Paris`.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Returns UTC.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({self})")
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}

impl FromStr for Zone {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = TimeZone::get(text).ok();
        let named = found.filter(|zone| zone.iana_name().is_some());
        named.map(Self).ok_or_else(|| {
            format!("takes the name of a time zone, such as Europe/Paris or UTC, not {text:?}")
        })
    }
}

/// Field of a cron expression.
struct Field {
    what: &'static str,
    min: u8,
    max: u8,
    /// Names of the values, beginning with the smallest.
    names: &'static [&'static str],
}

const MINUTE: Field = Field {
    what: "minute",
    min: 0,
    max: 59,
    names: &[],
};
const HOUR: Field = Field {
    what: "hour",
    min: 0,
    max: 23,
    names: &[],
};
const DAY: Field = Field {
    what: "day of the month",
    min: 1,
    max: 31,
    names: &[],
};
const MONTH: Field = Field {
    what: "month",
    min: 1,
    max: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
/// Both 0 and 7 are Sunday.
const WEEKDAY: Field = Field {
    what: "day of the week",
    min: 0,
    max: 7,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

impl Field {
    /// Parses a list of values, ranges and steps into a set of bits.
    fn parse(&self, text: &str) -> Result<u64, String> {
        let mut set = 0;
        for part in text.split(',') {
            let (range, step) = match part.split_once('/') {
                Some((range, step)) => (range, Some(self.number(step, part)?)),
                None => (part, None),
            };
            let (from, to) = match range.split_once('-') {
                _ if range == "*" => (self.min, self.max),
                Some((from, to)) => (self.value(from, part)?, self.value(to, part)?),
                None if step.is_some() => return Err(self.wrong(part)),
                None => {
                    let value = self.value(range, part)?;
                    (value, value)
                }
            };
            let step = step.unwrap_or(1);
            if from > to || step == 0 {
                return Err(self.wrong(part));
            }
            for value in (from..=to).step_by(usize::from(step)) {
                set |= 1_u64 << value;
            }
        }
        Ok(set)
    }

    fn value(&self, text: &str, part: &str) -> Result<u8, String> {
        let lower = text.to_ascii_lowercase();
        let named = self.names.iter().position(|name| *name == lower);
        let value = match named.and_then(|n| u8::try_from(n).ok()) {
            Some(n) => self.min + n,
            None => self.number(text, part)?,
        };
        match (self.min..=self.max).contains(&value) {
            true => Ok(value),
            false => Err(self.wrong(part)),
        }
    }

    fn number(&self, text: &str, part: &str) -> Result<u8, String> {
        let is_digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = is_digits.then(|| text.parse().ok()).flatten();
        number.ok_or_else(|| self.wrong(part))
    }

    fn wrong(&self, part: &str) -> String {
        let Self { what, min, max, .. } = self;
        let names = match (self.names.first(), self.names.last()) {
            (Some(first), Some(last)) => format!(", or {first} to {last}"),
            _ => String::new(),
        };
        format!(
            "has {part:?} as {what}, which goes from {min} to {max}{names}; write *, 5, 1-5, */15 or 1-30/2, and more with commas"
        )
    }
}

impl FromStr for Cron {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > TEXT_MAX {
            let n_bytes = text.len();
            return Err(format!(
                "has {n_bytes} bytes; at most {TEXT_MAX} are allowed"
            ));
        }
        let fields: Vec<&str> = text.split_ascii_whitespace().collect();
        let &[minute, hour, day, month, weekday] = fields.as_slice() else {
            return Err(format!(
                "takes five fields: minute, hour, day of the month, month and day of the week, such as 0 3 * * *, not {text:?}"
            ));
        };
        let weekdays = WEEKDAY.parse(weekday)?;
        let cron = Self {
            text: fields.join(" "),
            minutes: MINUTE.parse(minute)?,
            hours: HOUR.parse(hour)?,
            days: DAY.parse(day)?,
            months: MONTH.parse(month)?,
            // The bit of 7 is that of Sunday.
            weekdays: (weekdays | (weekdays >> 7)) & 0x7f,
            is_either_day: !day.starts_with('*') && !weekday.starts_with('*'),
        };
        match next_in_zone(&cron, &Zone::utc(), 0) {
            Some(_) => Ok(cron),
            None => Err(format!("is {text:?}, a time that never comes")),
        }
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

as_text!(Cron, Zone);

impl Cron {
    fn has_date(&self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        let in_month = has(self.days, date.day());
        let in_week = has(self.weekdays, weekday);
        let has_day = match self.is_either_day {
            true => in_month || in_week,
            false => in_month && in_week,
        };
        has(self.months, date.month()) && has_day
    }

    /// Returns the first hour and minute of a day that are at this minute of the day or later.
    fn time_of_day(&self, from: u16) -> Option<(i8, i8)> {
        let first = from / MINUTES_OF_HOUR;
        for hour in first..HOURS_OF_DAY {
            let start = match hour == first {
                true => from % MINUTES_OF_HOUR,
                false => 0,
            };
            let named = self.minutes >> start;
            if (self.hours >> hour) & 1 == 1 && named != 0 {
                let minute = u32::from(start) + named.trailing_zeros();
                return Some((i8::try_from(hour).ok()?, i8::try_from(minute).ok()?));
            }
        }
        None
    }
}

fn has(set: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| (set >> value) & 1 == 1)
}

/// Returns the first instant that is strictly later than `after`. `None` if there is none within decades.
pub(super) fn next_in_zone(cron: &Cron, zone: &Zone, after: UnixMillis) -> Option<UnixMillis> {
    let now = Timestamp::from_millisecond(i64::try_from(after).ok()?).ok()?;
    let local = zone.0.to_datetime(now);
    let mut date = local.date();
    // Local times up to this one stand for instants up to this one.
    let mut from = minute_of_day(local.hour(), local.minute()) + 1;
    for _day in 0..DAYS {
        if cron.has_date(date) {
            while let Some((hour, minute)) = cron.time_of_day(from) {
                let at = instant(&zone.0, date.at(hour, minute, 0, 0))?;
                if at > after {
                    return Some(at);
                }
                from = minute_of_day(hour, minute) + 1;
            }
        }
        date = date.tomorrow().ok()?;
        from = 0;
    }
    None
}

fn minute_of_day(hour: i8, minute: i8) -> u16 {
    let [hour, minute] = [hour, minute].map(|n| u16::try_from(n).unwrap_or(0));
    hour * MINUTES_OF_HOUR + minute
}

/// Returns the instant that a local time stands for.
fn instant(zone: &TimeZone, local: DateTime) -> Option<UnixMillis> {
    let ambiguous = zone.to_ambiguous_timestamp(local);
    let at = match ambiguous.offset() {
        AmbiguousOffset::Gap { .. } => {
            let before = ambiguous.earlier().ok()?;
            zone.following(before).next()?.timestamp()
        }
        // The first of two is meant.
        AmbiguousOffset::Unambiguous { .. } | AmbiguousOffset::Fold { .. } => {
            ambiguous.compatible().ok()?
        }
    };
    u64::try_from(at.as_millisecond()).ok()
}
