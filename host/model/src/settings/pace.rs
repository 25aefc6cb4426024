//! Rates of pages and hours of the day, written as `10/s, 300/m` and `22:00-06:00`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use super::list::{entries, list};
use crate::crawl::UnixMillis;
use crate::text::as_text;

/// Largest count of a rate: a rate limiter stores that many timestamps.
pub(super) const MAX_RATE_COUNT: u32 = 10_000;
const DAY_MINUTES: u16 = 24 * 60;
const MINUTE_MS: u64 = 60_000;

/// Upper bound on a number in any interval of a given length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    /// Number, from 1 to 10 000.
    pub n: u32,
    /// Length of the interval, at most a day.
    pub per: Duration,
}

impl Rate {
    /// Returns the share of one of `n_shares` that share the rate. Every share allows at least 1, over a
    /// correspondingly longer interval.
    pub fn share(self, n_shares: u32) -> Self {
        let n_shares = n_shares.max(1);
        let n = (self.n / n_shares).max(1);
        // All shares together allow self.n in self.per.
        let per = self.per * n * n_shares / self.n.max(1);
        Self { n, per }
    }
}

impl FromStr for Rate {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (n, per) = text.split_once('/').ok_or(())?;
        let digits = per.find(|c: char| !c.is_ascii_digit()).ok_or(())?;
        let (times, unit) = per.split_at(digits);
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 60 * 60,
            "d" => 24 * 60 * 60,
            _ => return Err(()),
        };
        let times: u64 = match times {
            "" => 1,
            times => times.parse().map_err(drop)?,
        };
        let n = n.parse().map_err(drop)?;
        let seconds = times.checked_mul(seconds).ok_or(())?;
        let is_meant = (1..=MAX_RATE_COUNT).contains(&n) && (1..=24 * 60 * 60).contains(&seconds);
        let per = Duration::from_secs(seconds);
        is_meant.then_some(Self { n, per }).ok_or(())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.per.as_secs();
        let (times, unit) = match seconds {
            s if s % (24 * 60 * 60) == 0 => (s / (24 * 60 * 60), 'd'),
            s if s % (60 * 60) == 0 => (s / (60 * 60), 'h'),
            s if s % 60 == 0 => (s / 60, 'm'),
            s => (s, 's'),
        };
        write!(f, "{}/", self.n)?;
        if times != 1 {
            write!(f, "{times}")?;
        }
        write!(f, "{unit}")
    }
}

/// Rates that all hold at once; an empty list sets no bound. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rates(Arc<[Rate]>);

impl Rates {
    /// Iterates over the rates in the order in which they were written.
    pub fn iter(&self) -> impl Iterator<Item = Rate> {
        self.0.iter().copied()
    }

    /// True if there is no rate.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the share of one of `n_shares` that share the rates.
    pub fn share(&self, n_shares: u32) -> Self {
        Self(self.iter().map(|rate| rate.share(n_shares)).collect())
    }
}

impl FromIterator<Rate> for Rates {
    fn from_iter<I: IntoIterator<Item = Rate>>(rates: I) -> Self {
        Self(rates.into_iter().collect())
    }
}

impl FromStr for Rates {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let rates = entries(text, "none")?;
        let rates: Option<Vec<Rate>> = rates.map(|rate| rate.parse().ok()).collect();
        let rates = rates.ok_or_else(|| {
            format!(
                "takes none, or rates like 10/s, 300/m or 1/5s, from 1 to {MAX_RATE_COUNT} in up to a day, not {text:?}"
            )
        })?;
        Ok(Self(rates.into()))
    }
}

impl fmt::Display for Rates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.0, "none")
    }
}

/// Parts of each day, in UTC; an empty list stands for the whole day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hours(Vec<Span>);

/// Interval from one minute of the day to another, which may be on the next day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    from: u16,
    to: u16,
}

impl Hours {
    /// Returns the time at which the hours begin again, or `None` if `now` is within them.
    pub fn begin_after(&self, now: UnixMillis) -> Option<UnixMillis> {
        let minute = now / MINUTE_MS;
        let of_day = u16::try_from(minute % u64::from(DAY_MINUTES)).unwrap_or(0);
        if self.0.is_empty() || self.0.iter().any(|span| span.has(of_day)) {
            return None;
        }
        let until = |span: &Span| (span.from + DAY_MINUTES - of_day) % DAY_MINUTES;
        let first = self.0.iter().map(until).min()?;
        Some((minute + u64::from(first)) * MINUTE_MS)
    }
}

impl Span {
    fn has(self, minute: u16) -> bool {
        match self.from < self.to {
            true => (self.from..self.to).contains(&minute),
            false => minute >= self.from || minute < self.to,
        }
    }
}

