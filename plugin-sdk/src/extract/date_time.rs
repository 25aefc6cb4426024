//! Moments of a page, written as RFC 3339.

use std::fmt;
use std::str::FromStr;

use chrono::{FixedOffset, NaiveDateTime};

use super::date::{Date, check_year};
use super::{Capture, Value};
use crate::{Result, RuleError};

/// Formats that are tried, each with an offset and without one.
const ISO: [&str; 2] = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"];
/// Length of the day in these formats, in bytes.
const DAY_LEN: usize = 10;

/// A day and a time with its offset from UTC.
///
/// Key `format` says how the page writes it, see [`Date`]. The letters used most for times are `%H` hour, `%I` the
/// same with `%p` for AM and PM, `%M` minute, `%S` second, `%z` offset, and `%#z` for an offset that may be `Z`.
/// Without the key the text is one of RFC 3339, as in `<time datetime>`: `2026-07-01T12:30:00+02:00`; a space may
/// stand for the `T`, seconds may be missing, and `Z` is UTC. If the page tells no offset, key `offset` does, so
/// that no time is ambiguous:
///
/// ```
/// use crawler_plugin_sdk::testing::Trial;
/// use crawler_plugin_sdk::prelude::*;
///
/// #[derive(Extract, Item, serde::Serialize)]
/// struct Post {
///     #[css("time", attr = "datetime")]
///     written: DateTime,
///     #[css("p.seen", format = "%d/%m/%Y at %I:%M %p", offset = "+01:00")]
///     seen: DateTime,
/// }
///
/// pub struct Forum;
///
/// #[plugin(items(Post), reads(Post))]
/// impl Forum {
///     fn root(_: &mut Crawl) -> Result {
///         Ok(())
///     }
///
///     #[rule]
///     fn post(page: &Page, crawl: &mut Crawl) -> Result {
///         let post: Post = page.extract()?;
///         match post.seen > post.written {
///             true => crawl.emit(&post),
///             false => Err(RuleError::skip("nobody has seen it")),
///         }
///     }
/// }
///
/// let html = "<time datetime='2026-07-01 08:30Z'></time><p class=seen>1/7/2026 at 5:05 PM</p>";
/// let outcome = Trial::new().parse(Forum::post, &Page::from_html("http://forum.test/1", html))?;
/// assert_eq!(outcome.items[0].value["written"], "2026-07-01T08:30:00+00:00");
/// assert_eq!(outcome.items[0].value["seen"], "2026-07-01T17:05:00+01:00");
/// # Ok::<(), RuleError>(())
/// ```
///
/// Two values are equal if they are the same moment, whatever their offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(chrono::DateTime<FixedOffset>);

impl DateTime {
    /// Reads a moment from a text in this format, which has to read an offset.
    ///
    /// ```
    /// use crawler_plugin_sdk::DateTime;
    ///
    /// let moment = DateTime::parse("1 Jul 2003 10:52 +0200", "%d %b %Y %H:%M %z")?;
    /// assert_eq!(moment.to_string(), "2003-07-01T10:52:00+02:00");
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    pub fn parse(text: &str, format: &str) -> Result<Self> {
        read(text, format, None).map_err(RuleError::unexpected)
    }

    /// Day of the moment in its own offset.
    ///
    /// ```
    /// let moment: crawler_plugin_sdk::DateTime = "2026-07-01T23:30:00-05:00".parse()?;
    /// assert_eq!(moment.date().to_string(), "2026-07-01");
    /// assert_eq!(moment.unix_millis(), 1_782_966_600_000);
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    pub fn date(self) -> Date {
        Date::checked(self.0.date_naive()).expect("the year was checked when this was made")
    }

    /// Milliseconds since 1970, as in [`Page::fetched_at`](crate::Page::fetched_at).
    pub fn unix_millis(self) -> i64 {
        self.0.timestamp_millis()
    }

    fn checked(moment: chrono::DateTime<FixedOffset>) -> Result<Self, String> {
        Date::checked(moment.date_naive()).map(|_| Self(moment))
    }

    /// Makes a moment of a local time. `offset` is in seconds to the east of Greenwich; `None` is an error, since
    /// the text told none either.
    fn local(local: NaiveDateTime, offset: Option<i32>) -> Result<Self, String> {
        let Some(offset) = offset else {
            return Err("it tells no offset from UTC; say which: offset = \"+00:00\"".into());
        };
        let moment = FixedOffset::east_opt(offset)
            .and_then(|offset| local.and_local_timezone(offset).single());
        Self::checked(moment.ok_or("the offset is more than a day")?)
    }
}

/// Returns a function that reads a moment by the format and the offset of a field.
pub fn date_time<'r>(
    format: Option<&str>,
    offset: Option<i32>,
) -> impl Fn(&Capture<'r>) -> Result<DateTime, String> {
    move |capture| match format {
        Some(format) => read(capture.text(), format, offset),
        None => iso(capture.text(), offset),
    }
}

fn read(text: &str, format: &str, offset: Option<i32>) -> Result<DateTime, String> {
    let text = text.trim();
    let unlike = |why| format!("it is not as the format `{format}`: {why}");
    match offset {
        None => {
            let moment = chrono::DateTime::parse_from_str(text, format).map_err(unlike)?;
            check_year(moment.date_naive())?;
            DateTime::checked(moment)
        }
        Some(_) => {
            let local = NaiveDateTime::parse_from_str(text, format).map_err(unlike)?;
            check_year(local.date())?;
            DateTime::local(local, offset)
        }
    }
}

impl Value for DateTime {
    fn read(capture: &Capture<'_>) -> Result<Self, String> {
        iso(capture.text(), None)
    }
}

fn iso(text: &str, offset: Option<i32>) -> Result<DateTime, String> {
    match moment(text.trim()) {
        Some((_, Some(whole))) => DateTime::checked(whole),
        Some((local, None)) => DateTime::local(local, offset),
        None => {
            let like = "2026-07-01T12:30:00+02:00";
            Err(format!(
                "it is not as `{like}`; say how it is written: format = \"%d/%m/%Y %H:%M %z\""
            ))
        }
    }
}

/// Reads a text of RFC 3339: its local day and time, and the whole moment if the text tells the offset.
pub(super) fn moment(text: &str) -> Option<(NaiveDateTime, Option<chrono::DateTime<FixedOffset>>)> {
    let (day, time) = text.split_at_checked(DAY_LEN)?;
    let time = time.strip_prefix(['T', 't', ' '])?;
    if day.starts_with('+') {
        return None;
    }
    let text = format!("{day} {time}");
    ISO.iter().find_map(|format| {
        let with_offset = format!("{format}%#z");
        match chrono::DateTime::parse_from_str(&text, &with_offset) {
            Ok(whole) => Some((whole.naive_local(), Some(whole))),
            Err(_) => {
                let local = NaiveDateTime::parse_from_str(&text, format);
                local.ok().map(|local| (local, None))
            }
        }
    })
}

/// Reads a moment of RFC 3339: `2026-07-01T12:30:00+02:00`.
impl FromStr for DateTime {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self> {
        iso(text, None)
            .map_err(|why| RuleError::unexpected(format!("{text:?} is no moment: {why}")))
    }
}

/// Writes the moment as in RFC 3339: `2026-07-01T12:30:00+02:00`.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The `Display` of chrono writes a space for the `T`.
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Converts to the type of chrono, for calculations.
impl From<DateTime> for chrono::DateTime<FixedOffset> {
    fn from(moment: DateTime) -> Self {
        moment.0
    }
}

as_text!(DateTime, {"type": "string", "format": "date-time"});
