//! Days of a page, written as ISO 8601.

use std::fmt;
use std::str::FromStr;

use chrono::{Datelike as _, NaiveDate};

use super::date_time::moment;
use super::{Capture, Value};
use crate::{Result, RuleError};

/// A day, without a time.
///
/// Key `format` says how the page writes it, in the letters of [`strftime`]. Without the key the text is one of
/// ISO 8601, as in `<time datetime>`: `2026-07-01`, or the same with a time behind it, of which the day is taken
/// as it stands.
///
/// ```
/// use crawler_plugin_sdk::testing::Trial;
/// use crawler_plugin_sdk::prelude::*;
///
/// #[derive(Extract, Item, serde::Serialize)]
/// struct Article {
///     #[css("p.day", format = "%d %B %Y")]
///     published: Date,
///     #[css("time", attr = "datetime")]
///     changed: Option<Date>,
/// }
///
/// pub struct News;
///
/// #[plugin(items(Article), reads(Article))]
/// impl News {
///     fn root(_: &mut Crawl) -> Result {
///         Ok(())
///     }
///
///     #[rule]
///     fn article(page: &Page, crawl: &mut Crawl) -> Result {
///         let article: Article = page.extract()?;
///         match article.published.year() {
///             2020.. => crawl.emit(&article),
///             _ => Ok(()),
///         }
///     }
/// }
///
/// let html = "<p class=day>1 July 2026</p><time datetime='2026-07-02T09:30:00+02:00'>yesterday</time>";
/// let outcome = Trial::new().parse(News::article, &Page::from_html("http://news.test/1", html))?;
/// assert_eq!(outcome.items[0].value["published"], "2026-07-01");
/// assert_eq!(outcome.items[0].value["changed"], "2026-07-02");
/// # Ok::<(), RuleError>(())
/// ```
///
/// The letters used most are `%d` day, `%m` month, `%B` or `%b` its name in English, whole or short, `%Y` year,
/// `%y` its last two digits (70 to 99 are of 1900), `%A` or `%a` the day of the week, which has to be right.
/// Leading zeros may be missing. White space in a format stands for any white space, or none; white space around
/// the text is ignored. Other texts have to be there as they are. A format that can give no day does not compile.
/// A year that `%Y` reads has four digits. Names in other languages, and words like "yesterday", need a function
/// of your own, by key `with`.
///
/// [`strftime`]: https://docs.rs/chrono/latest/chrono/format/strftime/index.html#specifiers
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(NaiveDate);

impl Date {
    /// Reads a day from a text in this format.
    ///
    /// ```
    /// use crawler_plugin_sdk::{Date, Result};
    ///
    /// fn day(text: &str) -> Result<Date> {
    ///     let german = text.replace("Mai", "May").replace("Dezember", "December");
    ///     Date::parse(&german, "%d. %B %Y")
    /// }
    /// assert_eq!(day("3. Mai 2026")?.to_string(), "2026-05-03");
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    pub fn parse(text: &str, format: &str) -> Result<Self> {
        read(text, format).map_err(RuleError::unexpected)
    }

    /// Year in the Gregorian calendar.
    ///
    /// ```
    /// let date: crawler_plugin_sdk::Date = "2026-07-01".parse()?;
    /// assert_eq!((date.year(), date.month(), date.day()), (2026, 7, 1));
    /// # Ok::<(), crawler_plugin_sdk::RuleError>(())
    /// ```
    pub fn year(self) -> i32 {
        self.0.year()
    }

    /// Month, from 1.
    pub fn month(self) -> u32 {
        self.0.month()
    }

    /// Day of the month, from 1.
    pub fn day(self) -> u32 {
        self.0.day()
    }

    pub(super) fn checked(date: NaiveDate) -> Result<Self, String> {
        match date.year() {
            0..=9999 => Ok(Self(date)),
            year => Err(format!("the year {year} has not four digits")),
        }
    }
}

/// Returns a function that reads a day by the format of a field.
pub fn date<'r>(format: &str) -> impl Fn(&Capture<'r>) -> Result<Date, String> {
    move |capture| read(capture.text(), format)
}

fn read(text: &str, format: &str) -> Result<Date, String> {
    let date = NaiveDate::parse_from_str(text.trim(), format);
    let date = date.map_err(|why| format!("it is not as the format `{format}`: {why}"))?;
    check_year(date)?;
    Date::checked(date)
}

/// Refuses years of fewer than four digits, because `%Y` reads `26` as the year 26.
pub(super) fn check_year(date: NaiveDate) -> Result<(), String> {
    match date.year() {
        year @ ..1000 => Err(format!(
            "the year {year} has not four digits; of a year's last two the letter is `%y`"
        )),
        _ => Ok(()),
    }
}

impl Value for Date {
    fn read(capture: &Capture<'_>) -> Result<Self, String> {
        iso(capture.text())
    }
}

fn iso(text: &str) -> Result<Date, String> {
    let text = text.trim();
    let day = || {
        let is_whole = text.len() == 10 && !text.starts_with('+');
        let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok();
        day.filter(|_| is_whole)
    };
    let with_time = || moment(text).map(|(local, _)| local.date());
    match day().or_else(with_time) {
        Some(date) => Date::checked(date),
        None => {
            Err("it is not as `2026-07-01`; say how it is written: format = \"%d %B %Y\"".into())
        }
    }
}

/// Reads a day of ISO 8601: `2026-07-01`.
impl FromStr for Date {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self> {
        iso(text).map_err(|why| RuleError::unexpected(format!("{text:?} is no day: {why}")))
    }
}

/// Writes the day as in ISO 8601: `2026-07-01`.
impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Converts to the type of chrono, for calculations.
impl From<Date> for NaiveDate {
    fn from(date: Date) -> Self {
        date.0
    }
}

as_text!(Date, {"type": "string", "format": "date"});
