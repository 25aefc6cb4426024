//! Moments of a page, written as RFC 3339.

use std::fmt;
use std::str::FromStr;

use chrono::{FixedOffset, NaiveDateTime};

use super::date::{Date, check_year};
use super::{Capture, Value};
use crate::{Result, RuleError};

/// Both are tried, with an offset and without one.
const ISO: [&str; 2] = ["%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"];
/// Bytes of a day in these.
const DAY_LEN: usize = 10;

/// A day and a time, with how far it is from UTC.
///
/// As the page writes it: by key `format`, see [`Date`]; of times the letters `%H` hour, `%I` the same with `%p`
/// for AM and PM, `%M` minute, `%S` second, `%z` offset, and `%#z` for one that may be `Z`, are the most used. Without it the text is one of RFC
/// 3339, as in `<time datetime>`: `2026-07-01T12:30:00+02:00`; a space may stand for the `T`, seconds may be
/// missing, and `Z` is UTC. Where the page tells no offset, key `offset` does, so that no time is ambiguous:
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
/// Two are equal if they are the same moment, whatever their offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(chrono::DateTime<FixedOffset>);

impl DateTime {
    /// The moment that a text means by this format, which reads an offset.
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

    /// The day as it is called there.
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

    /// Milliseconds since 1970, as of [`Page::fetched_at`](crate::Page::fetched_at).
    pub fn unix_millis(self) -> i64 {
        self.0.timestamp_millis()
    }

    fn checked(moment: chrono::DateTime<FixedOffset>) -> Result<Self, String> {
        Date::checked(moment.date_naive()).map(|_| Self(moment))
    }

    /// Seconds to the east of Greenwich, where the text itself does not tell.
    fn local(local: NaiveDateTime, offset: Option<i32>) -> Result<Self, String> {
        let Some(offset) = offset else {
            return Err("it tells no offset from UTC; say which: offset = \"+00:00\"".into());
        };
        let moment = FixedOffset::east_opt(offset)
            .and_then(|offset| local.and_local_timezone(offset).single());
        Self::checked(moment.ok_or("the offset is more than a day")?)
    }
}

/// What reads a moment by the format and the offset that a field names.
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

/// What a text as of RFC 3339 says: day and time as they are called there, and the whole if it tells the offset.
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

/// As of RFC 3339: `2026-07-01T12:30:00+02:00`.
impl FromStr for DateTime {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self> {
        iso(text, None)
            .map_err(|why| RuleError::unexpected(format!("{text:?} is no moment: {why}")))
    }
}

/// As of RFC 3339: `2026-07-01T12:30:00+02:00`.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its display has a space for the `T`.
        fmt::Debug::fmt(&self.0, f)
    }
}

/// For calculations.
impl From<DateTime> for chrono::DateTime<FixedOffset> {
    fn from(moment: DateTime) -> Self {
        moment.0
    }
}

as_text!(DateTime, {"type": "string", "format": "date-time"});