impl FromStr for Span {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let minute = |text: &str| -> Option<u16> {
            let (hour, minute) = text.split_once(':')?;
            let is_two = |part: &str| part.len() == 2 && part.bytes().all(|b| b.is_ascii_digit());
            if !is_two(hour) || !is_two(minute) {
                return None;
            }
            let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
            let sum = hour * 60 + minute;
            (minute < 60 && sum <= DAY_MINUTES).then_some(sum)
        };
        let (from, to) = text.split_once('-').ok_or(())?;
        let (from, to) = (minute(from).ok_or(())?, minute(to).ok_or(())?);
        let is_meant = from != to && from < DAY_MINUTES;
        is_meant.then_some(Self { from, to }).ok_or(())
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { from, to } = self;
        write!(
            f,
            "{:02}:{:02}-{:02}:{:02}",
            from / 60,
            from % 60,
            to / 60,
            to % 60
        )
    }
}

impl Hours {
    /// True if there is no hour at which a crawl rests.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let spans: Option<Vec<Span>> = entries(text, "all")?
            .map(|span| span.parse().ok())
            .collect();
        let spans = spans.ok_or_else(|| {
            format!("takes all, or hours of the day in UTC like 22:00-06:00, not {text:?}")
        })?;
        Ok(Self(spans))
    }
}

impl fmt::Display for Hours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, &self.0, "all")
    }
}

as_text!(Rates, Hours);

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(text: &str) -> Result<String, String> {
        text.parse().map(|rates: Rates| rates.to_string())
    }

    fn hours(text: &str) -> Result<String, String> {
        text.parse().map(|hours: Hours| hours.to_string())
    }

    #[test]
    fn rates_are_read_as_they_are_written_and_what_is_none_is_refused() {
        for (text, expected) in [
            ("10/s", "10/s"),
            (" 10/s,300/m , 1/5s", "10/s, 300/m, 1/5s"),
            ("5000/h, 1/d", "5000/h, 1/d"),
            ("1/90s, 1/120s, 1/24h", "1/90s, 1/2m, 1/d"),
            ("none", "none"),
            ("", "none"),
        ] {
            assert_eq!(rates(text).as_deref(), Ok(expected));
            assert_eq!(rates(expected).as_deref(), Ok(expected));
        }
        for text in [
            "10",
            "s",
            "/s",
            "0/s",
            "10001/s",
            "-1/s",
            "10/",
            "10/x",
            "1/0s",
            "1/2d",
            "1.5/s",
            "10/s 3/m",
            "10/s,",
            "1/99999999999999999999s",
            "1/18446744073709551615d",
        ] {
            let expected = format!(
                "takes none, or rates like 10/s, 300/m or 1/5s, from 1 to 10000 in up to a day, not {text:?}"
            );
            assert_eq!(rates(text), Err(expected));
        }
        let many = ["1/s"; 9].join(",");
        assert_eq!(
            rates(&many),
            Err("has 9 entries; at most 8 are allowed".to_owned())
        );
    }

    #[test]
    fn shares_of_a_rate_are_the_rate_together_and_none_is_empty() {
        let second = Duration::from_secs(1);
        for (n, n_shares, share, per) in [
            (10, 1, 10, second),
            (8, 4, 2, second),
            (10, 4, 2, second * 4 / 5),
            (1, 4, 1, 4 * second),
            (3, 32, 1, second * 32 / 3),
        ] {
            let rate = Rate { n, per: second };
            assert_eq!(rate.share(n_shares), Rate { n: share, per });
        }
    }

    #[test]
    fn hours_are_read_as_they_are_written_and_what_is_none_is_refused() {
        for (text, expected) in [
            ("22:00-06:00", "22:00-06:00"),
            ("00:00-24:00,12:00-12:30", "00:00-24:00, 12:00-12:30"),
            ("all", "all"),
        ] {
            assert_eq!(hours(text).as_deref(), Ok(expected));
        }
        for text in [
            "22-06",
            "6:00-7:00",
            "24:00-01:00",
            "10:00-24:01",
            "10:00-10:00",
            "10:60-11:00",
        ] {
            let expected =
                format!("takes all, or hours of the day in UTC like 22:00-06:00, not {text:?}");
            assert_eq!(hours(text), Err(expected));
        }
    }

    #[test]
    fn hours_begin_and_end_with_their_minutes() {
        let at = |hour: u64, minute: u64| ((3 * 24 + hour) * 60 + minute) * MINUTE_MS;
        let night: Hours = "22:00-06:00, 12:00-12:30".parse().unwrap();
        for open in [at(22, 0), at(23, 59), at(0, 0), at(6, 0) - 1, at(12, 29)] {
            assert_eq!(night.begin_after(open), None, "{open}");
        }
        for (closed, next) in [
            (at(6, 0), at(12, 0)),
            (at(11, 59) + 59_999, at(12, 0)),
            (at(12, 30), at(22, 0)),
        ] {
            assert_eq!(night.begin_after(closed), Some(next), "{closed}");
        }
        let morning: Hours = "06:00-07:00".parse().unwrap();
        assert_eq!(morning.begin_after(at(7, 0)), Some(at(24 + 6, 0)));
        let whole: Hours = "00:00-24:00".parse().unwrap();
        assert_eq!(whole.begin_after(at(23, 59)), None);
        assert_eq!(Hours::default().begin_after(at(5, 0)), None);
    }
}
